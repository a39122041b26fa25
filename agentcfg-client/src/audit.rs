//! The audit log.

use agentcfg_core::model::{AuditEntry, AuditFilter, AuditSummary, WorkspaceId};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

/// The page of a list to read.
///
/// ```
/// use agentcfg_client::Page;
/// let second = Page { offset: 100, ..Page::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Page {
    /// The number of entries to skip.
    pub offset: u64,
    /// The maximum number of entries, 1–1000; `None` for the server's default of 100.
    pub limit: Option<u32>,
}

impl Client {
    /// Lists the entries of a workspace's audit log, newest first.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `audit_log:read` in the workspace,
    /// [`is_invalid`](Error::is_invalid) for a limit out of its bounds.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::Page;
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for entry in client.audit_log(workspace, &Page::default()).await? {
    ///     println!("{} {} {} {}", entry.created_at, entry.actor.id, entry.action, entry.target.id);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn audit_log(&self, workspace: WorkspaceId, page: &Page) -> Result<Vec<AuditEntry>, Error> {
        let call = Call::get("/api/audit-log").query("workspace_id", workspace);
        self.send(call.page(page.offset, page.limit), ApiResponse::json).await
    }

    /// Lists the entries of a workspace's audit log that a filter selects, newest first.
    ///
    /// # Errors
    ///
    /// As [`Self::audit_log`].
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::AuditFilter;
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let filter = AuditFilter::default().action("label.*");
    /// for entry in client.search_audit_log(workspace, &filter).await? {
    ///     println!("{} {} {}", entry.revision, entry.actor.id, entry.action);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn search_audit_log(
        &self,
        workspace: WorkspaceId,
        filter: &AuditFilter,
    ) -> Result<Vec<AuditEntry>, Error> {
        self.send(search(workspace, filter), ApiResponse::json).await
    }

    /// Lists entries as [`Self::search_audit_log`], without the values: an entry of a thousand agents is short
    /// then.
    ///
    /// # Errors
    ///
    /// As [`Self::audit_log`].
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::AuditFilter;
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for entry in client.audit_summaries(workspace, &AuditFilter::default()).await? {
    ///     println!("{} changed {} fields", entry.action, entry.paths.unwrap_or(entry.changes.len()));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn audit_summaries(
        &self,
        workspace: WorkspaceId,
        filter: &AuditFilter,
    ) -> Result<Vec<AuditSummary>, Error> {
        let call = search(workspace, filter).query("view", "summary");
        self.send(call, ApiResponse::json).await
    }
}

fn search(workspace: WorkspaceId, filter: &AuditFilter) -> Call {
    let call = Call::get("/api/audit-log")
        .query("workspace_id", workspace)
        .query_if("actor", filter.actor.as_ref())
        .query_if("action", filter.action.as_ref())
        .query_if("target_type", filter.target_type.as_ref())
        .query_if("target_id", filter.target_id.as_ref())
        .query_if("since", filter.since)
        .query_if("until", filter.until)
        .query_if("before", filter.before);
    call.page(filter.offset, filter.limit)
}
