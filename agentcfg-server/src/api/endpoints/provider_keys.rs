//! Provider keys.

#[cfg(test)]
mod tests;

use agentcfg_core::secret::ProviderCredential;

use super::{Answer, Call};
use crate::http::response::Reply;

pub(super) async fn list(call: &Call<'_>) -> Answer {
    let workspace = call.query.required_workspace_id()?;
    Reply::json(&call.service.list_provider_keys(call.caller, workspace).await?)
}

pub(super) async fn save(call: &Call<'_>) -> Answer {
    let workspace = call.query.required_workspace_id()?;
    let name = call.query.required("provider")?;
    let credential = ProviderCredential::from_json(&call.body)?;
    let provider = call.service.provider_named(call.caller, workspace, name).await?;
    Reply::json(
        &call
            .service
            .save_provider_key(call.caller, workspace, provider, &credential)
            .await?,
    )
}

pub(super) async fn delete(call: &Call<'_>) -> Answer {
    let workspace = call.query.required_workspace_id()?;
    let name = call.query.required("provider")?;
    let provider = call.service.provider_named(call.caller, workspace, name).await?;
    Reply::json(
        &call
            .service
            .delete_provider_key(call.caller, workspace, provider)
            .await?,
    )
}
