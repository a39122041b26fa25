//! Cookies in place of session tokens.

use std::time::{Duration, Instant};

use agentcfg_tests::harness::{Server, Studio};
use serde_json::json;

use super::{cookie, sign_in};

const SAME_ORIGIN: (&str, &str) = ("Sec-Fetch-Site", "same-origin");

#[test]
fn a_cookie_stands_for_the_session_token() {
    let studio = Studio::open();
    let server = studio.server;
    let set = server.post("/api/sessions").bearer(&studio.owner).send().expect(204);
    let field = set.header("set-cookie").unwrap();
    let port = server.address().port();
    assert!(field.starts_with(&format!("agentcfg-session-{port}=")), "{field}");
    for attribute in ["; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age=86400"] {
        assert!(field.contains(attribute), "{field}");
    }
    assert!(!field.contains("Secure") && !field.contains("Domain"), "{field}");
    let cookie = cookie(&set);

    let list = format!("/api/agents/configs?workspace_id={}", studio.id);
    let read = server.get(&list).header("Cookie", &cookie).send().expect(200);
    assert_eq!(read.need("cache-control"), "private, no-cache");
    assert_eq!(read.number("x-ratelimit-limit"), 600);
    let new = json!({"workspace_id": studio.id, "agent_id": "writer", "display_name": "Writer"});
    let create = server.post("/api/agents/configs").header("Cookie", &cookie).json(&new);
    create.clone().header(SAME_ORIGIN.0, SAME_ORIGIN.1).send().expect(201);
    let entry = &studio.audit()[0];
    assert_eq!(entry["actor"], json!({"type": "user", "id": studio.user}));
}

#[test]
fn changes_by_cookie_need_a_page_of_the_server() {
    let studio = Studio::open();
    let server = studio.server;
    let cookie = sign_in(server, &studio.owner);
    let own = server.url();
    let before = studio.audit();
    for fields in [
        vec![],
        vec![("Sec-Fetch-Site", "cross-site")],
        vec![("Sec-Fetch-Site", "same-site")],
        vec![("Sec-Fetch-Site", "none")],
        vec![("Sec-Fetch-Site", "cross-site"), ("Origin", &*own)],
        vec![("Origin", "https://evil.example")],
        vec![("Origin", "null")],
        vec![("Origin", "http://127.0.0.1")],
    ] {
        for (method, target) in [
            ("POST", "/api/workspaces".to_owned()),
            ("PATCH", format!("/api/workspaces?workspace_id={}", studio.id)),
            ("DELETE", "/api/sessions".to_owned()),
        ] {
            let mut request = server.request(method, target).header("Cookie", &cookie);
            for (name, value) in &fields {
                request = request.header(name, *value);
            }
            let refused = request.json(&json!({"name": "X"})).send().expect(403);
            assert!(
                refused.header("x-ratelimit-limit").is_some(),
                "it was counted: {refused:?}"
            );
        }
    }
    assert_eq!(studio.audit(), before);
    // Reading needs no such field, and an old browser sends its origin alone.
    server.get("/api/whoami").header("Cookie", &cookie).send().expect(200);
    let rename = server.patch(format!("/api/workspaces?workspace_id={}", studio.id));
    let rename = rename.header("Cookie", &cookie).header("Origin", &*own);
    rename.json(&json!({"name": "Y"})).send().expect(200);
}

#[test]
fn with_a_bearer_the_cookie_is_ignored() {
    let studio = Studio::open();
    let server = studio.server;
    let cookie = sign_in(server, &studio.owner);
    let key = studio.key("read");
    let me = server.get("/api/whoami").bearer(&key.key).header("Cookie", &cookie);
    assert_eq!(me.send().expect(200).json()["type"], "api_key");
    server
        .get("/api/whoami")
        .bearer("bad")
        .header("Cookie", &cookie)
        .send()
        .expect(401);
    // A request with a bearer needs no origin.
    let create = server
        .post("/api/workspaces")
        .bearer(&studio.owner)
        .header("Cookie", "x=y");
    create.json(&json!({"name": "X"})).send().expect(201);
}

#[test]
fn signing_out_ends_the_session_at_once() {
    let studio = Studio::open();
    let server = studio.server;
    let (cookie, other) = (sign_in(server, &studio.owner), sign_in(server, &studio.owner));
    let changes = server.get(format!("/api/changes?workspace_id={}&after=now", studio.id));
    let mut events = changes.header("Cookie", &cookie).follow();
    let begun = Instant::now();
    let out = server.delete("/api/sessions").header("Cookie", &cookie);
    let out = out.header(SAME_ORIGIN.0, SAME_ORIGIN.1);
    let answer = out.send().expect(204);
    let removed = answer.header("set-cookie").unwrap();
    assert!(removed.contains("=; ") && removed.contains("Max-Age=0"), "{removed}");
    server.get("/api/whoami").header("Cookie", &cookie).send().expect(401);
    out.send().expect(401);
    assert_eq!(events.last().name, "end");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    server.get("/api/whoami").header("Cookie", other).send().expect(200);
    server.get("/api/whoami").bearer(&studio.owner).send().expect(200);
}

#[test]
fn other_cookies_are_no_credential() {
    let server = Server::shared();
    let name = format!("agentcfg-session-{}", server.address().port());
    for value in ["", "x", &"x".repeat(43), &"x".repeat(5000), "é"] {
        let sent = format!("a=b; {name}={value}");
        server.get("/api/whoami").header("Cookie", sent).send().expect(401);
    }
    for cookie in ["a=b", "agentcfg-session=x", "=", ";;;"] {
        server.get("/api/whoami").header("Cookie", cookie).send().expect(401);
    }
}

#[test]
fn api_keys_open_no_session() {
    let studio = Studio::open();
    studio
        .server
        .post("/api/sessions")
        .bearer(studio.key("admin").key)
        .send()
        .expect(403);
    studio.server.post("/api/sessions").send().expect(401);
    studio.server.post("/api/sessions").bearer("bad").send().expect(401);
    let gone = studio
        .server
        .delete("/api/sessions")
        .bearer(&studio.owner)
        .send()
        .expect(400);
    assert!(gone.error().contains("browser session"));
}

#[test]
fn behind_a_proxy_the_cookie_is_secure() {
    let server = Server::builder()
        .set("public_url", "https://agents.example.com/x/")
        .start();
    let studio = Studio::on(&server);
    let set = server.post("/api/sessions").bearer(&studio.owner).send().expect(204);
    let field = set.header("set-cookie").unwrap();
    assert!(field.starts_with("__Host-agentcfg-session="), "{field}");
    assert!(field.contains("; Secure") && field.contains("; Path=/;"), "{field}");
    let change = |origin: &str| {
        let request = server
            .post("/api/workspaces")
            .header("Cookie", cookie(&set))
            .header("Origin", origin);
        request.json(&json!({"name": "X"})).send().status
    };
    assert_eq!(change("https://agents.example.com"), 201);
    assert_eq!(change("http://agents.example.com"), 403);
    assert_eq!(change(&server.url()), 403);
}

#[test]
fn a_session_outlives_a_restart_and_its_token() {
    let dir = agentcfg_tests::harness::scratch();
    let server = Server::builder().data(dir.path().join("data")).start();
    let studio = Studio::on(&server);
    let token = server.fresh_token(&studio.user, 3);
    let cookie = sign_in(&server, &token);
    let session = cookie.split_once('=').unwrap().1.to_owned();
    server.stop();
    let server = Server::builder().data(dir.path().join("data")).start();
    let cookie = format!("agentcfg-session-{}={session}", server.address().port());
    agentcfg_tests::harness::until("the token ends", || {
        (server.get("/api/whoami").bearer(&token).send().status == 401).then_some(())
    });
    let me = server
        .get("/api/whoami")
        .header("Cookie", &cookie)
        .send()
        .expect(200)
        .json();
    assert_eq!(me["id"], studio.user.as_str());
    // The store has the hash of the cookie alone.
    server.stop();
    let store = std::fs::read(dir.path().join("data/store.redb")).unwrap();
    assert!(!store.windows(session.len()).any(|window| window == session.as_bytes()));
}
