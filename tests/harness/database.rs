//! Servers on a database instead of a data directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// The session secret of servers on a database, valid both as text and as the file of a data directory.
pub(super) const SESSION_SECRET: &str = "32 bytes of text for end-to-end.";

/// The file in a server's directory that stores the URL of its database.
pub(super) const DATABASE_URL: &str = "database-url";

/// The settings of a server on a database: of a URL, or of a cluster as its addresses, `#`, the prefix of the keys,
/// and, after a `?`, further settings as in `user=NAME&password=TEXT`.
pub fn database_settings(database: &str) -> Vec<(&'static str, String)> {
    let Some((endpoints, place)) = database.split_once('#') else {
        return vec![("AGENTCFG_DATABASE_URL", database.to_owned())];
    };
    let (prefix, options) = place.split_once('?').unwrap_or((place, ""));
    let mut settings = vec![
        ("AGENTCFG_ETCD_ENDPOINTS", endpoints.to_owned()),
        ("AGENTCFG_ETCD_PREFIX", prefix.to_owned()),
    ];
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').expect("NAME=VALUE");
        let variable = match name {
            "user" => "AGENTCFG_ETCD_USER",
            "password" => "AGENTCFG_ETCD_PASSWORD",
            "tls_ca" => "AGENTCFG_ETCD_TLS_CA",
            "tls_cert" => "AGENTCFG_ETCD_TLS_CERT",
            "tls_key" => "AGENTCFG_ETCD_TLS_KEY",
            other => panic!("{other} is no setting of etcd"),
        };
        settings.push((variable, value.to_owned()));
    }
    settings
}

/// Creates a database for one server if `AGENTCFG_TEST_DATABASE` names a PostgreSQL server, as the
/// directory of its socket and its port, or an etcd cluster, as its addresses.
pub(super) fn new_database(data: &Path) -> Option<String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let place = std::env::var("AGENTCFG_TEST_DATABASE").ok()?;
    let name = format!("it_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let url = match place.split_once('?') {
        Some((endpoints, options)) if endpoints.starts_with("http") => format!("{endpoints}#{name}?{options}"),
        _ if place.starts_with("http") => format!("{place}#{name}"),
        _ => create_database(&place, &name),
    };
    use_database(data, &url);
    Some(url)
}

/// Makes a data directory, and all servers that are started with it use this database.
pub fn use_database(data: &Path, url: &str) {
    fs::create_dir(data).expect("a data directory");
    fs::write(data.join(DATABASE_URL), url).expect("a file for the URL");
    place_session_key(data);
}

fn create_database(place: &str, name: &str) -> String {
    let (socket, port) = place.split_once(':').expect("DIRECTORY:PORT");
    let made = std::process::Command::new("psql")
        .args(["-X", "-q", "-U", "postgres", "-h", socket, "-p", port, "-c"])
        .arg(format!("CREATE DATABASE {name}"))
        .status();
    assert!(made.expect("psql runs").success());
    format!("postgres://postgres@{}:{port}/{name}", socket.replace('/', "%2F"))
}

/// Writes the file that the command `token` reads.
fn place_session_key(data: &Path) {
    let file = data.join("session.key");
    fs::write(&file, SESSION_SECRET).expect("a file for the secret");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("the file is ours");
    fs::set_permissions(data, fs::Permissions::from_mode(0o700)).expect("the directory is ours");
}
