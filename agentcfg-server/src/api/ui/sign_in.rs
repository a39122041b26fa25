//! Sign-in at the identity provider: `GET /ui/sign-in` redirects the browser there, and `GET /ui/callback` receives it
//! again.
//!
//! State, nonce and PKCE verifier are in a cookie of ten minutes, so the server keeps no state, and a callback works
//! only in the browser that began. The session's cookie is strict: a browser would not send it with a redirect from
//! another site, so the callback answers with a page that goes on by itself.

use std::fmt;
use std::pin::Pin;

use agentcfg_core::AgentCfg;
use agentcfg_core::service::{BrowserSession, EntryError};
use base64ct::{Base64UrlUnpadded, Encoding};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::http::browser::Cookie;
use crate::http::errors::Failure;
use crate::http::query::Query;
use crate::http::{Body, Browser, html};

/// Characters of each random text: 256 bits.
const RANDOM: usize = 43;
/// How long a sign-in may take.
const SECONDS: i64 = 600;

/// The future of a provider's answer.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, SignInError>> + Send + 'a>>;

/// An identity provider that browsers are sent to.
pub trait IdentityProvider: Send + Sync {
    /// The issuer, as it names itself in its tokens and in the `iss` of a callback (RFC 9207).
    fn issuer(&self) -> &str;

    /// The URL to send a browser to.
    fn authorization_url<'a>(
        &'a self,
        redirect_uri: &'a str,
        state: &'a str,
        nonce: &'a str,
        challenge: &'a str,
    ) -> Pending<'a, String>;

    /// Exchanges a code for tokens, and verifies that the sign-in had this nonce.
    fn exchange<'a>(
        &'a self,
        code: &'a str,
        redirect_uri: &'a str,
        verifier: &'a str,
        nonce: &'a str,
    ) -> Pending<'a, SignedIn>;
}

/// The result of the exchange of a code.
pub struct SignedIn {
    /// The user.
    pub user_id: String,
    /// The tokens. The session is opened with the first one that this service accepts.
    pub tokens: Vec<String>,
    /// The claims of the ID token, which was verified.
    pub claims: Map<String, Value>,
    /// The refresh token, where the provider gives one.
    pub refresh_token: Option<String>,
}

impl fmt::Debug for SignedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The tokens are secret.
        f.debug_struct("SignedIn")
            .field("user_id", &self.user_id)
            .finish_non_exhaustive()
    }
}

/// Why a sign-in failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignInError {
    /// The provider refuses.
    Refused(String),
    /// The provider cannot be reached or understood.
    Unavailable(String),
    /// Too many users sign in at this moment.
    Busy,
}

impl From<SignInError> for Failure {
    fn from(error: SignInError) -> Self {
        match error {
            SignInError::Refused(why) => {
                Self::unauthorized("the identity provider refused the sign-in, try again").because(why)
            }
            SignInError::Unavailable(why) => {
                Self::bad_gateway("the identity provider is unavailable, try again").because(why)
            }
            SignInError::Busy => Self::unavailable("too many sign-ins at the same time, try again"),
        }
    }
}

/// A sign-in in progress, as it is in its cookie.
struct SignInAttempt<'a> {
    state: &'a str,
    nonce: &'a str,
    verifier: &'a str,
}

impl<'a> SignInAttempt<'a> {
    fn read(cookie: &'a str) -> Option<Self> {
        let mut parts = cookie.split('.');
        let attempt = Self {
            state: parts.next()?,
            nonce: parts.next()?,
            verifier: parts.next()?,
        };
        let is_random = |part: &str| part.len() == RANDOM && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_whole = parts.next().is_none()
            && [attempt.state, attempt.nonce, attempt.verifier]
                .into_iter()
                .all(is_random);
        is_whole.then_some(attempt)
    }
}

fn redirect_uri(browser: &Browser, headers: &HeaderMap) -> String {
    format!("{}/ui/callback", browser.base_url(headers))
}

/// Redirects the browser to the provider.
pub(super) async fn begin(
    provider: &dyn IdentityProvider,
    service: &AgentCfg,
    browser: &Browser,
    headers: &HeaderMap,
) -> Result<Response<Body>, Failure> {
    let (state, nonce) = (service.random_text(RANDOM)?, service.random_text(RANDOM)?);
    let verifier = service.random_text(RANDOM)?;
    let challenge = Base64UrlUnpadded::encode_string(&Sha256::digest(verifier.as_bytes()));
    let redirect_uri = redirect_uri(browser, headers);
    let location = provider
        .authorization_url(&redirect_uri, &state, &nonce, &challenge)
        .await?;
    let kept = format!("{}.{}.{}", *state, *nonce, *verifier);
    let cookie = browser.set_cookie(Cookie::SignIn, &kept, SECONDS, headers)?;
    let mut response = Response::new(Body::default());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let fields = response.headers_mut();
    fields.insert(
        header::LOCATION,
        HeaderValue::from_str(&location).map_err(Failure::internal)?,
    );
    fields.insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// Receives the browser from the provider, and signs the user in.
pub(super) async fn finish(
    provider: &dyn IdentityProvider,
    service: &AgentCfg,
    browser: &Browser,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Result<Response<Body>, Failure> {
    let query = Query::parse(query, |_| false)?;
    let again = || Failure::bad_request("this sign-in was not begun in this browser, or too long ago: begin again");
    let attempt = browser
        .cookie(Cookie::SignIn, headers)
        .and_then(SignInAttempt::read)
        .ok_or_else(again)?;
    if query.get("state") != Some(attempt.state) {
        return Err(again());
    }
    // Many providers send no issuer. There is only one provider, so a missing issuer is safe.
    if let Some(issuer) = query.get("iss")
        && issuer != provider.issuer()
    {
        return Err(SignInError::Refused(format!("the callback is of the issuer {issuer:?}")).into());
    }
    if let Some(error) = query.get("error") {
        let description = query.get("error_description").unwrap_or_default();
        return Err(SignInError::Refused(format!("{error}: {description}")).into());
    }
    let code = query
        .get("code")
        .ok_or_else(|| Failure::bad_request("the query parameter code is required"))?;
    let redirect_uri = redirect_uri(browser, headers);
    let signed_in = provider
        .exchange(code, &redirect_uri, attempt.verifier, attempt.nonce)
        .await?;
    let session = open(service, &signed_in).await?;
    let mut response = page("Signed in", "You are signed in.", Some("./"));
    let fields = response.headers_mut();
    let cookie = browser.set_cookie(Cookie::Session, &session.cookie, session.seconds, headers)?;
    fields.append(header::SET_COOKIE, cookie);
    fields.append(header::SET_COOKIE, browser.remove_cookie(Cookie::SignIn, headers)?);
    Ok(response)
}

/// Opens a session with the first token that this service accepts as a bearer.
async fn open(service: &AgentCfg, signed_in: &SignedIn) -> Result<BrowserSession, Failure> {
    let mut refused = None;
    for token in &signed_in.tokens {
        match service.enter(token).await {
            Ok(entry) => {
                if entry.caller.user_id()?.as_str() != signed_in.user_id {
                    return Err(SignInError::Refused("its tokens name two users".to_owned()).into());
                }
                let caller = entry.caller.with_profile(&signed_in.claims);
                let session = match &signed_in.refresh_token {
                    Some(refresh_token) => {
                        service
                            .open_renewable_browser_session(&caller, token, refresh_token)
                            .await?
                    }
                    None => service.open_browser_session(&caller, token).await?,
                };
                return Ok(session);
            }
            Err(EntryError::Credential(error)) if error.kind() == agentcfg_core::ErrorKind::Unauthorized => {
                refused = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let why = "the identity provider answered no token for this service: its audience must be oidc_audience, and it must have \
               the claims of oidc_required_claims; the log says what it lacks";
    Err(Failure::unauthorized(why).because(refused.map_or_else(String::new, |error| format!("{error:?}"))))
}

/// A page for users, which may go on to another one by itself.
pub(super) fn page(title: &str, text: &str, next: Option<&str>) -> Response<Body> {
    let next = next.map_or_else(String::new, |next| {
        format!("<meta http-equiv=\"refresh\" content=\"0; url={next}\">")
    });
    let (title, text) = (html::escape(title), html::escape(text));
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">{next}<title>{title}</title>\
         <link rel=\"icon\" href=\"icon.svg\" type=\"image/svg+xml\"><link rel=\"stylesheet\" href=\"app.css\"></head>\
         <body><main><h1>{title}</h1><p>{text}</p><p><a href=\"./\">Go on</a></p></main></body></html>"
    );
    let mut response = Response::new(Body::Whole(Full::new(Bytes::from(html))));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_three_random_texts() {
        let part = "x".repeat(RANDOM);
        assert!(SignInAttempt::read(&format!("{part}.{part}.{part}")).is_some());
        for bad in [
            String::new(),
            part.clone(),
            format!("{part}.{part}"),
            format!("{part}.{part}.{part}.{part}"),
            format!("{part}.{part}.short"),
            format!("{part}.{part}.{}", "-".repeat(RANDOM)),
        ] {
            assert!(SignInAttempt::read(&bad).is_none(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_page_names_its_icon_so_that_browsers_ask_for_no_other() {
        use http_body_util::BodyExt;
        let body = page("Signed in", "You are signed in.", Some("./")).into_body();
        let html = body.collect().await.unwrap().to_bytes();
        let html = std::str::from_utf8(&html).unwrap();
        assert!(html.contains("<link rel=\"icon\" href=\"icon.svg\""), "{html}");
    }
}
