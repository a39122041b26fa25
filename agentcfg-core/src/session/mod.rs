//! Session tokens: the identity of a signed-in user.
//!
//! A verifier only says who the user is. What the user may do comes from the memberships in the
//! store, never from a token's claims.
//!
//! There is one verifier here for each kind of identity provider. An app with another one implements
//! [`SessionVerifier`]: see the example `custom_verifier`.

mod answer;
mod claims;
#[cfg(feature = "jwks")]
mod jwks;
mod jws;
mod local;
mod renewal;
mod required_claim;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

pub use self::answer::{AnswerRules, read_introspection, read_user_info};
#[cfg(feature = "jwks")]
pub use self::jwks::{FetchError, FetchJwks, JwksSessions};
pub use self::local::{LocalSessions, MAX_SESSION_SECONDS, MIN_SECRET_BYTES, SESSION_SECONDS, ShortSecret};
pub use self::renewal::{Renewed, SessionRenewal};
pub use self::required_claim::{InvalidClaim, RequiredClaim};
use crate::model::Timestamp;

/// The longest token that is accepted.
///
/// ```
/// assert_eq!(agentcfg_core::session::MAX_TOKEN_BYTES, 16_384);
/// ```
pub const MAX_TOKEN_BYTES: usize = 16 << 10;

/// How far the clock of an external identity provider may differ from this one.
///
/// ```
/// assert_eq!(agentcfg_core::session::LEEWAY_SECONDS, 10);
/// ```
pub const LEEWAY_SECONDS: u32 = 10;

/// A user whose token was verified.
///
/// ```
/// use agentcfg_core::session::Session;
/// let session = Session::new("ada");
/// assert_eq!(session.expires_at, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Session {
    /// The user's identifier: the token's `sub`.
    pub user_id: String,
    /// When the token expires, if the verifier knows it. Long calls, such as a stream of changes, end then.
    pub expires_at: Option<Timestamp>,
    /// The claims of the token, or of the provider's answer about it. Only [`RequiredClaim`]s are decided on.
    pub claims: Map<String, Value>,
}

impl Session {
    /// A user whose token has no end that is known here.
    ///
    /// ```
    /// use agentcfg_core::model::Timestamp;
    /// use agentcfg_core::session::Session;
    /// fn of_token(subject: &str, expires_at: Timestamp) -> Session {
    ///     Session::new(subject).expires_at(expires_at)
    /// }
    /// ```
    pub fn new(user_id: impl Into<String>) -> Self {
        Self {
            user_id: user_id.into(),
            expires_at: None,
            claims: Map::new(),
        }
    }

    /// Sets the claims of the token.
    ///
    /// ```
    /// use agentcfg_core::session::Session;
    /// let claims = serde_json::json!({"groups": ["staff"]});
    /// let session = Session::new("ada").claims(claims.as_object().cloned().unwrap_or_default());
    /// assert_eq!(session.claims.len(), 1);
    /// ```
    #[must_use]
    pub fn claims(self, claims: Map<String, Value>) -> Self {
        Self { claims, ..self }
    }

    /// Sets when the token expires.
    ///
    /// ```
    /// use agentcfg_core::session::Session;
    /// let session = Session::new("ada").expires_at("2099-01-31T18:00:00Z".parse()?);
    /// assert!(session.expires_at.is_some());
    /// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
    /// ```
    #[must_use]
    pub fn expires_at(self, end: Timestamp) -> Self {
        Self {
            expires_at: Some(end),
            ..self
        }
    }
}

/// How long a browser session lasts that a user opens with a session token.
///
/// ```
/// use agentcfg_core::session::{CookieLife, LocalSessions, SessionVerifier};
/// assert_eq!(LocalSessions::new(&[7; 32])?.cookie_life(), CookieLife::Own);
/// # Ok::<(), agentcfg_core::session::ShortSecret>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CookieLife {
    /// 24 hours at most and 8 hours without a request, whenever the token ends.
    Own,
    /// As long as the token, which is verified once.
    Token,
    /// As long as the token, which is kept sealed and verified on each request. Without a known end, 24 hours at most.
    Verified,
}

/// Why a token opens no session.
///
/// ```
/// use agentcfg_core::session::SessionError;
/// assert_eq!(SessionError::Invalid("it has expired").to_string(), "the session token is not valid: it has expired");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The token is not valid; trying again does not help.
    #[error("the session token is not valid: {0}")]
    Invalid(&'static str),
    /// The identity provider could not be reached.
    #[error("the identity provider is unavailable: {0}")]
    Unavailable(String),
}

/// Verifies session tokens.
///
/// ```
/// use std::collections::HashMap;
/// use agentcfg_core::model::Timestamp;
/// use agentcfg_core::session::{Session, SessionError, SessionVerifier};
///
/// /// Opaque tokens of the app's own, with their users.
/// struct Tokens(HashMap<String, String>);
///
/// #[async_trait::async_trait]
/// impl SessionVerifier for Tokens {
///     async fn verify(&self, token: &str, _now: Timestamp) -> Result<Session, SessionError> {
///         let user_id = self.0.get(token).cloned().ok_or(SessionError::Invalid("it is unknown"))?;
///         Ok(Session::new(user_id))
///     }
///
///     fn ready(&self) -> Result<(), SessionError> {
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait SessionVerifier: Send + Sync + 'static {
    /// Verifies a token at this time, and returns its user.
    ///
    /// # Errors
    ///
    /// [`SessionError::Invalid`] for a token that is not valid; [`SessionError::Unavailable`] when
    /// it cannot be verified now. In doubt, it is an error.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::clock::{Clock, SystemClock};
    /// use agentcfg_core::session::{LocalSessions, SessionError, SessionVerifier};
    /// let sessions = LocalSessions::new(&[7; 32])?;
    /// let forged = sessions.verify("a.b.c", SystemClock.now()).await;
    /// assert!(matches!(forged, Err(SessionError::Invalid(_))));
    /// # Ok(())
    /// # }
    /// ```
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Session, SessionError>;

    /// Whether the last attempt to reach the provider succeeded, without a call to it. A verifier that needs none
    /// answers `Ok(())`.
    ///
    /// # Errors
    ///
    /// [`SessionError::Unavailable`] with what is missing, for the log.
    ///
    /// ```
    /// use agentcfg_core::session::{LocalSessions, SessionVerifier};
    /// let sessions = LocalSessions::new(&[7; 32])?;
    /// assert!(sessions.ready().is_ok(), "it needs nothing beforehand");
    /// # Ok::<(), agentcfg_core::session::ShortSecret>(())
    /// ```
    fn ready(&self) -> Result<(), SessionError>;

    /// How long a browser session lasts that is opened with one of these tokens. By default the token is verified again
    /// on each request, which needs a master key to seal it with.
    ///
    /// ```
    /// use agentcfg_core::session::{CookieLife, LocalSessions, SessionVerifier};
    /// let sessions = LocalSessions::new(&[7; 32])?;
    /// assert_eq!(sessions.cookie_life(), CookieLife::Own);
    /// # Ok::<(), agentcfg_core::session::ShortSecret>(())
    /// ```
    fn cookie_life(&self) -> CookieLife {
        CookieLife::Verified
    }

    /// What a token must come from, such as the issuer and the audience, or a digest of the secret: nothing that is
    /// secret itself.
    ///
    /// A browser session ends when this changes, because it may have been opened with a token that is accepted no
    /// longer. A verifier whose tokens are [verified on each request](CookieLife::Verified) needs none.
    ///
    /// ```
    /// use agentcfg_core::session::{LocalSessions, SessionVerifier};
    /// let (old, new) = (LocalSessions::new(&[7; 32])?, LocalSessions::new(&[8; 32])?);
    /// assert_ne!(old.origin(), new.origin());
    /// # Ok::<(), agentcfg_core::session::ShortSecret>(())
    /// ```
    fn origin(&self) -> String {
        String::new()
    }
}

/// A verifier behind a pointer is a verifier.
macro_rules! pointers {
    ($($pointer:ident),+) => {$(
        #[async_trait]
        impl<V: SessionVerifier + ?Sized> SessionVerifier for $pointer<V> {
            async fn verify(&self, token: &str, now: Timestamp) -> Result<Session, SessionError> {
                (**self).verify(token, now).await
            }

            fn ready(&self) -> Result<(), SessionError> {
                (**self).ready()
            }

            fn cookie_life(&self) -> CookieLife {
                (**self).cookie_life()
            }

            fn origin(&self) -> String {
                (**self).origin()
            }
        }
    )+};
}

pointers!(Arc, Box);
