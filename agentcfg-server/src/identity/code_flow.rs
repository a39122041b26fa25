//! Sign-in of browsers by authorization code with PKCE (RFC 7636, OpenID Connect Core 1.0, section 3.1).

use std::time::Duration;

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::session::{JwksSessions, Session, SessionError, SessionVerifier};
use base64ct::{Base64UrlUnpadded, Encoding};
use http_body_util::Full;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Uri};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use super::discovery::Discovered;
use super::introspection::{basic, form};
use super::jwks::PublishedKeys;
use crate::outbound::Outbound;
use crate::secret::Secret;

/// The longest answer with tokens, in bytes.
const MAX_BYTES: usize = 128 << 10;
/// The time limit of an exchange.
const WITHIN: Duration = Duration::from_secs(10);
/// How many codes are exchanged at a time, so that forged sign-ins cannot flood the provider with requests.
const AT_A_TIME: usize = 32;
/// How long an exchange waits for its permit.
const WAIT: Duration = Duration::from_secs(5);
/// How long a discovery document is used.
const FRESH: Duration = Duration::from_secs(600);
/// The pause after a failed request for the discovery document.
const FAILED: Duration = Duration::from_secs(1);

/// The dashboard as a client of the provider.
#[derive(Debug, Clone, Copy)]
pub struct OidcClient<'a> {
    /// The `iss` of the provider.
    pub issuer: &'a str,
    /// The URL of the provider's keys; `None` when discovery names it.
    pub jwks_url: Option<&'a Uri>,
    /// The client id.
    pub id: &'a str,
    /// The client secret; a public client has none.
    pub secret: Option<&'a Secret>,
    /// The scopes to ask for.
    pub scope: &'a str,
    /// The resource to ask a token for (RFC 8707).
    pub resource: Option<&'a str>,
}

/// Why there are no tokens.
#[derive(Debug, thiserror::Error)]
pub enum CodeFlowError {
    /// The provider refused the code, or answered with tokens that are not valid.
    #[error("the identity provider refused the sign-in: {0}")]
    Refused(String),
    /// The provider cannot be reached, or its answer cannot be read.
    #[error("the identity provider is unavailable: {0}")]
    Unavailable(String),
    /// Too many codes are being exchanged.
    #[error("too many sign-ins at the same time")]
    Busy,
}

/// The tokens of a sign-in.
pub struct Tokens {
    /// The user whom the verified ID token names.
    pub user_id: String,
    /// The claims of the verified ID token.
    pub claims: Map<String, Value>,
    /// The access token.
    pub access: String,
    /// The ID token.
    pub id: String,
    /// The refresh token, where the provider gives one.
    pub refresh: Option<String>,
}

/// The tokens of a renewal.
pub struct RenewedTokens {
    /// The access token.
    pub access: String,
    /// The ID token, where the provider gives one again.
    pub id: Option<String>,
    /// The next refresh token, where it is another one.
    pub refresh: Option<String>,
}

/// Signs users in at one provider.
pub struct CodeFlow {
    outbound: Outbound,
    issuer: String,
    client_id: String,
    authorization: Option<HeaderValue>,
    scope: String,
    resource: Option<String>,
    id_tokens: JwksSessions,
    /// The last outcome, the discovery document or its failure, and until when it is used.
    discovered: Mutex<Option<(Instant, Result<Discovered, String>)>>,
    exchanges: Semaphore,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    id_token: Option<String>,
    refresh_token: Option<String>,
}

#[derive(Deserialize)]
struct TokenFailure {
    error: String,
    error_description: Option<String>,
}

/// The claims of an ID token beyond those of every session token.
#[derive(Deserialize)]
struct IdClaims {
    nonce: Option<String>,
    azp: Option<String>,
}

impl CodeFlow {
    /// The flow of a client. No connection is made yet.
    pub fn new(outbound: Outbound, client: OidcClient<'_>) -> Self {
        let keys = match client.jwks_url {
            Some(url) => PublishedKeys::at(outbound.clone(), url),
            None => PublishedKeys::discovered(outbound.clone(), client.issuer),
        };
        Self {
            outbound,
            issuer: client.issuer.to_owned(),
            client_id: client.id.to_owned(),
            authorization: client.secret.map(|secret| basic(client.id, secret)),
            scope: client.scope.to_owned(),
            resource: client.resource.map(str::to_owned),
            // An ID token is for the client, an access token for this service.
            id_tokens: JwksSessions::new(client.issuer, client.id, keys),
            discovered: Mutex::default(),
            exchanges: Semaphore::new(AT_A_TIME),
        }
    }

    /// The issuer, as it names itself.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The URL to send a browser to.
    ///
    /// # Errors
    ///
    /// [`CodeFlowError::Unavailable`] when the provider does not say where that is.
    pub async fn authorization_url(
        &self,
        redirect_uri: &str,
        state: &str,
        nonce: &str,
        challenge: &str,
    ) -> Result<String, CodeFlowError> {
        let endpoint = self.discovered().await?.authorization_endpoint().map_err(unavailable)?;
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", &self.client_id),
            ("redirect_uri", redirect_uri),
            ("scope", &self.scope),
            ("state", state),
            ("nonce", nonce),
            ("code_challenge", challenge),
            ("code_challenge_method", "S256"),
        ];
        fields.extend(self.resource.as_deref().map(|resource| ("resource", resource)));
        let separator = if endpoint.query().is_some() { '&' } else { '?' };
        Ok(format!("{endpoint}{separator}{}", encoded(&fields)))
    }

    /// Exchanges a code for tokens, and verifies the ID token.
    ///
    /// # Errors
    ///
    /// See [`CodeFlowError`].
    pub async fn exchange(
        &self,
        code: &str,
        redirect_uri: &str,
        verifier: &str,
        nonce: &str,
    ) -> Result<Tokens, CodeFlowError> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier),
        ];
        let answer = self.tokens(&fields).await?;
        let id = answer
            .id_token
            .ok_or_else(|| CodeFlowError::Unavailable("it answered no ID token".to_owned()))?;
        let session = self.verify(&id, nonce).await?;
        Ok(Tokens {
            user_id: session.user_id,
            claims: session.claims,
            access: answer.access_token,
            id,
            refresh: answer.refresh_token,
        })
    }

    /// Exchanges a refresh token for new tokens, which are not verified here (OpenID Connect Core 1.0, section 12).
    ///
    /// # Errors
    ///
    /// See [`CodeFlowError`].
    pub async fn renew(&self, refresh_token: &str) -> Result<RenewedTokens, CodeFlowError> {
        let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
        let answer = self.tokens(&fields).await?;
        Ok(RenewedTokens {
            access: answer.access_token,
            id: answer.id_token,
            refresh: answer.refresh_token,
        })
    }

    /// What the token endpoint answers to a grant.
    async fn tokens(&self, grant: &[(&str, &str)]) -> Result<TokenAnswer, CodeFlowError> {
        // A callback needs no credential, so the exchanges of forged codes are bounded.
        let permit = tokio::time::timeout(WAIT, self.exchanges.acquire()).await;
        let _permit = permit.map_err(|_| CodeFlowError::Busy)?.map_err(unavailable)?;
        let endpoint = self.discovered().await?.token_endpoint().map_err(unavailable)?;
        let mut fields = grant.to_vec();
        if self.authorization.is_none() {
            fields.push(("client_id", &self.client_id));
        }
        fields.extend(self.resource.as_deref().map(|resource| ("resource", resource)));
        let mut request = Request::new(Full::from(encoded(&fields)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = endpoint;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        // A code works once, and so may a refresh token. A provider may revoke the tokens that it gave for one when it
        // comes again (RFC 6749, sections 4.1.2 and 10.4).
        let response = self
            .outbound
            .send_once(request, MAX_BYTES, WITHIN)
            .await
            .map_err(unavailable)?;
        let (status, body) = (response.status(), response.body());
        let may_come_again = matches!(status.as_u16(), 408 | 429);
        if status.is_client_error() && !may_come_again {
            let refusal: Option<TokenFailure> = serde_json::from_slice(body).ok();
            let refusal =
                refusal.map(|refusal| format!("{}: {}", refusal.error, refusal.error_description.unwrap_or_default()));
            return Err(CodeFlowError::Refused(
                refusal.unwrap_or_else(|| format!("it answered {status}")),
            ));
        }
        if !status.is_success() {
            return Err(CodeFlowError::Unavailable(format!("it answered {status}")));
        }
        serde_json::from_slice(body).map_err(unavailable)
    }

    /// The session of an ID token, after every check of OpenID Connect Core 1.0, section 3.1.3.7.
    async fn verify(&self, token: &str, nonce: &str) -> Result<Session, CodeFlowError> {
        let verified = self.id_tokens.verify(token, SystemClock.now()).await;
        let session = verified.map_err(|error| match error {
            SessionError::Invalid(why) => CodeFlowError::Refused(format!("its ID token is not valid: {why}")),
            error => CodeFlowError::Unavailable(error.to_string()),
        })?;
        let claims = token
            .split('.')
            .nth(1)
            .and_then(|part| Base64UrlUnpadded::decode_vec(part).ok());
        let claims: Option<IdClaims> = claims.and_then(|text| serde_json::from_slice(&text).ok());
        let refused = |why: &str| CodeFlowError::Refused(format!("its ID token is not valid: {why}"));
        let claims = claims.ok_or_else(|| refused("its claims cannot be read"))?;
        if claims.nonce.as_deref() != Some(nonce) {
            return Err(refused("its nonce is another"));
        }
        if claims.azp.is_some_and(|party| party != self.client_id) {
            return Err(refused("its azp is another client"));
        }
        Ok(session)
    }

    /// The discovery document. Concurrent sign-ins share one request for it, and its failure (single-flight): with a
    /// provider that does not answer, each would otherwise wait for the timeouts of those before it. When the leader is
    /// dropped, the next one asks.
    async fn discovered(&self) -> Result<Discovered, CodeFlowError> {
        let mut held = self.discovered.lock().await;
        if let Some((until, outcome)) = &*held
            && Instant::now() < *until
        {
            return outcome.clone().map_err(CodeFlowError::Unavailable);
        }
        let outcome = Discovered::of(&self.outbound, &self.issuer).await;
        let outcome = outcome.map_err(|error| error.to_string());
        let lasts = if outcome.is_ok() { FRESH } else { FAILED };
        *held = Some((Instant::now() + lasts, outcome.clone()));
        outcome.map_err(CodeFlowError::Unavailable)
    }
}

fn unavailable(error: impl ToString) -> CodeFlowError {
    CodeFlowError::Unavailable(error.to_string())
}

fn encoded(fields: &[(&str, &str)]) -> String {
    let fields = fields.iter().map(|(name, value)| format!("{name}={}", form(value)));
    fields.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;
    use crate::outbound::Options;
    use crate::outbound::stub::{Stub, answer, closed};

    fn flow(issuer: &str) -> CodeFlow {
        let client = OidcClient {
            issuer,
            jwks_url: None,
            id: "dashboard",
            secret: None,
            scope: "openid",
            resource: None,
        };
        CodeFlow::new(Outbound::new(&Options::default()).unwrap(), client)
    }

    #[tokio::test]
    async fn a_code_is_sent_once_whatever_comes_back() {
        let stub = Stub::new(|_| answer(503, "")).await;
        let issuer = stub.url("");
        let flow = flow(&issuer);
        let document = serde_json::json!({
            "issuer": issuer, "jwks_uri": stub.url("/keys"), "token_endpoint": stub.url("/token"),
        });
        let document = document.to_string();
        for (at, end) in [
            closed as fn() -> _,
            || answer(503, ""),
            || answer(302, ""),
            || answer(200, ""),
        ]
        .iter()
        .enumerate()
        {
            let (document, end) = (document.clone(), *end);
            stub.answers(move |seen| match seen.target.as_str() {
                "/token" => end(),
                _ => answer(200, &document),
            });
            let outcome = flow.exchange("code", "http://localhost/", "verifier", "nonce").await;
            assert!(matches!(outcome, Err(CodeFlowError::Unavailable(_))), "{at}");
            let sent = stub.seen().iter().filter(|seen| seen.target == "/token").count();
            assert_eq!(sent, at + 1);
        }
        // The first of them came on the connection of the request for the document.
        assert_eq!(stub.connections.load(std::sync::atomic::Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_refresh_token_is_sent_once_and_refused_by_the_provider_alone() {
        let stub = Stub::new(|_| answer(503, "")).await;
        let issuer = stub.url("");
        let flow = flow(&issuer);
        let document = serde_json::json!({
            "issuer": issuer, "jwks_uri": stub.url("/keys"), "token_endpoint": stub.url("/token"),
        });
        let document = document.to_string();
        type Outcome = Result<(String, Option<String>, Option<String>), &'static str>;
        let cases: [(u16, &str, Outcome); 6] = [
            (200, r#"{"access_token": "a"}"#, Ok(("a".to_owned(), None, None))),
            (
                200,
                r#"{"access_token": "a", "id_token": "i", "refresh_token": "r"}"#,
                Ok(("a".to_owned(), Some("i".to_owned()), Some("r".to_owned()))),
            ),
            (400, r#"{"error": "invalid_grant"}"#, Err("refused")),
            (429, r#"{"error": "slow_down"}"#, Err("unavailable")),
            (503, "", Err("unavailable")),
            (200, "{}", Err("unavailable")),
        ];
        for (at, (status, body, expected)) in cases.into_iter().enumerate() {
            let document = document.clone();
            stub.answers(move |seen| match seen.target.as_str() {
                "/token" => answer(status, body),
                _ => answer(200, &document),
            });
            let outcome = match flow.renew("old & gone").await {
                Ok(tokens) => Ok((tokens.access, tokens.id, tokens.refresh)),
                Err(CodeFlowError::Refused(_)) => Err("refused"),
                Err(_) => Err("unavailable"),
            };
            assert_eq!(outcome, expected, "{status} {body}");
            let sent: Vec<_> = stub.seen().into_iter().filter(|seen| seen.target == "/token").collect();
            assert_eq!(sent.len(), at + 1);
        }
    }

    #[tokio::test]
    async fn sign_ins_share_the_failure_of_a_provider() {
        let stub = Stub::new(|_| answer(503, "")).await;
        let issuer = stub.url("");
        let flow = std::sync::Arc::new(flow(&issuer));
        let sign_in = || {
            let flow = std::sync::Arc::clone(&flow);
            async move { flow.authorization_url("http://localhost/", "s", "n", "c").await }
        };
        let mut all = JoinSet::new();
        for _ in 0..20 {
            all.spawn(sign_in());
        }
        for outcome in all.join_all().await {
            assert!(matches!(outcome, Err(CodeFlowError::Unavailable(_))));
        }
        assert_eq!(stub.seen().len(), 1);
        let document = serde_json::json!({
            "issuer": issuer,
            "jwks_uri": stub.url("/keys"),
            "authorization_endpoint": stub.url("/authorize"),
        });
        stub.answers(move |_| answer(200, &document.to_string()));
        // A paused clock skips the pause at once, so the test does not wait for it.
        tokio::time::pause();
        assert_eq!(stub.seen().len(), 1);
        tokio::time::advance(FAILED).await;
        tokio::time::resume();
        assert!(sign_in().await.unwrap().starts_with(&stub.url("/authorize?")));
        assert!(sign_in().await.is_ok());
        assert_eq!(stub.seen().len(), 2);
    }
}
