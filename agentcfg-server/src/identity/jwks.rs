//! The JWK set that a provider publishes: at a configured URL, or at the one that its discovery document names.

use agentcfg_core::session::{FetchError, FetchJwks};
use async_trait::async_trait;
use hyper::Uri;

use super::discovery::{Discovered, get};
use crate::outbound::Outbound;

/// Fetches the JWK set of a provider.
pub(super) struct PublishedKeys {
    outbound: Outbound,
    location: JwksLocation,
}

enum JwksLocation {
    Url(Uri),
    /// The URL in the discovery document of this issuer. The document is read each time, so the set may move.
    Issuer(String),
}

impl PublishedKeys {
    /// The set at this URL.
    pub(super) fn at(outbound: Outbound, url: &Uri) -> Self {
        Self {
            outbound,
            location: JwksLocation::Url(url.clone()),
        }
    }

    /// The set that the issuer's discovery document names.
    pub(super) fn discovered(outbound: Outbound, issuer: &str) -> Self {
        Self {
            outbound,
            location: JwksLocation::Issuer(issuer.to_owned()),
        }
    }
}

#[async_trait]
impl FetchJwks for PublishedKeys {
    async fn fetch(&self) -> Result<Vec<u8>, FetchError> {
        let discovered;
        let url = match &self.location {
            JwksLocation::Url(url) => url,
            JwksLocation::Issuer(issuer) => {
                discovered = Discovered::of(&self.outbound, issuer).await?.jwks_uri()?;
                &discovered
            }
        };
        get(&self.outbound, "the key set", url).await.map(Vec::from)
    }
}
