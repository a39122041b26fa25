//! API keys.

use agentcfg_core::model::NewApiKey;

use super::{Answer, Call};
use crate::http::response::Reply;

pub(super) async fn list(call: &Call<'_>) -> Answer {
    let workspace = call.query.required_workspace_id()?;
    Reply::json(&call.service.list_api_keys(call.caller, workspace).await?)
}

pub(super) async fn create(call: &Call<'_>) -> Answer {
    let new = NewApiKey::from_json(&call.body)?;
    Ok(Reply::json(&call.service.create_api_key(call.caller, new).await?)?.created())
}

pub(super) async fn revoke(call: &Call<'_>) -> Answer {
    let key_id = call.query.required("key_id")?;
    Reply::json(&call.service.revoke_api_key(call.caller, key_id).await?)
}
