//! Workspaces.

use agentcfg_core::model::{NewWorkspace, WorkspacePatch};

use super::{Answer, Call};
use crate::http::response::Reply;

pub(super) async fn create(call: &Call<'_>) -> Answer {
    let new = NewWorkspace::from_json(&call.body)?;
    Ok(Reply::json(&call.service.create_workspace(call.caller, new).await?)?.created())
}

pub(super) async fn list(call: &Call<'_>) -> Answer {
    Reply::json(&call.service.list_workspaces(call.caller).await?)
}

pub(super) async fn update(call: &Call<'_>) -> Answer {
    let workspace = call.query.required_workspace_id()?;
    let patch = WorkspacePatch::from_json(&call.body)?;
    Reply::json(&call.service.update_workspace(call.caller, workspace, patch).await?)
}
