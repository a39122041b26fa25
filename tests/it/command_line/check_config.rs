//! `check-config`: everything that would refuse a start, without one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use agentcfg_tests::harness::{Run, Server, free_address, scratch};

/// The files below a folder with their contents, modes and times.
fn state(folder: &Path) -> Vec<(String, Vec<u8>, u32, std::time::SystemTime)> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            let content = if about.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            let name = path.display().to_string();
            (name, content, about.permissions().mode(), about.modified().unwrap())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn good_settings_are_said_to_be_good_and_nothing_is_made() {
    let dir = scratch();
    let run = Run::new(["check-config", "--listen", "127.0.0.1:0"]).in_dir(&dir);
    let said = run.finish().succeeded();
    assert!(said.contains("the settings are good: http://127.0.0.1:0"), "{said}");
    assert!(!dir.path().join("agentcfg-data").exists());
}

#[test]
fn it_runs_beside_the_server_and_changes_nothing() {
    let (dir, metrics) = (scratch(), free_address());
    let server = Server::builder()
        .data(dir.path().join("data"))
        .set("metrics_listen", metrics.to_string())
        .start();
    let before = state(server.data());
    let address = server.address().to_string();
    Run::new(["check-config", "--listen", &address])
        .env("AGENTCFG_DATA", server.data())
        .env("AGENTCFG_METRICS_LISTEN", metrics.to_string())
        .finish()
        .succeeded();
    assert_eq!(state(server.data()), before);
    server.get("/readyz").send().expect(200);
}

#[test]
fn faults_that_only_a_start_would_find_come_together() {
    let dir = scratch();
    let place = |name: &str| dir.path().join(name);
    fs::write(place("authorities.pem"), "none").unwrap();
    fs::write(place("cert.pem"), "none").unwrap();
    fs::write(place("key.pem"), "none").unwrap();
    fs::create_dir(place("data")).unwrap();
    fs::write(place("data/session.key"), "short").unwrap();
    fs::set_permissions(place("data/session.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let before = state(&place("data"));
    Run::new(["check-config", "--listen", "192.0.2.1:7420"])
        .in_dir(&dir)
        .env("AGENTCFG_DATA", "data")
        .env("AGENTCFG_TLS_CERT", "cert.pem")
        .env("AGENTCFG_TLS_KEY", "key.pem")
        .env("AGENTCFG_OUTBOUND_CA_FILE", "authorities.pem")
        .finish()
        .failed_with(&[
            "tls_cert: cert.pem",
            "outbound_ca_file authorities.pem",
            "session.key is open to other users",
            "cannot listen on 192.0.2.1:7420",
        ]);
    assert_eq!(state(&place("data")), before);
}

#[test]
fn faults_of_a_database_are_found_without_it() {
    let dir = scratch();
    let with = |url: &str| {
        let run = Run::new(["check-config", "--listen", "127.0.0.1:0"]);
        run.in_dir(&dir).env("AGENTCFG_DATABASE_URL", url)
    };
    let said = with("postgres://u:hunter2@127.0.0.1:9/x?sslmode=sometimes")
        .finish()
        .failed_with(&["sslmode", "database_url", "session_secret is required"]);
    assert!(!said.contains("hunter2"), "{said}");
    let secret = "a secret of more than thirty-two bytes";
    let said = with("postgres://u:hunter2@127.0.0.1:9/x")
        .env("AGENTCFG_SESSION_SECRET", secret)
        .finish()
        .succeeded();
    assert!(said.contains("in PostgreSQL, which was not asked"), "{said}");
    with("postgres://u@127.0.0.1:9/x?sslmode=verify-full&sslrootcert=/nowhere.pem")
        .env("AGENTCFG_SESSION_SECRET", secret)
        .finish()
        .failed_with(&["sslrootcert /nowhere.pem"]);
}

#[test]
fn two_addresses_that_exclude_each_other_are_a_fault() {
    let dir = scratch();
    for command in ["check-config", "serve"] {
        Run::new([command, "--listen", "0.0.0.0:7420"])
            .in_dir(&dir)
            .env("AGENTCFG_METRICS_LISTEN", "127.0.0.1:7420")
            .finish()
            .failed_with(&["listen (0.0.0.0:7420)", "metrics_listen (127.0.0.1:7420)"]);
    }
}

#[test]
fn a_token_for_a_server_with_a_secret_of_its_own_needs_that_secret() {
    let secret = "a secret of more than thirty-two bytes";
    let dir = scratch();
    let server = Server::builder()
        .data(dir.path().join("data"))
        .set("session_secret", secret)
        .start();
    let said = server.stderr();
    assert!(
        said.contains("token --user YOUR_ID with the same session_secret"),
        "{said}"
    );
    let token = || Run::new(["token", "--user", "ada"]).env("AGENTCFG_DATA", server.data());
    token()
        .finish()
        .failed_with(&["session_secret", "would refuse a token"]);
    assert!(!server.data().join("session.key").exists());
    let printed = token().env("AGENTCFG_SESSION_SECRET", secret).finish().succeeded();
    server.get("/api/workspaces").bearer(printed.trim()).send().expect(200);
}

#[test]
fn a_data_directory_that_a_start_refuses_is_a_fault() {
    let dir = scratch();
    let data = dir.path().join("data");
    let check = || {
        let run = Run::new(["check-config", "--listen", "127.0.0.1:0"]);
        run.env("AGENTCFG_DATA", &data).finish()
    };
    let start = || {
        let run = Run::new(["serve", "--listen", "127.0.0.1:0"]);
        run.env("AGENTCFG_DATA", &data).finish()
    };
    let server = Server::builder().data(&data).start();
    let key = fs::read(data.join("master.key")).unwrap();
    fs::remove_file(data.join("master.key")).unwrap();
    // Beside the running server too.
    check().failed_with(&["master.key is missing"]);
    server.stop();
    start().failed_with(&["needs the master key"]);
    let before = state(&data);
    check().failed_with(&["needs the master key"]);
    assert_eq!(state(&data), before);
    fs::write(data.join("master.key"), key).unwrap();
    fs::set_permissions(data.join("master.key"), fs::Permissions::from_mode(0o600)).unwrap();
    check().succeeded();
    for content in [&b""[..], &[7; 250]] {
        fs::write(data.join("store.redb"), content).unwrap();
        start().failed_with(&["cannot open the store"]);
        check().failed_with(&["cannot open the store"]);
    }
    fs::remove_file(data.join("store.redb")).unwrap();
    fs::create_dir(data.join("store.redb")).unwrap();
    start().failed_with(&["cannot open the store"]);
    check().failed_with(&["cannot open the store"]);
}
