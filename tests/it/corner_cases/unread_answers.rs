//! Answers that their clients do not read.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use agentcfg_tests::harness::{Request, Server, Studio, eventually};
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
