//! Answers that their clients do not read.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use agentcfg_tests::harness::{Request, Server, Studio, eventually};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use serde_json::{Value, json};

/// Fills the workspace, and returns a revision that is not the last: its list is made for each request.
fn fill(studio: &Studio<'_>) -> u64 {
    let agents: Vec<Value> = (0..900)
        .map(|number| {
            let agent_id = format!("agent-{number}");
            json!({"agent_id": agent_id, "display_name": agent_id, "persona_prompt": "x".repeat(5000)})
        })
        .collect();
    let target = format!("/api/agents/apply?workspace_id={}", studio.id);
    let apply = studio.server.post(target).bearer(&studio.owner);
    apply.json(&json!({"agents": agents})).send().expect(200);
    let revision = studio.audit_page(1)[0]["revision"].as_u64().unwrap();
    studio.create("last", &Value::Null).expect(201);
    revision
}

/// Sends a request, and reads the first byte of its answer alone.
fn unread(server: &Server, request: &Request) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(&request.to_bytes()).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    stream
}

#[test]
fn unread_answers_of_a_caller_and_of_all_are_bounded() {
    let server = Server::builder()
        .set("max_caller_answer_mb", "10")
        .set("max_answer_mb_in_flight", "15")
        .start();
    let studio = Studio::on(&server);
    let revision = fill(&studio);
    let (first, second) = (studio.key("read").key, studio.key("read").key);
    let get = |key: &str, more: &str| {
        let target = format!("/api/agents/configs?workspace_id={}{more}", studio.id);
        server.get(target).bearer(key)
    };
    let list = |key: &str| get(key, &format!("&revision={revision}"));
    let whole = list(&first).send().expect(200);
    assert!((4 << 20..5 << 20).contains(&whole.body.len()), "{}", whole.body.len());

    // The kernel buffers a few MiB of each connection, so that each answer still holds its text.
    let held = [(); 2].map(|()| unread(&server, &list(&first)));
    let refused = list(&first).send().refused(429, &["unread answers in flight"]);
    assert_eq!(refused.need("retry-after"), "1");
    let more = unread(&server, &list(&second));
    let refused = list(&second).send().refused(503, &["unread answers"]);
    assert_eq!(refused.need("retry-after"), "1");
    // Short and shared answers are served.
    get(&first, "&limit=1").send().expect(200);
    get(&first, "").send().expect(200);
    drop((held, more));
    eventually("an answer is served again", || list(&first).send().status == 200);
}

/// Sends so many requests at once, and reads no answer yet.
fn crowd(server: &Server, request: &Request, count: usize) -> Vec<TcpStream> {
    let connect = |_| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        // The kernel keeps little of each answer.
        set_socket_recv_buffer_size(&stream, 4096).unwrap();
        stream.write_all(&request.to_bytes()).unwrap();
        stream
    };
    (0..count).map(connect).collect()
}

/// How many of these answers have each status; the rest of an answer is not read.
fn statuses(crowd: &[TcpStream]) -> (usize, usize) {
    let mut found = (0, 0);
    for mut stream in crowd {
        stream.set_read_timeout(Some(Duration::from_secs(240))).unwrap();
        let mut line = [0; 12];
        stream.read_exact(&mut line).unwrap();
        match &line {
            b"HTTP/1.1 200" => found.0 += 1,
            b"HTTP/1.1 429" => found.1 += 1,
            other => panic!("{}", String::from_utf8_lossy(other)),
        }
    }
    found
}

#[test]
fn answers_that_are_being_made_are_bounded() {
    // An answer has more than 4 MiB.
    const FITTING: usize = 3;
    let server = Server::builder().set("max_caller_answer_mb", "16").start();
    let studio = Studio::on(&server);
    let revision = fill(&studio);
    let key = studio.key_with(&json!({"scope": "read", "rate_limit": 1_000_000})).key;
    let of = |target: &str| server.get(format!("{target}workspace_id={}", studio.id)).bearer(&key);
    let past = of(&format!("/api/agents/configs?revision={revision}&"));
    let changes = of("/api/changes?after=start&limit=1000&");
    past.clone().send().expect(200);
    changes.clone().send().expect(200);
    for request in [&past, &changes] {
        let before = server.memory_mib();
        let unread = crowd(&server, request, 300);
        let (served, refused) = statuses(&unread);
        assert_eq!(served + refused, 300);
        assert!((1..=FITTING).contains(&served), "{served} were made");
        let grown = server.memory_mib().saturating_sub(before);
        assert!(grown < 200, "{grown} MiB more");
        drop(unread);
        eventually("an answer is made again", || request.clone().send().status == 200);
    }
    // Short answers of the same kinds are all made, however many are asked for at once.
    let other = Studio::on(&server);
    let key = other.key_with(&json!({"scope": "read", "rate_limit": 1_000_000})).key;
    for target in [
        "/api/agents/configs?revision=1&",
        "/api/agents/versions?",
        "/api/agents/labels?",
    ] {
        let request = server.get(format!("{target}workspace_id={}", other.id)).bearer(&key);
        assert_eq!(statuses(&crowd(&server, &request, 300)), (300, 0), "{target}");
    }
}

#[test]
fn a_prompt_that_would_be_too_long_is_refused_before_it_is_made() {
    let studio = Studio::open();
    let agent = json!({"persona_prompt": "{{a}}".repeat(1000), "definition": {"variables": {"a": {}}}});
    studio.create("long", &agent).expect(201);
    let target = format!("/api/agents/prompt?agent_id=long&workspace_id={}", studio.id);
    let fill_in = |length: usize| {
        let request = studio.server.post(&target).bearer(studio.key("read").key);
        request.json(&json!({"variables": {"a": "x".repeat(length)}})).send()
    };
    let whole = fill_in(4000).expect(200);
    assert_eq!(whole.json()["prompt"].as_str().unwrap().len(), 4_000_000);
    fill_in(900_000).refused(400, &["persona_prompt must be at most 4194304 bytes", "got 900000000"]);
}
