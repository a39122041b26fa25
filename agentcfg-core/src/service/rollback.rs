//! Rollback of an agent to an earlier version.

use super::agent_change::AgentChange;
use super::agents::{active, agent_key, versioned};
use super::records;
use super::retry::Attempt;
use super::versions::AgentWithLabels;
use super::{AgentCfg, Caller};
use crate::error::Error;
use crate::model::{
    Agent, AgentId, IdRef, Permission, Precondition, Rollback, Tag, VersionSelector, VersionedAgent, WorkspaceId,
};
use crate::validate::IntoValid;

impl AgentCfg {
    /// Gives an agent the content of an earlier version again, as a new version. The same content already: nothing
    /// changes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) unless one version is named,
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `agents:configure`,
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for an unknown or deleted agent and for an unknown version
    /// or label, [`ErrorKind::Precondition`](crate::ErrorKind::Precondition) when the condition is not met.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let patch = AgentPatch::default().display_name("Author");
    /// service.update_agent(&ada, Some(studio), "writer", patch, &Precondition::None).await?;
    /// let writer = service.roll_back_agent(&ada, Some(studio), "writer", Rollback::to_version(1), &Precondition::None).await?;
    /// assert_eq!((writer.version, writer.value.display_name.as_str()), (3, "Writer"));
    /// # Ok(()) }) }
    /// ```
    pub async fn roll_back_agent(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        to: impl IntoValid<Rollback>,
        condition: &Precondition,
    ) -> Result<VersionedAgent, Error> {
        let (agent_id, to) = (agent_id.into(), to.into_valid()?);
        self.retry_lost_races(|| self.try_roll_back(caller, workspace, agent_id, &to, condition))
            .await
    }

    async fn try_roll_back(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: IdRef<'_, AgentId>,
        to: &Rollback,
        condition: &Precondition,
    ) -> Result<Attempt<VersionedAgent>, Error> {
        let access = self
            .access_default(caller, workspace, Permission::AgentsConfigure)
            .await?;
        let key = agent_key(&access, agent_id)?;
        let labels_key = records::labels(access.workspace(), agent_id.as_str());
        let (stored, labels) = self.read((key, labels_key.clone())).await?;
        let stored = active(stored, agent_id)?;
        self.require(&access, condition, &stored).await?;
        // A version never changes, but a label may leave it before the commit.
        let label_stays = to.label.is_some().then(|| labels_key.unchanged(labels.as_ref()));
        let found = AgentWithLabels {
            agent: stored.value.clone(),
            labels: labels.map(|labels| labels.value).unwrap_or_default(),
        };
        let number = match (to.version, &to.label) {
            (Some(version), _) => found.number(version.into())?,
            (None, label) => found.number(label.as_ref().map_or(VersionSelector::Current, Into::into))?,
        };
        let version = self.version(&found.agent, number).await?;
        let agent = found.agent.agent.clone().with_config(version.config);
        if agent.has_content_of(&stored.value.agent) {
            let tag = Tag::record(self.epoch().await?, stored.version);
            return Ok(Attempt::Done(versioned(stored.value, tag)));
        }
        let agent = Agent {
            updated_at: self.after(agent.updated_at),
            ..agent
        };
        let change = AgentChange::new(Some(stored), agent).restored_from(number);
        self.commit_agent(&access, change.given(label_stays), None).await
    }
}
