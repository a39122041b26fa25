//! Timeouts for slow clients, and the limit of connections.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use agentcfg_tests::harness::{Server, Studio, Wire};

#[test]
fn an_incomplete_head_closes_the_connection_after_its_timeout() {
    let server = Server::builder().set("header_timeout", "1").start();
    let began = Instant::now();
    let mut silent = Wire::connect(server.address());
    let mut slow = Wire::connect(server.address());
    slow.send("GET /healthz HTTP/1.1\r\nHost:");
    assert!(silent.is_closed());
    assert!(slow.receive("GET").is_none_or(|answer| answer.status == 408));
    let took = began.elapsed();
    assert!(
        (Duration::from_millis(900)..Duration::from_secs(10)).contains(&took),
        "{took:?}"
    );
}

#[test]
fn an_incomplete_body_is_408_and_changes_nothing() {
    let server = Server::builder().set("body_timeout", "1").start();
    let studio = Studio::on(&server);
    let body = studio.agent("late", &serde_json::Value::Null);
    let bytes = server
        .post("/api/agents/configs")
        .bearer(&studio.owner)
        .json(&body)
        .to_bytes();
    let mut wire = Wire::connect(server.address());
    let answer = wire.send(&bytes[..bytes.len() - 1]).receive("POST").unwrap();
    answer.refused(408, &["in time"]);
    assert!(wire.is_closed());
    assert_eq!(studio.agent_ids(), [""; 0]);
}

#[test]
fn an_idle_connection_is_closed_after_its_timeout() {
    let server = Server::builder().set("idle_timeout", "1").start();
    let mut wire = Wire::connect(server.address());
    server.get("/healthz").send_on(&mut wire).expect(200);
    assert!(wire.is_closed());
}

#[test]
fn slow_clients_do_not_delay_others() {
    let server = Server::start();
    let slow: Vec<_> = (0..200)
        .map(|_| TcpStream::connect(server.address()).unwrap())
        .collect();
    let mut half: Vec<_> = (0..50).map(|_| Wire::connect(server.address())).collect();
    half.iter_mut().for_each(|wire| {
        wire.send("POST /api/workspaces HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n");
    });
    let began = Instant::now();
    server.get("/readyz").send().expect(200);
    assert!(began.elapsed() < Duration::from_secs(5));
    drop(slow);
}

#[test]
fn connections_over_the_limit_wait_for_a_free_slot() {
    let server = Server::builder().set("max_connections", "2").start();
    let mut first = Wire::connect(server.address());
    let mut second = Wire::connect(server.address());
    for wire in [&mut first, &mut second] {
        server.get("/healthz").send_on(wire).expect(200);
    }
    let waiting = server.get("/healthz");
    let mut third = Wire::connect(server.address());
    third.send(waiting.to_bytes());
    assert!(!third.has_answer_within(Duration::from_millis(200)), "two is the limit");
    drop(first);
    waiting.receive_on(&mut third).expect(200);
    server.get("/healthz").send_on(&mut second).expect(200);
}
