//! Sealed texts as bytes and as base64.

use std::fmt;
use std::str::FromStr;

use base64ct::{Base64, Encoding};

use super::keys::{ID, KeyId};
use crate::body::serde_as_text;

const HEAD: usize = 1 + ID;
pub(super) const NONCE: usize = 24;
pub(super) const TAG: usize = 16;

/// An encrypted text. It reveals only the identifier of its master key, so it may be stored and shown.
///
/// Its text form, also in records, is base64.
///
/// ```
/// # use agentcfg_core::clock::SystemEntropy;
/// # use agentcfg_core::vault::{MasterKey, Vault};
/// use agentcfg_core::vault::Sealed;
/// # let vault = Vault::new(vec![MasterKey::generate(&SystemEntropy)?])?;
/// let sealed = vault.check_value(&SystemEntropy)?;
/// let stored = sealed.to_string();
/// assert_eq!(stored.parse::<Sealed>()?, sealed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(Vec<u8>);

/// The text is not a sealed text: it is not base64, or too short.
///
/// ```
/// use agentcfg_core::vault::{NotSealed, Sealed};
/// assert_eq!("sk-canary".parse::<Sealed>(), Err(NotSealed));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a sealed text")]
pub struct NotSealed;

/// The unencrypted head: the format and the identifier of the key.
pub(super) fn head(format: u8, key: KeyId) -> [u8; HEAD] {
    let mut head = [format; HEAD];
    head[1..].copy_from_slice(key.as_bytes());
    head
}

impl Sealed {
    /// Reads the bytes of a sealed text.
    ///
    /// # Errors
    ///
    /// [`NotSealed`] if there are too few bytes.
    ///
    /// ```
    /// use agentcfg_core::vault::{NotSealed, Sealed};
    /// assert_eq!(Sealed::from_bytes(b"too short".to_vec()), Err(NotSealed));
    /// ```
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, NotSealed> {
        if bytes.len() < HEAD + NONCE + TAG {
            return Err(NotSealed);
        }
        Ok(Self(bytes))
    }

    /// The bytes.
    ///
    /// ```
    /// # use agentcfg_core::clock::SystemEntropy;
    /// # use agentcfg_core::vault::{MasterKey, Vault};
    /// use agentcfg_core::vault::Sealed;
    /// # let sealed = Vault::new(vec![MasterKey::generate(&SystemEntropy)?])?.check_value(&SystemEntropy)?;
    /// assert_eq!(Sealed::from_bytes(sealed.as_bytes().to_vec())?, sealed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The identifier of the master key that it was sealed under.
    ///
    /// ```
    /// use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::vault::{MasterKey, Vault};
    /// let key = MasterKey::generate(&SystemEntropy)?;
    /// let sealed = Vault::new(vec![key.clone()])?.check_value(&SystemEntropy)?;
    /// assert_eq!(sealed.key_id(), key.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key_id(&self) -> KeyId {
        let mut id = [0; ID];
        id.copy_from_slice(&self.0[1..HEAD]);
        KeyId::new(id)
    }

    pub(super) fn from_parts(head: [u8; HEAD], nonce: [u8; NONCE], text: &[u8]) -> Self {
        Self([&head[..], &nonce, text].concat())
    }

    pub(super) fn format(&self) -> u8 {
        self.0[0]
    }

    pub(super) fn head(&self) -> &[u8] {
        &self.0[..HEAD]
    }

    pub(super) fn nonce(&self) -> [u8; NONCE] {
        let mut nonce = [0; NONCE];
        nonce.copy_from_slice(&self.0[HEAD..HEAD + NONCE]);
        nonce
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.0[HEAD + NONCE..]
    }
}

impl fmt::Display for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Base64::encode_string(&self.0))
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed(under {}, {} bytes)", self.key_id(), self.0.len())
    }
}

impl FromStr for Sealed {
    type Err = NotSealed;

    fn from_str(text: &str) -> Result<Self, NotSealed> {
        Base64::decode_vec(text)
            .map_err(|_| NotSealed)
            .and_then(Self::from_bytes)
    }
}

serde_as_text!(Sealed);
