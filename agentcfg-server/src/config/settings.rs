//! The one table of settings.

use agentcfg_core::model::Plan;
use agentcfg_core::store::postgres::Statements;

use super::value::Value;
use super::{Config, LogFormat, Secret};

/// One setting: its name in all layers, its meaning and its rule.
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
    setting("data", "data directory", |c, v| put(&mut c.data, v.path())),
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
    setting("log_format", "shape of log lines", |c, v| {
        put(&mut c.log_format, v.choice(LOG_FORMATS))
    }),
    setting("max_connections", "connections served at a time", |c, v| {
        put(&mut c.max_connections, v.integer(1, 1_000_000))
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
        "idle_timeout",
        "seconds that a connection may stay open between requests",
        |c, v| put(&mut c.idle_timeout, v.seconds(1, DAY)),
    ),
    setting(
        "shutdown_timeout",
        "seconds that requests in flight get to finish at shutdown",
        |c, v| put(&mut c.shutdown_timeout, v.seconds(0, DAY)),
    ),
    setting("cache_mb", "cache of the store in MiB", |c, v| {
        put(&mut c.cache_mb, v.integer(1, 1_048_576))
    }),
];

const MANY: u64 = 1_000_000_000;

const PLANS: &[(&str, Plan)] = &[
    ("free", Plan::Free),
    ("pro", Plan::Pro),
    ("team", Plan::Team),
    ("enterprise", Plan::Enterprise),
];

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

fn user_id(text: &str) -> bool {
    (1..=200).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

fn database_url(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

fn log_filter(text: &str) -> bool {
    !text.is_empty() && tracing_subscriber::EnvFilter::try_new(text).is_ok()
}

/// What a browser puts into `Origin`: scheme, host, perhaps a port, and nothing after that.
fn origin(text: &str) -> bool {
    let Some(host) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    !host.is_empty()
        && host
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._:[]".contains(&b))
}
