//! Session tokens: who a signed-in user is.
//!
//! A verifier only says who the user is. What the user may do comes from the memberships in the
//! store, never from a token's claims. (Interface specification, *Session JWT*.)

mod claims;
mod local;

use async_trait::async_trait;

pub use self::local::{LocalSessions, MAX_SESSION_SECONDS, SESSION_SECONDS};
use crate::model::Timestamp;

/// A user whose token was found good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The user's identifier: the token's `sub`.
    pub user_id: String,
}

/// Why a token opens no session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The token is not good; asking again changes nothing.
    #[error("the session token is not valid: {0}")]
    Invalid(&'static str),
    /// The identity provider could not be asked.
    #[error("the identity provider is unavailable: {0}")]
    Unavailable(String),
}

/// Something that can tell whose session token this is.
#[async_trait]
pub trait SessionVerifier: Send + Sync + 'static {
    /// Says who the user behind the token is, at this time.
    ///
    /// # Errors
    ///
    /// [`SessionError::Invalid`] for a token that is not good; [`SessionError::Unavailable`] when
    /// that cannot be found out now. Never a user in doubt.
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Session, SessionError>;
}
