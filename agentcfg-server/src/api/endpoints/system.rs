//! What operators and tools ask: is it up, is it ready, what does it speak.

use agentcfg_core::AgentCfg;
use serde_json::json;

use super::Answer;
use crate::api::openapi::DOCUMENT;
use crate::http::response::Reply;

pub(super) fn health() -> Answer {
    Reply::json(&json!({"status": "ok"}))
}

pub(super) async fn ready(service: &AgentCfg) -> Answer {
    service.ready().await?;
    Reply::json(&json!({"status": "ready"}))
}

pub(super) fn openapi() -> Reply {
    Reply::document(DOCUMENT)
}
