//! The keys of an identity provider, each with the one algorithm that it is used with.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Map, Value};

use crate::json;
use crate::session::jws::Jws;

/// The greatest number of keys. No provider publishes so many, and each may have to be tried for a token that names
/// none.
const MAX_KEYS: usize = 64;
/// Bytes of an RSA modulus: 2048 to 8192 bits.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

/// The keys that can verify tokens.
#[derive(Debug)]
pub(super) struct KeySet {
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

/// The result of the verification of a token's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A key of the set made it.
    Good,
    /// The key that the token names did not make it.
    Bad,
    /// No key of the set made it, but a key that was not fetched yet may have.
    Unknown,
}

/// The algorithm of this name, if it is one of the three.
pub(super) fn algorithm(name: &str) -> Option<Algorithm> {
    match name {
        "RS256" => Some(Algorithm::RS256),
        "ES256" => Some(Algorithm::ES256),
        "EdDSA" => Some(Algorithm::EdDSA),
        _ => None,
    }
}

impl KeySet {
    /// Reads a JWK set. Keys that cannot verify session tokens are left out, because providers publish keys for
    /// other purposes too.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let set = json::object(text).map_err(|fault| format!("the key set {fault}"))?;
        let Some(Value::Array(listed)) = set.get("keys") else {
            return Err("the key set has no list of keys".to_owned());
        };
        if listed.len() > MAX_KEYS {
            return Err(format!(
                "the key set has {} keys, at most {MAX_KEYS} are allowed",
                listed.len()
            ));
        }
        let mut keys = Vec::new();
        for (place, jwk) in listed.iter().enumerate() {
            match Key::parse(jwk) {
                Ok(key) => keys.push(key),
                Err(why) => tracing::debug!(place, why, "a key of the identity provider is of no use here"),
            }
        }
        Ok(Self { keys })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Verifies the token with the keys that can have signed it: those with its key id or, failing
    /// that, those without any; all of them, when the token does not name its key.
    pub(super) fn judge(&self, token: &Jws<'_>, algorithm: Algorithm) -> Verdict {
        let signed = |key: &Key| key.algorithm == algorithm && token.is_signed_by(&key.key, algorithm);
        let Some(named) = &token.key_id else {
            return if self.keys.iter().any(signed) {
                Verdict::Good
            } else {
                Verdict::Unknown
            };
        };
        // Two keys may share an id, for instance one of each algorithm.
        let mut with_id = self.keys.iter().filter(|key| key.id.as_ref() == Some(named)).peekable();
        if with_id.peek().is_some() {
            return if with_id.any(signed) {
                Verdict::Good
            } else {
                Verdict::Bad
            };
        }
        if self.keys.iter().filter(|key| key.id.is_none()).any(signed) {
            Verdict::Good
        } else {
            Verdict::Unknown
        }
    }
}

impl Key {
    fn parse(jwk: &Value) -> Result<Self, &'static str> {
        let Value::Object(jwk) = jwk else {
            return Err("it is no object");
        };
        let algorithm = match (text(jwk, "kty"), text(jwk, "crv")) {
            (Some("RSA"), _) => Algorithm::RS256,
            (Some("EC"), Some("P-256")) => Algorithm::ES256,
            (Some("OKP"), Some("Ed25519")) => Algorithm::EdDSA,
            // Most importantly `oct`, a symmetric key: every party that knows it can sign.
            _ => return Err("its type is none of RSA, EC with P-256 and OKP with Ed25519"),
        };
        if jwk.contains_key("d") {
            return Err("its private part was published");
        }
        let named = jwk.get("alg").map(|name| name.as_str().and_then(self::algorithm));
        if named.is_some_and(|named| named != Some(algorithm)) {
            return Err("its alg is another");
        }
        if jwk.get("use").is_some_and(|purpose| purpose != "sig") {
            return Err("its use is another");
        }
        let verifies = |operations: &Value| {
            operations
                .as_array()
                .is_some_and(|all| all.iter().any(|op| op == "verify"))
        };
        if !jwk.get("key_ops").is_none_or(verifies) {
            return Err("its key_ops are others");
        }
        let id = match jwk.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return Err("its kid is no text"),
        };
        let key = match algorithm {
            Algorithm::RS256 => rsa(jwk),
            Algorithm::ES256 => coordinate(jwk, "x")
                .zip(coordinate(jwk, "y"))
                .and_then(|(x, y)| DecodingKey::from_ec_components(x, y).ok()),
            _ => coordinate(jwk, "x").and_then(|x| DecodingKey::from_ed_components(x).ok()),
        };
        key.map(|key| Self { id, algorithm, key })
            .ok_or("its numbers are missing, misspelt or of another size")
    }
}

fn text<'a>(jwk: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    jwk.get(name).and_then(Value::as_str)
}

fn rsa(jwk: &Map<String, Value>) -> Option<DecodingKey> {
    let number = |name| {
        let bytes = URL_SAFE_NO_PAD.decode(text(jwk, name)?).ok()?;
        // Some providers write a sign byte in front.
        let start = bytes.iter().position(|byte| *byte != 0)?;
        Some(bytes[start..].to_vec())
    };
    let (modulus, exponent) = (number("n")?, number("e")?);
    MODULUS_BYTES
        .contains(&modulus.len())
        .then(|| DecodingKey::from_rsa_raw_components(&modulus, &exponent))
}

/// A number of exactly 32 bytes, as it is written.
fn coordinate<'a>(jwk: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let text = text(jwk, name)?;
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    (bytes.len() == 32).then_some(text)
}
