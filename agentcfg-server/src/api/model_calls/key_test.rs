//! The test of a provider key: the provider is asked for its list of models, which costs nothing.

use std::time::Duration;

use agentcfg_core::model::ProviderKeyTest;
use agentcfg_core::service::SavedProviderKey;
use http_body_util::Full;
use hyper::header::HeaderMap;
use hyper::{Method, Request};
use serde::Deserialize;

use super::ModelCalls;
use super::error::CallError;
use super::headers;

/// The longest list of models that is read.
const MAX_BYTES: usize = 4 << 20;
/// How long the provider is waited for.
const PATIENCE: Duration = Duration::from_secs(15);
/// The greatest length of what a provider says, in characters.
const MAX_MESSAGE: usize = 500;

impl ModelCalls {
    /// Asks a provider for its list of models with a saved key.
    ///
    /// # Errors
    ///
    /// When the request cannot be encoded as HTTP.
    pub(crate) async fn test_key(&self, saved: &SavedProviderKey) -> Result<ProviderKeyTest, CallError> {
        let SavedProviderKey {
            provider, credential, ..
        } = saved;
        let fields = headers::to_provider(&HeaderMap::new(), provider.api(), provider.header(), credential)
            .map_err(|error| CallError::Request(error.into()))?;
        let mut request = Request::new(Full::default());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = super::address(provider.api(), provider.base_url(), "v1/models", None)?;
        *request.headers_mut() = fields;
        let answer = match self.outbound.send_once(request, MAX_BYTES, PATIENCE).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::info!(provider = %provider.id(), %error, "a provider key could not be tested");
                let message = format!("{} cannot be asked: there is no answer", provider.id());
                return Ok(ProviderKeyTest::new(None, message));
            }
        };
        let status = answer.status();
        // Some repeat what they were sent. A key as short as a word would be found in other words, so nothing is repeated then.
        let key = credential.expose();
        let said = said(answer.body()).filter(|_| key.len() >= 8);
        let message = match said {
            _ if status.is_success() => "the provider takes the key".to_owned(),
            Some(said) => said.replace(key, "[the key]"),
            None => format!("the provider answered {status}"),
        };
        Ok(ProviderKeyTest::new(Some(status.as_u16()), message))
    }
}

/// The message of a refusal, in the form of either API.
fn said(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: Reason,
    }

    #[derive(Deserialize)]
    struct Reason {
        message: String,
    }

    let refusal: Refusal = serde_json::from_slice(body).ok()?;
    Some(refusal.error.message.chars().take(MAX_MESSAGE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_refusals_have_a_message() {
        assert_eq!(
            said(br#"{"error": {"message": "no", "code": null}}"#).as_deref(),
            Some("no")
        );
        assert_eq!(
            said(br#"{"type": "error", "error": {"type": "x", "message": "no"}}"#).as_deref(),
            Some("no")
        );
        assert_eq!(said(b"<html>"), None);
    }
}
