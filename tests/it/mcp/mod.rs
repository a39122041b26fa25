//! The Model Context Protocol, message by message.

mod catalogue;
mod log;
mod protocol;
mod tools;
mod usage;

use agentcfg_tests::harness::{Request, Response, Server};
use serde_json::{Value, json};

const MODERN: &str = "2026-07-28";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The parameters of a request with the metadata of the stateless revision.
fn with_meta(params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({VERSION: MODERN, CAPABILITIES: {}});
    params
}

/// A request of the stateless revision, with the header fields that it needs.
fn modern(server: &Server, credential: &str, method: &str, params: &Value) -> Request {
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": with_meta(params)});
    let mut request = server.post("/mcp").bearer(credential).json(&message);
    request = request
        .header("MCP-Protocol-Version", MODERN)
        .header("Mcp-Method", method);
    request = request.header("Accept", "application/json, text/event-stream");
    match params.get("name").or(params.get("uri")).and_then(Value::as_str) {
        Some(name) => request.header("Mcp-Name", name),
        None => request,
    }
}

/// A request of a revision with a handshake.
fn legacy(server: &Server, credential: &str, method: &str, params: &Value) -> Request {
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    server.post("/mcp").bearer(credential).json(&message)
}

/// The result of an answer.
#[track_caller]
fn result(response: Response) -> Value {
    let answer = response.expect(200).json();
    assert_eq!(
        (&answer["jsonrpc"], &answer["id"]),
        (&json!("2.0"), &json!(7)),
        "{answer}"
    );
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

/// Calls a tool, and returns the result.
#[track_caller]
fn call(server: &Server, credential: &str, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    result(modern(server, credential, "tools/call", &params).send())
}

/// The structured content of a call that succeeds.
#[track_caller]
fn done(server: &Server, credential: &str, tool: &str, arguments: &Value) -> Value {
    let result = call(server, credential, tool, arguments);
    assert_eq!(result["isError"], false, "{result}");
    let structured = result["structuredContent"].clone();
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), structured);
    structured
}

/// The message of a call that the API refuses.
#[track_caller]
fn told(server: &Server, credential: &str, tool: &str, arguments: &Value) -> String {
    let result = call(server, credential, tool, arguments);
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.get("structuredContent").is_none(), "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}
