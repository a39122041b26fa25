//! Proxies between the command and the server, and what they answer in its place.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc;
use std::thread;

use agentcfg_tests::harness::Server;
use serde_json::json;

use crate::fixture::{Desk, said_by};

/// A proxy that passes each connection on to the server, and sends the first line of each.
fn proxy(server: String) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for mut client in listener.incoming().map(Result::unwrap) {
            let mut onward = TcpStream::connect(&server).unwrap();
            let mut bytes = vec![0; 64 * 1024];
            let read = client.read(&mut bytes).unwrap();
            let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
            sender.send(text.lines().next().unwrap_or_default().to_owned()).unwrap();
            onward.write_all(&bytes[..read]).unwrap();
            let (mut answers, mut back) = (onward.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut answers, &mut back));
            thread::spawn(move || std::io::copy(&mut client, &mut onward));
        }
    });
    (address, lines)
}

/// A proxy that makes a tunnel for each connection.
fn tunnels() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut client in listener.incoming().map(Result::unwrap) {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            let server = head.strip_prefix("CONNECT ").unwrap().split(' ').next().unwrap();
            let mut onward = TcpStream::connect(server).unwrap();
            client
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .unwrap();
            let (mut answers, mut back) = (onward.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut answers, &mut back));
            thread::spawn(move || std::io::copy(&mut client, &mut onward));
        }
    });
    url
}

/// A server that gives each request the next of these answers, and then the last one.
fn answers(script: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (i, mut stream) in listener.incoming().map(Result::unwrap).enumerate() {
            let _ = stream.read(&mut [0; 64 * 1024]);
            let _ = stream.write_all(script[i.min(script.len() - 1)].as_bytes());
        }
    });
    url
}

fn answer(status: &str, kind: &str, head: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{head}connection: close\r\n\r\n{body}"
    )
}

#[test]
fn the_environment_names_the_proxy_and_its_exceptions() {
    let desk = Desk::open();
    desk.studio.create("writer", &json!({})).expect(201);
    let (address, lines) = proxy(desk.studio.server.address().to_string());
    // Only the proxy knows this server.
    let listed = desk
        .run("agents list")
        .env("AGENTCFG_URL", "http://agents.invalid")
        .env("HTTP_PROXY", format!("http://{address}"))
        .finish()
        .succeeded();
    assert!(listed.contains("writer"), "{listed}");
    let line = lines.recv().unwrap();
    assert!(line.starts_with("GET http://agents.invalid/api/"), "{line}");
    let direct = desk.run("agents list").env("ALL_PROXY", "http://127.0.0.1:1");
    direct.env("NO_PROXY", "other,127.0.0.0/8").finish().succeeded();

    let down = desk
        .run("agents list")
        .env("http_proxy", "http://user:canary@127.0.0.1:1");
    let down = said_by(
        down.finish().exited(1),
        &[
            "no connection could be made through the proxy http://127.0.0.1:1",
            "NO_PROXY=127.0.0.1",
        ],
    );
    assert!(
        !down.stderr.contains("canary") && !down.stderr.contains("Start a server"),
        "{down:?}"
    );
    let wrong = desk.run("agents list").env("HTTP_PROXY", "socks5://user:canary@host");
    let wrong = said_by(wrong.finish().exited(1), &["HTTP_PROXY must be http://host:port"]);
    assert!(!wrong.stderr.contains("canary"), "{wrong:?}");
    // An encrypted call asks for a tunnel, and this proxy makes none.
    let refusing = answers(vec![answer("403 Forbidden", "text/html", "", "no")]);
    let refused = desk.run("agents list").env("AGENTCFG_URL", "https://agents.invalid");
    said_by(
        refused.env("HTTPS_PROXY", &refusing).finish().exited(1),
        &[
            &format!("the proxy {refusing} makes no connection to the server, and answers 403 Forbidden"),
            "NO_PROXY=agents.invalid",
        ],
    );
}

#[test]
fn an_encrypted_server_is_reached_through_a_tunnel() {
    let desk = Desk::open();
    let key = desk.write(
        "key.pem",
        include_str!("../../agentcfg-client/src/tests/tls/localhost.key"),
    );
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let certificate = include_str!("../../agentcfg-client/src/tests/tls/localhost.pem");
    let server = Server::builder()
        .set("tls_cert", desk.write("cert.pem", certificate))
        .set("tls_key", key)
        .start();
    let authority = include_str!("../../agentcfg-client/src/tests/tls/ca.pem");
    let whoami = desk
        .run("whoami")
        .env("AGENTCFG_URL", format!("https://{}", server.address()))
        .env("AGENTCFG_CA_FILE", desk.write("ca.pem", authority))
        .env("HTTPS_PROXY", tunnels())
        .finish();
    // The server does not know the key of another one.
    said_by(whoami.exited(3), &["The credential is from AGENTCFG_API_KEY"]);
}

#[test]
fn a_page_of_a_proxy_is_named_with_its_status_and_a_way_out() {
    let desk = Desk::open();
    desk.write("agents/writer.md", "---\ndisplay_name: Writer\n---\n");
    for (status, said) in [
        (
            "413 Request Entity Too Large",
            [
                "the answer is 413 Payload Too Large as text/html",
                "client_max_body_size",
            ],
        ),
        (
            "502 Bad Gateway",
            [
                "the answer is 502 Bad Gateway as text/html",
                "Check that agentcfg-server runs",
            ],
        ),
        (
            "504 Gateway Time-out",
            ["the answer is 504 Gateway Timeout as text/html", "proxy_read_timeout"],
        ),
    ] {
        let page = answers(vec![answer(status, "text/html", "", "<html>no</html>")]);
        let line = format!("apply agents --workspace {}", desk.studio.id);
        let applied = desk.run(&line).env("AGENTCFG_URL", page).finish().exited(1);
        said_by(applied, &said);
    }
    // A proxy that numbers its answers, and one that answers in JSON.
    let numbered = answer("502 Bad Gateway", "text/html", "x-request-id: 7\r\n", "no");
    let json = answer("502 Bad Gateway", "application/json", "", "{\"error\":\"no upstream\"}");
    for (page, said) in [(numbered, "502 Bad Gateway"), (json, "no upstream (status 502)")] {
        let line = format!("agents list --workspace {}", desk.studio.id);
        let listed = desk
            .run(&line)
            .env("AGENTCFG_URL", answers(vec![page]))
            .finish()
            .exited(1);
        said_by(listed, &[said, "Check that agentcfg-server runs"]);
    }
}

#[test]
fn a_wait_at_the_rate_limit_is_told() {
    let desk = Desk::open();
    let refused = answer(
        "429 Too Many Requests",
        "application/json",
        "retry-after: 0\r\nx-request-id: r-1\r\n",
        "{\"error\":\"slow\"}",
    );
    let url = answers(vec![refused, answer("200 OK", "application/json", "", "[]")]);
    let line = format!("agents list --output json --workspace {}", desk.studio.id);
    let listed = desk.run(&line).env("AGENTCFG_URL", url).finish().exited(0);
    assert_eq!(listed.stdout, "[]\n");
    assert_eq!(
        listed.stderr,
        "The rate limit of the credential is reached; waiting 1 s.\n"
    );
}
