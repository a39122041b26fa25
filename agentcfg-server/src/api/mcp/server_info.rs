//! The server's declaration: its revisions, its capabilities and its name.

use serde_json::{Value, json};

/// The stateless revision.
pub(super) const MODERN: &str = "2026-07-28";
/// The revisions with a handshake, the newest first.
pub(super) const LEGACY: [&str; 2] = ["2025-11-25", "2025-06-18"];

/// Instructions for the model that uses the tools.
pub(super) const INSTRUCTIONS: &str = "Configurations, live status and prompts of the agents of a workspace. Read an agent with get_agent \
                            before you change it, and pass its etag to update_agent.";

/// All revisions, the newest first.
pub(super) fn supported_versions() -> Vec<&'static str> {
    std::iter::once(MODERN).chain(LEGACY).collect()
}

pub(super) fn capabilities() -> Value {
    json!({"tools": {}, "resources": {}, "prompts": {}})
}

pub(super) fn server_info() -> Value {
    json!({"name": "agentcfg", "title": "agentcfg", "version": env!("CARGO_PKG_VERSION")})
}
