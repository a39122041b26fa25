//! Schemathesis, which makes requests of the OpenAPI document and checks each answer against it, on the real binary.
//!
//! `CASES` is the number of requests with random content (1,000 by default), beyond those that follow from the examples
//! and the limits in the document; `SEED` chooses them (1 by default).

// Tests watch real processes in real time.
#![allow(clippy::disallowed_methods)]

use std::env;
use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;

use agentcfg_tests::harness::{Server, python, scratch};
use serde_json::Value;

#[test]
fn each_answer_is_as_the_document_says() {
    let Some(python) = python() else {
        return;
    };
    let receiver = receiver();
    let base = format!("http://{receiver}");
    let server = Server::builder()
        .set("session_rate_limit", "1000000")
        .set("webhook_allowed_hosts", receiver.to_string())
        .set("openai_base_url", &base)
        .set("openai_api_key", "managed")
        .set("anthropic_base_url", &base)
        .set("anthropic_api_key", "managed")
        .start();
    let number = |name: &str, default: u64| match env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} must be a number")),
        Err(_) => default,
    };
    let (cases, seed) = (number("CASES", 1000), number("SEED", 1));

    let dir = scratch();
    let report = dir.path().join("report.json");
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("schemathesis/run.py"))
        .env("SERVER_URL", server.url())
        .env("OWNER_ID", "owner")
        .env("OWNER_TOKEN", server.fresh_token("owner", 86_400))
        .env("FOUNDER_TOKEN", server.fresh_token("founder", 86_400))
        .env("RECEIVER", &base)
        .env("CASES", cases.to_string())
        .env("SEED", seed.to_string())
        .env("REPORT", &report)
        .output()
        .unwrap();
    let shown = format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "with SEED={seed} CASES={cases}\n{shown}");

    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let (operations, tests) = (&report["operations"], &report["test_cases"]);
    println!("FIGURES seed {seed}, operations {operations}, cases {tests}");
    assert!(operations["total"].as_u64() > Some(0), "{shown}");
    assert_eq!(operations["tested"], operations["total"], "{shown}");
    assert!(tests["generated"].as_u64() >= Some(cases), "{shown}");
}

/// The address of a server that replaces providers and receivers of webhooks: it answers each request with `{}`.
fn receiver() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(&stream));
        }
    });
    address
}

/// Answers one request, and closes the connection.
fn answer(mut stream: &TcpStream) -> Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse().unwrap_or(0);
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    stream.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
    )
}
