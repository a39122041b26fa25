//! Versions, labels, the past and the filters of the audit log, through the binary and the client.

mod audit;
mod client;
mod labels;
mod mirror;
mod past;
mod releases;
mod retention;
mod versions;

use agentcfg_tests::harness::{Request, Studio};

/// A request below `/api/agents/` for an agent of a studio, with more parameters, as the owner.
fn on(studio: &Studio<'_>, method: &str, path: &str, agent_id: &str, more: &str) -> Request {
    let target = format!(
        "/api/agents/{path}?workspace_id={}&agent_id={agent_id}{more}",
        studio.id
    );
    studio.server.request(method, target).bearer(&studio.owner)
}
