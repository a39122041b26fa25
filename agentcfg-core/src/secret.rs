//! Plaintext that must not leak: kept for its one use, shown by nothing, wiped when dropped.

use std::fmt;

use zeroize::Zeroizing;

use crate::validate::{self, Faults, Invalid};

/// A provider's credential in plaintext, such as `sk-…`.
///
/// `Debug` shows that there is one and nothing of it. It has no `Display` and cannot be serialised, so
/// it can end up in a log, a response or a record only through [`ProviderCredential::expose`], whose
/// uses are easy to find. The memory is wiped when the last owner drops it.
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
    /// Takes a credential: 1–500 visible ASCII characters.
    ///
    /// # Errors
    ///
    /// When it is none; the message names the field `api_key` and the rule, and nothing of the text.
    pub fn new(plaintext: impl Into<String>) -> Result<Self, Invalid> {
        let plaintext = Zeroizing::new(plaintext.into());
        let mut faults = Faults::default();
        validate::provider_key(&plaintext, &mut faults);
        faults.into_result()?;
        Ok(Self(plaintext))
    }

    /// The plaintext. Every use of it is a place to look at in a review.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ProviderCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderCredential([redacted])")
    }
}
