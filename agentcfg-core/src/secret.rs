//! Secrets in plaintext: not printable, not serialisable, and wiped from memory when dropped.

use std::fmt;

use zeroize::Zeroizing;

use crate::body::{self, Body, Fields, Rule};
use crate::rules;
use crate::validate::{Faults, Invalid, MAX_PERSONA_PROMPT};

/// The name of the body's only field.
const FIELD: &str = "api_key";

/// A provider's credential in plaintext, such as `sk-…`.
///
/// `Debug` is redacted, and there is no `Display` and no serialisation. So the text can reach a log, a
/// response or a record only through [`ProviderCredential::expose`], whose uses are easy to find. Each
/// copy is wiped from memory when it is dropped.
///
/// ```
/// use agentcfg_core::secret::ProviderCredential;
/// let credential = ProviderCredential::new("sk-canary")?;
/// assert_eq!(format!("{credential:?}"), "ProviderCredential([redacted])");
/// assert_eq!(credential.expose(), "sk-canary");
/// # Ok::<(), agentcfg_core::validate::Invalid>(())
/// ```
///
/// It can be neither printed nor serialised:
///
/// ```compile_fail,E0277
/// let credential = agentcfg_core::secret::ProviderCredential::new("sk-canary").unwrap();
/// println!("{credential}");
/// ```
///
/// ```compile_fail,E0277
/// let credential = agentcfg_core::secret::ProviderCredential::new("sk-canary").unwrap();
/// serde_json::to_string(&credential).unwrap();
/// ```
#[derive(Clone)]
pub struct ProviderCredential(Zeroizing<String>);

impl ProviderCredential {
    /// Validates a credential: 1–500 visible ASCII characters.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the text breaks that rule; the message names the field `api_key` and the rule, and
    /// contains nothing of the text.
    ///
    /// ```
    /// use agentcfg_core::secret::ProviderCredential;
    /// assert!(ProviderCredential::new("sk-canary").is_ok());
    /// let invalid = ProviderCredential::new("sk canary").unwrap_err();
    /// assert_eq!(invalid.to_string(), "api_key must have visible ASCII characters only");
    /// ```
    pub fn new(plaintext: impl Into<String>) -> Result<Self, Invalid> {
        let credential = Self(Zeroizing::new(plaintext.into()));
        body::check(&credential)?;
        Ok(credential)
    }

    /// The plaintext. Review every use of this method.
    ///
    /// ```
    /// use agentcfg_core::secret::ProviderCredential;
    /// let credential = ProviderCredential::new("sk-canary")?;
    /// let header = format!("Bearer {}", credential.expose());
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl ProviderCredential {
    /// Reads the body that saves a provider key: `{"api_key": "…"}`.
    ///
    /// # Errors
    ///
    /// Every fault of the body, in the order of the fields. None of them shows the key.
    ///
    /// ```
    /// use agentcfg_core::secret::ProviderCredential;
    /// let key = ProviderCredential::from_json(br#"{"api_key":"sk-canary"}"#)?;
    /// assert_eq!(key.expose(), "sk-canary");
    /// let fault = ProviderCredential::from_json(br#"{"api_key":"sk canary"}"#).unwrap_err();
    /// assert_eq!(fault.to_string(), "api_key must have visible ASCII characters only");
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn from_json(bytes: &[u8]) -> Result<Self, Invalid> {
        body::from_json(bytes, MAX_PERSONA_PROMPT)
    }
}

// Not declared by `body!`: its one field must neither be public nor be serialised.
impl Body for ProviderCredential {
    const FIELDS: &'static [&'static str] = &[FIELD];
    const READ_ONLY: &'static [&'static str] = &["provider", "created_at", "updated_at"];

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let plaintext = body::create::required::<rules::Credential>(fields, FIELD)?;
        Some(Self(Zeroizing::new(plaintext)))
    }

    fn check(&self, faults: &mut Faults) {
        rules::Credential::check(&self.0, FIELD, faults);
    }
}

impl fmt::Debug for ProviderCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderCredential([redacted])")
    }
}
