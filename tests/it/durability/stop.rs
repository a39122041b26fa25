//! Orderly shutdown.

use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agentcfg_tests::harness::{Server, Studio, Wire, eventually};
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn requests_in_flight_finish_and_new_connections_are_refused() {
    let server = Server::start();
    let studio = Studio::on(&server);
    let body = studio.agent("in-flight", &Value::Null);
    let bytes = server
        .post("/api/agents/configs")
        .bearer(&studio.owner)
        .json(&body)
        .to_bytes();
    let (first, rest) = bytes.split_at(bytes.len() - 10);
    let mut wire = Wire::connect(server.address());
    wire.send(first);
    // The response on another connection shows that the server had time to accept this one.
    server.get("/healthz").send().expect(200);
    server.signal(Signal::TERM);
    eventually("nothing new is taken", || TcpStream::connect(server.address()).is_err());
    assert_eq!(server.ended(), None, "a request is in flight");
    assert_eq!(wire.send(rest).receive("POST").unwrap().status, 201);
    assert!(wire.is_closed());
    assert!(server.wait().success());
    let again = Server::builder().data(server.data()).start();
    let studio = Studio {
        server: &again,
        ..studio.clone()
    };
    assert_eq!(studio.agent_ids(), ["in-flight"]);
}

#[test]
fn a_shutdown_under_load_loses_no_acknowledged_change_and_truncates_no_response() {
    let server = Server::builder()
        .set("default_plan", "enterprise")
        .set("session_rate_limit", "1000000")
        .start();
    let studio = Studio::on(&server);
    let acknowledged = AtomicUsize::new(0);
    let mut written: Vec<String> = thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let (studio, acknowledged) = (&studio, &acknowledged);
                scope.spawn(move || {
                    let mut wire = Wire::connect(studio.server.address());
                    let mut written = Vec::new();
                    for number in 0.. {
                        let id = format!("w{writer}-{number}");
                        let request = studio.server.post("/api/agents/configs").bearer(&studio.owner);
                        wire.send(request.json(&studio.agent(&id, &Value::Null)).to_bytes());
                        let Some(answer) = wire.receive("POST") else { break };
                        assert_eq!(answer.status, 201, "{answer:?}");
                        written.push(id);
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                    }
                    written
                })
            })
            .collect();
        eventually("enough changes are acknowledged", || {
            acknowledged.load(Ordering::Relaxed) > 100
        });
        server.stop();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let again = Server::builder().data(server.data()).start();
    let studio = Studio {
        server: &again,
        ..studio.clone()
    };
    let mut found = studio.agent_ids();
    found.sort();
    written.sort();
    assert_eq!(found, written, "exactly the acknowledged creations are stored");
}

#[test]
fn hanging_requests_are_cut_off_after_the_shutdown_timeout() {
    let server = Server::builder().set("shutdown_timeout", "1").start();
    let mut wire = Wire::connect(server.address());
    let request = server
        .post("/api/workspaces")
        .bearer(server.token("slow"))
        .text("{\"name\": \"x\"}")
        .to_bytes();
    wire.send(&request[..request.len() - 3]);
    server.get("/healthz").send().expect(200);
    let began = Instant::now();
    server.stop();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(wire.is_closed());
    assert!(server.stderr().contains("in flight"), "{}", server.stderr());
}
