//! The keys of an identity provider, each with the one algorithm that it is used with.
//!
//! jsonwebtoken reads them. Its functions that verify take a provider of cryptography that is set for the whole
//! process, which a library must not do, so *ring* is called here.

use base64ct::{Base64UrlUnpadded, Encoding};
use jsonwebtoken::Algorithm;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse, RSAKeyParameters};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::Value;

use crate::json;
use crate::session::jws::Jws;

/// The greatest number of keys. No provider publishes so many, and each may have to be tried for a token that names
/// none.
const MAX_KEYS: usize = 64;
/// Bits of an RSA modulus.
const MODULUS_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// The keys that can verify tokens.
#[derive(Debug)]
pub(super) struct KeySet {
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    key: PublicKey,
}

/// A key with the algorithm of its kind.
#[derive(Debug)]
pub(super) enum PublicKey {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    Curve(UnparsedPublicKey<Vec<u8>>),
}

/// The result of the verification of a token's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignatureVerdict {
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

    #[cfg(test)]
    pub(super) fn only(&self) -> &PublicKey {
        assert_eq!(self.keys.len(), 1);
        &self.keys[0].key
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Verifies the token with the keys that can have signed it: those with its key id or, failing
    /// that, those without any; all of them, when the token does not name its key.
    pub(super) fn judge(&self, token: &Jws<'_>, algorithm: Algorithm) -> SignatureVerdict {
        let signed =
            |key: &Key| key.algorithm == algorithm && key.key.has_signed(token.signed.as_bytes(), &token.signature);
        let Some(named) = &token.key_id else {
            return if self.keys.iter().any(signed) {
                SignatureVerdict::Good
            } else {
                SignatureVerdict::Unknown
            };
        };
        // Two keys may share an id, for instance one of each algorithm.
        let mut with_id = self.keys.iter().filter(|key| key.id.as_ref() == Some(named)).peekable();
        if with_id.peek().is_some() {
            return if with_id.any(signed) {
                SignatureVerdict::Good
            } else {
                SignatureVerdict::Bad
            };
        }
        if self.keys.iter().filter(|key| key.id.is_none()).any(signed) {
            SignatureVerdict::Good
        } else {
            SignatureVerdict::Unknown
        }
    }
}

impl Key {
    fn parse(jwk: &Value) -> Result<Self, &'static str> {
        // What `Jwk` ignores, or takes for absent.
        if jwk.get("d").is_some() {
            return Err("its private part was published");
        }
        let is_null = |name: &&str| jwk.get(name).is_some_and(Value::is_null);
        if ["alg", "use", "key_ops", "kid"].iter().any(is_null) {
            return Err("its alg, use, key_ops or kid is null");
        }
        let jwk = Jwk::deserialize(jwk).map_err(|_| "it is no JWK")?;
        let (algorithm, key) = match &jwk.algorithm {
            AlgorithmParameters::RSA(key) => (Algorithm::RS256, PublicKey::rsa(key)),
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                (Algorithm::ES256, PublicKey::p256(&key.x, &key.y))
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                (Algorithm::EdDSA, PublicKey::ed25519(&key.x))
            }
            // Above all `oct`, a symmetric key: every party that knows it can sign.
            _ => return Err("it is none of RSA, EC with P-256 and OKP with Ed25519, or its numbers are missing"),
        };
        if jwk.common.key_algorithm.is_some_and(|named| named != algorithm.into()) {
            return Err("its alg is another");
        }
        if jwk
            .common
            .public_key_use
            .is_some_and(|purpose| purpose != PublicKeyUse::Signature)
        {
            return Err("its use is another");
        }
        let verifies = |operations: Vec<_>| operations.contains(&KeyOperations::Verify);
        if !jwk.common.key_operations.is_none_or(verifies) {
            return Err("its key_ops are others");
        }
        Ok(Self {
            id: jwk.common.key_id,
            algorithm,
            key: key.ok_or("its numbers are misspelt or of another size")?,
        })
    }
}

impl PublicKey {
    fn rsa(key: &RSAKeyParameters) -> Option<Self> {
        let number = |text: &str| {
            let bytes = Base64UrlUnpadded::decode_vec(text).ok()?;
            // Some providers write a sign byte in front.
            let start = bytes.iter().position(|byte| *byte != 0)?;
            Some(bytes[start..].to_vec())
        };
        let (n, e) = (number(&key.n)?, number(&key.e)?);
        let bits = n.len() * 8 - n.first()?.leading_zeros() as usize;
        MODULUS_BITS
            .contains(&bits)
            .then_some(Self::Rsa(RsaPublicKeyComponents { n, e }))
    }

    fn p256(x: &str, y: &str) -> Option<Self> {
        // The form of an uncompressed point.
        let point = [vec![4], coordinate(x)?, coordinate(y)?].concat();
        Some(Self::Curve(UnparsedPublicKey::new(
            &signature::ECDSA_P256_SHA256_FIXED,
            point,
        )))
    }

    fn ed25519(x: &str) -> Option<Self> {
        Some(Self::Curve(UnparsedPublicKey::new(&signature::ED25519, coordinate(x)?)))
    }

    /// Whether the signature is one of this key, with its algorithm.
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Rsa(key) => key.verify(&signature::RSA_PKCS1_2048_8192_SHA256, message, signature),
            Self::Curve(key) => key.verify(message, signature),
        }
        .is_ok()
    }
}

/// A number of exactly 32 bytes.
fn coordinate(text: &str) -> Option<Vec<u8>> {
    Base64UrlUnpadded::decode_vec(text)
        .ok()
        .filter(|bytes| bytes.len() == 32)
}
