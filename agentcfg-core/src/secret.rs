//! Secrets in plaintext: not printable, not serialisable, and wiped from memory when dropped.

use std::fmt;

use zeroize::Zeroizing;

use crate::validate::{self, Faults, Invalid};

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
    pub fn new(plaintext: impl Into<String>) -> Result<Self, Invalid> {
        let plaintext = Zeroizing::new(plaintext.into());
        let mut faults = Faults::default();
        validate::provider_key(&plaintext, &mut faults);
        faults.into_result()?;
        Ok(Self(plaintext))
    }

    /// The plaintext. Review every use of this method.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ProviderCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderCredential([redacted])")
    }
}
