//! Members of a workspace.

use agentcfg_core::model::RoleChange;

use super::{Answer, Call};
use crate::http::response::Reply;

pub(super) async fn list(call: &Call<'_>) -> Answer {
    let workspace = call.query.required_workspace_id()?;
    Reply::json(&call.service.list_members(call.caller, workspace).await?)
}

pub(super) async fn set(call: &Call<'_>) -> Answer {
    let workspace = call.query.required_workspace_id()?;
    let user_id = call.query.required("user_id")?;
    let change = RoleChange::from_json(&call.body)?;
    Reply::json(
        &call
            .service
            .set_member(call.caller, workspace, user_id, change.role)
            .await?,
    )
}

pub(super) async fn remove(call: &Call<'_>) -> Answer {
    let workspace = call.query.required_workspace_id()?;
    let user_id = call.query.required("user_id")?;
    Reply::json(&call.service.remove_member(call.caller, workspace, user_id).await?)
}
