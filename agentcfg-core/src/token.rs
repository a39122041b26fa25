//! The text of API keys: generating, parsing and verifying it.
//!
//! A key is a prefix that names its environment, 20 characters of identifier, 43 characters of
//! secret and 6 of checksum, all `0-9A-Za-z`. The checksum detects typing errors without a read from
//! the store, and lets secret scanners recognise keys without false positives. The store holds the
//! identifier and an argon2id hash of the whole text.

mod phc;
mod salt;
mod slow_hash;

use std::fmt;
use std::hash::{Hash, Hasher};

use argon2::Params;
use ctutils::{Choice, CtEq};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::clock::{Entropy, EntropyError};
use crate::model::{ApiKeyId, Environment, TextId};

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const PREFIX: usize = 9;
const ID: usize = 20;
const SECRET: usize = 43;
const CHECKSUM: usize = 6;
const BODY: usize = PREFIX + ID + SECRET;

/// The length of every API key.
///
/// ```
/// assert_eq!(agentcfg_core::token::LENGTH, 78);
/// ```
pub const LENGTH: usize = BODY + CHECKSUM;

/// The prefix of every API key, and of no session token.
///
/// ```
/// use agentcfg_core::model::Environment;
/// use agentcfg_core::token::MARK;
/// assert!(Environment::Production.prefix().starts_with(MARK));
/// ```
pub const MARK: &str = "svc_";

/// The memory cost of one hash. The secret has 256 bits, so it needs no key stretching: the cost is low
/// enough for bursts of first uses.
const ARGON2_KIB: u32 = 4096;

/// A new API key.
///
/// ```
/// use agentcfg_core::{clock::SystemEntropy, model::Environment, token};
/// let key = token::mint(Environment::Development, &SystemEntropy)?;
/// assert_eq!(&key.plaintext[9..29], key.id.as_str());
/// # Ok::<(), agentcfg_core::clock::EntropyError>(())
/// ```
pub struct Minted {
    /// The identifier: the 20 characters behind the prefix.
    pub id: ApiKeyId,
    /// The whole text; wiped from memory when dropped.
    pub plaintext: Zeroizing<String>,
}

impl fmt::Debug for Minted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The plaintext is secret.
        f.debug_struct("Minted").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Generates a new key.
///
/// # Errors
///
/// When there is no randomness.
///
/// ```
/// use agentcfg_core::{clock::SystemEntropy, model::Environment, token};
/// let key = token::mint(Environment::Production, &SystemEntropy)?;
/// assert!(key.plaintext.starts_with("svc_live_"));
/// assert_eq!(token::parse(&key.plaintext), Some(key.id.as_str()));
/// # Ok::<(), agentcfg_core::clock::EntropyError>(())
/// ```
pub fn mint(environment: Environment, entropy: &dyn Entropy) -> Result<Minted, EntropyError> {
    let mut plaintext = Zeroizing::new(String::with_capacity(LENGTH));
    plaintext.push_str(environment.prefix());
    push_random(&mut plaintext, ID + SECRET, entropy)?;
    let checksum = checksum(plaintext.as_bytes());
    for digit in checksum {
        plaintext.push(char::from(digit));
    }
    Ok(Minted {
        id: ApiKeyId::wrap(plaintext[PREFIX..PREFIX + ID].into()),
        plaintext,
    })
}

/// A random text of this many characters of the alphabet.
///
/// # Errors
///
/// When the system has no randomness.
pub(crate) fn random_text(count: usize, entropy: &dyn Entropy) -> Result<Zeroizing<String>, EntropyError> {
    let mut text = Zeroizing::new(String::with_capacity(count));
    push_random(&mut text, count, entropy)?;
    Ok(text)
}

/// Appends uniformly random characters of the alphabet: 43 of them have 256 bits of entropy.
fn push_random(text: &mut String, count: usize, entropy: &dyn Entropy) -> Result<(), EntropyError> {
    let mut left = count;
    let mut pool = Zeroizing::new([0_u8; 128]);
    while left > 0 {
        entropy.fill(&mut pool[..])?;
        // Rejection sampling: bytes of 248 and more would make the first characters more likely.
        for byte in pool.iter().filter(|byte| **byte < 248).take(left) {
            text.push(char::from(ALPHABET[usize::from(byte % 62)]));
            left -= 1;
        }
    }
    Ok(())
}

/// The CRC-32 of the text as six digits of base 62, the most significant first.
fn checksum(text: &[u8]) -> [u8; CHECKSUM] {
    let mut rest = crc32fast::hash(text);
    let mut digits = [b'0'; CHECKSUM];
    for digit in digits.iter_mut().rev() {
        *digit = ALPHABET[(rest % 62) as usize];
        rest /= 62;
    }
    digits
}

/// The identifier in a key, if its form and its checksum are valid.
///
/// This needs neither a read from the store nor a slow hash.
///
/// ```
/// use agentcfg_core::{clock::SystemEntropy, model::Environment, token};
/// let key = token::mint(Environment::Production, &SystemEntropy)?;
/// assert_eq!(token::parse(&key.plaintext), Some(key.id.as_str()));
/// assert_eq!(token::parse("svc_live_mistyped"), None);
/// # Ok::<(), agentcfg_core::clock::EntropyError>(())
/// ```
pub fn parse(text: &str) -> Option<&str> {
    let (body, check) = text.as_bytes().split_at_checked(BODY)?;
    presented_id(text).filter(|_| checksum(body) == check)
}

/// The identifier in what has the form of a key, also where its checksum is wrong, as that of a mistyped key is. It is for
/// logs.
///
/// ```
/// use agentcfg_core::{clock::SystemEntropy, model::Environment, token};
/// let key = token::mint(Environment::Production, &SystemEntropy)?;
/// let mistyped = format!("{}0", &key.plaintext[..key.plaintext.len() - 1]);
/// assert_eq!(token::presented_id(&mistyped), Some(key.id.as_str()));
/// assert_eq!(token::presented_id("svc_live_mistyped"), None);
/// # Ok::<(), agentcfg_core::clock::EntropyError>(())
/// ```
pub fn presented_id(text: &str) -> Option<&str> {
    let is_named = |environment: &Environment| text.starts_with(environment.prefix());
    let body = text.as_bytes().get(PREFIX..BODY)?;
    let has_form =
        text.len() == LENGTH && Environment::ALL.iter().any(is_named) && body.iter().all(u8::is_ascii_alphanumeric);
    has_form.then(|| &text[PREFIX..PREFIX + ID])
}

/// Why a key could not be hashed.
///
/// ```
/// use agentcfg_core::clock::EntropyError;
/// use agentcfg_core::token::HashError;
/// let error = HashError::from(EntropyError("the device is gone".into()));
/// assert_eq!(error.to_string(), "no randomness: the device is gone");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HashError {
    /// There is no randomness for the salt.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The hash itself failed.
    #[error("argon2 failed: {0}")]
    Argon2(String),
}

/// The slow hash of a key as a PHC string with a random salt.
///
/// # Errors
///
/// See [`HashError`].
///
/// ```
/// use agentcfg_core::{clock::SystemEntropy, token};
/// let phc = token::hash("svc_live_canary", &SystemEntropy)?;
/// assert!(phc.starts_with("$argon2id$"));
/// # Ok::<(), agentcfg_core::token::HashError>(())
/// ```
pub fn hash(plaintext: &str, entropy: &dyn Entropy) -> Result<String, HashError> {
    hash_with(plaintext, Params::new(ARGON2_KIB, 1, 1, None), entropy)
}

fn hash_with(plaintext: &str, params: argon2::Result<Params>, entropy: &dyn Entropy) -> Result<String, HashError> {
    let salt = salt::make(plaintext.as_bytes(), entropy)?;
    let params = params.map_err(|error| HashError::Argon2(error.to_string()))?;
    slow_hash::hash(plaintext.as_bytes(), &salt, params).map_err(|error| HashError::Argon2(error.to_string()))
}

/// Whether a key may be the one that was hashed, by its check value: a pre-filter that costs one fast
/// hash and rejects nearly all wrong keys.
///
/// ```
/// use agentcfg_core::{clock::SystemEntropy, token};
/// let phc = token::hash("svc_live_canary", &SystemEntropy)?;
/// assert!(token::may_match("svc_live_canary", &phc));
/// # Ok::<(), agentcfg_core::token::HashError>(())
/// ```
pub fn may_match(plaintext: &str, phc: &str) -> bool {
    salt::may_match(plaintext.as_bytes(), phc)
}

/// Whether a key is the one that was hashed. This computes a slow hash.
///
/// ```
/// use agentcfg_core::{clock::SystemEntropy, token};
/// let phc = token::hash("svc_live_canary", &SystemEntropy)?;
/// assert!(token::verify("svc_live_canary", &phc));
/// assert!(!token::verify("svc_live_zebra", &phc));
/// # Ok::<(), agentcfg_core::token::HashError>(())
/// ```
pub fn verify(plaintext: &str, phc: &str) -> bool {
    slow_hash::verify(plaintext.as_bytes(), phc)
}

/// The identifier of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id([u8; ID]);

impl Id {
    pub(crate) fn as_str(&self) -> &str {
        // An identifier is copied from a `str` at ASCII boundaries, so it is always UTF-8.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// A number for choosing a shard. It uses other characters than [`Hash`], so that the keys of one
    /// shard still spread over the buckets of its map.
    pub(crate) fn spread(&self) -> usize {
        let tail = self.0[ID - 2..].iter();
        tail.fold(0, |sum, byte| sum * 31 + usize::from(*byte))
    }
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The characters are random, so the first eight distribute as well as all of them.
        state.write_u64(self.0.first_chunk().map_or(0, |first| u64::from_le_bytes(*first)));
    }
}

/// The parts of a text that has the prefix and the length of an API key. The checksum is not verified.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    pub(crate) id: Id,
    pub(crate) fingerprint: Fingerprint,
}

impl Parts {
    pub(crate) fn of(text: &str) -> Option<Self> {
        let bytes: &[u8; LENGTH] = text.as_bytes().try_into().ok()?;
        if !text.starts_with(MARK) {
            return None;
        }
        // The prefix is constant, and the lookup compares the identifier. Without both, the hashed
        // text fits into one block of SHA-256.
        let mut hash = Sha256::new();
        hash.update(&bytes[MARK.len()..PREFIX]);
        hash.update(&bytes[PREFIX + ID..]);
        Some(Self {
            id: Id(std::array::from_fn(|i| bytes[PREFIX + i])),
            fingerprint: Fingerprint(hash.finalize().into()),
        })
    }
}

/// The SHA-256 of a verified key without its prefix and identifier. It is kept in memory in place of the
/// plaintext: it recognises the key, and does not reveal it.
#[derive(Clone, Copy)]
pub(crate) struct Fingerprint([u8; 32]);

impl CtEq for Fingerprint {
    fn ct_eq(&self, other: &Self) -> Choice {
        // One comparison at the end costs less than one of each byte.
        let pairs = self.0.iter().zip(&other.0);
        let difference = pairs.fold(0, |all, (a, b)| all | (a ^ b));
        difference.ct_eq(&0_u8)
    }
}

/// A key with the same identifier, another secret, and a valid checksum.
#[cfg(test)]
pub(crate) fn forged(plaintext: &str) -> String {
    let mut bytes = plaintext.as_bytes().to_vec();
    let last = &mut bytes[BODY - 1];
    *last = if *last == b'x' { b'y' } else { b'x' };
    let checksum = checksum(&bytes[..BODY]);
    bytes[BODY..].copy_from_slice(&checksum);
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemEntropy;

    #[test]
    fn a_key_is_read_and_verified() {
        for environment in Environment::ALL {
            let key = mint(*environment, &SystemEntropy).unwrap();
            assert_eq!(key.plaintext.len(), LENGTH);
            assert_eq!(parse(&key.plaintext), Some(key.id.as_str()));
            let phc = hash(&key.plaintext, &SystemEntropy).unwrap();
            assert!(phc.starts_with("$argon2id$v=19$m=4096,t=1,p=1$"), "{phc}");
            assert!(verify(&key.plaintext, &phc));
            assert!(!verify(&key.plaintext.replace("svc_", "svd_"), &phc));
            assert!(!verify(&key.plaintext, "not a hash"));
            let forged = forged(&key.plaintext);
            assert_eq!(parse(&forged), Some(key.id.as_str()));
            assert!(!verify(&forged, &phc));
        }
    }

    #[test]
    fn a_hash_that_fails_is_not_a_lack_of_randomness() {
        let refused = Params::new(0, 1, 1, None);
        let error = hash_with("text", refused, &SystemEntropy).unwrap_err();
        assert!(matches!(error, HashError::Argon2(_)), "{error}");
        let error = crate::Error::from(error);
        assert_eq!(error.message(), "the API key could not be hashed");
    }

    #[test]
    fn every_changed_character_is_detected() {
        let key = mint(Environment::Production, &SystemEntropy).unwrap();
        for i in 0..LENGTH {
            let mut bytes = key.plaintext.as_bytes().to_vec();
            bytes[i] = if bytes[i] == b'x' { b'y' } else { b'x' };
            assert_eq!(parse(std::str::from_utf8(&bytes).unwrap()), None, "position {i}");
        }
        assert_eq!(parse(&key.plaintext[1..]), None);
        assert_eq!(parse(&format!("{}0", *key.plaintext)), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn the_fingerprint_and_the_identifier_detect_every_changed_character() {
        let key = mint(Environment::Production, &SystemEntropy).unwrap();
        let right = Parts::of(&key.plaintext).unwrap();
        assert_eq!(key.id, right.id.as_str());
        for i in 0..LENGTH {
            let mut bytes = key.plaintext.as_bytes().to_vec();
            bytes[i] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            let Some(other) = Parts::of(&changed) else {
                assert!(i < MARK.len(), "position {i}");
                continue;
            };
            let same = other.id == right.id && bool::from(other.fingerprint.ct_eq(&right.fingerprint));
            assert!(!same, "position {i}");
        }
        assert!(Parts::of(&key.plaintext[1..]).is_none());
    }

    #[test]
    fn the_checksum_is_the_documented_one() {
        // CRC-32 of "123456789" is 0xCBF43926 = 3421780262.
        assert_eq!(&checksum(b"123456789"), b"3jZRME");
    }
}
