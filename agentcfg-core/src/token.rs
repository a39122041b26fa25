//! API keys as text: minting, reading and checking them.
//!
//! A key is a prefix that names its environment, 20 characters of identifier, 43 characters of
//! secret and 6 of checksum, all `0-9A-Za-z`. The checksum tells a typing error from a wrong key
//! without a look into storage, and lets a secret scanner be sure. What is stored is the identifier
//! and an argon2id hash of the whole text. (Interface specification, *API keys*.)

mod salt;
mod slow;

use std::hash::{Hash, Hasher};

use argon2::Params;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

use crate::clock::{Entropy, EntropyError};
use crate::model::Environment;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const PREFIX: usize = 9;
const ID: usize = 20;
const SECRET: usize = 43;
const CHECKSUM: usize = 6;
const BODY: usize = PREFIX + ID + SECRET;

/// The length of every API key.
pub const LENGTH: usize = BODY + CHECKSUM;

/// What every API key starts with, and no session token does.
pub const MARK: &str = "svc_";

/// How much work one hash is. The secret has 256 bits, so the hash needs no stretching: the cost is
/// kept low enough that a burst of first uses does no harm.
const ARGON2_KIB: u32 = 4096;

/// A freshly made API key.
pub struct Minted {
    /// The identifier: the 20 characters behind the prefix.
    pub id: String,
    /// The whole text; wiped from memory when dropped.
    pub plaintext: Zeroizing<String>,
}

/// Makes a new key.
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
        id: plaintext[PREFIX..PREFIX + ID].to_owned(),
        plaintext,
    })
}

/// Appends characters of the alphabet, each as likely as any other: 43 of them carry 256 bits.
fn push_random(text: &mut String, count: usize, entropy: &dyn Entropy) -> Result<(), EntropyError> {
    let mut left = count;
    let mut pool = Zeroizing::new([0_u8; 128]);
    while left > 0 {
        entropy.fill(&mut pool[..])?;
        // A byte of 248 or more would favour the first characters.
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

/// The identifier in a key, when its form and its checksum are right.
///
/// This costs no look into storage and no hash.
pub fn parse(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    if bytes.len() != LENGTH
        || !Environment::ALL
            .iter()
            .any(|environment| text.starts_with(environment.prefix()))
    {
        return None;
    }
    let (body, check) = bytes.split_at(BODY);
    let well_formed = body[PREFIX..].iter().all(u8::is_ascii_alphanumeric) && checksum(body) == check;
    well_formed.then(|| &text[PREFIX..PREFIX + ID])
}

/// Why a key could not be hashed.
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

/// The hash of a key as a PHC string with a salt of its own.
///
/// # Errors
///
/// See [`HashError`].
pub fn hash(plaintext: &str, entropy: &dyn Entropy) -> Result<String, HashError> {
    hash_with(plaintext, Params::new(ARGON2_KIB, 1, 1, None), entropy)
}

fn hash_with(plaintext: &str, params: argon2::Result<Params>, entropy: &dyn Entropy) -> Result<String, HashError> {
    let salt = salt::make(plaintext.as_bytes(), entropy)?;
    let params = params.map_err(|error| HashError::Argon2(error.to_string()))?;
    slow::hash(plaintext.as_bytes(), &salt, params).map_err(|error| HashError::Argon2(error.to_string()))
}

/// Whether a key could be the one that was hashed, at the cost of one fast hash. Nearly all others could not.
pub fn fits(plaintext: &str, phc: &str) -> bool {
    salt::fits(plaintext.as_bytes(), phc)
}

/// Whether a key is the one that was hashed. This is the slow check.
pub fn verify(plaintext: &str, phc: &str) -> bool {
    slow::verify(plaintext.as_bytes(), phc).unwrap_or(false)
}

/// The identifier of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id([u8; ID]);

impl Id {
    pub(crate) fn as_str(&self) -> &str {
        // Identifiers are read from texts, between characters of one byte each.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// A number that differs between identifiers, of other characters than those that are hashed.
    pub(crate) fn spread(&self) -> usize {
        let tail = self.0[ID - 2..].iter();
        tail.fold(0, |sum, byte| sum * 31 + usize::from(*byte))
    }
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The characters are random: the first of them tell identifiers apart as well as all of them.
        state.write_u64(self.0.first_chunk().map_or(0, |first| u64::from_le_bytes(*first)));
    }
}

/// The parts of a text that begins like a key and is as long as one. Nothing else about it is known yet.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a>(&'a [u8; LENGTH]);

impl<'a> Parts<'a> {
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        let bytes = text.as_bytes().try_into().ok()?;
        text.starts_with(MARK).then_some(Self(bytes))
    }

    pub(crate) fn id(self) -> Id {
        Id(std::array::from_fn(|i| self.0[PREFIX + i]))
    }

    pub(crate) fn fingerprint(self) -> Fingerprint {
        // The mark is always the same and the identifier is compared where the fingerprint is looked up. Without them, what
        // is hashed fits one block.
        let mut hash = Sha256::new();
        hash.update(&self.0[MARK.len()..PREFIX]);
        hash.update(&self.0[PREFIX + ID..]);
        Fingerprint(hash.finalize().into())
    }
}

/// What is remembered of the plaintext of a known key once it was verified: enough to tell it from every
/// other text, and nothing that it could be made from. It is the SHA-256 of all but the mark and the identifier.
#[derive(Clone, Copy)]
pub(crate) struct Fingerprint([u8; 32]);

impl ConstantTimeEq for Fingerprint {
    fn ct_eq(&self, other: &Self) -> Choice {
        // One comparison for all the bytes: each of `subtle`'s is a call that nothing may be merged with.
        let pairs = self.0.iter().zip(&other.0);
        let difference = pairs.fold(0, |all, (a, b)| all | (a ^ b));
        difference.ct_eq(&0)
    }
}

/// A key of the same identifier and good form with another secret.
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
    fn every_changed_character_is_noticed() {
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
    fn a_fingerprint_and_the_identifier_tell_every_changed_character() {
        let key = mint(Environment::Production, &SystemEntropy).unwrap();
        let right = Parts::of(&key.plaintext).unwrap();
        assert_eq!(right.id().as_str(), key.id);
        for i in 0..LENGTH {
            let mut bytes = key.plaintext.as_bytes().to_vec();
            bytes[i] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            let Some(other) = Parts::of(&changed) else {
                assert!(i < MARK.len(), "position {i}");
                continue;
            };
            let same = other.id() == right.id() && bool::from(other.fingerprint().ct_eq(&right.fingerprint()));
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
