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
use std::time::Duration;

use agentcfg_core::model::{AllowedHost, Plan, Provider};
use agentcfg_core::routing::{Catalogue, CatalogueModel};
use hyper::Uri;
pub use provider::SessionProvider;
pub use settings::{SETTINGS, Setting};

pub use crate::secret::Secret;

/// The default configuration as a commented TOML file.
pub const DEFAULT_TOML: &str = include_str!("../config.default.toml");

/// Every setting of the server, as plain data.
///
/// ```
/// use agentcfg_server::process::{Config, Flags};
/// let config = Config::load(Flags::default(), [])?;
/// assert_eq!(config.listen.port(), 7420);
/// # Ok::<(), agentcfg_server::process::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Address of the API.
    pub listen: SocketAddr,
    /// PEM file of the certificate chain; with it the server speaks TLS.
    pub tls_cert: Option<PathBuf>,
    /// PEM file of the key of that certificate.
    pub tls_key: Option<PathBuf>,
    /// Data directory.
    pub data: PathBuf,
    /// Whether the command line, the environment or the file names the data directory.
    pub names_data: bool,
    /// `postgres://` URL of the database that holds the store, instead of the data directory.
    pub database_url: Option<Secret>,
    /// Connections to the database at most.
    pub database_pool_size: usize,
    /// How statements are sent to the database.
    pub database_statements: Statements,
    /// How long the start waits for the database.
    pub database_wait: Duration,
    /// Addresses of the members of the etcd cluster that holds the store, instead of the data directory.
    pub etcd_endpoints: Option<String>,
    /// User of that cluster.
    pub etcd_user: Option<String>,
    /// Password of that user.
    pub etcd_password: Option<Secret>,
    /// PEM file of the authorities that sign the certificates of the members, instead of the public ones.
    pub etcd_tls_ca: Option<PathBuf>,
    /// PEM file of the certificate that the server shows to the cluster.
    pub etcd_tls_cert: Option<PathBuf>,
    /// PEM file of the key of that certificate.
    pub etcd_tls_key: Option<PathBuf>,
    /// What the keys of the store in the cluster begin with.
    pub etcd_prefix: String,
    /// User ids that may change the plan of any workspace.
    pub operators: Vec<String>,
    /// Plan of a new workspace.
    pub default_plan: Plan,
    /// Active agents allowed on the free plan; 0 is unlimited.
    pub plan_limit_free: u64,
    /// Active agents allowed on the pro plan; 0 is unlimited.
    pub plan_limit_pro: u64,
    /// Active agents allowed on the team plan; 0 is unlimited.
    pub plan_limit_team: u64,
    /// Active agents allowed on the enterprise plan; 0 is unlimited.
    pub plan_limit_enterprise: u64,
    /// Requests a minute of one session user.
    pub session_rate_limit: u32,
    /// How long a status report counts.
    pub status_ttl: Duration,
    /// Whether API keys of scope `write` may configure agents.
    pub write_scope_configures_agents: bool,
    /// Origins that browsers may call from.
    pub cors_origins: Vec<String>,
    /// Whether answers are compressed for clients that accept gzip.
    pub compression: bool,
    /// Whether the web dashboard is served.
    pub dashboard: bool,
    /// The URL that browsers see, behind a proxy; without a slash at the end.
    pub public_url: Option<String>,
    /// HS256 secret of the local identity provider, instead of the file in the data directory.
    pub session_secret: Option<Secret>,
    /// Models on offer, in the order of the list.
    pub models: Vec<CatalogueModel>,
    /// Address of OpenAI's API.
    pub openai_base_url: String,
    /// Address of Anthropic's API.
    pub anthropic_base_url: String,
    /// Paths below the providers' addresses that managed credentials pay for.
    pub managed_paths: Vec<String>,
    /// Managed credential for OpenAI.
    pub openai_api_key: Option<Secret>,
    /// Managed credential for Anthropic.
    pub anthropic_api_key: Option<Secret>,
    /// Master keys of the provider keys, instead of the file in the data directory; the first one seals.
    pub master_keys: Vec<Secret>,
    /// Hosts that webhooks may be sent to by `http`, on another port than 443, or in a private network.
    pub webhook_allowed_hosts: Vec<AllowedHost>,
    /// Where session tokens come from.
    pub session_provider: SessionProvider,
    /// The `iss` of the identity provider's tokens.
    pub oidc_issuer: Option<String>,
    /// The `aud` of tokens for this service.
    pub oidc_audience: Option<String>,
    /// The URL of the identity provider's keys, instead of the one in its discovery document.
    pub oidc_jwks_url: Option<Uri>,
    /// The client id of the dashboard at the identity provider.
    pub oidc_client_id: Option<String>,
    /// The secret of that client, where it has one.
    pub oidc_client_secret: Option<Secret>,
    /// The scopes that the dashboard asks for, separated by spaces.
    pub oidc_scope: String,
    /// The resource that the dashboard asks a token for (RFC 8707).
    pub oidc_resource: Option<String>,
    /// The URL of the introspection endpoint.
    pub introspection_url: Option<Uri>,
    /// The client id for the introspection endpoint.
    pub introspection_client_id: Option<String>,
    /// The secret of that client.
    pub introspection_client_secret: Option<Secret>,
    /// The URL of the user-info endpoint.
    pub userinfo_url: Option<Uri>,
    /// The value of the header `apikey` for `userinfo_url`.
    pub userinfo_apikey: Option<Secret>,
    /// Time for a model provider to begin its answer.
    pub model_call_first_byte_timeout: Duration,
    /// Longest time between two pieces of a model provider's answer.
    pub model_call_idle_timeout: Duration,
    /// Address of `GET /metrics`; off when absent.
    pub metrics_listen: Option<SocketAddr>,
    /// Log filter, such as `info` or `agentcfg_server=debug,warn`.
    pub log: String,
    /// Format of log lines.
    pub log_format: LogFormat,
    /// Whether each answer is a line of the log.
    pub access_log: bool,
    /// Connections served at a time.
    pub max_connections: usize,
    /// Streams of changes at a time.
    pub max_streams: usize,
    /// Time for a request head to arrive.
    pub header_timeout: Duration,
    /// Time for a request body to arrive, and for a stalled response to move on.
    pub body_timeout: Duration,
    /// Bytes a second that a request body must bring on average after its first seconds; 0 is any rate.
    pub min_body_rate: u64,
    /// Request bodies that the server holds at a time, in MiB.
    pub max_body_mb_in_flight: usize,
    /// Request bodies that one caller may have in flight, in MiB.
    pub max_caller_body_mb: usize,
    /// Time that a connection may stay open between requests.
    pub idle_timeout: Duration,
    /// Time that requests in flight get to finish at shutdown.
    pub shutdown_timeout: Duration,
    /// Memory of the caches, in MiB: an eighth for pages of the store, half of the rest each for records and lists.
    pub cache_mb: u64,
    /// What was read and is doubtful, one sentence each, for the log.
    pub warnings: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7420)),
            tls_cert: None,
            tls_key: None,
            data: PathBuf::from("./agentcfg-data"),
            names_data: false,
            database_url: None,
            database_pool_size: 16,
            database_statements: Statements::Prepared,
            database_wait: Duration::ZERO,
            etcd_endpoints: None,
            etcd_user: None,
            etcd_password: None,
            etcd_tls_ca: None,
            etcd_tls_cert: None,
            etcd_tls_key: None,
            etcd_prefix: "agentcfg".to_owned(),
            operators: Vec::new(),
            default_plan: Plan::Enterprise,
            plan_limit_free: 3,
            plan_limit_pro: 25,
            plan_limit_team: 100,
            plan_limit_enterprise: 0,
            session_rate_limit: 600,
            status_ttl: Duration::from_secs(120),
            write_scope_configures_agents: true,
            cors_origins: Vec::new(),
            compression: true,
            dashboard: true,
            public_url: None,
            session_secret: None,
            models: Catalogue::default().models().to_vec(),
            openai_base_url: Catalogue::default().base_url(Provider::OpenAi).to_owned(),
            anthropic_base_url: Catalogue::default().base_url(Provider::Anthropic).to_owned(),
            managed_paths: Catalogue::default().managed_paths().to_vec(),
            openai_api_key: None,
            anthropic_api_key: None,
            master_keys: Vec::new(),
            webhook_allowed_hosts: Vec::new(),
            session_provider: SessionProvider::Local,
            oidc_issuer: None,
            oidc_audience: None,
            oidc_jwks_url: None,
            oidc_client_id: None,
            oidc_client_secret: None,
            oidc_scope: "openid".to_owned(),
            oidc_resource: None,
            introspection_url: None,
            introspection_client_id: None,
            introspection_client_secret: None,
            userinfo_url: None,
            userinfo_apikey: None,
            model_call_first_byte_timeout: Duration::from_secs(120),
            model_call_idle_timeout: Duration::from_secs(60),
            metrics_listen: None,
            log: "info".to_owned(),
            log_format: LogFormat::Text,
            access_log: false,
            max_connections: 10_000,
            max_streams: 5000,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            min_body_rate: 4096,
            max_body_mb_in_flight: 256,
            max_caller_body_mb: 64,
            idle_timeout: Duration::from_secs(75),
            shutdown_timeout: Duration::from_secs(30),
            cache_mb: 192,
            warnings: Vec::new(),
        }
    }
}

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
