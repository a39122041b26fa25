//! The table of all settings: name, meaning, type, default and rule of each.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use agentcfg_core::Settings;
use agentcfg_core::model::{AllowedHost, Plan, PlanLimits, Provider, WorkspaceCreation};
use agentcfg_core::routing::{Catalogue, CatalogueModel, CatalogueProvider, EmbeddingModel, ManagedModels};
use agentcfg_core::session::RequiredClaim;
use agentcfg_core::validate::{MAX_PERSONA_PROMPT, MAX_USER_ID, is_group_id, is_user_id};
use agentcfg_etcd::{are_endpoints, is_prefix};
use hyper::Uri;

use super::choices::{LogFormat, OtlpProtocol, SessionProvider, Statements};
use super::model_providers::{self, ProviderKeys};
use super::models;
use super::otlp::{self, Otel};
use super::rules::{
    allowed_hosts, base_url, call_path, database_url, is_scope, is_visible, log_filter, master_keys, networks,
    no_proxy, origins, plan, provider_key, public_url, required_claims, secret_text, text, url, workspace_creation,
};
use super::value::Value;
use crate::api::{CallTimeouts, Streams};
use crate::http::{ByteBudget, Network};
use crate::listen::Limits;
use crate::outbound::Egress;
use crate::secret::Secret;

/// The default configuration as a commented TOML file.
pub const DEFAULT_TOML: &str = include_str!("../config.default.toml");

/// One setting: its name in all layers, its meaning and its rule.
///
/// ```
/// for setting in agentcfg_server::process::SETTINGS {
///     println!("{}: {}", setting.name, setting.doc);
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Key in the TOML file; `AGENTCFG_` and this in upper case in the environment.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub doc: &'static str,
    /// Whether the value must stay out of messages, and may come from a file that `AGENTCFG_<KEY>_FILE` names.
    pub secret: bool,
    pub(super) set: fn(&mut Config, &Value<'_>) -> Result<(), String>,
}

impl Setting {
    /// Name of the environment variable.
    ///
    /// ```
    /// let listen = &agentcfg_server::process::SETTINGS[0];
    /// assert_eq!(listen.env(), "AGENTCFG_LISTEN");
    /// ```
    pub fn env(&self) -> String {
        format!("AGENTCFG_{}", self.name.to_ascii_uppercase())
    }

    /// The setting of this name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// A fault without the value, if that is a secret: one that breaks its rule is still a secret.
    pub(super) fn shown_fault<'a>(&self, fault: &'a str) -> &'a str {
        match self.secret {
            true => fault.split(", got ").next().unwrap_or_default(),
            false => fault,
        }
    }
}

/// Declares the fields of [`Config`], its defaults and [`SETTINGS`] from rows of a meaning, a name, a type, a default and a
/// rule, which reads a value of any layer. `secret` at the end of a row keeps the value out of messages.
macro_rules! settings {
    ($(#[doc = $doc:literal] $name:ident: $type:ty = $default:expr, $rule:expr $(, $secret:ident)?;)*) => {
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
            $(#[doc = $doc] pub $name: $type,)*
            /// Whether the command line, the environment or the file names the data directory.
            pub names_data: bool,
            /// What the standard variables of OpenTelemetry say that has no setting.
            pub otel: Otel,
            /// What was read and is doubtful, one sentence each, for the log.
            pub warnings: Vec<String>,
        }

        impl Default for Config {
            fn default() -> Self {
                Self { $($name: $default,)* names_data: false, otel: Otel::default(), warnings: Vec::new() }
            }
        }

        /// Every setting, in the order of the documentation.
        pub const SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($name),
            doc: $doc.trim_ascii(),
            secret: settings!(@secret $($secret)?),
            set: |config, value| {
                let rule: fn(&Value<'_>) -> Result<$type, String> = $rule;
                config.$name = rule(value)?;
                Ok(())
            },
        },)*];
    };
    (@secret) => { false };
    (@secret secret) => { true };
}

settings! {
    /// Address of the API; port 0 picks a free one.
    listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 7420)), |v| v.address();
    /// PEM file of the certificate and those of its issuers; with it the server speaks TLS.
    tls_cert: Option<PathBuf> = None, |v| v.path().map(Some);
    /// PEM file of the key of that certificate.
    tls_key: Option<PathBuf> = None, |v| v.path().map(Some);
    /// Data directory.
    data: PathBuf = PathBuf::from("./agentcfg-data"), |v| v.path();

    /// `postgres://` URL of the database that holds the store, instead of the data directory.
    database_url: Option<Secret> = None,
        |v| secret_text(v, "a URL such as postgres://user:password@host/database", database_url), secret;
    /// Connections to the database at most.
    database_pool_size: usize = 16, |v| v.integer(1, 10_000);
    /// How statements are sent to the database: prepared, or unnamed for poolers that share sessions.
    database_statements: Statements = Statements::Prepared, |v| v.choice(STATEMENTS);
    /// Time that the start waits for the database, in seconds.
    database_wait: Duration = Duration::ZERO, |v| v.seconds(0, DAY);

    /// Addresses of the members of the etcd cluster that holds the store, instead of the data directory.
    etcd_endpoints: Option<String> = None,
        |v| v.joined("addresses such as http://etcd-1:2379,http://etcd-2:2379", are_endpoints).map(Some);
    /// User of the etcd cluster.
    etcd_user: Option<String> = None, |v| text(v).map(Some);
    /// Password of that user.
    etcd_password: Option<Secret> = None, |v| text(v).map(Secret::new).map(Some), secret;
    /// PEM file of the authorities that sign the certificates of the etcd members, instead of the public ones.
    etcd_tls_ca: Option<PathBuf> = None, |v| v.path().map(Some);
    /// PEM file of the certificate that the server shows to the etcd cluster.
    etcd_tls_cert: Option<PathBuf> = None, |v| v.path().map(Some);
    /// PEM file of the key of that certificate.
    etcd_tls_key: Option<PathBuf> = None, |v| v.path().map(Some);
    /// What the keys of the store in the etcd cluster begin with.
    etcd_prefix: String = "agentcfg".to_owned(),
        |v| v.text("1 to 40 letters, digits, dots, hyphens or underscores", is_prefix);

    /// User ids that may change the plan of any workspace.
    operators: Vec<String> = Vec::new(), |v| v.list(
        &format!("user ids of 1 to {MAX_USER_ID} characters that do not begin with group:"),
        |id| is_user_id(id) && !is_group_id(id),
    );
    /// Who may create workspaces.
    workspace_creation: WorkspaceCreation = Settings::default().workspace_creation, workspace_creation;
    /// Workspaces that a user may own and still create one; 0 is unlimited.
    max_workspaces_per_user: u32 = Settings::default().max_workspaces_per_user.unwrap_or_default(), |v| v.integer(0, MANY);
    /// Plan of a new workspace.
    default_plan: Plan = Settings::default().default_plan, plan;
    /// Active agents on the free plan; 0 is unlimited.
    plan_limit_free: u64 = plan_limit(Plan::Free), |v| v.integer(0, MANY);
    /// Active agents on the pro plan; 0 is unlimited.
    plan_limit_pro: u64 = plan_limit(Plan::Pro), |v| v.integer(0, MANY);
    /// Active agents on the team plan; 0 is unlimited.
    plan_limit_team: u64 = plan_limit(Plan::Team), |v| v.integer(0, MANY);
    /// Active agents on the enterprise plan; 0 is unlimited.
    plan_limit_enterprise: u64 = plan_limit(Plan::Enterprise), |v| v.integer(0, MANY);

    /// Requests a minute of one session user.
    session_rate_limit: u32 = Settings::default().session_rate_limit, |v| v.integer(1, 1_000_000);
    /// Greatest length of a persona prompt, in characters.
    max_persona_prompt: u32 = Settings::default().max_persona_prompt, |v| v.integer(1, MAX_PERSONA_PROMPT.into());
    /// Time that a status report counts, in seconds.
    status_ttl: Duration = Duration::from_secs(Settings::default().status_ttl_seconds.into()), |v| v.seconds(1, DAY);
    /// Whether API keys of scope `write` may configure agents.
    write_scope_configures_agents: bool = Settings::default().write_scope_configures_agents, |v| v.boolean();
    /// Origins that browsers may call from.
    cors_origins: Vec<String> = Vec::new(), origins;
    /// Whether answers are compressed for clients that accept gzip.
    compression: bool = true, |v| v.boolean();
    /// Whether the web dashboard is served.
    dashboard: bool = true, |v| v.boolean();
    /// URL that browsers see, behind a proxy; without a slash at the end.
    public_url: Option<String> = None, |v| public_url(v).map(Some);
    /// HS256 secret of local sessions, instead of the file in the data directory.
    session_secret: Option<Secret> = None, |v| secret_text(v, "at least 32 bytes", |s| s.len() >= 32), secret;

    /// Models on offer, in the order of the list; a list of tables in the file.
    models: Vec<CatalogueModel> = Catalogue::default().models().to_vec(), models::read;
    /// Models for embeddings that managed credentials pay for, with their prices; a list of tables in the file.
    embedding_models: Vec<EmbeddingModel> = Catalogue::default().embedding_models().to_vec(), models::read_embedding;
    /// Address of OpenAI's API.
    openai_base_url: String = default_base_url(Provider::OPENAI), base_url;
    /// Address of Anthropic's API.
    anthropic_base_url: String = default_base_url(Provider::ANTHROPIC), base_url;
    /// Further providers that speak the API of OpenAI or Anthropic; a list of tables in the file.
    providers: Vec<CatalogueProvider> = Vec::new(), model_providers::read;
    /// Managed credentials for them, by their ids; a table in the file, or `AGENTCFG_PROVIDER_API_KEY_<ID>` for each.
    provider_api_keys: ProviderKeys = ProviderKeys::new(), model_providers::read_keys, secret;
    /// For which models managed credentials pay: those of the catalogue, or any.
    managed_models: ManagedModels = ManagedModels::Catalogue, |v| v.choice(MANAGED_MODELS);
    /// Paths of model calls that managed credentials pay for.
    managed_paths: Vec<String> = Catalogue::default().managed_paths().to_vec(),
        |v| v.list("paths such as v1/responses", call_path);
    /// Managed credential for OpenAI.
    openai_api_key: Option<Secret> = None, provider_key, secret;
    /// Managed credential for Anthropic.
    anthropic_api_key: Option<Secret> = None, provider_key, secret;
    /// Master keys of the provider keys, instead of the file in the data directory; the first one seals.
    master_keys: Vec<Secret> = Vec::new(), master_keys, secret;
    /// Time for a model provider to begin its answer, in seconds.
    model_call_first_byte_timeout: Duration = CallTimeouts::default().first_byte, |v| v.seconds(1, DAY);
    /// Longest time between two pieces of a model provider's answer, in seconds.
    model_call_idle_timeout: Duration = CallTimeouts::default().idle, |v| v.seconds(1, DAY);

    /// Days that single model calls are kept; their sums are kept for good.
    usage_retention_days: u32 = Settings::default().usage_retention_days, |v| v.integer(1, 3650);

    /// Days that entries of audit logs are kept; 0 is for good.
    audit_retention_days: u32 = 0, |v| v.integer(0, 36_500);
    /// Days that versions of agents are kept after another one has replaced them; 0 is for good.
    version_retention_days: u32 = 0, |v| v.integer(0, 36_500);

    /// PEM file of authorities that are trusted beside the public ones, by everything that goes out.
    outbound_ca_file: Option<PathBuf> = None, |v| v.path().map(Some);
    /// Proxy that everything goes out through: model calls, the identity provider, webhooks.
    outbound_proxy: Option<Secret> = None,
        |v| secret_text(v, "a proxy such as http://proxy.internal:3128", |text| Egress::through(text, "").is_ok()), secret;
    /// Hosts that are reached without the proxy.
    no_proxy: Vec<String> = Vec::new(), no_proxy;

    /// Hosts that webhooks may be sent to by http, on another port than 443, or in a private network.
    webhook_allowed_hosts: Vec<AllowedHost> = Vec::new(), allowed_hosts;

    /// Where session tokens come from.
    session_provider: SessionProvider = SessionProvider::Local, |v| v.choice(SESSION_PROVIDERS);
    /// The `iss` of the identity provider's tokens.
    oidc_issuer: Option<String> = None, |v| text(v).map(Some);
    /// The `aud` of tokens for this service.
    oidc_audience: Option<String> = None, |v| text(v).map(Some);
    /// Claims that every session token must have, each `name=value`.
    oidc_required_claims: Vec<RequiredClaim> = Vec::new(), required_claims;
    /// The claim that names the groups of a user.
    oidc_groups_claim: Option<String> = None, |v| text(v).map(Some);
    /// URL of the identity provider's keys, instead of the one in its discovery document.
    oidc_jwks_url: Option<Uri> = None, url;
    /// Client id of the dashboard at the identity provider.
    oidc_client_id: Option<String> = None, |v| text(v).map(Some);
    /// Secret of that client, where it has one.
    oidc_client_secret: Option<Secret> = None, |v| text(v).map(Secret::new).map(Some), secret;
    /// Scopes that the dashboard asks for, separated by spaces.
    oidc_scope: String = "openid".to_owned(), |v| v.text("words separated by spaces with openid among them", is_scope);
    /// Resource that the dashboard asks a token for (RFC 8707).
    oidc_resource: Option<String> = None, |v| text(v).map(Some);
    /// URL that is asked about each token (RFC 7662).
    introspection_url: Option<Uri> = None, url;
    /// Client id for `introspection_url`.
    introspection_client_id: Option<String> = None, |v| text(v).map(Some);
    /// Secret of that client.
    introspection_client_secret: Option<Secret> = None, |v| text(v).map(Secret::new).map(Some), secret;
    /// URL of the user-info endpoint, asked with each token.
    userinfo_url: Option<Uri> = None, url;
    /// Value of the header `apikey` for `userinfo_url`.
    userinfo_apikey: Option<Secret> = None, |v| secret_text(v, "visible ASCII characters", is_visible), secret;

    /// Address of `GET /metrics`; off when empty.
    metrics_listen: Option<SocketAddr> = None, |v| v.optional_address();
    /// Log filter, such as `info` or `agentcfg_server=debug,warn`.
    log: String = "info".to_owned(),
        |v| v.text("a log filter such as info or agentcfg_server=debug,warn", log_filter);
    /// Format of log lines.
    log_format: LogFormat = LogFormat::Text, |v| v.choice(LOG_FORMATS);
    /// Whether each answer is a line of the log.
    access_log: bool = false, |v| v.boolean();
    /// Addresses and networks of the proxies in front, whose word counts for the address of a client in the log.
    trusted_proxies: Vec<Network> = Vec::new(), networks;
    /// Whether connections of these proxies to `listen` begin with a header of the PROXY protocol, version 1 or 2.
    proxy_protocol: bool = false, |v| v.boolean();
    /// Address of an OpenTelemetry collector that gets spans by OTLP over HTTP; `/v1/traces` is appended.
    otlp_endpoint: Option<Uri> = None, otlp::endpoint;
    /// Header fields for the collector, each `name=value` with the value percent-encoded, separated by commas.
    otlp_headers: Option<Secret> = None, otlp::headers, secret;
    /// How spans are sent: `http/protobuf`.
    otlp_protocol: Option<OtlpProtocol> = None, otlp::protocol;

    /// Connections served at a time.
    max_connections: usize = Limits::default().max_connections, |v| v.integer(1, 1_000_000);
    /// Streams of changes at a time.
    max_streams: usize = Streams::DEFAULT_MAX, |v| v.integer(0, 1_000_000);
    /// Time for a request head to arrive, in seconds.
    header_timeout: Duration = Limits::default().header_timeout, |v| v.seconds(1, DAY);
    /// Time for a request body to arrive, and for a stalled response to move on, in seconds.
    body_timeout: Duration = Limits::default().body_timeout, |v| v.seconds(1, DAY);
    /// Bytes a second that a request body must bring on average after its first 10 seconds; 0 is any rate.
    min_body_rate: u64 = Limits::default().min_body_rate, |v| v.integer(0, MANY);
    /// Request bodies that the server holds at a time, in MiB.
    max_body_mb_in_flight: usize = ByteBudget::SERVER_MB, |v| v.integer(10, 1_048_576);
    /// Request bodies that one caller may have in flight, in MiB.
    max_caller_body_mb: usize = ByteBudget::CALLER_MB, |v| v.integer(10, 1_048_576);
    /// Answers that the server holds until they are read, in MiB.
    max_answer_mb_in_flight: usize = ByteBudget::SERVER_ANSWERS_MB, |v| v.integer(10, 1_048_576);
    /// Answers that one caller may leave unread, in MiB.
    max_caller_answer_mb: usize = ByteBudget::CALLER_MB, |v| v.integer(10, 1_048_576);
    /// Time that a connection may stay open between requests, in seconds.
    idle_timeout: Duration = Limits::default().idle_timeout, |v| v.seconds(1, DAY);
    /// Time between the signal to end and the end of listening, in seconds, in which readiness fails and requests are answered.
    shutdown_delay: Duration = Duration::ZERO, |v| v.seconds(0, DAY);
    /// Time that requests in flight get to finish at shutdown, in seconds.
    shutdown_timeout: Duration = Limits::default().shutdown_timeout, |v| v.seconds(0, DAY);

    /// Memory of the caches, in MiB: an eighth for pages of the store, half of the rest each for records and lists.
    cache_mb: u64 = 192, |v| v.integer(1, 1_048_576);
}

/// The core's limit of a plan; 0 is unlimited.
fn plan_limit(plan: Plan) -> u64 {
    PlanLimits::default().of(plan).map_or(0, u64::from)
}

fn default_base_url(provider: Provider) -> String {
    Catalogue::default().base_url(provider).unwrap_or_default().to_owned()
}

/// Longest time a timeout may have: a day.
const DAY: u64 = 86_400;
const MANY: u64 = 1_000_000_000;

const SESSION_PROVIDERS: &[(&str, SessionProvider)] = &[
    ("local", SessionProvider::Local),
    ("jwks", SessionProvider::Jwks),
    ("introspection", SessionProvider::Introspection),
];

const MANAGED_MODELS: &[(&str, ManagedModels)] =
    &[("catalogue", ManagedModels::Catalogue), ("any", ManagedModels::Any)];

const LOG_FORMATS: &[(&str, LogFormat)] = &[("text", LogFormat::Text), ("json", LogFormat::Json)];

const STATEMENTS: &[(&str, Statements)] = &[("prepared", Statements::Prepared), ("unnamed", Statements::Unnamed)];
