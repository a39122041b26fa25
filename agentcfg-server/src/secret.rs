//! Secrets of the configuration, which must not appear in logs.

use std::fmt;

/// Text that `Debug` does not print.
///
/// ```
/// use agentcfg_server::process::Secret;
/// assert_eq!(format!("{:?}", Secret::new("canary")), "[redacted]");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    ///
    /// ```
    /// use agentcfg_server::process::Secret;
    /// let secret = Secret::new("canary");
    /// ```
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Reviews should check every use of it.
    ///
    /// ```
    /// use agentcfg_server::process::Secret;
    /// assert_eq!(Secret::new("canary").expose(), "canary");
    /// ```
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
