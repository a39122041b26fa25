//! The labels of a workspace, as one list by agent and label.

use std::sync::Arc;

use super::super::blocking::{blocking_if, is_long};
use super::super::records::{self, Encoded, Entries, StoredLabels};
use super::super::{AgentCfg, Caller};
use super::list_text::{ListCache, ListText};
use super::{ListWriter, Listed, RowList, list_tag};
use crate::error::Error;
use crate::model::{AgentId, AgentLabel, Cursor, IdRef, Label, LabelFilter, Permission, WorkspaceId};

impl AgentCfg {
    /// Lists labels, by agent and label. Labels of deactivated agents are among them.
    ///
    /// As with [`Self::list_agents`], callers at the same time share one read.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `agents:read`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.set_label(&ada, Some(studio), "writer", "production", LabelTarget::new(1)).await?;
    /// let released = LabelFilter::default().label("production");
    /// let labels = service.list_labels(&ada, studio, released).await?.decode()?;
    /// assert_eq!((labels[0].agent_id.as_str(), labels[0].version), ("writer", 1));
    /// # Ok(()) }) }
    /// ```
    pub async fn list_labels(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        filter: LabelFilter<'_>,
    ) -> Result<RowList<AgentLabel>, Error> {
        let access = self.access(caller, workspace, Permission::AgentsRead).await?;
        let limits = access.limits();
        let agents = match filter.agent_id {
            Some(agent_id) => {
                limits.require_agent(agent_id)?;
                // A text that no agent has for an identifier selects nothing.
                let is_possible = IdRef::<AgentId>::from(agent_id).is_possible();
                Some(Vec::from_iter(is_possible.then_some(agent_id)))
            }
            None => limits
                .agents()
                .map(|agents| agents.iter().map(|agent| &**agent).collect()),
        };
        let label = filter.label.map(str::parse::<Label>).transpose();
        let (agents, label) = match label {
            Ok(label) => (agents, label),
            // Nor does a text that is no label.
            Err(_) => (Some(Vec::new()), None),
        };
        if let Some(agents) = agents {
            let _begun = match agents.len() {
                0 | 1 => None,
                _ => Some(self.begin_answer(caller).await?),
            };
            return Ok(RowList::new(self.labels_of_some(workspace, &agents, label).await?));
        }
        let of = (workspace, Listed::Labels(label));
        Ok(RowList::new(self.current_text(&access, &of).await?))
    }

    /// The labels of some agents.
    async fn labels_of_some(
        &self,
        workspace: WorkspaceId,
        agents: &[&str],
        label: Option<Label>,
    ) -> Result<ListText, Error> {
        let keys = agents
            .iter()
            .map(|agent_id| records::labels(workspace, agent_id).encoded());
        let query = (records::revision(workspace), keys.collect::<Vec<_>>());
        let (revision, found) = self.read(query).await?;
        let cursor = Cursor::new(self.epoch().await?, workspace, revision);
        write(found.into_iter().flatten().collect(), label, cursor, None).await
    }

    /// Reads the labels of all agents.
    pub(super) async fn read_labels(
        &self,
        workspace: WorkspaceId,
        label: Option<Label>,
        reading: Option<Arc<dyn ListCache>>,
    ) -> Result<ListText, Error> {
        let epoch = self.epoch().await?;
        let entries = Entries::<StoredLabels>::in_workspace(workspace);
        let (found, revision) = self.scan_with(entries, records::revision(workspace)).await?;
        let cursor = Cursor::new(epoch, workspace, revision);
        write(found.into_iter().collect(), label, cursor, reading).await
    }
}

/// Writes the rows of these records, of one label or of all, in the order of the records.
async fn write(
    found: Vec<Encoded<StoredLabels>>,
    wanted: Option<Label>,
    cursor: Cursor,
    reading: Option<Arc<dyn ListCache>>,
) -> Result<ListText, Error> {
    let is_long = is_long(found.len(), found.iter().map(Encoded::bytes).sum());
    let write = move || {
        let mut list = ListWriter::default();
        for record in found {
            let agent_id = AgentId::try_from(record.key().item())?;
            for (label, found) in record.value()?.labels {
                if wanted.as_ref().is_none_or(|wanted| label == *wanted) {
                    list.push_next(&agent_id, &found.shown(&agent_id, &label))?;
                }
            }
        }
        Ok(list.finish(cursor, |_| list_tag(cursor, None), reading))
    };
    blocking_if(is_long, write).await?
}
