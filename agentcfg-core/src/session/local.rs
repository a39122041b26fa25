//! The embedded identity provider: tokens signed with the deployment's own secret.

use async_trait::async_trait;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header};
use serde_json::json;

use super::claims::{self, Expected};
use super::jws::Jws;
use super::{Session, SessionError, SessionVerifier};
use crate::error::{Error, ErrorKind};
use crate::model::Timestamp;
use crate::validate::{self, Faults};

/// How long a token lives unless another time is asked for: one hour.
pub const SESSION_SECONDS: u32 = 3600;
/// The longest life of a token: one day.
pub const MAX_SESSION_SECONDS: u32 = 86_400;

const NAME: &str = "agentcfg";
const EXPECTED: Expected<'static> = Expected {
    issuer: NAME,
    audience: NAME,
    leeway_seconds: 0,
};

/// Issues and verifies session tokens with HS256 and one secret.
///
/// ```
/// use agentcfg_core::clock::{Clock, SystemClock};
/// use agentcfg_core::session::{LocalSessions, SESSION_SECONDS, SessionVerifier};
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let sessions = LocalSessions::new(&[7; 32]);
/// let now = SystemClock.now();
/// let token = sessions.issue("ada", SESSION_SECONDS, now)?;
/// assert_eq!(sessions.verify(&token, now).await?.user_id, "ada");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LocalSessions {
    encoding: EncodingKey,
    decoding: DecodingKey,
}

impl LocalSessions {
    /// Sessions signed with this secret, which should be 32 random bytes.
    pub fn new(secret: &[u8]) -> Self {
        Self {
            encoding: EncodingKey::from_secret(secret),
            decoding: DecodingKey::from_secret(secret),
        }
    }

    /// A token for this user, good from now on for so many seconds.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] when the user's identifier or the time is out of its bounds.
    pub fn issue(&self, user_id: &str, seconds: u32, now: Timestamp) -> Result<String, Error> {
        let mut faults = Faults::default();
        validate::user_id(user_id, &mut faults);
        if !(1..=MAX_SESSION_SECONDS).contains(&seconds) {
            faults.push(
                "ttl",
                format_args!("must be 1 to {MAX_SESSION_SECONDS} seconds, got {seconds}"),
            );
        }
        faults.into_result()?;
        let iat = now.unix_millis().div_euclid(1000);
        let claims = json!({
            "sub": user_id, "iss": NAME, "aud": NAME, "iat": iat, "exp": iat + i64::from(seconds),
        });
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.encoding)
            .map_err(|error| Error::new(ErrorKind::Internal, "the session token could not be signed").because(error))
    }
}

#[async_trait]
impl SessionVerifier for LocalSessions {
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Session, SessionError> {
        let token = Jws::parse(token)?;
        if token.algorithm != "HS256" || !token.is_signed_by(&self.decoding, Algorithm::HS256) {
            return Err(SessionError::Invalid("its algorithm or its signature is wrong"));
        }
        claims::check(&token.claims, &EXPECTED, now)
    }

    fn ready(&self) -> Result<(), SessionError> {
        Ok(())
    }
}
