//! Providers that verify each token on request: by introspection (RFC 7662) or at a user-info URL.
//!
//! Answers are not cached, so a token that the provider revokes is refused at once.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agentcfg_core::model::Timestamp;
use agentcfg_core::session::{
    AnswerRules, MAX_TOKEN_BYTES, Session, SessionError, SessionVerifier, read_introspection, read_user_info,
};
use async_trait::async_trait;
use base64ct::{Base64, Encoding};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use tokio::sync::Semaphore;

use crate::outbound::Outbound;
use crate::secret::Secret;

/// The time limit of a request, with the wait for a permit.
const WITHIN: Duration = Duration::from_secs(2);
/// How many requests are made at a time.
const AT_A_TIME: usize = 64;
/// What the provider is asked about when it is only to show that it answers.
const PROBE: &str = "agentcfg-readiness-probe";
/// The longest answer in bytes.
const MAX_BYTES: usize = 64 << 10;

/// A verifier that sends each token to a provider.
pub(super) struct RemoteVerifier {
    outbound: Outbound,
    check: RemoteCheck,
    permits: Semaphore,
    /// Whether the last question was not answered.
    is_unreachable: AtomicBool,
}

/// The kind of request.
pub(super) enum RemoteCheck {
    /// Token introspection: whether the token is active, and who its user is.
    Introspection {
        url: Uri,
        authorization: HeaderValue,
        issuer: Option<String>,
        audience: Option<String>,
    },
    /// User info: the request has the token itself as its bearer.
    User { url: Uri, apikey: Option<HeaderValue> },
}

impl RemoteVerifier {
    /// Makes a verifier that sends this request for each token.
    pub(super) fn new(outbound: Outbound, check: RemoteCheck) -> Self {
        Self {
            outbound,
            check,
            permits: Semaphore::new(AT_A_TIME),
            is_unreachable: AtomicBool::new(false),
        }
    }

    /// Asks about a text that is no token, to see whether the provider can be reached.
    pub(super) async fn probe(&self, now: Timestamp) {
        // Whatever the answer is: there is one, or none.
        let _ = self.asked_within(PROBE, now).await;
    }

    async fn asked_within(&self, token: &str, now: Timestamp) -> Result<Session, SessionError> {
        let answer = tokio::time::timeout(WITHIN, self.ask(token, now))
            .await
            .unwrap_or_else(|_| Err(unavailable(format!("no answer within {WITHIN:?}"))));
        let is_unreachable = matches!(answer, Err(SessionError::Unavailable(_)));
        self.is_unreachable.store(is_unreachable, Ordering::Relaxed);
        answer
    }

    async fn ask(&self, token: &str, now: Timestamp) -> Result<Session, SessionError> {
        let request = self.check.about(token)?;
        // The semaphore is never closed.
        let _turn = self
            .permits
            .acquire()
            .await
            .map_err(|error| unavailable(error.to_string()))?;
        let answer = self
            .outbound
            .send_idempotent(request, MAX_BYTES, WITHIN)
            .await
            .map_err(|error| unavailable(error.to_string()))?;
        match answer.status() {
            StatusCode::OK => self.check.read(answer.body(), now),
            status @ (StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                if matches!(self.check, RemoteCheck::Introspection { .. }) {
                    // An inactive token is an answer of 200, so another status means that the question itself was
                    // refused.
                    tracing::warn!(%status, "the identity provider refuses introspection, check the client's credentials");
                }
                Err(SessionError::Invalid("the identity provider refuses it"))
            }
            other => Err(unavailable(format!("it answered {other}"))),
        }
    }
}

#[async_trait]
impl SessionVerifier for RemoteVerifier {
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Session, SessionError> {
        if token.len() > MAX_TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SessionError::Invalid("no identity provider issues such a token"));
        }
        self.asked_within(token, now).await
    }

    fn ready(&self) -> Result<(), SessionError> {
        match self.is_unreachable.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(unavailable("it did not answer the last question".to_owned())),
        }
    }
}

impl RemoteCheck {
    fn about(&self, token: &str) -> Result<Request<Full<Bytes>>, SessionError> {
        const UNSENDABLE: SessionError = SessionError::Invalid("it cannot be sent to the identity provider");
        let mut request = Request::new(Full::default());
        match self {
            Self::Introspection { url, authorization, .. } => {
                *request.method_mut() = Method::POST;
                *request.uri_mut() = url.clone();
                let body = format!("token={}&token_type_hint=access_token", form(token));
                *request.body_mut() = Full::from(body);
                let headers = request.headers_mut();
                headers.insert(AUTHORIZATION, authorization.clone());
                headers.insert(
                    CONTENT_TYPE,
                    HeaderValue::from_static("application/x-www-form-urlencoded"),
                );
            }
            Self::User { url, apikey } => {
                *request.uri_mut() = url.clone();
                let headers = request.headers_mut();
                headers.insert(AUTHORIZATION, sensitive(&format!("Bearer {token}")).ok_or(UNSENDABLE)?);
                if let Some(apikey) = apikey {
                    headers.insert(HeaderName::from_static("apikey"), apikey.clone());
                }
            }
        }
        request
            .headers_mut()
            .insert(ACCEPT, HeaderValue::from_static("application/json"));
        Ok(request)
    }

    fn read(&self, body: &[u8], now: Timestamp) -> Result<Session, SessionError> {
        match self {
            Self::Introspection { issuer, audience, .. } => {
                let rules = AnswerRules {
                    issuer: issuer.as_deref(),
                    audience: audience.as_deref(),
                };
                read_introspection(body, rules, now)
            }
            Self::User { .. } => read_user_info(body, now),
        }
    }
}

fn unavailable(why: String) -> SessionError {
    SessionError::Unavailable(why)
}

/// A header value that is marked as sensitive, so that it is not printed with the headers.
pub(super) fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The client's credentials as RFC 6749, section 2.3.1, defines them: both parts encoded like a form, then Basic.
pub(super) fn basic(client_id: &str, client_secret: &Secret) -> HeaderValue {
    let both = format!("{}:{}", form(client_id), form(client_secret.expose()));
    // Base64 is always a valid header value.
    sensitive(&format!("Basic {}", Base64::encode_string(both.as_bytes())))
        .unwrap_or_else(|| HeaderValue::from_static(""))
}

/// Encodes a value for `application/x-www-form-urlencoded`.
pub(super) fn form(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => encoded.push(char::from(byte)),
            b' ' => encoded.push('+'),
            // Writing to a string cannot fail.
            _ => _ = write!(encoded, "%{byte:02X}"),
        }
    }
    encoded
}
