//! The receivers of `docs/webhooks.md`, in Rust and in Node.js, take what the server sends and nothing else.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use agentcfg_tests::harness::{Server, Studio, example, free_address, not_run};
use serde_json::json;

use super::*;

/// A process that ends with the test. Its output stays open, so that it can go on printing.
struct Process {
    child: Child,
    _stdout: BufReader<ChildStdout>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(mut command: Command, listen: &str, secret: &Value) -> Process {
    command
        .env("LISTEN", listen)
        .env("WEBHOOK_SECRET", secret.as_str().unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("the receiver starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "listening\n");
    Process { child, _stdout: stdout }
}

fn check(receiver: impl Fn() -> Command) {
    let listen = free_address().to_string();
    let server = Server::builder().set("webhook_allowed_hosts", &listen).start();
    let studio = Studio::on(&server);
    let fields = json!({"url": format!("http://{listen}/hook")});
    let webhook = create_request(&studio, &fields).send().expect(201).json();
    let status = || on(&studio, "POST", "/test", &webhook).send().expect(200).json()["status"].clone();
    assert_eq!(status(), Value::Null, "nothing listens yet");
    let receiving = start(receiver(), &listen, &webhook["secret"]);
    assert_eq!(status(), 204);
    on(&studio, "POST", "/rotate-secret", &webhook).send().expect(200);
    assert_eq!(status(), 204, "the secret before signs too");
    drop(receiving);
    let other = create_request(&studio, &fields).send().expect(201).json();
    let _receiving = start(receiver(), &listen, &other["secret"]);
    assert_eq!(status(), 401);
}

#[test]
fn the_receiver_in_rust_verifies() {
    let program = example("webhook_receiver");
    check(|| Command::new(&program));
}

#[test]
fn the_receiver_in_node_verifies() {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk");
    if Command::new("node").arg("--version").output().is_err() {
        return not_run("Node.js is missing");
    }
    if !packages.join("node_modules/standardwebhooks").exists() {
        return not_run("run: npm ci --prefix tests/sdk");
    }
    check(|| {
        let mut command = Command::new("node");
        command.arg("receiver.mjs").current_dir(&packages);
        command
    });
}
