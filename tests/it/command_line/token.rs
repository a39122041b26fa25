//! `token`.

use std::ffi::OsStr;

use agentcfg_tests::harness::{Run, Server, run, scratch};

#[test]
fn a_group_is_no_user() {
    let dir = scratch();
    let data = dir.path().join("data");
    for command in ["token", "login-link"] {
        Run::new([command, "--user", "group:dev", "--data", data.to_str().unwrap()])
            .finish()
            .failed_with(&["--user must be a user"]);
    }
}

#[test]
fn standard_output_is_the_token_alone() {
    let server = Server::shared();
    let data = server.data().to_str().unwrap();
    let finished = run(["token", "--user", "alice", "--data", data]);
    assert_eq!(finished.stderr, "");
    let printed = finished.succeeded();
    assert_eq!(printed.lines().count(), 1);
    assert_eq!(printed.trim().split('.').count(), 3);
    server.get("/api/workspaces").bearer(printed.trim()).send().expect(200);
}

#[test]
fn token_works_before_the_first_serve_and_creates_the_directory() {
    let dir = scratch();
    let data = dir.path().join("deep/data");
    let token = Run::new(
        ["token", "--user", "early", "--data"]
            .map(OsStr::new)
            .into_iter()
            .chain([data.as_os_str()]),
    );
    let token = token.finish().succeeded();
    let server = Server::builder().data(&data).start();
    server.get("/api/workspaces").bearer(token.trim()).send().expect(200);
}

#[test]
fn the_key_of_a_directory_can_be_the_secret_of_another_server() {
    let dir = scratch();
    let data = dir.path().join("old");
    let directory = data.to_str().unwrap();
    let token = run(["token", "--user", "ada", "--data", directory]).succeeded();
    let moved = Server::builder()
        .set("session_secret_file", data.join("session.key"))
        .start();
    moved.get("/api/workspaces").bearer(token.trim()).send().expect(200);
}

#[test]
fn the_directory_comes_from_the_environment_or_the_default() {
    let dir = scratch();
    Run::new(["token", "--user", "u"])
        .env("AGENTCFG_DATA", dir.path().join("there"))
        .in_dir(&dir)
        .finish()
        .succeeded();
    assert!(dir.path().join("there/session.key").is_file());
    Run::new(["token", "--user", "u"]).in_dir(&dir).finish().succeeded();
    assert!(dir.path().join("agentcfg-data/session.key").is_file());
}

#[test]
fn the_lifetime_of_a_token_is_one_second_to_one_day() {
    let data = Server::shared().data().to_str().unwrap();
    for ttl in ["1", "86400"] {
        run(["token", "--user", "u", "--ttl", ttl, "--data", data]).succeeded();
    }
    for ttl in ["0", "86401", "-1", "1h", "", "1.5"] {
        run(["token", "--user", "u", &format!("--ttl={ttl}"), "--data", data]).failed_with(&["--ttl"]);
    }
}

#[test]
fn a_user_id_has_one_to_two_hundred_printable_characters() {
    let data = Server::shared().data().to_str().unwrap();
    for user in ["u", &"🦀".repeat(200), "a b", "ada@example.com"] {
        run(["token", "--user", user, "--data", data]).succeeded();
    }
    for user in [&"x".repeat(201), "a\nb", "\u{7f}"] {
        run(["token", "--user", user, "--data", data]).failed_with(&["user"]);
    }
}

#[test]
fn a_token_before_the_first_start_is_valid_after_it() {
    let dir = scratch();
    let data = dir.path().join("data");
    let token = run(["token", "--user", "ada", "--data", data.to_str().unwrap()]).succeeded();
    let server = Server::builder().data(&data).start();
    server.get("/api/workspaces").bearer(token.trim()).send().expect(200);
}

#[test]
fn a_token_beside_a_server_with_an_identity_provider_is_refused_with_the_reason() {
    let server = Server::builder()
        .set("session_provider", "introspection")
        .set("introspection_url", "http://127.0.0.1:9/user")
        .set("introspection_client_id", "agentcfg")
        .set("introspection_client_secret", "a secret")
        .start();
    let data = server.data().to_str().unwrap();
    let said = run(["token", "--user", "ada", "--data", data]).failed_with(&["identity provider"]);
    assert!(!said.contains("session_secret"), "{said}");
}
