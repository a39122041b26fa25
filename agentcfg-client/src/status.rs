//! Live status of agents.

use agentcfg_core::model::{AgentId, AgentStatus, IdRef, StatusChange, StatusReport, Timestamp, WorkspaceId};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

const STATUS: &str = "/api/agents/status";
const HISTORY: &str = "/api/agents/status/history";

impl Client {
    /// Lists the live status of every active agent, in the order of the list of agents.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `agents:read` in the workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for entry in client.agent_status(workspace).await? {
    ///     println!("{} is {}", entry.display_name, entry.status);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn agent_status(&self, workspace: WorkspaceId) -> Result<Vec<AgentStatus>, Error> {
        let call = Call::get(STATUS).query("workspace_id", workspace);
        self.send(call, ApiResponse::json).await
    }

    /// Reports what an agent is doing now. A report expires: repeat it within the server's
    /// time-to-live, which is two minutes by default.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) when the task does not fit the status,
    /// [`is_forbidden`](Error::is_forbidden) without `tasks:update`,
    /// [`is_not_found`](Error::is_not_found) for an unknown or deleted agent.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), agentcfg_client::Error> {
    /// use agentcfg_client::model::StatusReport;
    /// client.report_status(None, "writer", &StatusReport::working("T-7", "Write the docs")).await?;
    /// client.report_status(None, "writer", &StatusReport::idle()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn report_status(
        &self,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        report: &StatusReport,
    ) -> Result<AgentStatus, Error> {
        let call = Call::put(STATUS).agent(workspace, agent_id.into()).json(report);
        self.send(call.idempotent(), ApiResponse::json).await
    }

    /// Lists the changes of the live status of a workspace's agents in the last 24 hours, as the server saw them,
    /// oldest first. `agent_id` and `since` select some of them.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `agents:read` in the workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for change in client.status_history(workspace, Some("writer"), None).await? {
    ///     println!("{} {}", change.at, change.status);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn status_history(
        &self,
        workspace: WorkspaceId,
        agent_id: Option<&str>,
        since: Option<Timestamp>,
    ) -> Result<Vec<StatusChange>, Error> {
        let call = Call::get(HISTORY)
            .query("workspace_id", workspace)
            .query_if("agent_id", agent_id)
            .query_if("since", since);
        self.send(call, ApiResponse::json).await
    }
}
