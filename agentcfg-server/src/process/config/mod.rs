//! Every setting, where it may come from, and what it may be.
//!
//! A setting is one row of [`SETTINGS`]. The layers are the command line, the environment, a TOML file and the defaults;
//! the first that names a setting wins. All faults of all layers are reported together.

mod choices;
mod consistency;
mod derived;
mod error;
mod flags;
mod layers;
mod model_providers;
mod models;
mod otlp;
mod provider;
mod rules;
mod settings;
mod tables;
#[cfg(test)]
mod tests;
mod toml_mistakes;
mod value;

use std::ffi::OsString;

pub use choices::{LogFormat, SessionProvider, Statements};
pub(in crate::process) use derived::on_this_machine;
pub use error::ConfigError;
pub use flags::Flags;
pub use otlp::Tracing;
pub use settings::{Config, DEFAULT_TOML, SETTINGS, Setting};
pub(in crate::process) use value::is_of_home;

pub use crate::secret::Secret;

impl Config {
    /// Merges the layers: `flags` over `env` over the TOML file that `flags` may name over the defaults.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or any layer names an unknown setting or gives a value that breaks its rule. The
    /// error lists every fault, with its key and its place.
    ///
    /// ```
    /// use agentcfg_server::process::{Config, Flags};
    /// let config = Config::load(Flags::default(), [("AGENTCFG_DEFAULT_PLAN".into(), "team".into())])?;
    /// assert_eq!(config.default_plan.as_str(), "team");
    /// # Ok::<(), agentcfg_server::process::ConfigError>(())
    /// ```
    pub fn load(flags: Flags, env: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Self, ConfigError> {
        layers::load(flags, env)
    }
}
