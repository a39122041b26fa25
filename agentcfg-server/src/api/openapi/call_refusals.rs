//! The refusals of model calls in the document: in the forms of the providers.

use agentcfg_core::model::ProviderApi;

use super::ordered_json::OrderedJson;
use crate::api::model_calls::in_form_of;

/// The JSON Schema of a refusal with this status. A path whose provider is not known is refused in no provider's form.
pub(super) fn schema(status: u16) -> OrderedJson {
    match status {
        404 => {
            let forms = vec![forms(), OrderedJson::reference("schemas", "Error")];
            OrderedJson::object().with("anyOf", OrderedJson::Array(forms))
        }
        _ => forms(),
    }
}

/// Both forms.
fn forms() -> OrderedJson {
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
    OrderedJson::parse(&in_form_of(ProviderApi::OpenAi, status, message, "").to_string())
}
