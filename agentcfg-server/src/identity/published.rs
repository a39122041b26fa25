//! The JWK set that a provider publishes: at a configured URL, or at the one that its discovery document names.

use std::time::Duration;

use agentcfg_core::session::{FetchError, FetchJwks};
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, HeaderValue};
use hyper::{Request, StatusCode, Uri};
use serde::Deserialize;

use super::url::{discovery_url, is_plain_url};
use crate::outbound::Outbound;

/// The longest document that is read.
const MAX_BYTES: usize = 512 << 10;
/// Time for each document.
const WITHIN: Duration = Duration::from_secs(5);

/// Fetches the JWK set of a provider.
pub(super) struct PublishedKeys {
    outbound: Outbound,
    place: Place,
}

enum Place {
    Url(Uri),
    /// What the discovery document of this issuer names. It is read each time, so that the set may move.
    Issuer(String),
}

/// What is read of the discovery document.
#[derive(Deserialize)]
struct Discovered {
    issuer: String,
    jwks_uri: String,
}

impl PublishedKeys {
    /// A set at this URL.
    pub(super) fn at(outbound: Outbound, url: &Uri) -> Self {
        Self {
            outbound,
            place: Place::Url(url.clone()),
        }
    }

    /// A set that the issuer's discovery document names.
    pub(super) fn discovered(outbound: Outbound, issuer: &str) -> Self {
        Self {
            outbound,
            place: Place::Issuer(issuer.to_owned()),
        }
    }

    async fn discover(&self, issuer: &str) -> Result<Uri, FetchError> {
        let url = discovery_url(issuer).ok_or_else(|| fault("the issuer is no URL"))?;
        let document = self.get("the discovery document", &url).await?;
        let found: Discovered = serde_json::from_slice(&document)
            .map_err(|error| fault(format!("the discovery document cannot be read: {error}")))?;
        if found.issuer != issuer {
            // Otherwise the keys of one tenant would be accepted for another.
            return Err(fault(format!(
                "the discovery document is that of the issuer {:?}, oidc_issuer is {issuer:?}",
                found.issuer
            )));
        }
        let leaves_tls = issuer.starts_with("https:") && !found.jwks_uri.starts_with("https:");
        if leaves_tls || !is_plain_url(&found.jwks_uri) {
            return Err(fault(format!(
                "the discovery document names a jwks_uri that cannot be used: {:?}",
                found.jwks_uri
            )));
        }
        found
            .jwks_uri
            .parse()
            .map_err(|error| fault(format!("the jwks_uri cannot be read: {error}")))
    }

    async fn get(&self, what: &str, url: &Uri) -> Result<Bytes, FetchError> {
        let mut request = Request::new(Full::default());
        *request.uri_mut() = url.clone();
        request
            .headers_mut()
            .insert(ACCEPT, HeaderValue::from_static("application/json"));
        let response = self
            .outbound
            .send_idempotent(request, MAX_BYTES, WITHIN)
            .await
            .map_err(|error| fault(format!("{what} at {url}: {error}")))?;
        match response.status() {
            StatusCode::OK => Ok(response.into_body()),
            other => Err(fault(format!("{what} at {url}: the answer is {other}"))),
        }
    }
}

#[async_trait]
impl FetchJwks for PublishedKeys {
    async fn fetch(&self) -> Result<Vec<u8>, FetchError> {
        let discovered;
        let url = match &self.place {
            Place::Url(url) => url,
            Place::Issuer(issuer) => {
                discovered = self.discover(issuer).await?;
                &discovered
            }
        };
        self.get("the key set", url).await.map(Vec::from)
    }
}

fn fault(why: impl Into<String>) -> FetchError {
    FetchError(why.into())
}
