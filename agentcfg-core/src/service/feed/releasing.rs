//! What a label releases, in the event that moves it.

use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::error::Error;
use crate::model::{
    Action, AgentConfig, AgentId, ChangeEvent, Label, ReleasedAgent, WorkspaceId, change_path, event_family,
};
use crate::service::AgentCfg;
use crate::service::records::{self, Encoded, StoredVersion};

/// The longest text of an event that has what is released, in bytes. A reader of a longer release reads what the label
/// releases.
pub(super) const MAX_RELEASED_BYTES: usize = 128 << 10;

/// The most versions of one event.
const MAX_VERSIONS: usize = 50;

/// The text of an event with what it releases. It is made once for all readers that follow the label.
#[derive(Clone, Default)]
pub(super) struct Releasing(Arc<OnceCell<Option<Moved>>>);

/// The label that an event moves, and the text of the event with what it releases.
type Moved = (Label, Arc<str>);

impl Releasing {
    /// The text of this event for a reader that follows a label; `None` where the event does not have what is released.
    pub(super) async fn text(
        &self,
        service: &AgentCfg,
        (kind, json): (Action, &str),
        label: &Label,
    ) -> Result<Option<Arc<str>>, Error> {
        if !event_family::moves_labels(kind.as_str()) {
            return Ok(None);
        }
        let made = self.0.get_or_try_init(|| make(service, json)).await?;
        let made = made.as_ref().filter(|(moved, _)| moved == label);
        Ok(made.map(|(_, text)| Arc::clone(text)))
    }
}

async fn make(service: &AgentCfg, json: &str) -> Result<Option<Moved>, Error> {
    let mut event: ChangeEvent = serde_json::from_str(json).map_err(records::not_read)?;
    let Some((label, versions)) = moves(&event) else {
        return Ok(None);
    };
    let Some(released) = read(service, event.cursor.workspace(), versions).await? else {
        return Ok(None);
    };
    // A store that was restored gives numbers of versions again.
    if service.epoch().await? != event.cursor.epoch() {
        return Ok(None);
    }
    let released = released.into_iter().map(|(agent_id, version)| ReleasedAgent {
        agent_id,
        label: label.clone(),
        version: version.version,
        updated_at: event.created_at,
        config: version.config,
    });
    event.released = Some(released.collect());
    let text = serde_json::to_string(&event).map_err(records::not_written)?;
    Ok((text.len() <= MAX_RELEASED_BYTES).then(|| (label, text.into())))
}

/// The versions that an event moves a label to, if it does nothing else and they are few.
fn moves(event: &ChangeEvent) -> Option<(Label, Vec<(AgentId, u64)>)> {
    let mut moved: Option<Label> = None;
    let mut versions = Vec::new();
    for (path, change) in &event.changes {
        let (agent_id, name) = change_path::agent_and_name(path)?;
        let label = change_path::label(name)?;
        if moved.get_or_insert(label.parse().ok()?).as_str() != label || versions.len() == MAX_VERSIONS {
            return None;
        }
        versions.push((agent_id.parse().ok()?, change.to.as_u64()?));
    }
    Some((moved?, versions))
}

/// The content of some versions, if all are kept.
async fn read(
    service: &AgentCfg,
    workspace: WorkspaceId,
    versions: Vec<(AgentId, u64)>,
) -> Result<Option<Vec<(AgentId, StoredVersion)>>, Error> {
    let key =
        |(agent_id, version): &(AgentId, u64)| records::version::<AgentConfig>(workspace, agent_id, *version).encoded();
    let found: Vec<Option<Encoded<StoredVersion>>> = service.read(versions.iter().map(key).collect::<Vec<_>>()).await?;
    let Some(found) = found.into_iter().collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let agents = versions.into_iter().map(|(agent_id, _)| agent_id);
    let versions = agents
        .zip(&found)
        .map(|(agent_id, found)| Ok((agent_id, found.value()?)));
    versions.collect::<Result<_, Error>>().map(Some)
}
