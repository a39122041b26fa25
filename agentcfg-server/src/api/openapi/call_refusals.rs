//! The refusals of model calls in the document: in the forms of the providers.

use agentcfg_core::model::Provider;
use hyper::StatusCode;

use super::ordered_json::OrderedJson;
use crate::api::model_calls::in_form_of;

/// The JSON Schema of both forms.
pub(super) fn schema() -> OrderedJson {
    OrderedJson::parse(
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
pub(super) fn example(status: u16, message: &str) -> OrderedJson {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    OrderedJson::parse(&in_form_of(Provider::OpenAi, status, message, "").to_string())
}
