//! The usage of model calls.

use agentcfg_core::model::{UsageCall, UsageCallFilter, UsageColumn, UsageFilter, UsageRow, WorkspaceId};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

impl Client {
    /// Adds up the model calls of a workspace, in the order of what the sums are grouped by.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `analytics:read` in the workspace, and for what shows who called
    /// without `audit_log:read`; [`is_invalid`](Error::is_invalid) where there would be more than 10,000 rows.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::{UsageColumn, UsageFilter};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let by_release = UsageFilter::default().by(vec![UsageColumn::Agent, UsageColumn::Version]).top(10);
    /// for row in client.usage(workspace, &by_release).await? {
    ///     println!("{:?} {:?}: {} USD", row.agent.value(), row.version.value(), row.cost_usd);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn usage(&self, workspace: WorkspaceId, filter: &UsageFilter) -> Result<Vec<UsageRow>, Error> {
        let by: Vec<&str> = filter.by.iter().map(|column: &UsageColumn| column.as_str()).collect();
        let by = by.join(",");
        let call = Call::get("/api/usage")
            .query("workspace_id", workspace)
            .query_if("from", filter.from)
            .query_if("to", filter.to)
            .query_if("by", Some(by).filter(|by| !by.is_empty()))
            .query_if("agent_id", filter.agent_id.as_ref())
            .query_if("model", filter.model.as_ref())
            .query_if("provider", filter.provider.as_ref())
            .query_if("key", filter.key.as_ref())
            .query_if("label", filter.label.as_ref())
            .query_if("top", filter.top);
        self.send(call, ApiResponse::json).await
    }

    /// Lists the model calls of a workspace, newest first.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `analytics:read` in the workspace, and for the filter `key`
    /// without `audit_log:read`.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::UsageCallFilter;
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for call in client.usage_calls(workspace, &UsageCallFilter::default().agent_id("writer".to_owned())).await? {
    ///     println!("{} {} {} ms", call.ended_at, call.status, call.duration_ms);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn usage_calls(&self, workspace: WorkspaceId, filter: &UsageCallFilter) -> Result<Vec<UsageCall>, Error> {
        let call = Call::get("/api/usage/calls")
            .query("workspace_id", workspace)
            .query_if("limit", filter.limit)
            .query_if("before", filter.before)
            .query_if("agent_id", filter.agent_id.as_ref())
            .query_if("key", filter.key.as_ref())
            .query_if("model", filter.model.as_ref())
            .query_if("status", filter.status);
        self.send(call, ApiResponse::json).await
    }
}
