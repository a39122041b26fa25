//! The claims of a token and their rules.

use serde_json::{Map, Value};

use super::{Session, SessionError};
use crate::model::Timestamp;
use crate::validate;

/// The last second of the year 9999: a later time is refused.
const LAST_SECOND: f64 = 253_402_300_799.0;

/// The rules that a token's claims are checked by.
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) audience: &'a str,
    /// How far the clocks of the two sides may differ.
    pub(super) leeway_seconds: u32,
}

/// The session, when every claim is present and valid at this time.
pub(super) fn check(
    claims: &Map<String, Value>,
    expected: &Expected<'_>,
    now: Timestamp,
) -> Result<Session, SessionError> {
    if !claims.contains_key("exp") {
        return Err(SessionError::Invalid("it has no exp"));
    }
    check_times(claims, expected.leeway_seconds, now)?;
    if !is_issued_by(claims, expected.issuer) {
        return Err(SessionError::Invalid("its iss is another"));
    }
    if !is_meant_for(claims, expected.audience) {
        return Err(SessionError::Invalid("its aud is another"));
    }
    match claims.get("sub") {
        Some(Value::String(user_id)) if validate::is_user_id(user_id) => Ok(Session {
            user_id: user_id.clone(),
            expires_at: end(claims),
        }),
        _ => Err(SessionError::Invalid("its sub is no user id")),
    }
}

/// Checks the times that the claims name.
pub(super) fn check_times(
    claims: &Map<String, Value>,
    leeway_seconds: u32,
    now: Timestamp,
) -> Result<(), SessionError> {
    let now = now.unix_millis() as f64 / 1000.0;
    let leeway = f64::from(leeway_seconds);
    if time(claims, "exp")?.is_some_and(|exp| exp + leeway <= now) {
        return Err(SessionError::Invalid("it has expired"));
    }
    if time(claims, "nbf")?.is_some_and(|nbf| nbf > now + leeway) {
        return Err(SessionError::Invalid("it is not valid yet"));
    }
    Ok(())
}

/// The time of `exp`, if it is one.
pub(super) fn end(claims: &Map<String, Value>) -> Option<Timestamp> {
    let seconds = time(claims, "exp").ok().flatten()?;
    // At most the year 9999, so the milliseconds fit.
    Some(Timestamp::from_unix_millis((seconds * 1000.0) as i64))
}

/// A claim in seconds since the Unix epoch, with or without a fraction.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<f64>, SessionError> {
    match claims.get(name) {
        None => Ok(None),
        Some(value) => value
            .as_f64()
            .filter(|seconds| (0.0..=LAST_SECOND).contains(seconds))
            .map(Some)
            .ok_or(SessionError::Invalid("its exp or nbf is no time")),
    }
}

/// Whether `iss` is exactly this text.
pub(super) fn is_issued_by(claims: &Map<String, Value>, issuer: &str) -> bool {
    claims.get("iss").and_then(Value::as_str) == Some(issuer)
}

/// Whether `aud` is this text, or a list of texts with this one among them.
pub(super) fn is_meant_for(claims: &Map<String, Value>, audience: &str) -> bool {
    match claims.get("aud") {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(many)) => {
            many.iter().all(Value::is_string) && many.iter().any(|one| one.as_str() == Some(audience))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const EXPECTED: Expected<'static> = Expected {
        issuer: "us",
        audience: "api",
        leeway_seconds: 10,
    };

    fn with(changes: Value) -> Result<Session, SessionError> {
        let mut claims = json!({"sub": "ada", "iss": "us", "aud": "api", "exp": 1100});
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        check(
            claims.as_object().unwrap(),
            &EXPECTED,
            Timestamp::from_unix_millis(1_000_000),
        )
    }

    #[test]
    fn what_is_right_passes() {
        for changes in [
            json!({}),
            json!({"exp": 1100.5, "nbf": 1010, "iat": "whenever"}),
            json!({"exp": 991, "aud": ["x", "api"]}),
        ] {
            assert_eq!(with(changes.clone()).unwrap().user_id, "ada", "{changes}");
        }
    }

    #[test]
    fn anything_else_does_not() {
        for changes in [
            json!({"exp": 990}),
            json!({"exp": "1100"}),
            json!({"exp": null}),
            json!({"exp": true}),
            json!({"exp": [1100]}),
            json!({"exp": 1e300}),
            json!({"exp": u64::MAX}),
            json!({"exp": -1}),
            json!({"nbf": 1011}),
            json!({"nbf": "1"}),
            json!({"nbf": null}),
            json!({"iss": "them"}),
            json!({"iss": ["us"]}),
            json!({"iss": null}),
            json!({"aud": "other"}),
            json!({"aud": ["other"]}),
            json!({"aud": ["api", 1]}),
            json!({"aud": []}),
            json!({"aud": {"api": "api"}}),
            json!({"sub": ""}),
            json!({"sub": 7}),
            json!({"sub": null}),
            json!({"sub": "a\u{0}b"}),
            json!({"sub": "a".repeat(201)}),
        ] {
            assert!(with(changes.clone()).is_err(), "{changes}");
        }
        for missing in ["sub", "iss", "aud", "exp"] {
            let mut claims = json!({"sub": "ada", "iss": "us", "aud": "api", "exp": 1100});
            claims.as_object_mut().unwrap().remove(missing);
            let now = Timestamp::from_unix_millis(1_000_000);
            assert!(check(claims.as_object().unwrap(), &EXPECTED, now).is_err(), "{missing}");
        }
    }
}
