//! The claims of a token and what they must be.

use serde::Deserialize;

use super::{Session, SessionError};
use crate::model::Timestamp;
use crate::validate;

/// The claims that matter here; a claim given twice is an error of the reader.
#[derive(Deserialize)]
pub(super) struct Claims {
    sub: Option<String>,
    iss: Option<String>,
    aud: Option<Audience>,
    exp: Option<f64>,
    nbf: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// What a token's claims are held against.
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) audience: &'a str,
    /// How far the clocks of the two sides may differ.
    pub(super) leeway_seconds: u32,
}

impl Claims {
    /// The session, when every claim is there and right at this time.
    pub(super) fn check(self, expected: &Expected<'_>, now: Timestamp) -> Result<Session, SessionError> {
        let now = now.unix_millis() as f64 / 1000.0;
        let leeway = f64::from(expected.leeway_seconds);
        let exp = self.exp.ok_or(SessionError::Invalid("it has no exp"))?;
        if exp + leeway <= now {
            return Err(SessionError::Invalid("it has expired"));
        }
        if self.nbf.is_some_and(|nbf| nbf > now + leeway) {
            return Err(SessionError::Invalid("it is not valid yet"));
        }
        if self.iss.as_deref() != Some(expected.issuer) {
            return Err(SessionError::Invalid("its iss is another"));
        }
        let meant_for_us = match &self.aud {
            Some(Audience::One(audience)) => audience == expected.audience,
            Some(Audience::Many(audiences)) => audiences.iter().any(|audience| audience == expected.audience),
            None => false,
        };
        if !meant_for_us {
            return Err(SessionError::Invalid("its aud is another"));
        }
        match self.sub {
            Some(user_id) if validate::is_user_id(&user_id) => Ok(Session { user_id }),
            _ => Err(SessionError::Invalid("its sub is no user id")),
        }
    }
}
