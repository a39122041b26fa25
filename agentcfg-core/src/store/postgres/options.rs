//! How a store finds and uses its database.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::config::{SslMode, TargetSessionAttrs};

use super::error::ConnectError;

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Statements {
    /// Prepared once a connection: the fastest, for direct connections and poolers that keep sessions.
    #[default]
    Prepared,
    /// Parsed anew each time, for poolers that share a session between transactions, such as PgBouncer
    /// with `pool_mode = transaction`.
    Unnamed,
}

/// Where the database is and how the store uses it.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database?…`; several hosts are separated by commas. The
    /// session is always made with the one that takes writes.
    ///
    /// `sslmode` is `disable`, `prefer` (the default: encrypted where the server offers it, by
    /// whomever), `require`, `verify-ca` or `verify-full`; the last three are the same here and verify the
    /// certificate and its name. `sslrootcert` names a PEM file of authorities to trust in place of the public ones.
    pub url: String,
    /// The greatest number of connections.
    pub pool_size: usize,
    /// How statements are sent.
    pub statements: Statements,
    /// The schema with the store's tables: lower-case letters, digits and underscores.
    pub schema: String,
    /// How long to go on trying while the database does not answer at the start.
    pub wait: Duration,
    /// How long a call waits for a free connection.
    pub acquire_timeout: Duration,
    /// How long a read may take.
    pub read_timeout: Duration,
    /// How long the answer to a commit may take. After that its outcome is unknown.
    pub commit_timeout: Duration,
}

impl PostgresOptions {
    /// The defaults with this URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            pool_size: 16,
            statements: Statements::default(),
            schema: "agentcfg".to_owned(),
            wait: Duration::ZERO,
            acquire_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(5),
            commit_timeout: Duration::from_secs(20),
        }
    }
}

/// The URL holds a password and is left out.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("pool_size", &self.pool_size)
            .field("statements", &self.statements)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

/// What a URL says.
pub(super) struct Target {
    pub(super) config: tokio_postgres::Config,
    /// Whether the server has to prove who it is.
    pub(super) verify: bool,
    /// Authorities to trust in place of the public ones.
    pub(super) authorities: Option<PathBuf>,
}

/// Reads a URL.
pub(super) fn target(options: &PostgresOptions) -> Result<Target, ConnectError> {
    const CONNECT: Duration = Duration::from_secs(5);
    const SILENCE: Duration = Duration::from_secs(10);
    let valid = |schema: &str| {
        schema.starts_with(|c: char| c.is_ascii_lowercase())
            && schema.len() <= 40
            && schema
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    if !valid(&options.schema) {
        return Err(ConnectError::Options(format!(
            "{:?} cannot be the name of a schema",
            options.schema
        )));
    }
    let url = options.url.as_str();
    if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        return Err(ConnectError::Options("the URL must start with postgres://".into()));
    }
    // Of TLS the driver knows less than a URL can say.
    let (mut ssl, mut authorities, mut rest) = (None, None, Vec::new());
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", mode)) => ssl = Some(mode),
            Some(("sslrootcert", path)) => authorities = Some(PathBuf::from(decode(path)?)),
            _ => rest.push(pair),
        }
    }
    let mut config: tokio_postgres::Config = format!("{base}?{}", rest.join("&"))
        .parse()
        .map_err(|error| ConnectError::Options(describe(&error)))?;
    let (mode, verify) = match ssl {
        None | Some("prefer" | "allow") => (SslMode::Prefer, false),
        Some("disable") => (SslMode::Disable, false),
        Some("require" | "verify-ca" | "verify-full") => (SslMode::Require, true),
        Some(other) => return Err(ConnectError::Options(format!("sslmode {other:?} is unknown"))),
    };
    config.ssl_mode(mode);
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    if config.get_application_name().is_none() {
        config.application_name("agentcfg");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    if !rest.iter().any(|pair| pair.starts_with("keepalives")) {
        config.keepalives_idle(SILENCE);
        config.keepalives_interval(Duration::from_secs(3));
        config.keepalives_retries(3);
    }
    Ok(Target {
        config,
        verify,
        authorities,
    })
}

/// An error of the driver with its cause; neither holds the password.
pub(super) fn describe(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Undoes percent-encoding, as the driver does in the other parts of the URL.
fn decode(text: &str) -> Result<String, ConnectError> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded
        .map(Into::into)
        .map_err(|_| ConnectError::Options("the URL is not percent-encoded UTF-8".into()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<Target, ConnectError> {
        target(&PostgresOptions::new(url))
    }

    #[test]
    fn a_url_may_name_several_hosts_and_the_one_that_writes_is_meant() {
        let read = read("postgres://u:p@a:1,b:2/d?target_session_attrs=any").unwrap();
        assert_eq!(read.config.get_ports(), [1, 2]);
        assert_eq!(read.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn tls_is_as_the_url_says() {
        for (url, mode, verify) in [
            ("postgres://h/d", SslMode::Prefer, false),
            ("postgres://h/d?sslmode=disable", SslMode::Disable, false),
            ("postgres://h/d?sslmode=require", SslMode::Require, true),
            (
                "postgres://h/d?connect_timeout=3&sslmode=verify-full",
                SslMode::Require,
                true,
            ),
        ] {
            let read = read(url).unwrap();
            assert_eq!((read.config.get_ssl_mode(), read.verify), (mode, verify), "{url}");
        }
        let read = read("postgres://h/d?sslmode=verify-full&sslrootcert=/etc/my%20ca.pem").unwrap();
        assert_eq!(read.authorities, Some("/etc/my ca.pem".into()));
    }

    #[test]
    fn what_is_no_url_is_refused_without_showing_the_password() {
        for url in [
            "mysql://u:hunter2@h/d",
            "postgres://u:hunter2@h/d?sslmode=maybe",
            "postgres://u:hunter2@h:x/d",
            "postgres://u:hunter2@h/d?no_such_option=1",
        ] {
            let error = read(url).map(drop).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        let options = PostgresOptions::new("postgres://u:hunter2@h/d");
        assert!(!format!("{options:?}").contains("hunter2"));
    }
}
