//! Every endpoint: its definition and its function, side by side.

mod agents;
mod api_keys;
mod apply;
mod audit;
mod budgets;
mod changes;
mod export;
mod labels;
mod mcp;
mod members;
mod model_calls;
mod models;
mod operators;
mod provider_keys;
mod releases;
mod sessions;
mod status;
mod system;
mod tags;
mod usage;
mod versions;
mod webhooks;
mod workspaces;

pub(super) use self::sessions::redeem;
#[cfg(test)]
pub(super) use self::system::DOCUMENT;
use crate::api::endpoint::Definition;

/// The endpoints of each module, in the order of the OpenAPI document.
const MODULES: &[&[Definition]] = &[
    agents::ENDPOINTS,
    apply::ENDPOINTS,
    status::ENDPOINTS,
    sessions::ENDPOINTS,
    versions::ENDPOINTS,
    labels::ENDPOINTS,
    releases::ENDPOINTS,
    workspaces::ENDPOINTS,
    export::ENDPOINTS,
    members::ENDPOINTS,
    api_keys::ENDPOINTS,
    audit::ENDPOINTS,
    changes::ENDPOINTS,
    models::ENDPOINTS,
    model_calls::ENDPOINTS,
    provider_keys::ENDPOINTS,
    usage::ENDPOINTS,
    budgets::ENDPOINTS,
    webhooks::ENDPOINTS,
    operators::ENDPOINTS,
    mcp::ENDPOINTS,
    system::ENDPOINTS,
];

/// All endpoints, in the order of the OpenAPI document.
///
/// ```
/// assert_eq!(agentcfg_server::endpoints().count(), agentcfg_server::routes().count());
/// ```
pub fn all() -> impl Iterator<Item = &'static Definition> + Clone {
    MODULES.iter().copied().flatten()
}
