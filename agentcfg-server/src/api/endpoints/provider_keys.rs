//! Provider keys.

#[cfg(test)]
mod tests;

use agentcfg_core::model::{Permission, Provider, WorkspaceId};
use agentcfg_core::secret::ProviderCredential;
use hyper::StatusCode;

use super::{Answer, Call};
use crate::http::errors::Failure;
use crate::http::response::Reply;

pub(super) async fn list(call: &Call<'_>) -> Answer {
    let workspace = call.query.required_workspace_id()?;
    Reply::json(&call.service.list_provider_keys(call.caller, workspace).await?)
}

pub(super) async fn save(call: &Call<'_>) -> Answer {
    let workspace = call.query.required_workspace_id()?;
    let name = call.query.required("provider")?;
    let credential = ProviderCredential::from_json(&call.body)?;
    let provider = provider(call, workspace, name).await?;
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
    let provider = provider(call, workspace, name).await?;
    Reply::json(
        &call
            .service
            .delete_provider_key(call.caller, workspace, provider)
            .await?,
    )
}

/// The provider of this name. That there is none is for those to learn who may manage provider keys.
async fn provider(call: &Call<'_>, workspace: WorkspaceId, name: &str) -> Result<Provider, Failure> {
    if let Ok(provider) = name.parse() {
        return Ok(provider);
    }
    call.service
        .authorize(call.caller, workspace, Permission::ProviderKeysManage)
        .await?;
    let shown: String = name.chars().take(60).collect();
    let known: Vec<&str> = Provider::ALL.iter().map(|provider| provider.as_str()).collect();
    let message = format!("provider {shown:?} not found, there are {}", known.join(" and "));
    Err(Failure::new(StatusCode::NOT_FOUND, message))
}
