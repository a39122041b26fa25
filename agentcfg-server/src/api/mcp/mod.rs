//! The Model Context Protocol over Streamable HTTP, without sessions and without streams. For its users:
//! `docs/mcp.md`.
//!
//! | file | what is in it |
//! |---|---|
//! | `message.rs` | JSON-RPC: reading a message, its revision, errors |
//! | `arguments.rs` | reading the arguments of a tool, all faults together |
//! | `tool.rs` | what a tool is, and the parts of schemas |
//! | `tools.rs`, `calls.rs` | the tools of agents and of the audit log, and what each does |
//! | `releases.rs` | the tools of versions and labels |
//! | `persona_edits.rs` | changes of single places of a persona |
//! | `catalogue.rs` | resources and prompts |
//! | `server_info.rs` | revisions, capabilities and name of the server |
//! | `json.rs` | JSON objects |
//!
//! A tool calls the service as an endpoint does: the same permissions, the same audit log, and the caller is the actor.

mod arguments;
mod calls;
mod catalogue;
mod json;
mod message;
mod persona_edits;
mod releases;
mod server_info;
mod tool;
mod tools;
mod usage;
mod written_definition;

use agentcfg_core::{AgentCfg, Caller};
use bytes::Bytes;
use hyper::Response;
use serde_json::{Map, Value, json};

use self::json::object;
pub use self::message::Mirrored;
use self::message::{Era, Message, Request, RpcError, Served};
use self::server_info::{INSTRUCTIONS, LEGACY, capabilities, server_info, supported_versions};
use crate::http::Body;
use crate::http::errors::Failure;

/// Milliseconds that a client may keep the list of tools, which depends on the credential.
const TOOLS_FRESH: u64 = 60_000;

/// Answers one message.
///
/// # Errors
///
/// 500 when the answer cannot be written.
pub async fn exchange(
    service: &AgentCfg,
    caller: &Caller,
    mirrored: &Mirrored<'_>,
    body: &Bytes,
) -> Result<Response<Body>, Failure> {
    match Message::read(body, mirrored) {
        Ok(Message::Notification) => Ok(message::accepted()),
        Ok(Message::Request(request)) => {
            let answer = answer(service, caller, &request).await;
            message::response(Some(&request.id), request.era, answer)
        }
        Err(refused) => message::response(refused.id.as_ref(), Era::Legacy, Err(refused.error)),
    }
}

async fn answer(service: &AgentCfg, caller: &Caller, request: &Request) -> Result<Served, RpcError> {
    let params = &request.params;
    match (request.era, &*request.method) {
        (Era::Modern, "server/discover") => Ok(Served::cached(discovered(), TOOLS_FRESH)),
        (Era::Legacy, "initialize") => initialized(params).map(Served::plain),
        (Era::Legacy, "ping") => Ok(Served::plain(Map::new())),
        (_, "tools/list") => {
            one_page(params)?;
            let tools = tools::listed(service, caller).await?;
            Ok(Served::cached(object(json!({ "tools": tools })), TOOLS_FRESH))
        }
        (_, "tools/call") => tools::call(service, caller, request).await.map(Served::plain),
        (_, "resources/list") => catalogue::resources(service, caller, params)
            .await
            .map(Served::uncached),
        (_, "resources/templates/list") => {
            one_page(params)?;
            Ok(Served::cached(catalogue::templates(), TOOLS_FRESH))
        }
        (_, "resources/read") => catalogue::read(service, caller, params, request.era)
            .await
            .map(Served::uncached),
        (_, "prompts/list") => catalogue::prompts(service, caller, params).await.map(Served::uncached),
        (_, "prompts/get") => catalogue::prompt(service, caller, params).await.map(Served::plain),
        (era, method) => Err(RpcError::unknown_method(method, era)),
    }
}

fn discovered() -> Map<String, Value> {
    object(json!({
        "supportedVersions": supported_versions(),
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
    }))
}

/// The answer to a handshake. No session begins: each later request is answered by itself.
fn initialized(params: &Map<String, Value>) -> Result<Map<String, Value>, RpcError> {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let asked = asked.ok_or_else(|| RpcError::invalid_params("protocolVersion is required and must be a string"))?;
    // A client that does not know the answered revision ends the connection.
    let version = LEGACY.into_iter().find(|known| *known == asked).unwrap_or(LEGACY[0]);
    Ok(object(json!({
        "protocolVersion": version,
        "capabilities": capabilities(),
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    })))
}

/// Refuses the cursor of a list that has one page.
fn one_page(params: &Map<String, Value>) -> Result<(), RpcError> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(RpcError::invalid_params("there is no page with this cursor")),
    }
}
