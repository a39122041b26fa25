//! Every setting, where it may come from, and what it may be.
//!
//! A setting is one row of [`SETTINGS`]. The layers are the command line, the environment, a TOML file and the defaults;
//! the first that names a setting wins. All faults of all layers are reported together.

mod layers;
mod mistakes;
mod models;
mod provider;
mod rules;
mod settings;
mod value;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

pub use provider::SessionProvider;
pub use settings::{Config, SETTINGS, Setting};

pub use crate::secret::Secret;

/// The default configuration as a commented TOML file.
pub const DEFAULT_TOML: &str = include_str!("../config.default.toml");

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

    /// The scheme of the server's URLs.
    pub(super) fn scheme(&self) -> &'static str {
        if self.tls_cert.is_some() { "https" } else { "http" }
    }

    /// The URL of the server as browsers see it, or else of this address. No browser signs in at the address that stands for all
    /// addresses of the machine, so it becomes that of the machine itself.
    pub(super) fn base_url(&self, mut address: SocketAddr) -> String {
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        let own = || format!("{}://{address}", self.scheme());
        self.public_url.clone().unwrap_or_else(own)
    }

    /// The faults of settings that belong together.
    fn contradictions(&self) -> Vec<String> {
        let mut faults = Vec::new();
        match (&self.tls_cert, &self.tls_key) {
            (Some(_), None) => faults.push("tls_cert is set, which needs tls_key, the file of its key".to_owned()),
            (None, Some(_)) => {
                faults.push("tls_key is set, which needs tls_cert, the file of its certificate".to_owned())
            }
            _ => {}
        }
        if self.database_url.is_some() && self.etcd_endpoints.is_some() {
            faults.push(
                "database_url and etcd_endpoints are set, and the store is in one of them: unset the other".to_owned(),
            );
        }
        if self.etcd_user.is_some() != self.etcd_password.is_some() {
            faults.push("etcd_user and etcd_password belong together: set both or none".to_owned());
        }
        if self.etcd_tls_cert.is_some() != self.etcd_tls_key.is_some() {
            faults.push("etcd_tls_cert and etcd_tls_key belong together: set both or none".to_owned());
        }
        faults
    }

    /// Warns of settings that have no effect beside the others.
    fn warn_of_unused(&mut self, flags: &Flags, given: &BTreeSet<&'static str>) {
        let mut unused = Vec::new();
        if let (true, Some(data)) = (self.is_shared(), &flags.data) {
            unused.push(format!(
                "--data {} is not used: the store is in the database that the settings name",
                data.display()
            ));
        }
        let of_settings = given.iter().filter_map(|name| Some((name, self.why_unused(name)?)));
        unused.extend(of_settings.map(|(name, why)| format!("{name} is not used: {why}")));
        self.warnings.extend(unused);
    }

    /// Why a setting has no effect beside the others; `None` if it has one.
    fn why_unused(&self, name: &str) -> Option<&'static str> {
        let is_of = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let of_sign_in = ["oidc_client_id", "oidc_client_secret", "oidc_scope", "oidc_resource"];
        match self.session_provider {
            SessionProvider::Local if is_of(&["oidc_", "introspection_", "userinfo_"]) => {
                return Some("session_provider is local, so this server issues the session tokens itself");
            }
            SessionProvider::Jwks if is_of(&["introspection_", "userinfo_"]) => {
                return Some("session_provider is jwks, so the keys of the provider verify the session tokens");
            }
            SessionProvider::Jwks if self.oidc_client_id.is_none() && of_sign_in.contains(&name) => {
                return Some("oidc_client_id is not set, so the dashboard has no sign-in by this provider");
            }
            SessionProvider::Introspection if of_sign_in.contains(&name) || name == "oidc_jwks_url" => {
                return Some(
                    "session_provider is introspection; the dashboard signs in by a provider with session_provider = jwks alone",
                );
            }
            SessionProvider::Introspection
                if self.userinfo_url.is_some() && is_of(&["oidc_", "introspection_client_"]) =>
            {
                return Some("userinfo_url is asked about each token");
            }
            SessionProvider::Introspection if self.introspection_url.is_some() && name == "userinfo_apikey" => {
                return Some("introspection_url is asked about each token");
            }
            SessionProvider::Jwks | SessionProvider::Introspection if name == "session_secret" => {
                return Some("session_provider is not local, so this server issues no session tokens");
            }
            SessionProvider::Local | SessionProvider::Jwks | SessionProvider::Introspection => {}
        }
        if is_of(&["etcd_"]) && self.etcd_endpoints.is_none() {
            return Some("etcd_endpoints is not set");
        }
        if is_of(&["database_pool_size", "database_statements"]) && self.database_url.is_none() {
            return Some("database_url is not set");
        }
        (name == "database_wait" && !self.is_shared()).then_some("the store is in the data directory")
    }

    /// Whether the store is in a database that servers share, and not in the data directory.
    pub(super) fn is_shared(&self) -> bool {
        self.database_url.is_some() || self.etcd_endpoints.is_some()
    }

    /// The link that signs a user in with this code, at a server that listens on this address.
    pub(super) fn login_link(&self, address: SocketAddr, code: &str) -> String {
        format!("{}/#login={code}", self.base_url(address))
    }
}

/// The settings that the command line carries.
///
/// ```
/// use agentcfg_server::process::Flags;
/// let flags = Flags { listen: Some("127.0.0.1:0".into()), ..Flags::default() };
/// ```
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--config`: the TOML file.
    pub config: Option<PathBuf>,
    /// `--data`.
    pub data: Option<PathBuf>,
    /// `--listen`.
    pub listen: Option<String>,
    /// `--wait-for`, in seconds.
    pub wait_for: Option<u32>,
}

/// How statements are sent to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statements {
    /// Prepared once for each connection.
    Prepared,
    /// Parsed each time, for poolers that share a session between transactions.
    Unnamed,
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Everything that is wrong with the configuration.
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

#[cfg(test)]
mod tests;
