//! What a label releases: the version of each active agent that it points at, as one list.
//!
//! Which version each agent shows is read in one snapshot. Versions never change, so their content is read after it.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;

use super::super::blocking::{LONG, blocking_if};
use super::super::chunked_reads::RECORDS;
use super::super::key_limits::KeyLimits;
use super::super::records::{self, AgentSummary, Encoded, Entries, StoredLabels, StoredVersion};
use super::super::{AgentCfg, Caller};
use super::hashed_tag::hashed;
use super::list_text::{ListCache, ListText};
use super::{ListWriter, Listed, ListedAgent, RowList};
use crate::error::Error;
use crate::model::{
    AgentConfig, AgentId, Cursor, IdRef, Label, Permission, ReleasedAgent, Tagged, Timestamp, WorkspaceId,
};
use crate::validate::Invalid;

impl AgentCfg {
    /// Lists the version of each active agent that a label points at, with its content, in the order of the list of
    /// agents. `latest` releases the current versions. With `agent_id` the list has at most that agent.
    ///
    /// The tag changes only when the list does. As with [`Self::list_agents`], callers at the same time share one read.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a text that is no label,
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `agents:read`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.set_label(&ada, Some(studio), "writer", "production", LabelTarget::new(1)).await?;
    /// let released = service.released(&ada, studio, "production", None).await?.value.decode()?;
    /// assert_eq!((released[0].agent_id.as_str(), released[0].version), ("writer", 1));
    /// # Ok(()) }) }
    /// ```
    pub async fn released(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        label: impl TryInto<Label, Error = Invalid>,
        agent_id: Option<&str>,
    ) -> Result<Tagged<RowList<ReleasedAgent>>, Error> {
        let label = label.try_into()?;
        let access = self.access(caller, workspace, Permission::AgentsRead).await?;
        let limits = access.limits();
        limits.require_label(&label)?;
        if let Some(agent_id) = agent_id {
            limits.require_agent(agent_id)?;
            // A text that no agent has for an identifier selects nothing.
            let agent_id = IdRef::<AgentId>::from(agent_id)
                .is_possible()
                .then(|| agent_id.parse())
                .transpose()?;
            return Box::pin(self.released_some(workspace, &label, agent_id.into_iter().collect(), None)).await;
        }
        if let Some(agents) = limits.agents() {
            let ids = agents.iter().cloned().collect();
            return Box::pin(self.released_some(workspace, &label, ids, Some(agents))).await;
        }
        let of = (workspace, Listed::Released(label));
        Ok(RowList::tagged(self.current_text(&access, &of).await?))
    }

    /// What a label releases of some agents. `limits` are those agents, where they are all that the caller may see.
    async fn released_some(
        &self,
        workspace: WorkspaceId,
        label: &Label,
        agents: Vec<AgentId>,
        limits: Option<&BTreeSet<AgentId>>,
    ) -> Result<Tagged<RowList<ReleasedAgent>>, Error> {
        let keys = agents.iter().map(|agent_id| {
            let place = records::agent_place(workspace, agent_id);
            (place, records::labels(workspace, agent_id))
        });
        let query = (records::revision(workspace), keys.collect::<Vec<_>>());
        let (revision, found) = self.read(query).await?;
        let labelled = agents.into_iter().zip(found).filter_map(|(agent_id, (place, labels))| {
            let labels = labels.map(|labels| labels.value);
            LabelledAgent::of(agent_id, &place?.value, labels.as_ref(), label)
        });
        let written = self.write_released(workspace, label, labelled.collect()).await?;
        let cursor = Cursor::new(self.epoch().await?, workspace, revision);
        let text = written.finish(cursor, |json| hashed(cursor.epoch(), json, limits), None);
        Ok(RowList::tagged(text))
    }

    /// Reads what a label releases.
    pub(super) async fn read_released(
        &self,
        workspace: WorkspaceId,
        label: &Label,
        reading: Option<Arc<dyn ListCache>>,
    ) -> Result<ListText, Error> {
        let epoch = self.epoch().await?;
        let (revision, labelled) = self.released_by(workspace, label.clone()).await?;
        let written = self.write_released(workspace, label, labelled).await?;
        let is_long = written.len() >= LONG;
        let cursor = Cursor::new(epoch, workspace, revision);
        blocking_if(is_long, move || finish(written, cursor, reading)).await
    }

    /// The active agents that a label releases, with the revision of the snapshot.
    async fn released_by(&self, workspace: WorkspaceId, label: Label) -> Result<(u64, Vec<LabelledAgent>), Error> {
        let is_latest = label.is_latest();
        let choose = move |agent_id, place: &AgentSummary, labels: Option<&StoredLabels>| {
            LabelledAgent::of(agent_id, place, labels, &label)
        };
        match is_latest {
            true => self.current_agents_with_label(workspace, choose).await,
            false => self.agents_with_label(workspace, choose).await,
        }
    }

    /// The versions that two labels of an agent point at, of each active agent that has both, in the order of the list.
    pub(in crate::service) async fn pairs(
        &self,
        workspace: WorkspaceId,
        from: &Label,
        to: &Label,
        limits: &KeyLimits,
    ) -> Result<Vec<Pair>, Error> {
        let (both, limits) = ((from.clone(), to.clone()), limits.clone());
        let choose = move |agent_id: AgentId, place: &AgentSummary, labels: Option<&StoredLabels>| {
            if !limits.includes(&agent_id) {
                return None;
            }
            let from = LabelledAgent::of(agent_id.clone(), place, labels, &both.0)?;
            let to = LabelledAgent::of(agent_id, place, labels, &both.1)?;
            Some((from, to.version))
        };
        let (_, mut pairs) = match from.is_latest() && to.is_latest() {
            true => self.current_agents_with_label(workspace, choose).await?,
            false => self.agents_with_label(workspace, choose).await?,
        };
        pairs.sort_unstable_by_key(|(agent, _)| agent.order);
        let pair = |(from, to): (LabelledAgent, u64)| Pair {
            agent_id: from.agent_id,
            from: from.version,
            to,
        };
        Ok(pairs.into_iter().map(pair).collect())
    }

    /// What is chosen of the current version of each agent.
    async fn current_agents_with_label<T: Send + 'static>(
        &self,
        workspace: WorkspaceId,
        choose: impl Fn(AgentId, &AgentSummary, Option<&StoredLabels>) -> Option<T> + Send + 'static,
    ) -> Result<(u64, Vec<T>), Error> {
        let entries = Entries::<AgentSummary>::in_workspace(workspace);
        let (found, revision) = self.scan_with(entries, records::revision(workspace)).await?;
        let is_long = found.bytes() >= LONG;
        let choose = move || {
            let chosen = found.into_iter().map(|record| {
                let agent_id = AgentId::try_from(record.key().item())?;
                Ok(choose(agent_id, &record.value()?, None))
            });
            chosen.filter_map(Result::transpose).collect::<Result<_, Error>>()
        };
        Ok((revision, blocking_if(is_long, choose).await??))
    }

    /// What is chosen of each agent that has a label.
    async fn agents_with_label<T: Send + 'static>(
        &self,
        workspace: WorkspaceId,
        choose: impl Fn(AgentId, &AgentSummary, Option<&StoredLabels>) -> Option<T> + Send + 'static,
    ) -> Result<(u64, Vec<T>), Error> {
        let entries = Entries::<StoredLabels>::in_workspace(workspace);
        let (labelled, (revision, places)) = self
            .scan_linked(entries, |keys| {
                let place =
                    |key: &records::EntityKey<StoredLabels>| records::agent_place(workspace, key.item()).encoded();
                Ok((records::revision(workspace), keys.iter().map(place).collect::<Vec<_>>()))
            })
            .await?;
        let is_long = labelled.bytes() + places.iter().flatten().map(Encoded::bytes).sum::<usize>() >= LONG;
        let choose = move || {
            let mut chosen = Vec::new();
            for (labels, place) in labelled.into_iter().zip(places) {
                let Some(place) = place else { continue };
                let agent_id = AgentId::try_from(place.key().item())?;
                chosen.extend(choose(agent_id, &place.value()?, Some(&labels.value()?)));
            }
            Ok::<_, Error>(chosen)
        };
        Ok((revision, blocking_if(is_long, choose).await??))
    }

    /// Writes the versions that agents bear, some at a time.
    async fn write_released(
        &self,
        workspace: WorkspaceId,
        label: &Label,
        labelled: Vec<LabelledAgent>,
    ) -> Result<ListWriter, Error> {
        let mut list = ListWriter::default();
        let mut labelled = labelled.into_iter();
        loop {
            let piece: Vec<LabelledAgent> = labelled.by_ref().take(RECORDS).collect();
            if piece.is_empty() {
                return Ok(list);
            }
            let key = |agent: &LabelledAgent| {
                records::version::<AgentConfig>(workspace, &agent.agent_id, agent.version).encoded()
            };
            let found: Vec<Option<Encoded<StoredVersion>>> =
                self.read(piece.iter().map(key).collect::<Vec<_>>()).await?;
            let is_long = found.iter().flatten().map(Encoded::bytes).sum::<usize>() >= LONG;
            let (label, missing) = (label.clone(), self.missing_version());
            let write = move || {
                for (agent, version) in piece.into_iter().zip(found) {
                    agent.write(&label, version.ok_or_else(missing)?.value()?, &mut list)?;
                }
                Ok::<_, Error>(list)
            };
            list = blocking_if(is_long, write).await??;
        }
    }
}

/// An active agent with the versions that two labels point at.
pub(in crate::service) struct Pair {
    pub(in crate::service) agent_id: AgentId,
    pub(in crate::service) from: u64,
    pub(in crate::service) to: u64,
}

/// An active agent with the version that a label points at.
struct LabelledAgent {
    order: (Timestamp, Uuid),
    agent_id: AgentId,
    version: u64,
    /// When the label was moved; `None` for the reserved label, which has the time of its version.
    moved_at: Option<Timestamp>,
}

impl LabelledAgent {
    /// An agent with its current version, if it is active.
    fn current(agent_id: AgentId, place: &AgentSummary) -> Option<Self> {
        place.is_active.then(|| Self {
            order: (place.created_at, place.id),
            agent_id,
            version: place.version(),
            moved_at: None,
        })
    }

    /// An agent with the version that a label points at, if it is active and has the label.
    fn of(agent_id: AgentId, place: &AgentSummary, labels: Option<&StoredLabels>, label: &Label) -> Option<Self> {
        let current = Self::current(agent_id, place)?;
        if label.is_latest() {
            return Some(current);
        }
        let found = labels?.labels.get(label)?;
        Some(Self {
            version: found.version,
            moved_at: Some(found.updated_at),
            ..current
        })
    }

    fn write(self, label: &Label, version: StoredVersion, list: &mut ListWriter) -> Result<(), Error> {
        let released = ReleasedAgent {
            agent_id: self.agent_id,
            label: label.clone(),
            version: version.version,
            updated_at: self.moved_at.unwrap_or(version.created_at),
            config: version.config,
        };
        let listed = ListedAgent {
            order: self.order,
            agent_id: &released.agent_id,
            display_name: &released.config.display_name,
        };
        list.push(listed, &released)
    }
}

fn finish(written: ListWriter, cursor: Cursor, reading: Option<Arc<dyn ListCache>>) -> ListText {
    written.finish(cursor, |json| hashed(cursor.epoch(), json, None), reading)
}
