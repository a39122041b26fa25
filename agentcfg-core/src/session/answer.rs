//! The answers of an identity provider to a query about a token.
//!
//! The transport is the caller's; the answers of all transports are read here, by the same rules. An answer that cannot
//! be parsed never opens a session.

use serde_json::{Map, Value};

use super::{LEEWAY_SECONDS, Session, SessionError, claims};
use crate::json;
use crate::model::Timestamp;
use crate::validate;

/// The claims that an introspection answer must have, where it names them.
///
/// ```
/// use agentcfg_core::session::{AnswerRules, read_introspection};
/// let rules = AnswerRules { audience: Some("agentcfg"), ..AnswerRules::default() };
/// let meant_for_another = br#"{"active": true, "sub": "ada", "aud": "shop"}"#;
/// assert!(read_introspection(meant_for_another, rules, "2026-11-20T09:30:00Z".parse()?).is_err());
/// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct AnswerRules<'a> {
    /// The expected `iss`.
    pub issuer: Option<&'a str>,
    /// The expected `aud`.
    pub audience: Option<&'a str>,
}

/// Reads the body of a successful answer to a token introspection (RFC 7662).
///
/// ```
/// use agentcfg_core::session::{AnswerRules, SessionError, read_introspection};
/// let now = "2026-11-20T09:30:00Z".parse()?;
/// let rules = AnswerRules::default();
/// let session = read_introspection(br#"{"active": true, "sub": "ada"}"#, rules, now)?;
/// assert_eq!(session.user_id, "ada");
/// let gone = read_introspection(br#"{"active": false}"#, rules, now);
/// assert!(matches!(gone, Err(SessionError::Invalid(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`SessionError::Invalid`] when the provider says that the token is not active, not valid now, or for another
/// audience; [`SessionError::Unavailable`] when the answer cannot be parsed.
pub fn read_introspection(body: &[u8], rules: AnswerRules<'_>, now: Timestamp) -> Result<Session, SessionError> {
    let answer = json::object(body).map_err(|fault| bad_answer(&format!("its answer {fault}")))?;
    match answer.get("active") {
        Some(Value::Bool(true)) => {}
        Some(Value::Bool(false)) => return Err(SessionError::Invalid("the identity provider says it is not active")),
        _ => return Err(bad_answer("its answer does not say whether the token is active")),
    }
    // Some providers introspect other tokens too, such as refresh tokens, and name their type.
    let kind = answer.get("token_type").and_then(Value::as_str).unwrap_or("bearer");
    if !["bearer", "dpop", "access_token", "n_a"]
        .iter()
        .any(|known| kind.eq_ignore_ascii_case(known))
    {
        return Err(SessionError::Invalid("it is no access token"));
    }
    check_times(&answer, now)?;
    let says_otherwise = |name: &str, agrees: &dyn Fn() -> bool| answer.contains_key(name) && !agrees();
    if let Some(issuer) = rules.issuer
        && says_otherwise("iss", &|| claims::is_issued_by(&answer, issuer))
    {
        return Err(SessionError::Invalid("its iss is another"));
    }
    if let Some(audience) = rules.audience
        && says_otherwise("aud", &|| claims::is_meant_for(&answer, audience))
    {
        return Err(SessionError::Invalid("its aud is another"));
    }
    user(answer, &["sub"])
}

/// Reads the body of a successful answer of a user URL: `sub`, or else `id`, is the user.
///
/// ```
/// use agentcfg_core::session::read_user_info;
/// let now = "2026-11-20T09:30:00Z".parse()?;
/// assert_eq!(read_user_info(br#"{"id": "ada", "email": "ada@example.com"}"#, now)?.user_id, "ada");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`SessionError::Unavailable`] when the answer names no user; [`SessionError::Invalid`] when it names one
/// that cannot be a user of this service, and when it is not valid now (`exp`, `nbf`).
pub fn read_user_info(body: &[u8], now: Timestamp) -> Result<Session, SessionError> {
    let answer = json::object(body).map_err(|fault| bad_answer(&format!("its answer {fault}")))?;
    check_times(&answer, now)?;
    user(answer, &["sub", "id"])
}

fn check_times(answer: &Map<String, Value>, now: Timestamp) -> Result<(), SessionError> {
    for name in ["exp", "nbf"] {
        if !answer.get(name).is_none_or(Value::is_number) {
            return Err(bad_answer(&format!("its answer has a {name} that is no number")));
        }
    }
    claims::check_times(answer, LEEWAY_SECONDS, now)
}

fn user(answer: Map<String, Value>, names: &[&str]) -> Result<Session, SessionError> {
    match names.iter().find_map(|name| answer.get(*name)) {
        Some(Value::String(user_id)) if validate::is_user_id(user_id) => Ok(Session {
            user_id: user_id.clone(),
            expires_at: claims::end(&answer),
            claims: answer,
        }),
        Some(Value::String(user_id)) if !user_id.is_empty() => Err(SessionError::Invalid(
            "the identity provider names a user with an impossible id",
        )),
        _ => Err(bad_answer("its answer names no user")),
    }
}

fn bad_answer(why: &str) -> SessionError {
    SessionError::Unavailable(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn introspect(body: &str) -> Result<Session, SessionError> {
        let rules = AnswerRules {
            issuer: Some("us"),
            audience: Some("api"),
        };
        read_introspection(body.as_bytes(), rules, Timestamp::from_unix_millis(1_000_000))
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for yes in [
            r#"{"active": true, "sub": "ada"}"#,
            r#"{"active": true, "sub": "ada", "exp": 991, "nbf": 1010, "iss": "us", "aud": ["x", "api"]}"#,
        ] {
            assert_eq!(introspect(yes).unwrap().user_id, "ada", "{yes}");
        }
        for no in [
            r#"{"active": false}"#,
            r#"{"active": false, "sub": "ada"}"#,
            r#"{"active": true, "sub": "ada", "exp": 990}"#,
            r#"{"active": true, "sub": "ada", "nbf": 1011}"#,
            r#"{"active": true, "sub": "ada", "iss": "them"}"#,
            r#"{"active": true, "sub": "ada", "aud": "other"}"#,
            r#"{"active": true, "sub": "a\u0000b"}"#,
        ] {
            assert!(matches!(introspect(no), Err(SessionError::Invalid(_))), "{no}");
        }
        for useless in [
            "",
            "<html>",
            "true",
            "[]",
            "{}",
            r#"{"sub": "ada"}"#,
            r#"{"active": "true", "sub": "ada"}"#,
            r#"{"active": 1, "sub": "ada"}"#,
            r#"{"active": null, "sub": "ada"}"#,
            r#"{"active": false, "active": true, "sub": "ada"}"#,
            r#"{"active": true}"#,
            r#"{"active": true, "sub": 7}"#,
            r#"{"active": true, "sub": ""}"#,
            r#"{"active": true, "sub": "ada", "exp": "2000"}"#,
            r#"{"active": true, "id": "ada"}"#,
        ] {
            let answer = introspect(useless);
            assert!(
                matches!(answer, Err(SessionError::Unavailable(_))),
                "{useless}: {answer:?}"
            );
        }
    }

    #[test]
    fn a_user_url_names_the_user() {
        let ask = |body: &str| read_user_info(body.as_bytes(), Timestamp::from_unix_millis(1_000_000));
        assert!(ask(r#"{"id": "ada", "exp": 991, "nbf": 1010}"#).is_ok());
        for ended in [r#"{"id": "ada", "exp": 990}"#, r#"{"id": "ada", "nbf": 1011}"#] {
            assert!(matches!(ask(ended), Err(SessionError::Invalid(_))), "{ended}");
        }
        assert_eq!(ask(r#"{"id": "ada"}"#).unwrap().user_id, "ada");
        assert_eq!(ask(r#"{"sub": "ada", "id": "row-7"}"#).unwrap().user_id, "ada");
        for useless in [
            r#"{"id": "ada", "exp": "2000"}"#,
            r#"{"id": 7}"#,
            r#"{"email": "a@b"}"#,
            r#"{"user": {"id": "ada"}}"#,
            "ada",
            "{",
        ] {
            assert!(matches!(ask(useless), Err(SessionError::Unavailable(_))), "{useless}");
        }
    }
}
