//! A signed token in its three parts, parsed strictly before any claim is used.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Map, Value};

use super::{MAX_TOKEN_BYTES, SessionError};
use crate::json;

/// A well-formed token whose signature is not verified yet.
pub(super) struct Jws<'a> {
    /// The algorithm that the header names. It selects nothing: each key has one algorithm.
    pub(super) algorithm: String,
    /// The key id that the header names.
    #[cfg_attr(not(feature = "jwks"), allow(dead_code, reason = "the local provider has one key"))]
    pub(super) key_id: Option<String>,
    pub(super) claims: Map<String, Value>,
    signed: &'a str,
    signature: &'a str,
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
        let mut header = part(header)?;
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
            claims: part(claims)?,
            signed,
            signature,
        })
    }

    /// Whether the signature is one of this key with the key's algorithm.
    pub(super) fn is_signed_by(&self, key: &DecodingKey, algorithm: Algorithm) -> bool {
        jsonwebtoken::crypto::verify(self.signature, self.signed.as_bytes(), key, algorithm).unwrap_or(false)
    }
}

/// Decodes base64url without padding, in its one canonical form, and reads the object in it.
fn part(text: &str) -> Result<Map<String, Value>, SessionError> {
    let decoded = URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| SessionError::Invalid("a part of it is not base64url"))?;
    json::object(&decoded).map_err(|_| SessionError::Invalid("a part of it is no proper JSON object"))
}

/// Providers sign other tokens with the same keys, such as logout tokens, and mark them by `typ`.
fn is_session_type(typ: &Value) -> bool {
    let Value::String(typ) = typ else { return false };
    let typ = typ.to_ascii_lowercase();
    matches!(typ.strip_prefix("application/").unwrap_or(&typ), "jwt" | "at+jwt")
}
