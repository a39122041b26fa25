//! The faults of a configuration.

use std::fmt;

/// The faults of the configuration.
///
/// ```
/// use agentcfg_server::process::{Config, Flags};
/// let error = Config::load(Flags::default(), [("AGENTCFG_LISTEN".into(), "nowhere".into())]).unwrap_err();
/// assert_eq!(error.problems().len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<String>,
}

impl ConfigError {
    pub(super) fn new(problems: Vec<String>) -> Self {
        Self { problems }
    }

    /// The faults, one sentence each.
    ///
    /// ```
    /// use agentcfg_server::process::{Config, Flags};
    /// if let Err(error) = Config::load(Flags::default(), std::env::vars_os()) {
    ///     for problem in error.problems() {
    ///         eprintln!("{problem}");
    ///     }
    /// }
    /// ```
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl std::error::Error for ConfigError {}
