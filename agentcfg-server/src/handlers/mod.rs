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

use agentcfg_core::{AgentCfg, Caller};
use bytes::Bytes;
use hyper::Uri;
use hyper::header::HeaderMap;

use crate::errors::Failure;
use crate::listen::Leaving;
use crate::model_calls::ModelCalls;
use crate::request::Query;
use crate::response::Reply;
use crate::routes::Operation;

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
pub async fn run(operation: Operation, call: Call<'_>) -> Answer {
    match operation {
        Operation::ListAgents => agents::list(call).await,
        Operation::CreateAgent => agents::create(call).await,
        Operation::UpdateAgent => agents::update(call).await,
        Operation::DeleteAgent => agents::delete(call).await,
        Operation::RestoreAgent => agents::restore(call).await,
        Operation::AgentStatus => status::list(call).await,
        Operation::ReportStatus => status::report(call).await,
        Operation::CreateWorkspace => workspaces::create(call).await,
        Operation::ListWorkspaces => workspaces::list(call).await,
        Operation::UpdateWorkspace => workspaces::update(call).await,
        Operation::ListMembers => members::list(call).await,
        Operation::SetMember => members::set(call).await,
        Operation::RemoveMember => members::remove(call).await,
        Operation::ListApiKeys => api_keys::list(call).await,
        Operation::CreateApiKey => api_keys::create(call).await,
        Operation::RevokeApiKey => api_keys::revoke(call).await,
        Operation::ListModels => models::list(call).await,
        Operation::CallModel => model_calls::call(call).await,
        Operation::ListProviderKeys => provider_keys::list(call).await,
        Operation::SaveProviderKey => provider_keys::save(call).await,
        Operation::DeleteProviderKey => provider_keys::delete(call).await,
        Operation::AuditLog => audit::list(call).await,
        Operation::OpenApi | Operation::Health | Operation::Ready => run_open(operation, call.service).await,
    }
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
