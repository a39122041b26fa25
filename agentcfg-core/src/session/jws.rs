//! A signed token in its three parts, parsed strictly before any claim is used, and what its claims must be.

use std::mem;

use base64ct::{Base64UrlUnpadded, Encoding};
use serde_json::{Map, Value};

use super::{MAX_TOKEN_BYTES, Session, SessionError, claims};
use crate::json;
use crate::model::Timestamp;
use crate::validate;

/// A well-formed token whose signature is not verified yet.
pub(super) struct Jws<'a> {
    /// The algorithm that the header names. It selects nothing: each key has one algorithm.
    pub(super) algorithm: String,
    /// The key id that the header names.
    #[cfg_attr(not(feature = "jwks"), allow(dead_code, reason = "the local provider has one key"))]
    pub(super) key_id: Option<String>,
    pub(super) claims: Map<String, Value>,
    /// What the signature is made over: header and claims, as they were sent.
    pub(super) signed: &'a str,
    pub(super) signature: Vec<u8>,
}

/// The rules that a token's claims are checked by.
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) audience: &'a str,
    /// How far the clocks of the two sides may differ.
    pub(super) leeway_seconds: u32,
}

impl<'a> Jws<'a> {
    /// Parses a token.
    ///
    /// Of the header only `alg`, `kid`, `typ` and `crit` are read. A key that a token contains
    /// or points to (`jwk`, `jku`, `x5c`, `x5u`) is ignored.
    pub(super) fn parse(token: &'a str) -> Result<Self, SessionError> {
        const FORM: SessionError = SessionError::Invalid("it is not of the form header.claims.signature");
        if token.len() > MAX_TOKEN_BYTES {
            return Err(SessionError::Invalid("it is too long"));
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(FORM)?;
        let (header, claims) = signed.split_once('.').ok_or(FORM)?;
        if header.is_empty() || signature.is_empty() || claims.contains('.') {
            return Err(FORM);
        }
        let mut header = object(header)?;
        if header.contains_key("crit") {
            return Err(SessionError::Invalid("its header asks for an extension"));
        }
        let Some(Value::String(algorithm)) = header.remove("alg") else {
            return Err(SessionError::Invalid("its header names no algorithm"));
        };
        let key_id = match header.remove("kid") {
            None => None,
            Some(Value::String(key_id)) => Some(key_id),
            Some(_) => return Err(SessionError::Invalid("its kid is no text")),
        };
        if !header.get("typ").is_none_or(is_session_type) {
            return Err(SessionError::Invalid("it is a token of another type"));
        }
        Ok(Self {
            algorithm,
            key_id,
            claims: object(claims)?,
            signed,
            signature: decode(signature)?,
        })
    }

    /// The session, when every claim is present and valid at this time. The claims move into it.
    pub(super) fn session(&mut self, expected: &Expected<'_>, now: Timestamp) -> Result<Session, SessionError> {
        let claims = mem::take(&mut self.claims);
        if !claims.contains_key("exp") {
            return Err(SessionError::Invalid("it has no exp"));
        }
        claims::check_times(&claims, expected.leeway_seconds, now)?;
        if !claims::is_issued_by(&claims, expected.issuer) {
            return Err(SessionError::Invalid("its iss is another"));
        }
        if !claims::is_meant_for(&claims, expected.audience) {
            return Err(SessionError::Invalid("its aud is another"));
        }
        match claims.get("sub") {
            Some(Value::String(user_id)) if validate::is_user_id(user_id) => Ok(Session {
                user_id: user_id.clone(),
                expires_at: claims::end(&claims),
                claims,
            }),
            _ => Err(SessionError::Invalid("its sub is no user id")),
        }
    }
}

/// Decodes base64url without padding, in its one canonical form.
fn decode(text: &str) -> Result<Vec<u8>, SessionError> {
    Base64UrlUnpadded::decode_vec(text).map_err(|_| SessionError::Invalid("a part of it is not base64url"))
}

fn object(text: &str) -> Result<Map<String, Value>, SessionError> {
    json::object(&decode(text)?).map_err(|_| SessionError::Invalid("a part of it is no proper JSON object"))
}

/// Providers sign other tokens with the same keys, such as logout tokens, and mark them by `typ`.
fn is_session_type(typ: &Value) -> bool {
    let Value::String(typ) = typ else { return false };
    let typ = typ.to_ascii_lowercase();
    matches!(typ.strip_prefix("application/").unwrap_or(&typ), "jwt" | "at+jwt")
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

    fn session(claims: &Value) -> Result<Session, SessionError> {
        let token = format!(
            "{}.{}.AA",
            encode(br#"{"alg":"RS256"}"#),
            encode(claims.to_string().as_bytes())
        );
        Jws::parse(&token)?.session(&EXPECTED, Timestamp::from_unix_millis(1_000_000))
    }

    fn encode(bytes: &[u8]) -> String {
        Base64UrlUnpadded::encode_string(bytes)
    }

    fn with(changes: Value) -> Result<Session, SessionError> {
        let mut claims = json!({"sub": "ada", "iss": "us", "aud": "api", "exp": 1100});
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        session(&claims)
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
            assert!(session(&claims).is_err(), "{missing}");
        }
    }
}
