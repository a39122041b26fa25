//! Every endpoint: its definition and its function, side by side.

mod agents;
mod api_keys;
mod audit;
mod members;
mod model_calls;
mod models;
mod provider_keys;
mod status;
mod system;
mod tags;
mod workspaces;

use crate::api::call::Call;
use crate::api::endpoint::{Definition, Run, serve};
use crate::http::errors::Failure;
use crate::http::response::Reply;

/// All endpoints, in the order of the OpenAPI document.
pub const ENDPOINTS: &[Definition] = &[
    Definition {
        run: Run::ListAgents,
        ..Definition::of::<agents::List>()
    },
    Definition::of::<agents::Create>(),
    Definition::of::<agents::Update>(),
    Definition::of::<agents::Delete>(),
    Definition::of::<agents::Restore>(),
    Definition::of::<status::List>(),
    Definition::of::<status::Report>(),
    Definition::of::<workspaces::List>(),
    Definition::of::<workspaces::Create>(),
    Definition::of::<workspaces::Update>(),
    Definition::of::<members::List>(),
    Definition::of::<members::Set>(),
    Definition::of::<members::Remove>(),
    Definition::of::<api_keys::List>(),
    Definition::of::<api_keys::Create>(),
    Definition::of::<api_keys::Revoke>(),
    Definition::of::<audit::List>(),
    Definition::of::<models::List>(),
    Definition::of::<model_calls::CallModel>(),
    Definition::of::<provider_keys::List>(),
    Definition::of::<provider_keys::Save>(),
    Definition::of::<provider_keys::Delete>(),
    Definition::open::<system::OpenApi>(),
    Definition::open::<system::Healthz>(),
    Definition::open::<system::Readyz>(),
];

/// Runs an endpoint that needs a credential.
///
/// # Errors
///
/// What the core refused, or what could not be read.
pub(super) async fn run(endpoint: &Definition, call: &Call<'_>) -> Result<Reply, Failure> {
    match endpoint.run {
        Run::ListAgents => serve::<agents::List>(call).await,
        Run::Called(run) => run(call).await,
        Run::Open(run) => run(call.service).await,
    }
}
