//! The refusals of model calls in the document: in the forms of the providers.

use agentcfg_core::model::ProviderApi;
use serde_json::Value;

use super::json_tree::{JsonTree, object, parse, reference};
use crate::api::model_calls::in_form_of;

/// The JSON Schema of a refusal with this status. A path whose provider is not known is refused in no provider's form.
pub(super) fn schema(status: u16) -> Value {
    match status {
        404 => {
            let forms = vec![forms(), reference("schemas", "Error")];
            object().with("anyOf", Value::Array(forms))
        }
        _ => forms(),
    }
}

/// Both forms.
fn forms() -> Value {
    parse(
        r#"{
        "anyOf": [
            {
                "type": "object",
                "description": "The form of OpenAI.",
                "properties": {
                    "error": {
                        "type": "object",
                        "properties": {
                            "message": { "type": "string", "description": "What is wrong." },
                            "type": { "type": "string" },
                            "param": { "type": "null" },
                            "code": { "type": ["string", "null"] }
                        },
                        "required": ["message", "type", "param", "code"]
                    }
                },
                "required": ["error"]
            },
            {
                "type": "object",
                "description": "The form of Anthropic.",
                "properties": {
                    "type": { "type": "string", "enum": ["error"] },
                    "error": {
                        "type": "object",
                        "properties": {
                            "type": { "type": "string" },
                            "message": { "type": "string", "description": "What is wrong." }
                        },
                        "required": ["type", "message"]
                    },
                    "request_id": { "type": "string", "description": "That of `X-Request-Id`." }
                },
                "required": ["type", "error", "request_id"]
            }
        ]
    }"#,
    )
}

/// A refusal with this status, as the document shows it.
pub(super) fn example(status: u16, message: &str) -> Value {
    parse(&in_form_of(ProviderApi::OpenAi, status, message, "").to_string())
}
