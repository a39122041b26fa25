//! The single calls of the ledger.

use crate::error::Error;
use crate::model::{CallId, Permission, UsageCall, UsageCallFilter, WorkspaceId};
use crate::service::chunked_reads::{self, Chunks};
use crate::service::records::{self, CallBlock, Entries, Scanned, StoredCall};
use crate::service::{AgentCfg, Caller};
use crate::validate::DEFAULT_LIMIT;

use super::selection::Calls;

/// The blocks that are read at once. Each has some 60 calls at most.
const BLOCKS: usize = 32;

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
        let entries = match filter.before {
            Some(before) => records::calls_before(access.workspace(), before),
            None => Entries::in_workspace(access.workspace()).descending(),
        };
        let mut pieces = Chunks::of(entries.limit(BLOCKS));
        let mut calls = Vec::new();
        // Blocks overlap: the calls that are earlier than the next block may end.
        let mut early: Vec<(CallId, StoredCall)> = Vec::new();
        while calls.len() < most {
            let piece = pieces.next(self).await?;
            let last_key = piece.as_ref().and_then(Scanned::last_key);
            let reached = last_key.map(|key| key.last_call()).transpose()?;
            if let Some(piece) = piece {
                let blocks = chunked_reads::values::<CallBlock>(piece).await?;
                early.extend(blocks.into_iter().flat_map(CallBlock::into_calls).filter(|(id, call)| {
                    let is_before = filter.before.is_none_or(|before| *id < before);
                    is_before && call.ended_at >= oldest && selected.has(&call.group)
                }));
            }
            early.sort_unstable_by_key(|(id, _)| *id);
            let known = early.partition_point(|(id, _)| reached.is_some_and(|reached| *id < reached));
            let ordered = early.drain(known..).rev().take(most - calls.len());
            calls.extend(ordered.map(|(id, call)| call.shown(id, with_actor)));
            // An identifier is as late as the end of its call, or later.
            if reached.is_none_or(|reached| reached.millis() < oldest) {
                break;
            }
        }
        Ok(calls)
    }
}
