//! Encryption of provider keys and of webhooks' secrets at rest, under a master key and bound to their workspace and to
//! the provider or the webhook.
//!
//! A [`Vault`] is a keyring of one or more [`MasterKey`]s. The first one seals and all of them open, so
//! that a master key can be rotated while the service runs. A sealed text names the key that sealed it.
//!
//! # The form of a sealed text
//!
//! | part | bytes |
//! | --- | --- |
//! | format, now 1 | 1 |
//! | identifier of the master key | 8 |
//! | nonce, random | 24 |
//! | the text under XChaCha20-Poly1305, with its tag | length of the text + 16 |
//!
//! A record holds it as base64. The associated data are a constant for this purpose, the format, the
//! identifier of the master key, the 16 bytes of the workspace, and the provider's name or the 16 bytes of the webhook:
//! a sealed text that was modified, or moved to another workspace, provider or webhook, does not open.

mod fingerprint;
mod keys;
mod sealed;
#[cfg(test)]
mod tests;
mod webhooks;

use std::fmt;

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

pub use self::keys::{InvalidKeyId, InvalidMasterKey, KeyId, MasterKey};
use self::sealed::{NONCE, TAG};
pub use self::sealed::{NotSealed, Sealed};
use crate::clock::{Entropy, EntropyError};
use crate::model::{Provider, WebhookId, WorkspaceId};
use crate::secret::ProviderCredential;

const FORMAT: u8 = 1;

/// The keyring: master keys, of which the first seals and all open.
///
/// `Debug` shows only the identifiers of the keys. Dropping the vault wipes the keys from memory.
///
/// ```
/// use agentcfg_core::clock::SystemEntropy;
/// use agentcfg_core::model::{Provider, WorkspaceId};
/// use agentcfg_core::secret::ProviderCredential;
/// use agentcfg_core::vault::{MasterKey, OpenError, Vault};
///
/// let workspace: WorkspaceId = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let vault = Vault::new(vec![MasterKey::generate(&SystemEntropy)?])?;
/// let key = ProviderCredential::new("sk-canary")?;
/// let sealed = vault.seal(workspace, Provider::OPENAI, &key, &SystemEntropy)?;
///
/// let opened = vault.open(workspace, Provider::OPENAI, &sealed)?;
/// assert_eq!(opened.expose(), "sk-canary");
/// assert!(vault.open(workspace, Provider::ANTHROPIC, &sealed).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Vault {
    keys: Vec<MasterKey>,
}

/// Why a list of master keys cannot be a keyring.
///
/// ```
/// use agentcfg_core::vault::{InvalidKeyring, Vault};
/// assert_eq!(Vault::new(vec![]).err(), Some(InvalidKeyring::Empty));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKeyring {
    /// The list is empty.
    #[error("there must be at least one master key")]
    Empty,
    /// The list contains the same key twice.
    #[error("the master key {0} is listed twice")]
    Twice(KeyId),
}

/// Why a sealed text does not open.
///
/// ```
/// use agentcfg_core::clock::SystemEntropy;
/// use agentcfg_core::vault::{MasterKey, OpenError, Vault};
/// let (mine, other) = (MasterKey::generate(&SystemEntropy)?, MasterKey::generate(&SystemEntropy)?);
/// let sealed_by_other = Vault::new(vec![other.clone()])?.check_value(&SystemEntropy)?;
/// assert_eq!(Vault::new(vec![mine])?.verify(&sealed_by_other), Err(OpenError::UnknownKey(other.id())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text was sealed under a master key that is not in the keyring.
    #[error("sealed under the master key {0}, which is not in the keyring")]
    UnknownKey(KeyId),
    /// A newer release sealed the text.
    #[error("sealed in format {0}, this release reads format {FORMAT}")]
    TooNew(u8),
    /// The text was modified, or belongs to another workspace, provider or webhook.
    #[error("modified, or sealed for another workspace, provider or webhook (master key {0})")]
    Refused(KeyId),
}

/// Why a text could not be sealed.
///
/// ```
/// use agentcfg_core::clock::EntropyError;
/// use agentcfg_core::vault::SealError;
/// let error = SealError::from(EntropyError("the device is gone".into()));
/// assert_eq!(error.to_string(), "no randomness: the device is gone");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// There is no randomness for the nonce.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The cipher refused the text: it is longer than 256 GiB.
    #[error("the cipher refused the text")]
    Cipher,
}

impl Vault {
    /// A keyring of these keys. The first one seals.
    ///
    /// # Errors
    ///
    /// [`InvalidKeyring`] if the list is empty or contains a key twice.
    ///
    /// ```
    /// use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::vault::{MasterKey, Vault};
    /// let (new, old) = (MasterKey::generate(&SystemEntropy)?, MasterKey::generate(&SystemEntropy)?);
    /// let vault = Vault::new(vec![new.clone(), old])?;
    /// assert_eq!(vault.sealing_key(), new.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(keys: Vec<MasterKey>) -> Result<Self, InvalidKeyring> {
        if keys.is_empty() {
            return Err(InvalidKeyring::Empty);
        }
        for (i, key) in keys.iter().enumerate() {
            if keys[..i].iter().any(|other| other.id() == key.id()) {
                return Err(InvalidKeyring::Twice(key.id()));
            }
        }
        Ok(Self { keys })
    }

    /// The identifiers of the keys; the first is that of the sealing key.
    ///
    /// ```
    /// # use agentcfg_core::clock::SystemEntropy;
    /// # use agentcfg_core::vault::{MasterKey, Vault};
    /// # let vault = Vault::new(vec![MasterKey::generate(&SystemEntropy)?])?;
    /// for id in vault.key_ids() {
    ///     println!("{id}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key_ids(&self) -> impl Iterator<Item = KeyId> {
        self.keys.iter().map(MasterKey::id)
    }

    /// The identifier of the key that seals.
    ///
    /// ```
    /// # use agentcfg_core::clock::SystemEntropy;
    /// # use agentcfg_core::vault::{MasterKey, Vault};
    /// # let vault = Vault::new(vec![MasterKey::generate(&SystemEntropy)?])?;
    /// assert_eq!(Some(vault.sealing_key()), vault.key_ids().next());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sealing_key(&self) -> KeyId {
        self.keys[0].id()
    }

    /// The same keys, of which this one seals; unchanged where it is none of them.
    ///
    /// ```
    /// # use agentcfg_core::clock::SystemEntropy;
    /// # use agentcfg_core::vault::{MasterKey, Vault};
    /// # let key = || MasterKey::generate(&SystemEntropy);
    /// let vault = Vault::new(vec![key()?, key()?])?;
    /// let second = vault.key_ids().nth(1).unwrap();
    /// assert_eq!(vault.sealing_under(second).sealing_key(), second);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn sealing_under(&self, id: KeyId) -> Self {
        let mut keys = self.keys.clone();
        keys.sort_by_key(|key| key.id() != id);
        Self { keys }
    }

    /// Seals a credential for a workspace and a provider under the first key.
    ///
    /// # Errors
    ///
    /// See [`SealError`].
    ///
    /// ```
    /// # use agentcfg_core::vault::{MasterKey, Vault};
    /// use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::model::Provider;
    /// use agentcfg_core::secret::ProviderCredential;
    /// # let vault = Vault::new(vec![MasterKey::generate(&SystemEntropy)?])?;
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let key = ProviderCredential::new("sk-canary")?;
    /// let sealed = vault.seal(workspace, Provider::OPENAI, &key, &SystemEntropy)?;
    /// assert_eq!(sealed.key_id(), vault.sealing_key());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn seal(
        &self,
        workspace: WorkspaceId,
        provider: Provider,
        credential: &ProviderCredential,
        entropy: &dyn Entropy,
    ) -> Result<Sealed, SealError> {
        let purpose = Purpose::ProviderKey(workspace, provider);
        seal(&self.keys[0], purpose, credential.expose().as_bytes(), entropy)
    }

    /// As [`Self::seal`] under this key; `None` if it is not in the keyring.
    pub(crate) fn seal_under(
        &self,
        id: KeyId,
        workspace: WorkspaceId,
        provider: Provider,
        credential: &ProviderCredential,
        entropy: &dyn Entropy,
    ) -> Result<Option<Sealed>, SealError> {
        let purpose = Purpose::ProviderKey(workspace, provider);
        let key = self.keys.iter().find(|key| key.id() == id);
        key.map(|key| seal(key, purpose, credential.expose().as_bytes(), entropy))
            .transpose()
    }

    /// Opens a text that was sealed for this workspace and provider under any of the keys.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]. The errors contain nothing of the text.
    ///
    /// ```
    /// # use agentcfg_core::clock::SystemEntropy;
    /// # use agentcfg_core::model::Provider;
    /// # use agentcfg_core::secret::ProviderCredential;
    /// # use agentcfg_core::vault::{MasterKey, Vault};
    /// # let vault = Vault::new(vec![MasterKey::generate(&SystemEntropy)?])?;
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// # let sealed = vault.seal(workspace, Provider::OPENAI, &ProviderCredential::new("sk-canary")?, &SystemEntropy)?;
    /// let key = vault.open(workspace, Provider::OPENAI, &sealed)?;
    /// assert_eq!(key.expose(), "sk-canary");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(
        &self,
        workspace: WorkspaceId,
        provider: Provider,
        sealed: &Sealed,
    ) -> Result<ProviderCredential, OpenError> {
        let key = self.key_of(sealed)?;
        let mut plaintext = open(key, Purpose::ProviderKey(workspace, provider), sealed)?;
        let refused = || OpenError::Refused(key.id());
        let text = String::from_utf8(std::mem::take(&mut *plaintext)).map_err(|error| {
            drop(Zeroizing::new(error.into_bytes()));
            refused()
        })?;
        ProviderCredential::new(text).map_err(|_| refused())
    }

    /// Seals the token of the browser session with this hash.
    ///
    /// # Errors
    ///
    /// See [`SealError`].
    pub(crate) fn seal_token(
        &self,
        session: [u8; 32],
        token: &str,
        entropy: &dyn Entropy,
    ) -> Result<Sealed, SealError> {
        seal(&self.keys[0], Purpose::SessionToken(session), token.as_bytes(), entropy)
    }

    /// Opens what [`Self::seal_token`] sealed.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub(crate) fn open_token(&self, session: [u8; 32], sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        open(self.key_of(sealed)?, Purpose::SessionToken(session), sealed)
    }

    /// Makes a check value: a sealed constant by which [`Self::verify`] recognises the sealing key, even
    /// if no provider key was sealed yet.
    ///
    /// # Errors
    ///
    /// See [`SealError`].
    ///
    /// ```
    /// use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::vault::{MasterKey, Vault};
    /// let vault = Vault::new(vec![MasterKey::generate(&SystemEntropy)?])?;
    /// let check_value = vault.check_value(&SystemEntropy)?;
    /// vault.verify(&check_value)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_value(&self, entropy: &dyn Entropy) -> Result<Sealed, SealError> {
        seal(&self.keys[0], Purpose::Check, CHECK_TEXT, entropy)
    }

    /// Verifies that the key that made a check value is in the keyring.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    ///
    /// ```
    /// use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::vault::{MasterKey, Vault};
    /// let key = || MasterKey::generate(&SystemEntropy);
    /// let check_value = Vault::new(vec![key()?])?.check_value(&SystemEntropy)?;
    /// assert!(Vault::new(vec![key()?])?.verify(&check_value).is_err(), "another key");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn verify(&self, check_value: &Sealed) -> Result<(), OpenError> {
        let key = self.key_of(check_value)?;
        let text = open(key, Purpose::Check, check_value)?;
        if *text == CHECK_TEXT {
            Ok(())
        } else {
            Err(OpenError::Refused(key.id()))
        }
    }

    fn key_of(&self, sealed: &Sealed) -> Result<&MasterKey, OpenError> {
        if sealed.format() != FORMAT {
            return Err(OpenError::TooNew(sealed.format()));
        }
        let id = sealed.key_id();
        self.keys
            .iter()
            .find(|key| key.id() == id)
            .ok_or(OpenError::UnknownKey(id))
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Vault").field(&self.keys).finish()
    }
}

const CHECK_TEXT: &[u8] = b"this is the right master key";

/// The purpose of a sealed text, which its associated data binds it to.
#[derive(Clone, Copy)]
enum Purpose {
    ProviderKey(WorkspaceId, Provider),
    /// The token of the browser session with this hash.
    SessionToken([u8; 32]),
    WebhookSecret(WorkspaceId, WebhookId),
    Check,
}

impl Purpose {
    /// The associated data. No two combinations of purpose, format and master key have the same.
    fn associated_data(self, head: &[u8]) -> Vec<u8> {
        match self {
            Self::ProviderKey(workspace, provider) => [
                &b"agentcfg provider key\0"[..],
                head,
                workspace.as_uuid().as_bytes(),
                provider.as_str().as_bytes(),
            ]
            .concat(),
            Self::SessionToken(session) => [&b"agentcfg session token\0"[..], head, &session].concat(),
            Self::WebhookSecret(workspace, webhook) => [
                &b"agentcfg webhook secret\0"[..],
                head,
                workspace.as_uuid().as_bytes(),
                webhook.as_uuid().as_bytes(),
            ]
            .concat(),
            Self::Check => [&b"agentcfg master key check\0"[..], head].concat(),
        }
    }
}

fn seal(key: &MasterKey, purpose: Purpose, text: &[u8], entropy: &dyn Entropy) -> Result<Sealed, SealError> {
    let mut nonce = [0; NONCE];
    entropy.fill(&mut nonce)?;
    let head = sealed::head(FORMAT, key.id());
    // The capacity includes the tag: the buffer is never reallocated, which would leave a copy of the
    // plaintext behind.
    let mut buffer = Zeroizing::new(Vec::with_capacity(text.len() + TAG));
    buffer.extend_from_slice(text);
    XChaCha20Poly1305::new(key.bytes().into())
        .encrypt_in_place(&XNonce::from(nonce), &purpose.associated_data(&head), &mut *buffer)
        .map_err(|_| SealError::Cipher)?;
    Ok(Sealed::from_parts(head, nonce, &buffer))
}

fn open(key: &MasterKey, purpose: Purpose, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, OpenError> {
    let mut buffer = Zeroizing::new(sealed.text().to_vec());
    XChaCha20Poly1305::new(key.bytes().into())
        .decrypt_in_place(
            &XNonce::from(sealed.nonce()),
            &purpose.associated_data(sealed.head()),
            &mut *buffer,
        )
        .map_err(|_| OpenError::Refused(key.id()))?;
    Ok(buffer)
}
