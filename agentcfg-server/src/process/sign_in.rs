//! Sign-in of the dashboard at the identity provider: adapts the provider of the settings to the API.

use std::sync::Arc;

use agentcfg_core::session::{Renewed, SessionError, SessionRenewal};
use async_trait::async_trait;

use crate::api::{IdentityProvider, Pending, SignInError, SignedIn};
use crate::identity::{CodeFlow, CodeFlowError, OidcClient};
use crate::outbound::{Options, Outbound};
use crate::process::config::{Config, SessionProvider};

/// The provider that the dashboard signs in with, if the settings name a client.
///
/// # Errors
///
/// When TLS cannot be set up.
pub(super) fn provider(config: &Config, options: &Options) -> std::io::Result<Option<Arc<CodeFlow>>> {
    let (SessionProvider::Jwks, Some(id), Some(issuer)) =
        (config.session_provider, &config.oidc_client_id, &config.oidc_issuer)
    else {
        return Ok(None);
    };
    let client = OidcClient {
        issuer,
        jwks_url: config.oidc_jwks_url.as_ref(),
        id,
        secret: config.oidc_client_secret.as_ref(),
        scope: &config.oidc_scope,
        resource: config.oidc_resource.as_deref(),
    };
    let flow = CodeFlow::new(Outbound::new(options)?, client);
    Ok(Some(Arc::new(flow)))
}

#[async_trait]
impl SessionRenewal for CodeFlow {
    async fn renew(&self, refresh_token: &str) -> Result<Renewed, SessionError> {
        match Self::renew(self, refresh_token).await {
            Ok(tokens) => {
                let all = std::iter::once(tokens.access).chain(tokens.id);
                Ok(Renewed::new(all.collect()).refresh_token(tokens.refresh))
            }
            Err(CodeFlowError::Refused(why)) => {
                tracing::info!(why, "the identity provider refused a refresh token");
                Err(SessionError::Invalid("the identity provider refused the refresh token"))
            }
            Err(error) => Err(SessionError::Unavailable(error.to_string())),
        }
    }
}

impl IdentityProvider for CodeFlow {
    fn issuer(&self) -> &str {
        Self::issuer(self)
    }

    fn authorization_url<'a>(
        &'a self,
        redirect_uri: &'a str,
        state: &'a str,
        nonce: &'a str,
        challenge: &'a str,
    ) -> Pending<'a, String> {
        Box::pin(async move { Ok(self.authorization_url(redirect_uri, state, nonce, challenge).await?) })
    }

    fn exchange<'a>(
        &'a self,
        code: &'a str,
        redirect_uri: &'a str,
        verifier: &'a str,
        nonce: &'a str,
    ) -> Pending<'a, SignedIn> {
        Box::pin(async move {
            let tokens = self.exchange(code, redirect_uri, verifier, nonce).await?;
            Ok(SignedIn {
                user_id: tokens.user_id,
                claims: tokens.claims,
                tokens: vec![tokens.access, tokens.id],
                refresh_token: tokens.refresh,
            })
        })
    }
}

impl From<CodeFlowError> for SignInError {
    fn from(error: CodeFlowError) -> Self {
        match error {
            CodeFlowError::Refused(why) => Self::Refused(why),
            CodeFlowError::Unavailable(why) => Self::Unavailable(why),
            CodeFlowError::Busy => Self::Busy,
        }
    }
}
