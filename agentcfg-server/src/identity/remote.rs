//! What a server must know of an identity provider elsewhere.

use hyper::Uri;

use crate::secret::Secret;

/// An identity provider elsewhere, with all that it needs.
#[derive(Debug, Clone, Copy)]
pub enum RemoteProvider<'a> {
    /// A provider that publishes its keys.
    Jwks {
        /// The `iss` of its tokens.
        issuer: &'a str,
        /// The `aud` of tokens for this service.
        audience: &'a str,
        /// Where the keys are; the issuer's discovery document says so when absent.
        jwks_url: Option<&'a Uri>,
    },
    /// A provider that answers token introspection.
    Introspection {
        /// Where it is asked.
        url: &'a Uri,
        /// Who this service is to the provider.
        client_id: &'a str,
        /// The secret that proves it.
        client_secret: &'a Secret,
        /// What an `iss` in the answer must be.
        issuer: Option<&'a str>,
        /// What an `aud` in the answer must have.
        audience: Option<&'a str>,
    },
    /// A provider that tells the bearer of a token who that is.
    UserInfo {
        /// Where it is asked.
        url: &'a Uri,
        /// What it wants in the header `apikey`.
        apikey: Option<&'a Secret>,
    },
}
