//! The settings of an external identity provider.

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
        /// The URL of the introspection endpoint.
        url: &'a Uri,
        /// The client id of this service at the provider.
        client_id: &'a str,
        /// The client secret.
        client_secret: &'a Secret,
        /// The required `iss` of an answer that has one.
        issuer: Option<&'a str>,
        /// The required `aud` of an answer that has one.
        audience: Option<&'a str>,
    },
    /// A provider with a user-info endpoint, which answers the id of the token's user.
    UserInfo {
        /// The URL of the user-info endpoint.
        url: &'a Uri,
        /// The value of the header `apikey`, if the provider needs it.
        apikey: Option<&'a Secret>,
    },
}
