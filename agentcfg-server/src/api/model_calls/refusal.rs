//! Refusals of this service in the form of the provider whose API was called, so that its SDKs show the message.

use agentcfg_core::model::ProviderApi;
use serde_json::{Value, json};

/// The body of a refusal in the form that the providers of an API use for this status.
pub fn in_form_of(api: ProviderApi, status: u16, message: &str, request_id: &str) -> Value {
    match api {
        ProviderApi::Anthropic => json!({
            "type": "error",
            "error": {"type": anthropic_type(status), "message": message},
            "request_id": request_id,
        }),
        ProviderApi::OpenAi => {
            let (kind, code) = openai_type(status);
            json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
        }
    }
}

/// The type and the code that OpenAI uses for a status.
fn openai_type(status: u16) -> (&'static str, Option<&'static str>) {
    match status {
        401 => ("authentication_error", Some("invalid_api_key")),
        402 => ("insufficient_quota", Some("insufficient_quota")),
        403 => ("permission_error", None),
        429 => ("rate_limit_error", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    }
}

/// The type that Anthropic uses for a status.
fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_the_type_of_the_provider() {
        for (status, openai, anthropic) in [
            (400, "invalid_request_error", "invalid_request_error"),
            (401, "authentication_error", "authentication_error"),
            (402, "insufficient_quota", "billing_error"),
            (403, "permission_error", "permission_error"),
            (404, "invalid_request_error", "not_found_error"),
            (405, "invalid_request_error", "invalid_request_error"),
            (413, "invalid_request_error", "request_too_large"),
            (414, "invalid_request_error", "invalid_request_error"),
            (415, "invalid_request_error", "invalid_request_error"),
            (429, "rate_limit_error", "rate_limit_error"),
            (431, "invalid_request_error", "invalid_request_error"),
            (500, "server_error", "api_error"),
            (502, "server_error", "api_error"),
            (503, "server_error", "api_error"),
            (504, "server_error", "timeout_error"),
        ] {
            let of = |api| in_form_of(api, status, "no", "r1");
            assert_eq!(of(ProviderApi::OpenAi)["error"]["type"], openai, "{status}");
            assert_eq!(of(ProviderApi::Anthropic)["error"]["type"], anthropic, "{status}");
        }
    }
}
