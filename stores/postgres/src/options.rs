//! The options of a store, and the parser of its URL.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::error::{ConnectError, describe};

/// Whether statements are prepared.
///
/// ```
/// use agentcfg_postgres::{PostgresOptions, Statements};
/// let behind_pgbouncer =
///     PostgresOptions::new("postgres://agentcfg@pooler:6432/agentcfg").statements(Statements::Unnamed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Statements {
    /// Prepared once for each connection: the fastest, for direct connections and session poolers.
    #[default]
    Prepared,
    /// Parsed at each use, for transaction poolers such as PgBouncer with `pool_mode = transaction`.
    Unnamed,
}

agentcfg_core::__settable! {
    /// The address of the database, and limits of its use.
    ///
    /// ```
    /// use agentcfg_postgres::PostgresOptions;
    /// let options = PostgresOptions::new("postgres://agentcfg:secret@db/agentcfg").pool_size(32);
    /// assert!(!format!("{options:?}").contains("secret"));
    /// ```
    #[derive(Clone, PartialEq, Eq)]
    PostgresOptions {
        /// `postgres://user:password@host:port/database?…`; several hosts are separated by commas. The
        /// store always connects to the host that accepts writes.
        ///
        /// `sslmode` is `disable`, `prefer` (the default: encrypted if the server offers it, with any
        /// certificate), `require`, `verify-ca` or `verify-full`; the last three are the same here and verify
        /// the certificate and its name. With one of them, `sslrootcert` names a PEM file of authorities to trust
        /// instead of the public ones. `sslcert` and `sslkey` name PEM files of the certificate and the key that prove
        /// who this client is.
        url: String,
        /// The maximum number of connections. Fewer than four give no [hold](agentcfg_core::store::Store::hold): a
        /// decision that loses its races is repeated instead.
        pool_size: usize,
        /// Whether statements are prepared.
        statements: Statements,
        /// The schema with the store's tables: lower-case letters, digits and underscores.
        schema: String,
        /// How long the first connection is retried while the database does not answer.
        connect_wait: Duration,
        /// The time limit of the wait for a connection.
        acquire_timeout: Duration,
        /// The time limit of a read.
        read_timeout: Duration,
        /// The time limit of a commit. After it, the outcome is unknown.
        commit_timeout: Duration,
    }
}

/// A request to a database that does not answer is to fail within two seconds, with the short waits of its further
/// operations (see [`health`](super::health)).
const PATIENCE: Duration = Duration::from_millis(1600);

/// The time limit of a TCP connection to one host, if the URL names none.
pub(super) const CONNECT: Duration = Duration::from_secs(5);

impl PostgresOptions {
    /// The default options for this URL.
    ///
    /// ```
    /// use agentcfg_postgres::PostgresOptions;
    /// let options = PostgresOptions::new("postgres://agentcfg:secret@db/agentcfg");
    /// assert_eq!((options.pool_size, options.schema.as_str()), (16, "agentcfg"));
    /// ```
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            pool_size: 16,
            statements: Statements::default(),
            schema: "agentcfg".to_owned(),
            connect_wait: Duration::ZERO,
            acquire_timeout: PATIENCE,
            read_timeout: PATIENCE,
            commit_timeout: Duration::from_secs(20),
        }
    }
}

/// Omits the URL, because it contains a password.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("pool_size", &self.pool_size)
            .field("statements", &self.statements)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

/// The content of a URL.
pub(super) struct Target {
    pub(super) config: tokio_postgres::Config,
    /// Whether the server's certificate is verified.
    pub(super) verify: bool,
    /// Certificate authorities to trust instead of the public ones.
    pub(super) authorities: Option<PathBuf>,
    /// The certificate of this client and its key.
    pub(super) identity: Option<(PathBuf, PathBuf)>,
    /// What may be wrong with the URL, for the error of a host that cannot be reached.
    pub(super) doubt: Option<&'static str>,
}

/// The hint at a password that breaks the URL.
const ENCODE: &str = "the URL has more than one @; in its user and password, special characters must be percent-encoded: \
                      %40 for @, %2F for /, %3A for :, %3F for ?, %25 for %";

/// The hosts and the database of a connection, for the log: neither the user nor the password.
pub(super) fn place(config: &tokio_postgres::Config) -> String {
    let ports = config.get_ports();
    let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
    let hosts = config.get_hosts().iter().enumerate().map(|(index, host)| match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", port(index)),
        Host::Tcp(name) => format!("{name}:{}", port(index)),
        #[cfg(unix)]
        Host::Unix(path) => format!("{}:{}", path.display(), port(index)),
    });
    let hosts: Vec<_> = hosts.collect();
    // The default is the database that has the name of the user.
    format!("{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
}

/// Parses the URL and validates the schema's name.
pub(super) fn target(options: &PostgresOptions) -> Result<Target, ConnectError> {
    const TCP_TIMEOUT: Duration = Duration::from_secs(10);
    let valid = |schema: &str| {
        schema.starts_with(|c: char| c.is_ascii_lowercase())
            && schema.len() <= 40
            && schema
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    if !valid(&options.schema) {
        return Err(ConnectError::Options(format!(
            "the schema name {:?} must be 1 to 40 lower-case letters, digits or underscores and begin with a letter",
            options.schema
        )));
    }
    let url = options.url.as_str();
    if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        return Err(ConnectError::Options("the URL must start with postgres://".into()));
    }
    // The driver does not support every TLS parameter of a URL, so they are parsed here.
    let (mut ssl, mut authorities, mut rest) = (None, None, Vec::new());
    let (mut certificate, mut key) = (None, None);
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", mode)) => ssl = Some(mode),
            Some(("sslrootcert", path)) => authorities = Some(PathBuf::from(decode(path)?)),
            Some(("sslcert", path)) => certificate = Some(PathBuf::from(decode(path)?)),
            Some(("sslkey", path)) => key = Some(PathBuf::from(decode(path)?)),
            _ => rest.push(pair),
        }
    }
    // The driver takes the first @ for the end of the password.
    let doubt = (base.matches('@').count() > 1).then_some(ENCODE);
    let mut config: tokio_postgres::Config = format!("{base}?{}", rest.join("&"))
        .parse()
        .map_err(|error| ConnectError::Options(doubt.map_or_else(|| describe(&error), str::to_owned)))?;
    let is_broken = |host: &Host| matches!(host, Host::Tcp(name) if name.contains('@'));
    if config.get_hosts().iter().any(is_broken) {
        return Err(ConnectError::Options(ENCODE.to_owned()));
    }
    let (mode, verify) = match ssl {
        None | Some("prefer" | "allow") => (SslMode::Prefer, false),
        Some("disable") => (SslMode::Disable, false),
        Some("require" | "verify-ca" | "verify-full") => (SslMode::Require, true),
        Some(other) => return Err(ConnectError::Options(format!("sslmode {other:?} is unknown"))),
    };
    if authorities.is_some() && !verify {
        let rule = "sslrootcert needs sslmode=verify-full: without it any certificate is accepted";
        return Err(ConnectError::Options(rule.to_owned()));
    }
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => {
            let rule = "sslcert and sslkey belong together: set both or none";
            return Err(ConnectError::Options(rule.to_owned()));
        }
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
        config.tcp_user_timeout(TCP_TIMEOUT);
    }
    if !rest.iter().any(|pair| pair.starts_with("keepalives")) {
        config.keepalives_idle(TCP_TIMEOUT);
        config.keepalives_interval(Duration::from_secs(3));
        config.keepalives_retries(3);
    }
    Ok(Target {
        config,
        verify,
        authorities,
        identity,
        doubt,
    })
}

/// Undoes percent-encoding, as the driver does in the other parts of the URL.
fn decode(text: &str) -> Result<String, ConnectError> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded
        .map(Into::into)
        .map_err(|_| ConnectError::Options("the URL is not percent-encoded UTF-8".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<Target, ConnectError> {
        target(&PostgresOptions::new(url))
    }

    #[test]
    fn a_url_may_name_several_hosts_and_only_a_writable_one_is_used() {
        let read = read("postgres://u:p@a:1,b:2/d?target_session_attrs=any").unwrap();
        assert_eq!(read.config.get_ports(), [1, 2]);
        assert_eq!(read.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn the_url_sets_the_tls_mode_and_the_authorities() {
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
        assert_eq!((read.authorities, read.identity), (Some("/etc/my ca.pem".into()), None));
    }

    #[test]
    fn authorities_without_verification_are_refused() {
        for mode in ["", "sslmode=prefer&", "sslmode=disable&"] {
            let error = read(&format!("postgres://h/d?{mode}sslrootcert=/etc/ca.pem")).map(drop);
            let error = error.unwrap_err().to_string();
            assert!(
                error.contains("sslrootcert needs sslmode=verify-full"),
                "{mode}: {error}"
            );
        }
    }

    #[test]
    fn the_url_names_the_certificate_of_the_client_with_its_key() {
        let read_url = read("postgres://h/d?sslcert=/etc/client.crt&sslkey=/etc/my%20key").unwrap();
        let files = ("/etc/client.crt".into(), "/etc/my key".into());
        assert_eq!(read_url.identity, Some(files));
        for half in ["sslcert=/etc/client.crt", "sslkey=/etc/client.key"] {
            let error = read(&format!("postgres://h/d?{half}"))
                .map(drop)
                .unwrap_err()
                .to_string();
            assert!(error.contains("sslcert and sslkey belong together"), "{error}");
        }
    }

    #[test]
    fn a_password_that_breaks_the_url_is_recognised() {
        for url in ["postgres://u:hun@ter2@h/d", "postgres://u:a@b:hunter2@h:1/d"] {
            let error = read(url).map(drop).unwrap_err().to_string();
            assert!(error.contains("%40 for @") && !error.contains("ter2"), "{url}: {error}");
        }
        // Only the attempt to connect shows that this is no host and no database.
        assert!(read("postgres://u:p@a/ss@h/d").unwrap().doubt.is_some());
        for url in [
            "postgres://u:p/a:ss@h/d",
            "postgres://u:p%40ss@h/d",
            "postgres://h/d?application_name=a@b",
        ] {
            assert_eq!(read(url).unwrap().doubt, None, "{url}");
        }
    }

    #[test]
    fn the_place_names_hosts_and_database_alone() {
        for (url, expected) in [
            ("postgres://u:hunter2@a,b:2/d", "a:5432,b:2/d"),
            (
                "postgres://u:hunter2@[2001:db8::1]:7/d?sslmode=disable",
                "[2001:db8::1]:7/d",
            ),
            ("postgres://u@%2Frun%2Fpg/d", "/run/pg:5432/d"),
            ("postgres://u:hunter2@h", "h:5432/"),
        ] {
            assert_eq!(place(&read(url).unwrap().config), expected);
        }
    }

    #[test]
    fn errors_and_debug_output_do_not_contain_the_password() {
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
