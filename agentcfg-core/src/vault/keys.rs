//! Master keys and their identifiers.

use std::fmt;
use std::str::FromStr;

use base64ct::{Base64Unpadded, Base64UrlUnpadded, Encoding};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::body::serde_as_text;
use crate::clock::{Entropy, EntropyError};

pub(super) const ID: usize = 8;
const KEY: usize = 32;

/// The identifier of a master key: the first 8 bytes of its hash, as 16 hexadecimal digits. It reveals
/// nothing of the key.
///
/// ```
/// use agentcfg_core::vault::KeyId;
/// let id: KeyId = "630dcd2966c43366".parse()?;
/// assert_eq!(id.to_string(), "630dcd2966c43366");
/// # Ok::<(), agentcfg_core::vault::InvalidKeyId>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; ID]);

/// The text is not a [`KeyId`].
///
/// ```
/// use agentcfg_core::vault::{InvalidKeyId, KeyId};
/// assert_eq!("630d".parse::<KeyId>(), Err(InvalidKeyId));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 16 hexadecimal digits")]
pub struct InvalidKeyId;

/// The text is not a [`MasterKey`]. The error contains nothing of the text.
///
/// ```
/// use agentcfg_core::vault::MasterKey;
/// let invalid = "too short".parse::<MasterKey>().unwrap_err();
/// assert_eq!(invalid.to_string(), "must be 32 bytes as 64 hexadecimal digits or as base64");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 32 bytes as 64 hexadecimal digits or as base64")]
pub struct InvalidMasterKey;

/// A key that encrypts provider keys: 32 bytes.
///
/// `Debug` shows its identifier. It has no `Display` and cannot be serialised; dropping it wipes it from
/// memory.
///
/// ```
/// use agentcfg_core::vault::MasterKey;
/// let hex: MasterKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f".parse()?;
/// let base64: MasterKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".parse()?;
/// assert_eq!(hex.id(), base64.id());
/// assert_eq!(format!("{hex:?}"), format!("MasterKey({})", hex.id()));
/// # Ok::<(), agentcfg_core::vault::InvalidMasterKey>(())
/// ```
///
/// ```compile_fail,E0277
/// use agentcfg_core::{clock::SystemEntropy, vault::MasterKey};
/// println!("{}", MasterKey::generate(&SystemEntropy).unwrap());
/// ```
///
/// ```compile_fail,E0277
/// use agentcfg_core::{clock::SystemEntropy, vault::MasterKey};
/// serde_json::to_string(&MasterKey::generate(&SystemEntropy).unwrap()).unwrap();
/// ```
#[derive(Clone)]
pub struct MasterKey {
    id: KeyId,
    /// Boxed, so that moving the key does not copy the bytes.
    bytes: Box<Zeroizing<[u8; KEY]>>,
}

impl KeyId {
    pub(super) fn new(id: [u8; ID]) -> Self {
        Self(id)
    }

    pub(super) fn as_bytes(&self) -> &[u8; ID] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::hex::encode(&self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for KeyId {
    type Err = InvalidKeyId;

    fn from_str(text: &str) -> Result<Self, InvalidKeyId> {
        let mut id = [0; ID];
        match crate::hex::decode(text, &mut id) {
            true => Ok(Self(id)),
            false => Err(InvalidKeyId),
        }
    }
}

serde_as_text!(KeyId);

impl MasterKey {
    /// Makes a new key.
    ///
    /// # Errors
    ///
    /// When there is no randomness.
    ///
    /// ```
    /// use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::vault::MasterKey;
    /// let key = MasterKey::generate(&SystemEntropy)?;
    /// println!("made the master key {}", key.id());
    /// # Ok::<(), agentcfg_core::clock::EntropyError>(())
    /// ```
    pub fn generate(entropy: &dyn Entropy) -> Result<Self, EntropyError> {
        let mut bytes = Box::new(Zeroizing::new([0; KEY]));
        entropy.fill(&mut bytes[..])?;
        Ok(Self::of(bytes))
    }

    /// The key's identifier.
    ///
    /// ```
    /// use agentcfg_core::vault::MasterKey;
    /// let key: MasterKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f".parse()?;
    /// assert_eq!(key.id().to_string().len(), 16);
    /// # Ok::<(), agentcfg_core::vault::InvalidMasterKey>(())
    /// ```
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The key as 64 hexadecimal digits, to be written into a key file.
    ///
    /// ```
    /// use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::vault::MasterKey;
    /// let key = MasterKey::generate(&SystemEntropy)?;
    /// let same: MasterKey = key.expose_text().parse()?;
    /// assert_eq!(same.id(), key.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expose_text(&self) -> Zeroizing<String> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = Zeroizing::new(String::with_capacity(2 * KEY));
        for byte in self.bytes.iter() {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        text
    }

    pub(super) fn bytes(&self) -> &[u8; KEY] {
        &self.bytes
    }

    #[cfg(test)]
    pub(super) fn with_id_of(key: Self, id: KeyId) -> Self {
        Self { id, ..key }
    }

    fn of(bytes: Box<Zeroizing<[u8; KEY]>>) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"agentcfg master key id\0");
        hash.update(&bytes[..]);
        let mut id = [0; ID];
        id.copy_from_slice(&hash.finalize()[..ID]);
        Self { id: KeyId(id), bytes }
    }
}

impl FromStr for MasterKey {
    type Err = InvalidMasterKey;

    /// Reads 64 hexadecimal digits, or standard or URL-safe base64 with or without padding.
    fn from_str(text: &str) -> Result<Self, InvalidMasterKey> {
        let mut bytes = Box::new(Zeroizing::new([0; KEY]));
        let right = match text.len() {
            64 => crate::hex::decode(text, &mut bytes[..]),
            43 | 44 => {
                let bare = text.strip_suffix('=').unwrap_or(text);
                fills::<Base64Unpadded>(bare, &mut bytes[..]) || fills::<Base64UrlUnpadded>(bare, &mut bytes[..])
            }
            _ => false,
        };
        if right {
            Ok(Self::of(bytes))
        } else {
            Err(InvalidMasterKey)
        }
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.id)
    }
}

/// Whether a text in this encoding fills exactly these bytes.
fn fills<E: Encoding>(text: &str, bytes: &mut [u8]) -> bool {
    let length = bytes.len();
    E::decode(text, bytes).is_ok_and(|decoded| decoded.len() == length)
}
