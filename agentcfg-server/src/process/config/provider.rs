//! Which identity provider the settings choose, with all that it needs.

use hyper::Uri;

use super::settings::is_visible;
use super::{Config, ConfigError, Secret};
use crate::identity::discovery_url;

/// The kinds of identity provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionProvider {
    /// This server issues tokens itself.
    Local,
    /// Tokens are verified by the keys that the provider publishes.
    Jwks,
    /// The provider is asked about each token.
    Introspection,
}

/// An identity provider with its settings, as [`Config::provider`] finds them complete.
#[derive(Debug, Clone, Copy)]
pub enum IdentityProvider<'a> {
    /// This server itself.
    Local,
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

impl Config {
    /// The identity provider that `session_provider` chooses. Settings of the others are not looked at.
    ///
    /// # Errors
    ///
    /// When a setting is missing that it needs, or two contradict each other. Every fault is named.
    pub fn provider(&self) -> Result<IdentityProvider<'_>, ConfigError> {
        let mut problems = Vec::new();
        let provider = match self.session_provider {
            SessionProvider::Local => Some(IdentityProvider::Local),
            SessionProvider::Jwks => self.jwks(&mut problems),
            SessionProvider::Introspection => self.asked(&mut problems),
        };
        provider.filter(|_| problems.is_empty()).ok_or(ConfigError { problems })
    }

    fn jwks(&self, problems: &mut Vec<String>) -> Option<IdentityProvider<'_>> {
        let mut need = |name: &str, value: &Option<String>| {
            if value.is_none() {
                problems.push(format!("session_provider is jwks, which needs {name}"));
            }
        };
        need("oidc_issuer", &self.oidc_issuer);
        need("oidc_audience", &self.oidc_audience);
        let issuer = self.oidc_issuer.as_deref()?;
        if self.oidc_jwks_url.is_none() && discovery_url(issuer).is_none() {
            problems.push(format!(
                "oidc_issuer must be an http or https URL without credentials, query and fragment, or else oidc_jwks_url \
                 must say where the keys are; got {issuer:?}"
            ));
        }
        Some(IdentityProvider::Jwks {
            issuer,
            audience: self.oidc_audience.as_deref()?,
            jwks_url: self.oidc_jwks_url.as_ref(),
        })
    }

    fn asked(&self, problems: &mut Vec<String>) -> Option<IdentityProvider<'_>> {
        match (&self.introspection_url, &self.userinfo_url) {
            (None, None) => {
                problems
                    .push("session_provider is introspection, which needs introspection_url or userinfo_url".into());
                None
            }
            (Some(_), Some(_)) => {
                problems.push("introspection_url and userinfo_url are both set; keep the one to ask".into());
                None
            }
            (None, Some(url)) => {
                let apikey = self.userinfo_apikey.as_ref();
                if apikey.is_some_and(|apikey| !is_visible(apikey.expose())) {
                    problems.push("userinfo_apikey must be visible ASCII characters".into());
                }
                Some(IdentityProvider::UserInfo { url, apikey })
            }
            (Some(url), None) => {
                if self.introspection_client_id.is_none() {
                    problems.push("introspection_url is set, which needs introspection_client_id".into());
                }
                if self.introspection_client_secret.is_none() {
                    problems.push("introspection_url is set, which needs introspection_client_secret".into());
                }
                Some(IdentityProvider::Introspection {
                    url,
                    client_id: self.introspection_client_id.as_deref()?,
                    client_secret: self.introspection_client_secret.as_ref()?,
                    issuer: self.oidc_issuer.as_deref(),
                    audience: self.oidc_audience.as_deref(),
                })
            }
        }
    }
}
