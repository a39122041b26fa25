//! The catalogue of models.

use super::{Answer, Call};
use crate::http::response::Reply;

pub(super) async fn list(call: &Call<'_>) -> Answer {
    let workspace = call.query.required_workspace_id()?;
    Reply::json(&call.service.list_models(call.caller, workspace).await?)
}
