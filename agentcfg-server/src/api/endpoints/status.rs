//! Live status.

use agentcfg_core::model::StatusReport;

use super::{Answer, Call};
use crate::http::response::Reply;

pub(super) async fn list(call: &Call<'_>) -> Answer {
    let workspace = call.query.required_workspace_id()?;
    Reply::json(&call.service.agent_status(call.caller, workspace).await?)
}

pub(super) async fn report(call: &Call<'_>) -> Answer {
    let agent_id = call.query.required("agent_id")?;
    let workspace = call.query.workspace_id()?;
    let report = StatusReport::from_json(&call.body)?;
    Reply::json(
        &call
            .service
            .report_status(call.caller, workspace, agent_id, report)
            .await?,
    )
}
