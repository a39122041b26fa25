//! The current versions of the active agents of a workspace, as one list.

use std::sync::Arc;

use super::super::agent_labels::Labels;
use super::super::blocking::{LONG, blocking_if, is_long};
use super::super::key_limits::KeyLimits;
use super::super::past::PastAgent;
use super::super::records::{self, VersionHead};
use super::super::versions::shown;
use super::super::{AgentCfg, Caller};
use super::list_text::{ListCache, ListText};
use super::{ListWriter, Listed, ListedAgent, RowList, list_tag};
use crate::error::Error;
use crate::model::{AgentVersion, Cursor, Permission, WorkspaceId};

impl AgentCfg {
    /// Lists the current version of each active agent of a workspace, without its content, in the order of the list.
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
    /// for version in service.current_versions(&ada, Some(studio)).await?.decode()? {
    ///     println!("{} is at version {}", version.agent_id, version.version);
    /// }
    /// # Ok(()) }) }
    /// ```
    pub async fn current_versions(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
    ) -> Result<RowList<AgentVersion>, Error> {
        let access = self.access_default(caller, workspace, Permission::AgentsRead).await?;
        let (workspace, limits) = (access.workspace(), access.limits());
        let text = match limits.agents() {
            Some(_) => {
                let _begun = self.begin_answer(caller).await?;
                self.read_versions(workspace, limits, None).await?
            }
            None => self.current_text(&access, &(workspace, Listed::Versions)).await?,
        };
        Ok(RowList::new(text))
    }

    /// Reads the current versions of the agents that the limits include.
    pub(super) async fn read_versions(
        &self,
        workspace: WorkspaceId,
        limits: &KeyLimits,
        reading: Option<Arc<dyn ListCache>>,
    ) -> Result<ListText, Error> {
        let epoch = self.epoch().await?;
        let mut agents = self.labelled_agents(workspace, true).await?;
        let mut list = ListWriter::default();
        while let Some(mut piece) = agents.next().await? {
            piece.retain(|((agent, _), _)| agent.is_active && limits.includes(&agent.agent_id));
            let service = self.clone();
            let written = async move { service.write_versions(workspace, piece, list).await };
            list = self.long_read(workspace, written).await?;
        }
        let cursor = Cursor::new(epoch, workspace, agents.revision());
        let is_long = list.len() >= LONG;
        let finish = move || list.finish(cursor, |_| list_tag(cursor, None), reading);
        blocking_if(is_long, finish).await
    }

    /// Writes the versions of some agents, read at once.
    async fn write_versions(
        &self,
        workspace: WorkspaceId,
        agents: Vec<(PastAgent, Labels)>,
        mut list: ListWriter,
    ) -> Result<ListWriter, Error> {
        let key = |((agent, version), _): &(PastAgent, Labels)| records::version(workspace, &agent.agent_id, *version);
        let found = self.read_many::<VersionHead>(agents.iter().map(key).collect()).await?;
        let is_long = is_long(agents.len(), 0);
        let write = move || {
            for (((agent, version), labels), found) in agents.into_iter().zip(found) {
                let head = found.ok_or_else(records::missing)?.value;
                let listed = ListedAgent {
                    order: (agent.created_at, agent.id),
                    agent_id: &agent.agent_id,
                    display_name: &agent.display_name,
                };
                list.push(
                    listed,
                    &shown(agent.agent_id.clone(), &head, labels.of_version(version)),
                )?;
            }
            Ok(list)
        };
        blocking_if(is_long, write).await?
    }
}
