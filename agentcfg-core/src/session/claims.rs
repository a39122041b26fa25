//! The claims of a token and their rules.

use serde_json::{Map, Value};

use super::SessionError;
use crate::model::Timestamp;

/// The last second of the year 9999: a later time is refused.
const LAST_SECOND: f64 = 253_402_300_799.0;

/// That the time is within what the claims name, where they name it.
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
