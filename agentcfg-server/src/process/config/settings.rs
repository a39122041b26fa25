//! The one table of settings.

use agentcfg_core::model::Plan;
use agentcfg_core::store::{are_member_addresses, is_key_prefix};

use super::rules::{
    allowed_hosts, base_url, call_path, database_url, is_scope, is_text, is_visible, log_filter, master_keys, origin,
    provider_key, public_url, user_id,
};
use super::value::Value;
use super::{Config, LogFormat, Secret, SessionProvider, Statements, models};
use crate::identity::is_plain_url;

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
    /// What it does, in a line.
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
}

/// Longest time a timeout may have: a day.
const DAY: u64 = 86_400;

/// Every setting, in the order of the documentation.
pub const SETTINGS: &[Setting] = &[
    setting("listen", "address of the API; port 0 picks a free one", |c, v| {
        put(&mut c.listen, v.address())
    }),
    setting(
        "tls_cert",
        "PEM file of the certificate and those of its issuers; with it the server speaks TLS",
        |c, v| put(&mut c.tls_cert, v.path().map(Some)),
    ),
    setting("tls_key", "PEM file of the key of that certificate", |c, v| {
        put(&mut c.tls_key, v.path().map(Some))
    }),
    setting("data", "data directory", |c, v| {
        c.names_data = true;
        put(&mut c.data, v.path())
    }),
    secret(
        "database_url",
        "postgres:// URL of the database that holds the store, instead of the data directory",
        |c, v| {
            put(
                &mut c.database_url,
                v.text("a URL such as postgres://user:password@host/database", database_url)
                    .map(|s| Some(Secret::new(s))),
            )
        },
    ),
    setting("database_pool_size", "connections to the database at most", |c, v| {
        put(&mut c.database_pool_size, v.integer(1, 10_000))
    }),
    setting(
        "database_statements",
        "prepared, or unnamed for poolers that share sessions",
        |c, v| put(&mut c.database_statements, v.choice(STATEMENTS)),
    ),
    setting(
        "database_wait",
        "seconds that the start waits for the database",
        |c, v| put(&mut c.database_wait, v.seconds(0, DAY)),
    ),
    setting(
        "etcd_endpoints",
        "addresses of the etcd members that hold the store, instead of the data directory",
        |c, v| {
            put(
                &mut c.etcd_endpoints,
                v.text(
                    "addresses such as http://etcd-1:2379,http://etcd-2:2379",
                    are_member_addresses,
                )
                .map(Some),
            )
        },
    ),
    setting("etcd_user", "user of the etcd cluster", |c, v| {
        put(&mut c.etcd_user, v.text(TEXT, is_text).map(Some))
    }),
    secret("etcd_password", "password of that user", |c, v| {
        put(
            &mut c.etcd_password,
            v.text(TEXT, is_text).map(|s| Some(Secret::new(s))),
        )
    }),
    setting(
        "etcd_tls_ca",
        "PEM file of the authorities of the etcd members, instead of the public ones",
        |c, v| put(&mut c.etcd_tls_ca, v.path().map(Some)),
    ),
    setting(
        "etcd_tls_cert",
        "PEM file of the certificate that the etcd cluster asks for",
        |c, v| put(&mut c.etcd_tls_cert, v.path().map(Some)),
    ),
    setting("etcd_tls_key", "PEM file of the key of that certificate", |c, v| {
        put(&mut c.etcd_tls_key, v.path().map(Some))
    }),
    setting("etcd_prefix", "what the keys in the etcd cluster begin with", |c, v| {
        put(
            &mut c.etcd_prefix,
            v.text("1 to 40 letters, digits, dots, hyphens or underscores", is_key_prefix),
        )
    }),
    setting(
        "operators",
        "user ids that may change the plan of any workspace",
        |c, v| put(&mut c.operators, v.list("user ids of 1 to 200 characters", user_id)),
    ),
    setting("default_plan", "plan of a new workspace", |c, v| {
        put(&mut c.default_plan, v.choice(PLANS))
    }),
    setting(
        "plan_limit_free",
        "active agents on the free plan, 0 for unlimited",
        |c, v| put(&mut c.plan_limit_free, v.integer(0, MANY)),
    ),
    setting(
        "plan_limit_pro",
        "active agents on the pro plan, 0 for unlimited",
        |c, v| put(&mut c.plan_limit_pro, v.integer(0, MANY)),
    ),
    setting(
        "plan_limit_team",
        "active agents on the team plan, 0 for unlimited",
        |c, v| put(&mut c.plan_limit_team, v.integer(0, MANY)),
    ),
    setting(
        "plan_limit_enterprise",
        "active agents on the enterprise plan, 0 for unlimited",
        |c, v| put(&mut c.plan_limit_enterprise, v.integer(0, MANY)),
    ),
    setting("session_rate_limit", "requests a minute of one session user", |c, v| {
        put(&mut c.session_rate_limit, v.integer(1, 1_000_000))
    }),
    setting("status_ttl", "seconds that a status report counts", |c, v| {
        put(&mut c.status_ttl, v.seconds(1, DAY))
    }),
    setting(
        "write_scope_configures_agents",
        "whether keys of scope write may configure agents",
        |c, v| put(&mut c.write_scope_configures_agents, v.boolean()),
    ),
    setting("cors_origins", "origins that browsers may call from", |c, v| {
        put(
            &mut c.cors_origins,
            v.list("origins such as https://app.example.com", origin),
        )
    }),
    setting(
        "compression",
        "whether answers are compressed for clients that accept gzip",
        |c, v| put(&mut c.compression, v.boolean()),
    ),
    setting("dashboard", "whether the web dashboard is served", |c, v| {
        put(&mut c.dashboard, v.boolean())
    }),
    setting("public_url", "URL that browsers see, behind a proxy", |c, v| {
        put(&mut c.public_url, public_url(v).map(Some))
    }),
    secret(
        "session_secret",
        "HS256 secret of local sessions, instead of the file in the data directory",
        |c, v| {
            put(
                &mut c.session_secret,
                v.text("at least 32 bytes", |s| s.len() >= 32)
                    .map(|s| Some(Secret::new(s))),
            )
        },
    ),
    setting("models", "models on offer, a list of tables in the file", |c, v| {
        put(&mut c.models, models::read(v))
    }),
    setting("openai_base_url", "address of OpenAI's API", |c, v| {
        put(&mut c.openai_base_url, base_url(v))
    }),
    setting("anthropic_base_url", "address of Anthropic's API", |c, v| {
        put(&mut c.anthropic_base_url, base_url(v))
    }),
    setting(
        "managed_paths",
        "paths of model calls that managed credentials pay for",
        |c, v| put(&mut c.managed_paths, v.list("paths such as v1/responses", call_path)),
    ),
    secret("openai_api_key", "managed credential for OpenAI", |c, v| {
        put(&mut c.openai_api_key, provider_key(v))
    }),
    secret("anthropic_api_key", "managed credential for Anthropic", |c, v| {
        put(&mut c.anthropic_api_key, provider_key(v))
    }),
    secret(
        "master_keys",
        "master keys of the provider keys, the first one seals, instead of the file in the data directory",
        |c, v| put(&mut c.master_keys, master_keys(v)),
    ),
    setting(
        "model_call_first_byte_timeout",
        "seconds for a model provider to begin its answer",
        |c, v| put(&mut c.model_call_first_byte_timeout, v.seconds(1, DAY)),
    ),
    setting(
        "model_call_idle_timeout",
        "longest seconds between two pieces of a model provider's answer",
        |c, v| put(&mut c.model_call_idle_timeout, v.seconds(1, DAY)),
    ),
    setting(
        "webhook_allowed_hosts",
        "hosts that webhooks may be sent to by http, on another port than 443, or in a private network",
        |c, v| put(&mut c.webhook_allowed_hosts, allowed_hosts(v)),
    ),
    setting("session_provider", "where session tokens come from", |c, v| {
        put(&mut c.session_provider, v.choice(SESSION_PROVIDERS))
    }),
    setting("oidc_issuer", "iss of the identity provider's tokens", |c, v| {
        put(&mut c.oidc_issuer, v.text(TEXT, is_text).map(Some))
    }),
    setting("oidc_audience", "aud of tokens for this service", |c, v| {
        put(&mut c.oidc_audience, v.text(TEXT, is_text).map(Some))
    }),
    setting(
        "oidc_jwks_url",
        "URL of the identity provider's keys, instead of discovery",
        |c, v| put(&mut c.oidc_jwks_url, v.text(URL, is_plain_url).map(|s| s.parse().ok())),
    ),
    setting(
        "oidc_client_id",
        "client id of the dashboard at the identity provider",
        |c, v| put(&mut c.oidc_client_id, v.text(TEXT, is_text).map(Some)),
    ),
    secret(
        "oidc_client_secret",
        "secret of that client, where it has one",
        |c, v| {
            put(
                &mut c.oidc_client_secret,
                v.text(TEXT, is_text).map(|s| Some(Secret::new(s))),
            )
        },
    ),
    setting("oidc_scope", "scopes that the dashboard asks for", |c, v| {
        put(&mut c.oidc_scope, v.text(SCOPE, is_scope))
    }),
    setting(
        "oidc_resource",
        "resource that the dashboard asks a token for (RFC 8707)",
        |c, v| put(&mut c.oidc_resource, v.text(TEXT, is_text).map(Some)),
    ),
    setting(
        "introspection_url",
        "URL that is asked about each token (RFC 7662)",
        |c, v| {
            put(
                &mut c.introspection_url,
                v.text(URL, is_plain_url).map(|s| s.parse().ok()),
            )
        },
    ),
    setting(
        "introspection_client_id",
        "client that asks introspection_url",
        |c, v| put(&mut c.introspection_client_id, v.text(TEXT, is_text).map(Some)),
    ),
    secret("introspection_client_secret", "secret of that client", |c, v| {
        put(
            &mut c.introspection_client_secret,
            v.text(TEXT, is_text).map(|s| Some(Secret::new(s))),
        )
    }),
    setting(
        "userinfo_url",
        "URL of the user-info endpoint, asked with each token",
        |c, v| put(&mut c.userinfo_url, v.text(URL, is_plain_url).map(|s| s.parse().ok())),
    ),
    secret("userinfo_apikey", "header apikey for userinfo_url", |c, v| {
        put(
            &mut c.userinfo_apikey,
            v.text("visible ASCII characters", is_visible)
                .map(|s| Some(Secret::new(s))),
        )
    }),
    setting("metrics_listen", "address of GET /metrics, off when empty", |c, v| {
        put(&mut c.metrics_listen, v.optional_address())
    }),
    setting(
        "log",
        "log filter, such as info or agentcfg_server=debug,warn",
        |c, v| {
            put(
                &mut c.log,
                v.text("a log filter such as info or agentcfg_server=debug,warn", log_filter),
            )
        },
    ),
    setting("log_format", "format of log lines", |c, v| {
        put(&mut c.log_format, v.choice(LOG_FORMATS))
    }),
    setting("access_log", "whether each answer is a line of the log", |c, v| {
        put(&mut c.access_log, v.boolean())
    }),
    setting("max_connections", "connections served at a time", |c, v| {
        put(&mut c.max_connections, v.integer(1, 1_000_000))
    }),
    setting("max_streams", "streams of changes at a time", |c, v| {
        put(&mut c.max_streams, v.integer(0, 1_000_000))
    }),
    setting("header_timeout", "seconds for a request head to arrive", |c, v| {
        put(&mut c.header_timeout, v.seconds(1, DAY))
    }),
    setting(
        "body_timeout",
        "seconds for a request body to arrive or a stalled response to move on",
        |c, v| put(&mut c.body_timeout, v.seconds(1, DAY)),
    ),
    setting(
        "min_body_rate",
        "bytes a second that a request body must bring on average after its first 10 seconds, 0 for any",
        |c, v| put(&mut c.min_body_rate, v.integer(0, MANY)),
    ),
    setting(
        "max_body_mb_in_flight",
        "MiB of request bodies that the server holds at a time",
        |c, v| put(&mut c.max_body_mb_in_flight, v.integer(10, 1_048_576)),
    ),
    setting(
        "max_caller_body_mb",
        "MiB of request bodies that one caller may have in flight",
        |c, v| put(&mut c.max_caller_body_mb, v.integer(10, 1_048_576)),
    ),
    setting(
        "idle_timeout",
        "seconds that a connection may stay open between requests",
        |c, v| put(&mut c.idle_timeout, v.seconds(1, DAY)),
    ),
    setting(
        "shutdown_timeout",
        "seconds that requests in flight get to finish at shutdown",
        |c, v| put(&mut c.shutdown_timeout, v.seconds(0, DAY)),
    ),
    setting(
        "cache_mb",
        "memory of the caches in MiB: an eighth for pages of the store, half of the rest each for records and lists",
        |c, v| put(&mut c.cache_mb, v.integer(1, 1_048_576)),
    ),
];

const MANY: u64 = 1_000_000_000;

const PLANS: &[(&str, Plan)] = &[
    ("free", Plan::Free),
    ("pro", Plan::Pro),
    ("team", Plan::Team),
    ("enterprise", Plan::Enterprise),
];

const SESSION_PROVIDERS: &[(&str, SessionProvider)] = &[
    ("local", SessionProvider::Local),
    ("jwks", SessionProvider::Jwks),
    ("introspection", SessionProvider::Introspection),
];

const TEXT: &str = "text without control characters";
const SCOPE: &str = "words separated by spaces with openid among them";
const URL: &str = "an http or https URL without credentials and fragment";

const LOG_FORMATS: &[(&str, LogFormat)] = &[("text", LogFormat::Text), ("json", LogFormat::Json)];

const STATEMENTS: &[(&str, Statements)] = &[("prepared", Statements::Prepared), ("unnamed", Statements::Unnamed)];

type Set = fn(&mut Config, &Value<'_>) -> Result<(), String>;

const fn setting(name: &'static str, doc: &'static str, set: Set) -> Setting {
    Setting {
        name,
        doc,
        secret: false,
        set,
    }
}

const fn secret(name: &'static str, doc: &'static str, set: Set) -> Setting {
    Setting {
        name,
        doc,
        secret: true,
        set,
    }
}

fn put<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    *place = value?;
    Ok(())
}
