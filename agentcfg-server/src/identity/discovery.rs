//! Documents of OpenID Connect providers, and the contents of a discovery document.

use std::time::Duration;

use agentcfg_core::session::FetchError;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, HeaderValue};
use hyper::{Request, StatusCode, Uri};
use serde::Deserialize;

use super::url::{discovery_url, is_plain_url};
use crate::outbound::Outbound;

/// The longest document in bytes.
const MAX_BYTES: usize = 512 << 10;
/// The time limit for each document.
const WITHIN: Duration = Duration::from_secs(5);

/// The relevant part of a discovery document.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Discovered {
    issuer: String,
    jwks_uri: Option<String>,
    #[cfg_attr(
        not(feature = "dashboard"),
        allow(dead_code, reason = "only the sign-in of the dashboard needs it")
    )]
    authorization_endpoint: Option<String>,
    #[cfg_attr(
        not(feature = "dashboard"),
        allow(dead_code, reason = "only the sign-in of the dashboard needs it")
    )]
    token_endpoint: Option<String>,
}

impl Discovered {
    /// Reads the discovery document of an issuer.
    pub(super) async fn of(outbound: &Outbound, issuer: &str) -> Result<Self, FetchError> {
        let url = discovery_url(issuer).ok_or_else(|| fault("the issuer is no URL"))?;
        let document = get(outbound, "the discovery document", &url).await?;
        let found: Self = serde_json::from_slice(&document)
            .map_err(|error| fault(format!("the discovery document cannot be read: {error}")))?;
        if found.issuer != issuer {
            // Otherwise the keys of one tenant would be accepted for another.
            return Err(fault(format!(
                "the discovery document is that of the issuer {:?}, oidc_issuer is {issuer:?}",
                found.issuer
            )));
        }
        Ok(found)
    }

    /// The URL of the keys.
    pub(super) fn jwks_uri(&self) -> Result<Uri, FetchError> {
        self.url("jwks_uri", &self.jwks_uri)
    }

    /// The URL that a browser is sent to.
    #[cfg_attr(
        not(feature = "dashboard"),
        allow(dead_code, reason = "only the sign-in of the dashboard needs it")
    )]
    pub(super) fn authorization_endpoint(&self) -> Result<Uri, FetchError> {
        self.url("authorization_endpoint", &self.authorization_endpoint)
    }

    /// The URL that exchanges codes for tokens.
    #[cfg_attr(
        not(feature = "dashboard"),
        allow(dead_code, reason = "only the sign-in of the dashboard needs it")
    )]
    pub(super) fn token_endpoint(&self) -> Result<Uri, FetchError> {
        self.url("token_endpoint", &self.token_endpoint)
    }

    fn url(&self, name: &str, url: &Option<String>) -> Result<Uri, FetchError> {
        let url = url
            .as_deref()
            .ok_or_else(|| fault(format!("the discovery document has no {name}")))?;
        let leaves_tls = self.issuer.starts_with("https:") && !url.starts_with("https:");
        if leaves_tls || !is_plain_url(url) {
            return Err(fault(format!(
                "the discovery document names a {name} that cannot be used: {url:?}"
            )));
        }
        url.parse()
            .map_err(|error| fault(format!("the {name} cannot be read: {error}")))
    }
}

/// Reads a document.
pub(super) async fn get(outbound: &Outbound, what: &str, url: &Uri) -> Result<Bytes, FetchError> {
    let mut request = Request::new(Full::default());
    *request.uri_mut() = url.clone();
    request
        .headers_mut()
        .insert(ACCEPT, HeaderValue::from_static("application/json"));
    let response = outbound
        .send_idempotent(request, MAX_BYTES, WITHIN)
        .await
        .map_err(|error| fault(format!("{what} at {url}: {error}")))?;
    match response.status() {
        StatusCode::OK => Ok(response.into_body()),
        other => Err(fault(format!("{what} at {url}: the answer is {other}"))),
    }
}

pub(super) fn fault(why: impl Into<String>) -> FetchError {
    FetchError(why.into())
}
