//! Live status: reports that count for a time-to-live.

use std::collections::HashMap;

use super::access::Access;
use super::change::Attempt;
use super::records::{self, Entries, StoredStatus, Transaction};
use super::{AgentCfg, Caller};
use crate::error::Error;
use crate::model::{
    AgentId, AgentStatus, IdRef, LiveStatus, Permission, StatusEvent, StatusReport, TextId, WorkspaceId,
};
use crate::validate::IntoValid;

impl AgentCfg {
    /// The live status of every active agent, in the order of the list. (Interface specification,
    /// *Agent status*.)
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
        let statuses = self.status_events(&access).await?.events;
        Ok(statuses.into_iter().map(AgentStatus::from).collect())
    }

    /// The status list with the times of the reports.
    pub(super) async fn status_events(&self, access: &Access) -> Result<Statuses, Error> {
        let list = self.agent_list(access).await?;
        let reports = self
            .scan(Entries::<StoredStatus>::in_workspace(access.workspace()))
            .await?;
        let now = self.now();
        let mut found = HashMap::with_capacity(reports.len());
        let mut ages_at = None;
        for report in reports {
            let stored = report.value()?;
            let end = self.end_of(&stored);
            if now.unix_millis() < end {
                ages_at = Some(ages_at.map_or(end, |first: i64| first.min(end)));
            }
            found.insert(report.key().item().to_owned(), stored);
        }
        let events = list.names().map(|(agent_id, display_name)| {
            let report = found.remove(agent_id);
            let reported_at = report.as_ref().map(|report| report.reported_at);
            let live = report.filter(|report| now.unix_millis() < self.end_of(report));
            // The identifiers in a list are those of records, which were checked.
            let status = entry(AgentId::wrap(agent_id.into()), display_name, live);
            StatusEvent {
                agent_id: status.agent_id,
                display_name: status.display_name,
                status: status.status,
                current_task_id: status.current_task_id,
                current_task_title: status.current_task_title,
                reported_at,
            }
        });
        Ok(Statuses {
            events: events.collect(),
            ages_at,
        })
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
        self.settle(|| self.try_report_status(caller, workspace, agent_id, &report))
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
        let transaction = Transaction::guarded_by(&access)
            .check(unchanged)
            .put(records::status(access.workspace(), agent_id.as_str()), &stored)?;
        let reported = entry(agent.agent_id, &agent.display_name, Some(stored));
        Ok(self.commit(transaction).await?.attempt(reported))
    }

    /// When a report no longer counts, in milliseconds since the Unix epoch.
    fn end_of(&self, stored: &StoredStatus) -> i64 {
        let ttl = i64::from(self.settings().status_ttl_seconds) * 1000;
        stored.reported_at.unix_millis().saturating_add(ttl)
    }
}

/// The status list of a workspace.
pub(super) struct Statuses {
    /// One for each active agent, in the order of the list.
    pub(super) events: Vec<StatusEvent>,
    /// When the first report that counts now will no longer count, in milliseconds since the Unix epoch.
    pub(super) ages_at: Option<i64>,
}

fn entry(agent_id: AgentId, display_name: &str, report: Option<StoredStatus>) -> AgentStatus {
    let (status, current_task_id, current_task_title) = match report {
        Some(report) => (report.status, report.current_task_id, report.current_task_title),
        None => (LiveStatus::Offline, None, None),
    };
    AgentStatus {
        agent_id,
        display_name: display_name.to_owned(),
        status,
        current_task_id,
        current_task_title,
    }
}
