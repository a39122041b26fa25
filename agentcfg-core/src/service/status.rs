//! Live status: a report counts for its time-to-live.
//!
//! Readers of a workspace share a table of its statuses ([`status_cache`]), which follows the changes
//! ([`status_table`]).

mod history;
mod status_cache;
mod status_list;
mod status_table;

pub use self::history::StatusChanges;
pub(super) use self::history::StatusHistory;
pub(super) use self::status_cache::Statuses;
pub use self::status_list::{StatusList, StatusPiece};
pub(super) use self::status_table::{Delta, TablePosition};
use self::status_table::{Table, entry};
use super::access::Access;
use super::records::{self, Outcome, StoredStatus};
use super::retry::Attempt;
use super::{AgentCfg, Caller};
use crate::error::Error;
use crate::model::{AgentId, AgentStatus, IdRef, Permission, StatusChange, StatusReport, WorkspaceId};
use crate::validate::IntoValid;

impl AgentCfg {
    /// The live status of every active agent, in the order of the list.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `agents:read` in the workspace.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// for entry in service.agent_status(&ada, studio).await? {
    ///     println!("{} is {}", entry.display_name, entry.status);
    /// }
    /// # Ok(()) }) }
    /// ```
    pub async fn agent_status(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Vec<AgentStatus>, Error> {
        let access = self.access(caller, workspace, Permission::AgentsRead).await?;
        self.shown_statuses(&access).await
    }

    /// The entries of the agents that the caller may see.
    async fn shown_statuses(&self, access: &Access) -> Result<Vec<AgentStatus>, Error> {
        let statuses = self.statuses(access);
        let state = statuses.current(self, access).await?;
        let mut entries = state.table.as_ref().map(Table::entries).unwrap_or_default();
        entries.retain(|entry| access.limits().includes(&entry.agent_id));
        Ok(entries)
    }

    /// As [`Self::agent_status`], as JSON text that concurrent requests share.
    ///
    /// The text is written again only where an entry has changed, so this is the way for many readers of a large
    /// workspace.
    ///
    /// # Errors
    ///
    /// As [`Self::agent_status`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let list = service.status_list(&ada, studio).await?;
    /// let entries: Vec<AgentStatus> = serde_json::from_slice(&list.json())?;
    /// assert_eq!(entries, service.agent_status(&ada, studio).await?);
    /// # Ok(()) }) }
    /// ```
    pub async fn status_list(&self, caller: &Caller, workspace: WorkspaceId) -> Result<StatusList, Error> {
        let access = self.access(caller, workspace, Permission::AgentsRead).await?;
        match access.limits().agents() {
            None => self.shared_status_list(&access).await,
            Some(_) => StatusList::of(&self.shown_statuses(&access).await?),
        }
    }

    /// Reports what an agent is doing now. The report counts for
    /// [`Settings::status_ttl_seconds`](super::Settings::status_ttl_seconds).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) when the task does not fit the status,
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `tasks:update`,
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for an unknown or deleted agent.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let report = StatusReport::working("T-7", "Write the release notes");
    /// let entry = service.report_status(&ada, Some(studio), "writer", report).await?;
    /// assert_eq!(entry.status, LiveStatus::Working);
    /// # Ok(()) }) }
    /// ```
    pub async fn report_status(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        report: impl IntoValid<StatusReport>,
    ) -> Result<AgentStatus, Error> {
        let (agent_id, report) = (agent_id.into(), report.into_valid()?);
        self.retry_lost_races(|| self.try_report_status(caller, workspace, agent_id, &report))
            .await
    }

    async fn try_report_status(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: IdRef<'_, AgentId>,
        report: &StatusReport,
    ) -> Result<Attempt<AgentStatus>, Error> {
        let access = self.access_default(caller, workspace, Permission::TasksUpdate).await?;
        let (agent, unchanged) = self.active_agent_checked(&access, agent_id).await?;
        let stored = StoredStatus {
            status: report.status,
            current_task_id: report.current_task_id.clone(),
            current_task_title: report.current_task_title.clone(),
            reported_at: self.now(),
        };
        let transaction = access
            .transaction()
            .check(unchanged)
            .put(records::status(access.workspace(), agent_id.as_str()), &stored)?;
        let reported = entry(agent.agent_id, &agent.display_name, Some(&stored));
        let outcome = self.commit(transaction).await?;
        if let Outcome::Done(_) = outcome {
            let change = StatusChange {
                agent_id: reported.agent_id.clone(),
                at: stored.reported_at,
                status: stored.status,
                current_task_id: stored.current_task_id,
                current_task_title: stored.current_task_title,
            };
            self.note_report(access.workspace(), change);
        }
        outcome.attempt(reported)
    }
}
