//! Renewal of browser sessions with refresh tokens.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::SessionError;

/// What a provider gives for a refresh token.
///
/// ```
/// use agentcfg_core::session::Renewed;
/// let renewed = Renewed::new(vec!["access token".to_owned()]).refresh_token(Some("next".to_owned()));
/// assert_eq!(format!("{renewed:?}"), "Renewed { .. }", "the tokens are secret");
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renewed {
    /// New tokens of the user. The session goes on with the first one that this service accepts.
    pub tokens: Vec<String>,
    /// The refresh token for the next time; `None` where it is the same one.
    pub refresh_token: Option<String>,
}

impl Renewed {
    /// New tokens, with the same refresh token for the next time.
    ///
    /// ```
    /// use agentcfg_core::session::Renewed;
    /// assert_eq!(Renewed::new(vec!["access token".to_owned()]).refresh_token, None);
    /// ```
    pub fn new(tokens: Vec<String>) -> Self {
        Self {
            tokens,
            refresh_token: None,
        }
    }

    /// Sets the refresh token for the next time.
    ///
    /// ```
    /// use agentcfg_core::session::Renewed;
    /// let renewed = Renewed::new(Vec::new()).refresh_token(Some("next".to_owned()));
    /// assert_eq!(renewed.refresh_token.as_deref(), Some("next"));
    /// ```
    #[must_use]
    pub fn refresh_token(self, refresh_token: Option<String>) -> Self {
        Self { refresh_token, ..self }
    }
}

impl fmt::Debug for Renewed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The tokens are secret.
        f.debug_struct("Renewed").finish_non_exhaustive()
    }
}

/// Exchanges refresh tokens at the identity provider, so that browser sessions outlast their tokens.
///
/// ```
/// use agentcfg_core::session::{Renewed, SessionError, SessionRenewal};
///
/// /// A provider whose refresh tokens are the names of users.
/// struct Provider;
///
/// #[async_trait::async_trait]
/// impl SessionRenewal for Provider {
///     async fn renew(&self, refresh_token: &str) -> Result<Renewed, SessionError> {
///         Ok(Renewed::new(vec![format!("a token of {refresh_token}")]))
///     }
/// }
/// ```
#[async_trait]
pub trait SessionRenewal: Send + Sync + 'static {
    /// Exchanges a refresh token for new tokens.
    ///
    /// # Errors
    ///
    /// [`SessionError::Invalid`] when the provider refuses it: the session ends. [`SessionError::Unavailable`] when the
    /// provider cannot be asked now: the next request tries again.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::session::{Renewed, SessionError, SessionRenewal};
    /// # struct Provider;
    /// # #[async_trait::async_trait]
    /// # impl SessionRenewal for Provider {
    /// #     async fn renew(&self, refresh_token: &str) -> Result<Renewed, SessionError> {
    /// #         Ok(Renewed::new(vec![format!("a token of {refresh_token}")]))
    /// #     }
    /// # }
    /// assert_eq!(Provider.renew("ada").await?.tokens, ["a token of ada"]);
    /// # Ok(())
    /// # }
    /// ```
    async fn renew(&self, refresh_token: &str) -> Result<Renewed, SessionError>;
}

#[async_trait]
impl<R: SessionRenewal + ?Sized> SessionRenewal for Arc<R> {
    async fn renew(&self, refresh_token: &str) -> Result<Renewed, SessionError> {
        (**self).renew(refresh_token).await
    }
}
