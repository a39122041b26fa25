//! One function for each operation: read what it takes, call the core once, write what it gave.

mod agents;
mod api_keys;
mod audit;
mod members;
mod model_calls;
mod models;
mod provider_keys;
mod status;
mod system;
mod workspaces;

use std::pin::Pin;

use agentcfg_core::{AgentCfg, Caller};
use bytes::Bytes;
use hyper::Uri;
use hyper::header::HeaderMap;

use crate::api::model_calls::ModelCalls;
use crate::api::routes::Operation;
use crate::http::Leaving;
use crate::http::errors::Failure;
use crate::http::query::Query;
use crate::http::response::Reply;

/// What a handler works with.
pub struct Call<'a> {
    /// The core.
    pub service: &'a AgentCfg,
    /// Who calls.
    pub caller: &'a Caller,
    /// The parameters.
    pub query: Query<'a>,
    /// The request target.
    pub uri: &'a Uri,
    /// The header fields, for conditions.
    pub headers: &'a HeaderMap,
    /// The body; empty where the route has none.
    pub body: Bytes,
    /// The way to the model providers, if this server has one.
    pub model_calls: Option<&'a ModelCalls>,
    /// Tells when the caller leaves, if anything does.
    pub leaving: Option<&'a Leaving>,
}

/// What every handler gives.
pub type Answer = Result<Reply, Failure>;

/// Runs an operation that needs a credential.
///
/// # Errors
///
/// What the core refused, or what could not be read.
pub async fn run(operation: Operation, call: &Call<'_>) -> Answer {
    // The most frequent one stays small: the others' futures are not moved about on each request.
    let other: Pin<Box<dyn Future<Output = Answer> + Send + '_>> = match operation {
        Operation::ListAgents => return agents::list(call).await,
        Operation::CreateAgent => Box::pin(agents::create(call)),
        Operation::UpdateAgent => Box::pin(agents::update(call)),
        Operation::DeleteAgent => Box::pin(agents::delete(call)),
        Operation::RestoreAgent => Box::pin(agents::restore(call)),
        Operation::AgentStatus => Box::pin(status::list(call)),
        Operation::ReportStatus => Box::pin(status::report(call)),
        Operation::CreateWorkspace => Box::pin(workspaces::create(call)),
        Operation::ListWorkspaces => Box::pin(workspaces::list(call)),
        Operation::UpdateWorkspace => Box::pin(workspaces::update(call)),
        Operation::ListMembers => Box::pin(members::list(call)),
        Operation::SetMember => Box::pin(members::set(call)),
        Operation::RemoveMember => Box::pin(members::remove(call)),
        Operation::ListApiKeys => Box::pin(api_keys::list(call)),
        Operation::CreateApiKey => Box::pin(api_keys::create(call)),
        Operation::RevokeApiKey => Box::pin(api_keys::revoke(call)),
        Operation::ListModels => Box::pin(models::list(call)),
        Operation::CallModel => Box::pin(model_calls::call(call)),
        Operation::ListProviderKeys => Box::pin(provider_keys::list(call)),
        Operation::SaveProviderKey => Box::pin(provider_keys::save(call)),
        Operation::DeleteProviderKey => Box::pin(provider_keys::delete(call)),
        Operation::AuditLog => Box::pin(audit::list(call)),
        Operation::OpenApi | Operation::Health | Operation::Ready => {
            return run_open(operation, call.service).await;
        }
    };
    other.await
}

/// Runs an operation that needs no credential.
///
/// # Errors
///
/// 503 when storage does not answer.
pub async fn run_open(operation: Operation, service: &AgentCfg) -> Answer {
    match operation {
        Operation::Ready => system::ready(service).await,
        Operation::OpenApi => Ok(system::openapi()),
        _ => system::health(),
    }
}
