//! The messages of the Model Context Protocol: their schemas, and the answers that no other endpoint has.

use super::failures::headers;
use serde_json::Value;

use super::json_tree::{JsonTree, object, parse, reference};

/// The schema of a request or a notification.
pub(super) fn message() -> Value {
    parse(
        r#"{
            "type": "object",
            "description": "A request, or without an `id` a notification.",
            "properties": {
                "jsonrpc": {"type": "string", "const": "2.0"},
                "id": {"type": ["string", "integer"], "minimum": -9223372036854775808, "maximum": 18446744073709551615},
                "method": {"type": "string"},
                "params": {"type": "object", "additionalProperties": true}
            },
            "required": ["jsonrpc", "method"],
            "additionalProperties": true
        }"#,
    )
}

/// The answer to a notification.
pub(super) fn accepted() -> Value {
    response("The message was a notification, which has no answer.")
}

/// The answer to a malformed message.
pub(super) fn malformed() -> Value {
    let schema = object().with("oneOf", Value::Array(vec![fault(), reference("schemas", "Error")]));
    response("The message or a header field of the protocol is malformed: a JSON-RPC error. Other faults of the request have \
              the body of all failures.")
    .with("content", json(schema))
}

/// The answer to an unknown method in the stateless revision.
pub(super) fn unknown_method() -> Value {
    response("The stateless revision has no such method.").with("content", json(fault()))
}

fn response(description: &str) -> Value {
    object()
        .with("description", description)
        .with("headers", headers(true, &[]))
}

fn json(schema: Value) -> Value {
    object().with("application/json", object().with("schema", schema))
}

/// The schema of a JSON-RPC error.
fn fault() -> Value {
    parse(
        r#"{
            "type": "object",
            "description": "A JSON-RPC 2.0 error.",
            "properties": {
                "jsonrpc": {"type": "string", "const": "2.0"},
                "id": {"type": ["string", "integer"], "description": "The `id` of the message, as far as it is known."},
                "error": {
                    "type": "object",
                    "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": {}},
                    "required": ["code", "message"]
                }
            },
            "required": ["jsonrpc", "error"]
        }"#,
    )
}
