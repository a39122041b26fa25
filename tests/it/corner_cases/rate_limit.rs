//! The rate limit: fixed windows for keys and users.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_tests::harness::{Response, Server, Studio, Wire};
use serde_json::{Value, json};

fn key_with_limit(studio: &Studio<'_>, limit: u32) -> String {
    studio.key_with(&json!({"rate_limit": limit})).key
}

fn remaining(answer: &Response) -> i64 {
    answer.number("x-ratelimit-remaining")
}

#[test]
fn thirty_two_threads_get_exactly_as_many_requests_as_the_limit_allows() {
    const LIMIT: u32 = 500;
    let studio = Studio::open();
    let key = key_with_limit(&studio, LIMIT);
    let request = studio.server.get("/api/workspaces").bearer(&key);
    let (allowed, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                let mut wire = Wire::connect(studio.server.address());
                let mut last = i64::MAX;
                for _ in 0..25 {
                    let answer = request.send_on(&mut wire);
                    match answer.status {
                        200 => allowed.fetch_add(1, Ordering::Relaxed),
                        429 => refused.fetch_add(1, Ordering::Relaxed),
                        other => panic!("{other}"),
                    };
                    assert!(remaining(&answer) <= last, "what is left never rises within a window");
                    last = remaining(&answer);
                }
            });
        }
    });
    assert_eq!((allowed.into_inner(), refused.into_inner()), (500, 300));
}

#[test]
fn every_authenticated_request_counts_whatever_its_status() {
    let studio = Studio::open();
    let key = key_with_limit(&studio, 100);
    let list = format!("/api/agents/configs?workspace_id={}", studio.id);
    let server = studio.server;
    let tag = server.get(&list).bearer(&key).send().etag();
    let mut left = 99;
    for (request, status) in [
        (server.get(&list).header("If-None-Match", tag), 304),
        (server.get("/api/agents/configs"), 400),
        (server.post("/api/workspaces").json(&json!({"name": "x"})), 403),
        (server.delete("/api/agents/configs?agent_id=nobody"), 404),
        (server.post("/api/agents/configs").bytes("x"), 415),
        (server.request("HEAD", &list), 200),
        (
            server
                .post("/api/agents/configs")
                .json(&studio.agent("a", &Value::Null)),
            201,
        ),
        (
            server
                .post("/api/agents/configs")
                .json(&studio.agent("a", &Value::Null)),
            409,
        ),
    ] {
        left -= 1;
        assert_eq!(remaining(&request.bearer(&key).send().expect(status)), left);
    }
}

#[test]
fn a_request_without_a_valid_credential_counts_in_no_window() {
    let studio = Studio::open();
    let key = key_with_limit(&studio, 50);
    let request = studio.server.get("/api/workspaces");
    assert_eq!(remaining(&request.clone().bearer(&key).send()), 49);
    for answer in [
        studio.server.get("/nowhere").bearer(&key).send().expect(404),
        studio.server.put("/api/workspaces").bearer(&key).send().expect(405),
        request.clone().bearer(format!("{key}x")).send().expect(401),
        request.send().expect(401),
        studio.server.get("/healthz").bearer(&key).send().expect(200),
    ] {
        assert_eq!(answer.header("x-ratelimit-remaining"), None, "{answer:?}");
    }
    assert_eq!(remaining(&request.bearer(&key).send()), 48);
}

#[test]
fn the_window_ends_a_minute_after_the_first_request_and_its_end_does_not_move() {
    let studio = Studio::open();
    let key = key_with_limit(&studio, 20);
    let request = studio.server.get("/api/workspaces").bearer(&key);
    let before = SystemClock.now().unix_millis();
    let reset = request.send().number("x-ratelimit-reset");
    let after = SystemClock.now().unix_millis();
    let (earliest, latest) = ((before + 60_000) / 1000, (after + 60_000) / 1000 + 1);
    assert!((earliest..=latest).contains(&reset), "{earliest}..={latest}: {reset}");
    for _ in 0..25 {
        assert_eq!(request.send().number("x-ratelimit-reset"), reset);
    }
}

#[test]
fn a_request_over_the_limit_gets_429_with_retry_after() {
    let studio = Studio::open();
    let key = key_with_limit(&studio, 1);
    let request = studio.server.get("/api/workspaces").bearer(&key);
    request.send().expect(200);
    let answer = request.send().refused(429, &["1 request"]);
    let wait = answer.number("retry-after");
    let end = answer.number("x-ratelimit-reset");
    let now = SystemClock.now().unix_millis();
    assert!(
        (1..=60).contains(&wait) && (now / 1000 + wait - end).abs() <= 2,
        "{answer:?}"
    );
    assert_eq!((answer.number("x-ratelimit-limit"), remaining(&answer)), (1, 0));
}

#[test]
fn all_sessions_and_workspaces_of_a_user_share_one_limit() {
    let server = Server::builder().set("session_rate_limit", "10").start();
    let studio = Studio::on(&server);
    let other = server.fresh_token(&studio.user, 600);
    let request = server.get("/api/workspaces");
    let mut left = remaining(&request.clone().bearer(&studio.owner).send());
    assert_eq!(left, 8, "one request created the workspace");
    for token in [&other, &studio.owner, &other] {
        left -= 1;
        assert_eq!(remaining(&request.clone().bearer(token).send()), left);
    }
    for _ in 0..left {
        request.clone().bearer(&other).send().expect(200);
    }
    request.clone().bearer(&studio.owner).send().expect(429);
    request.bearer(studio.outsider()).send().expect(200);
}

#[test]
fn windows_end_with_the_process() {
    let server = Server::start();
    let studio = Studio::on(&server);
    let key = key_with_limit(&studio, 1);
    server.get("/api/workspaces").bearer(&key).send().expect(200);
    server.get("/api/workspaces").bearer(&key).send().expect(429);
    server.stop();
    let server = Server::builder().data(server.data()).start();
    server.get("/api/workspaces").bearer(&key).send().expect(200);
}
