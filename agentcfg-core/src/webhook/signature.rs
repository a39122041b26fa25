//! Secrets of webhooks and the signatures that they make.

use std::fmt;
use std::str::FromStr;

use base64ct::{Base64, Encoding};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::clock::{Entropy, EntropyError};

const LENGTH: usize = 32;
/// The block length of SHA-256.
const BLOCK: usize = 64;
const PREFIX: &str = "whsec_";

/// The secret of a webhook, which signs its messages as Standard Webhooks describes.
///
/// It cannot be printed or serialised; [`SigningSecret::expose_text`] is the only way to its text. Each copy is wiped
/// from memory when it is dropped.
///
/// ```
/// use agentcfg_core::webhook::SigningSecret;
/// let secret: SigningSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAAAAAAAAA=".parse()?;
/// let signature = secret.sign("msg_1", 1_614_265_330, br#"{"test": 2432232314}"#);
/// assert!(signature.starts_with("v1,"));
/// # Ok::<(), agentcfg_core::webhook::InvalidSecret>(())
/// ```
#[derive(Clone)]
pub struct SigningSecret(Box<Zeroizing<[u8; LENGTH]>>);

/// Why a text is not the secret of a webhook.
///
/// ```
/// use agentcfg_core::webhook::SigningSecret;
/// let invalid = "whsec_short".parse::<SigningSecret>().unwrap_err();
/// assert_eq!(invalid.to_string(), "must be whsec_ and 32 bytes as base64");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be {PREFIX} and {LENGTH} bytes as base64")]
pub struct InvalidSecret;

impl SigningSecret {
    /// A new random secret.
    ///
    /// # Errors
    ///
    /// [`EntropyError`] when there is no randomness.
    ///
    /// ```
    /// use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::webhook::SigningSecret;
    /// let secret = SigningSecret::generate(&SystemEntropy)?;
    /// assert!(secret.expose_text().starts_with("whsec_"));
    /// # Ok::<(), agentcfg_core::clock::EntropyError>(())
    /// ```
    pub fn generate(entropy: &dyn Entropy) -> Result<Self, EntropyError> {
        let mut bytes = Box::new(Zeroizing::new([0; LENGTH]));
        entropy.fill(&mut bytes[..])?;
        Ok(Self(bytes))
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut secret = Box::new(Zeroizing::new([0; LENGTH]));
        if bytes.len() != LENGTH {
            return None;
        }
        secret.copy_from_slice(bytes);
        Some(Self(secret))
    }

    /// The bytes. Review every use of this method.
    pub(crate) fn expose(&self) -> &[u8] {
        &self.0[..]
    }

    /// The text that the receiver is given. Review every use of this method.
    ///
    /// ```
    /// # use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::webhook::SigningSecret;
    /// # let secret = SigningSecret::generate(&SystemEntropy)?;
    /// assert_eq!(secret.expose_text().len(), 50);
    /// # Ok::<(), agentcfg_core::clock::EntropyError>(())
    /// ```
    pub fn expose_text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(64));
        text.push_str(PREFIX);
        text.push_str(&Zeroizing::new(Base64::encode_string(&self.0[..])));
        text
    }

    /// The signature of a message: `v1,` and the base64 of HMAC-SHA256 over identifier, timestamp in Unix seconds and
    /// body.
    ///
    /// ```
    /// # use agentcfg_core::clock::SystemEntropy;
    /// # use agentcfg_core::webhook::SigningSecret;
    /// # let secret = SigningSecret::generate(&SystemEntropy)?;
    /// let signature = secret.sign("a", 1, b"{}");
    /// assert_ne!(signature, secret.sign("a", 2, b"{}"));
    /// # Ok::<(), agentcfg_core::clock::EntropyError>(())
    /// ```
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        // HMAC pads a key with zeros to the length of a block, so the padded key makes the same signature.
        let mut block = Zeroizing::new([0; BLOCK]);
        block[..LENGTH].copy_from_slice(&self.0[..]);
        let mut mac = <Hmac<Sha256> as KeyInit>::new((&*block).into());
        for part in [id.as_bytes(), b".", timestamp.to_string().as_bytes(), b".", body] {
            mac.update(part);
        }
        format!("v1,{}", Base64::encode_string(&mac.finalize().into_bytes()))
    }
}

impl FromStr for SigningSecret {
    type Err = InvalidSecret;

    fn from_str(text: &str) -> Result<Self, InvalidSecret> {
        let text = text.strip_prefix(PREFIX).ok_or(InvalidSecret)?;
        let bytes = Zeroizing::new(Base64::decode_vec(text).map_err(|_| InvalidSecret)?);
        Self::from_bytes(&bytes).ok_or(InvalidSecret)
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret([redacted])")
    }
}
