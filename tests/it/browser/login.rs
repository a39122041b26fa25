//! Login links: one-time codes that open a session.

use std::thread;

use agentcfg_tests::harness::{Run, Server, database_settings, scratch};
use serde_json::json;

use super::{code, cookie};

/// A link of the command `login-link`.
fn link(server: &Server, user: &str) -> String {
    let data = server.data().to_str().unwrap();
    let mut run = Run::new(["login-link", "--user", user, "--data", data]).in_dir(server.data());
    // A server on a database has no control socket.
    if let Ok(url) = std::fs::read_to_string(server.data().join("database-url")) {
        for (name, value) in database_settings(&url) {
            run = run.env(name, value);
        }
    }
    run.finish().succeeded().trim().to_owned()
}

#[test]
fn a_link_signs_in_once() {
    let server = Server::shared();
    let link = link(server, "ada lovelace");
    let code = code(&link);
    let (secret, user) = code.split_once('-').unwrap();
    assert!(
        secret.len() >= 22 && secret.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        "{code}"
    );
    assert_eq!(
        user, "YWRhIGxvdmVsYWNl",
        "a page can name the user before it redeems the code"
    );
    let redeem = server.post("/api/sessions").json(&json!({"code": code}));
    let redeem = redeem.header("Sec-Fetch-Site", "same-origin");
    let cookie = cookie(&redeem.send().expect(204));
    // Another name does not get another user in.
    let forged = json!({"code": code.replace("YWRh", "YWRi")});
    server.post("/api/sessions").json(&forged).send().expect(401);
    let me = server
        .get("/api/whoami")
        .header("Cookie", cookie)
        .send()
        .expect(200)
        .json();
    assert_eq!(me["id"], "ada lovelace");
    redeem.send().expect(401);
}

#[test]
fn of_many_requests_with_a_code_one_succeeds() {
    let server = Server::shared();
    let link = link(server, "race");
    let redeem = server.post("/api/sessions").json(&json!({"code": code(&link)}));
    let attempts: Vec<_> = (0..8)
        .map(|_| {
            let redeem = redeem.clone();
            thread::spawn(move || redeem.send().status)
        })
        .collect();
    let mut statuses: Vec<_> = attempts.into_iter().map(|attempt| attempt.join().unwrap()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [[204].as_slice(), &[401; 7]].concat());
}

#[test]
fn a_page_of_another_origin_signs_nobody_in() {
    let server = Server::shared();
    let link = link(server, "ada");
    let redeem = server.post("/api/sessions").json(&json!({"code": code(&link)}));
    for (name, value) in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        redeem.clone().header(name, value).send().expect(403);
    }
    redeem.header("Origin", server.url()).send().expect(204);
}

#[test]
fn bodies_are_checked() {
    let server = Server::shared();
    for (body, fault) in [
        ("{}", "code is required"),
        (r#"{"code": 7}"#, "code must be a string"),
        (r#"{"code": "x", "user": "ada"}"#, "user is not a known field"),
        (r#"{"code": "x", "code": "y"}"#, "code must not appear more than once"),
        ("[]", "body must be a JSON object"),
    ] {
        let refused = server.post("/api/sessions").text(body).send().expect(400);
        assert!(refused.error().contains(fault), "{refused:?}");
    }
    server
        .post("/api/sessions")
        .bytes(r#"{"code": "x"}"#)
        .send()
        .expect(415);
    for code in ["x", &"x".repeat(24), &"x".repeat(100), "é"] {
        server
            .post("/api/sessions")
            .json(&json!({"code": code}))
            .send()
            .expect(401);
    }
}

#[test]
fn a_link_can_be_made_before_the_server_starts() {
    let dir = scratch();
    let data = dir.path().join("data");
    Server::builder().data(&data).start().stop();
    let line = ["login-link", "--user", "ada", "--data", data.to_str().unwrap()];
    let made = Run::new(line).in_dir(dir.path()).finish().succeeded();
    let server = Server::builder().data(&data).start();
    server
        .post("/api/sessions")
        .json(&json!({"code": code(&made)}))
        .send()
        .expect(204);
}

#[test]
fn dev_prints_a_link() {
    let dir = scratch();
    let server = Server::builder().dev_in(dir.path()).start();
    let stdout = server.stdout();
    let line = stdout
        .lines()
        .find(|line| line.contains("/#login="))
        .unwrap_or_else(|| panic!("{stdout}"));
    let link = line.split_whitespace().last().unwrap();
    assert!(link.starts_with(&server.url()), "{link}");
    server
        .post("/api/sessions")
        .json(&json!({"code": code(link)}))
        .send()
        .expect(204);
}

#[test]
fn links_are_for_the_local_identity_provider() {
    let dir = scratch();
    let run = Run::new(["login-link", "--user", "ada"])
        .in_dir(dir.path())
        .env("AGENTCFG_SESSION_PROVIDER", "introspection");
    run.finish().failed_with(&["session_provider is introspection"]);
}
