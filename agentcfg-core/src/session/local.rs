//! The embedded identity provider: tokens signed with the deployment's own secret.

use std::fmt;

use async_trait::async_trait;
use base64ct::{Base64UrlUnpadded, Encoding};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;

use super::jws::{Expected, Jws};
use super::{CookieLife, Session, SessionError, SessionVerifier};
use crate::error::Error;
use crate::model::Timestamp;
use crate::validate::{self, Faults};

/// The default lifetime of a token: one hour.
///
/// ```
/// assert_eq!(agentcfg_core::session::SESSION_SECONDS, 60 * 60);
/// ```
/// ```
/// assert_eq!(agentcfg_core::session::MAX_SESSION_SECONDS, 24 * 60 * 60);
/// ```
pub const SESSION_SECONDS: u32 = 3600;
/// The longest lifetime of a token: one day.
pub const MAX_SESSION_SECONDS: u32 = 86_400;

/// The shortest secret, in bytes: as many as a tag of HS256 has (RFC 7518, section 3.2).
///
/// ```
/// use agentcfg_core::session::{LocalSessions, MIN_SECRET_BYTES};
/// assert!(LocalSessions::new(&[7; MIN_SECRET_BYTES]).is_ok());
/// ```
pub const MIN_SECRET_BYTES: usize = 32;

const NAME: &str = "agentcfg";
const HEADER: &str = r#"{"typ":"JWT","alg":"HS256"}"#;
const EXPECTED: Expected<'static> = Expected {
    issuer: NAME,
    audience: NAME,
    leeway_seconds: 0,
};

/// A session secret of too few bytes. With a secret that can be guessed, an attacker can sign in as any user.
///
/// ```
/// use agentcfg_core::session::{LocalSessions, ShortSecret};
/// assert_eq!(LocalSessions::new(b"guess me").err(), Some(ShortSecret(8)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session secret must be at least {MIN_SECRET_BYTES} bytes, got {0}")]
pub struct ShortSecret(pub usize);

/// Issues and verifies session tokens with HS256 and one secret.
///
/// ```
/// use agentcfg_core::clock::{Clock, SystemClock};
/// use agentcfg_core::session::{LocalSessions, SESSION_SECONDS, SessionVerifier};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let sessions = LocalSessions::new(&[7; 32])?;
/// let now = SystemClock.now();
/// let token = sessions.issue("ada", SESSION_SECONDS, now)?;
/// assert_eq!(sessions.verify(&token, now).await?.user_id, "ada");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LocalSessions {
    /// With the secret in it, which is wiped when it is dropped.
    mac: Hmac<Sha256>,
}

impl fmt::Debug for LocalSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSessions").finish_non_exhaustive()
    }
}

impl LocalSessions {
    /// Sessions signed with this secret, which should be random.
    ///
    /// # Errors
    ///
    /// [`ShortSecret`] for fewer than [`MIN_SECRET_BYTES`].
    ///
    /// ```
    /// use agentcfg_core::clock::{Entropy, SystemEntropy};
    /// use agentcfg_core::session::LocalSessions;
    /// let mut secret = [0; 32];
    /// SystemEntropy.fill(&mut secret)?;
    /// let sessions = LocalSessions::new(&secret)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(secret: &[u8]) -> Result<Self, ShortSecret> {
        // HMAC itself takes a key of any length.
        match <Hmac<Sha256> as KeyInit>::new_from_slice(secret) {
            Ok(mac) if secret.len() >= MIN_SECRET_BYTES => Ok(Self { mac }),
            _ => Err(ShortSecret(secret.len())),
        }
    }

    fn mac(&self, signed: &str) -> Hmac<Sha256> {
        self.mac.clone().chain_update(signed)
    }

    /// A token for this user, valid from now on for so many seconds.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) when the user's identifier or the time is out of its bounds.
    ///
    /// ```
    /// use agentcfg_core::clock::{Clock, SystemClock};
    /// use agentcfg_core::session::{LocalSessions, SESSION_SECONDS};
    /// let sessions = LocalSessions::new(&[7; 32])?;
    /// let token = sessions.issue("ada", SESSION_SECONDS, SystemClock.now())?;
    /// assert!(sessions.issue("ada", 0, SystemClock.now()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn issue(&self, user_id: &str, seconds: u32, now: Timestamp) -> Result<String, Error> {
        let mut faults = Faults::default();
        validate::user_id(user_id, &"user_id", &mut faults);
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
        let [header, claims] =
            [HEADER.to_owned(), claims.to_string()].map(|part| Base64UrlUnpadded::encode_string(part.as_bytes()));
        let signed = format!("{header}.{claims}");
        let signature = self.mac(&signed).finalize().into_bytes();
        Ok(format!("{signed}.{}", Base64UrlUnpadded::encode_string(&signature)))
    }
}

#[async_trait]
impl SessionVerifier for LocalSessions {
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Session, SessionError> {
        let mut token = Jws::parse(token)?;
        // Compares in constant time, and the whole tag: no shorter one is taken.
        if token.algorithm != "HS256" || self.mac(token.signed).verify_slice(&token.signature).is_err() {
            return Err(SessionError::Invalid("its algorithm or its signature is wrong"));
        }
        token.session(&EXPECTED, now)
    }

    fn ready(&self) -> Result<(), SessionError> {
        Ok(())
    }

    fn cookie_life(&self) -> CookieLife {
        CookieLife::Own
    }

    /// A digest that does not tell the secret.
    fn origin(&self) -> String {
        Base64UrlUnpadded::encode_string(&self.mac("the origin of browser sessions").finalize().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_is_too_short_is_refused() {
        for short in [0, 1, 31] {
            let error = LocalSessions::new(&vec![7; short]).err().unwrap();
            assert_eq!(error, ShortSecret(short));
        }
        assert_eq!(
            ShortSecret(31).to_string(),
            "the session secret must be at least 32 bytes, got 31"
        );
        for long in [32, 33, 200] {
            assert!(LocalSessions::new(&vec![7; long]).is_ok());
        }
    }

    #[test]
    fn the_example_of_rfc_7515_is_verified() {
        let secret = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let sessions = LocalSessions::new(&Base64UrlUnpadded::decode_vec(secret).unwrap()).unwrap();
        let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9\
                     .eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ\
                     .dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let token = Jws::parse(token).unwrap();
        assert!(sessions.mac(token.signed).verify_slice(&token.signature).is_ok());
        assert!(sessions.mac(token.signed).verify_slice(&token.signature[..16]).is_err());
        assert!(sessions.mac("other").verify_slice(&token.signature).is_err());
    }
}
