//! The single calls of the ledger.

use crate::error::Error;
use crate::model::{Permission, UsageCall, UsageCallFilter, WorkspaceId};
use crate::service::chunked_reads::{self, Chunks};
use crate::service::records::{self, Entries, StoredCall};
use crate::service::{AgentCfg, Caller};
use crate::validate::DEFAULT_LIMIT;

use super::selection::Calls;

impl AgentCfg {
    /// The model calls of a workspace that a filter selects, newest first, for as long as they are kept.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `analytics:read`, and for the filter `key` without
    /// `audit_log:read`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// use agentcfg_core::model::UsageCallFilter;
    /// assert!(service.usage_calls(&ada, studio, &UsageCallFilter::default()).await?.is_empty());
    /// # Ok(()) }) }
    /// ```
    pub async fn usage_calls(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        filter: &UsageCallFilter,
    ) -> Result<Vec<UsageCall>, Error> {
        let access = self.access(caller, workspace, Permission::AnalyticsRead).await?;
        let selected = Calls::of(&access, filter)?;
        let with_actor = access.permissions().contains(Permission::AuditLogRead);
        let most = usize::try_from(filter.limit.map_or(DEFAULT_LIMIT, u64::from)).unwrap_or(usize::MAX);
        let oldest = self.oldest_call().unix_millis();
        let mut entries = Entries::<StoredCall>::in_workspace(access.workspace()).descending();
        if let Some(before) = filter.before {
            entries = entries.after(&records::usage_call(access.workspace(), before));
        }
        let mut pieces = Chunks::of(entries);
        let mut calls = Vec::new();
        while calls.len() < most
            && let Some(piece) = pieces.next(self).await?
        {
            let decode = |record: records::Encoded<StoredCall>| Ok((record.key().call_id()?, record.value()?));
            for (id, call) in chunked_reads::decoded(piece, decode).await? {
                // An identifier is as late as the end of its call, or later.
                if id.millis() < oldest {
                    return Ok(calls);
                }
                if call.ended_at >= oldest && selected.has(&call.group) && calls.len() < most {
                    calls.push(call.shown(id, with_actor));
                }
            }
        }
        Ok(calls)
    }
}
