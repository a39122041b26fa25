//! What a server must know of an external identity provider.

use hyper::Uri;

use crate::secret::Secret;

/// An external identity provider, with its settings.
#[derive(Debug, Clone, Copy)]
pub enum RemoteProvider<'a> {
    /// A provider that publishes its keys.
    Jwks {
        /// The `iss` of its tokens.
        issuer: &'a str,
        /// The `aud` of tokens for this service.
        audience: &'a str,
        /// The URL of the JWK set; when absent, the issuer's discovery document names it.
        jwks_url: Option<&'a Uri>,
    },
    /// A provider that answers token introspection.
    Introspection {
        /// Where it is asked.
        url: &'a Uri,
        /// The client id of this service at the provider.
        client_id: &'a str,
        /// The client secret.
        client_secret: &'a Secret,
        /// What an `iss` in the answer must be.
        issuer: Option<&'a str>,
        /// What an `aud` in the answer must have.
        audience: Option<&'a str>,
    },
    /// A provider with a user-info endpoint, which answers the id of the token's user.
    UserInfo {
        /// Where it is asked.
        url: &'a Uri,
        /// The value that it expects in the header `apikey`.
        apikey: Option<&'a Secret>,
    },
}
