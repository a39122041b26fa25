//! The identity provider of the settings.

use super::choices::SessionProvider;
use super::error::ConfigError;
use super::rules::is_visible;
use super::settings::Config;
use crate::identity::{RemoteProvider, discovery_url};

impl Config {
    /// The external identity provider that `session_provider` selects; `None` for the local one. Settings of other
    /// providers are ignored.
    ///
    /// # Errors
    ///
    /// When a setting is missing that it needs, or two contradict each other. Every fault is named.
    pub fn provider(&self) -> Result<Option<RemoteProvider<'_>>, ConfigError> {
        let mut problems = Vec::new();
        let provider = match self.session_provider {
            SessionProvider::Local => return Ok(None),
            SessionProvider::Jwks => self.jwks(&mut problems),
            SessionProvider::Introspection => self.asked(&mut problems),
        };
        match provider {
            Some(provider) if problems.is_empty() => Ok(Some(provider)),
            _ => Err(ConfigError::new(problems)),
        }
    }

    fn jwks(&self, problems: &mut Vec<String>) -> Option<RemoteProvider<'_>> {
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
        if self.oidc_client_id.is_some() {
            if discovery_url(issuer).is_none() {
                problems.push(format!(
                    "oidc_client_id is set, which needs an oidc_issuer that is an http or https URL without credentials, \
                     query and fragment; got {issuer:?}"
                ));
            }
            if self.public_url.is_none() && !self.listen.ip().is_loopback() {
                problems.push(
                    "oidc_client_id is set, which needs public_url: the identity provider sends browsers back to it"
                        .into(),
                );
            }
        }
        Some(RemoteProvider::Jwks {
            issuer,
            audience: self.oidc_audience.as_deref()?,
            jwks_url: self.oidc_jwks_url.as_ref(),
        })
    }

    fn asked(&self, problems: &mut Vec<String>) -> Option<RemoteProvider<'_>> {
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
                Some(RemoteProvider::UserInfo { url, apikey })
            }
            (Some(url), None) => {
                if self.introspection_client_id.is_none() {
                    problems.push("introspection_url is set, which needs introspection_client_id".into());
                }
                if self.introspection_client_secret.is_none() {
                    problems.push("introspection_url is set, which needs introspection_client_secret".into());
                }
                Some(RemoteProvider::Introspection {
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
