//! The audit log.

use agentcfg_core::validate::Faults;

use super::{Answer, Call};
use crate::http::response::Reply;

/// Entries in an answer when the caller names no limit.
const DEFAULT_LIMIT: usize = 100;

pub(super) async fn list(call: &Call<'_>) -> Answer {
    let workspace = call.query.required_workspace_id()?;
    let mut faults = Faults::default();
    let limit = call.query.limit(&mut faults).unwrap_or(DEFAULT_LIMIT);
    let offset = call.query.offset(&mut faults);
    faults.into_result()?;
    Reply::json(&call.service.audit_log(call.caller, workspace, offset, limit).await?)
}
