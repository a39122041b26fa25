//! The test of a provider key: the provider is asked for its list of models, which costs nothing.

use std::error::Error;
use std::io;
use std::time::Duration;

use agentcfg_core::error::causes;
use agentcfg_core::model::ProviderKeyTest;
use agentcfg_core::service::SavedProviderKey;
use http_body_util::Full;
use hyper::header::HeaderMap;
use hyper::{Method, Request};
use serde::Deserialize;

use super::ModelCalls;
use super::error::CallError;
use super::headers;
use crate::outbound::OutboundError;

/// The longest list of models that is read.
const MAX_BYTES: usize = 4 << 20;
/// How long the provider is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// The greatest length of what a provider says, in characters.
const MAX_MESSAGE: usize = 500;
/// How many characters in a row of a key count as a part of it.
const PART_OF_KEY: usize = 8;

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
                let message = format!("{} cannot be asked: {}", provider.id(), why(&error));
                return Ok(ProviderKeyTest::new(None, message));
            }
        };
        let status = answer.status();
        let message = match said(answer.body(), credential.expose()) {
            _ if status.is_success() => "the provider takes the key".to_owned(),
            Some(said) => said,
            None => format!("the provider answered {status}"),
        };
        Ok(ProviderKeyTest::new(Some(status.as_u16()), message))
    }
}

/// Why a provider cannot be asked, in words that do not show its address.
fn why(error: &OutboundError) -> &'static str {
    match error {
        OutboundError::Connect(cause) if is_refused(&**cause) => "the connection was refused",
        OutboundError::Connect(_) => "no connection could be made",
        OutboundError::Broken(_) => "the connection broke before the answer was complete",
        OutboundError::TooLong(_) => "its answer is too long",
        OutboundError::TimedOut(_) => "there is no answer",
    }
}

/// Whether a refused connection is among the causes.
fn is_refused(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    })
}

/// The message of a refusal, in the form of either API, without the key: some providers repeat what they were sent.
/// `None` for a key as short as a word, which would be found in other words.
fn said(body: &[u8], key: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: Reason,
    }

    #[derive(Deserialize)]
    struct Reason {
        message: String,
    }

    let refusal: Refusal = serde_json::from_slice(body).ok()?;
    // It is cut twice: what is cut first must be longer, since a key that is cut is not recognised by its end.
    let start: String = refusal.error.message.chars().take(4 * MAX_MESSAGE).collect();
    let said = (key.len() >= PART_OF_KEY).then(|| without_key(&start, key))?;
    Some(said.chars().take(MAX_MESSAGE).collect())
}

/// Replaces each part of the key in a text. A provider may shorten the key that it repeats.
fn without_key(text: &str, key: &str) -> String {
    let mut without = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        // The longest start of the rest that the key contains.
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
        let part = ends.take_while(|end| key.contains(&rest[..*end])).last().unwrap_or(0);
        if part >= PART_OF_KEY {
            without.push_str("[the key]");
            rest = &rest[part..];
        } else {
            without.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    without
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_refused_connection_is_no_missing_answer() {
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let outbound = crate::outbound::Outbound::new(&Default::default()).unwrap();
        let mut request = Request::new(Full::default());
        *request.uri_mut() = format!("http://{free}/v1/models").parse().unwrap();
        let error = outbound.send_once(request, MAX_BYTES, PATIENCE).await.unwrap_err();
        assert_eq!(why(&error), "the connection was refused");
        assert_eq!(why(&OutboundError::TimedOut(PATIENCE)), "there is no answer");
    }

    #[test]
    fn both_forms_of_refusals_have_a_message() {
        const KEY: &str = "sk-proj-Aa1Bb2Cc3Dd4";
        assert_eq!(
            said(br#"{"error": {"message": "no", "code": null}}"#, KEY).as_deref(),
            Some("no")
        );
        assert_eq!(
            said(br#"{"type": "error", "error": {"type": "x", "message": "no"}}"#, KEY).as_deref(),
            Some("no")
        );
        assert_eq!(said(b"<html>", KEY), None);
        assert_eq!(said(br#"{"error": {"message": "no"}}"#, "short"), None);
    }

    #[test]
    fn no_part_of_the_key_is_repeated() {
        let key: String = (0..500u32)
            .map(|at| char::from(33 + ((at * at * 7 + at) % 94) as u8))
            .collect();
        let long = "é".repeat(MAX_MESSAGE - 10);
        for (message, shown) in [
            (
                format!("Incorrect API key: {key}. Try again"),
                "Incorrect API key: [the key]. Try again",
            ),
            (format!("{key}{key}"), "[the key][the key]"),
            (
                format!("key {}...{}", &key[..20], &key[480..]),
                "key [the key]...[the key]",
            ),
            (format!("{long}Key: {key}"), &format!("{long}Key: [the ")),
            ("Incorrect API key".to_owned(), "Incorrect API key"),
        ] {
            let body = serde_json::json!({"error": {"message": message}}).to_string();
            assert_eq!(said(body.as_bytes(), &key).unwrap(), shown);
        }
    }
}
