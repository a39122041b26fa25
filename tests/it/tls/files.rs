//! The files of the certificate: at the start, and renewed while the server runs.

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use agentcfg_client::{Client, RetryPolicy};
use agentcfg_tests::harness::{Run, Server, Wire, eventually};

use super::client::{Http2, tls};
use super::{AUTHORITY, CERT, KEY, Pair};

/// The number of certificates that a new connection gets.
async fn chain_length(server: &Server) -> usize {
    let stream = tls(server.address(), &["h2"]).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap().len()
}

#[tokio::test]
async fn the_protocol_is_chosen_by_alpn() {
    let pair = Pair::good();
    let server = pair.server().start();
    assert!(
        server.stdout().contains("listening on https://127.0.0.1:"),
        "{}",
        server.stdout()
    );
    for (offered, chosen) in [
        (&["h2", "http/1.1"][..], Some("h2")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        let stream = tls(server.address(), offered).await.unwrap();
        let agreed = stream.get_ref().1.alpn_protocol();
        assert_eq!(agreed, chosen.map(str::as_bytes), "{offered:?}");
    }
    assert!(tls(server.address(), &["h3"]).await.is_err());
}

#[tokio::test]
async fn the_client_works_over_tls() {
    let pair = Pair::good();
    let server = pair.server().start();
    let client = Client::builder(server.url())
        .retry(RetryPolicy::NEVER)
        .root_certificates(AUTHORITY)
        .session_token(server.token("ada"))
        .build()
        .unwrap();
    let new = agentcfg_client::model::NewWorkspace::new("Studio");
    let made = client.create_workspace(&new).await.unwrap();
    assert_eq!(made.name, "Studio");
    server.stop();
}

#[test]
fn lines_to_copy_and_links_are_of_https() {
    let pair = Pair::good();
    let dir = agentcfg_tests::harness::scratch();
    let server = pair.server().dev_in(dir.path()).start();
    let printed = server.stdout();
    for start in [
        "Dashboard        https://127.0.0.1:",
        "curl 'https://127.0.0.1:",
        "listening on https://127.0.0.1:",
    ] {
        assert!(printed.contains(start), "{printed}");
    }
    assert!(!printed.contains("http://"), "{printed}");
    let data = dir.path().join("agentcfg-data");
    let link = Run::new(["login-link", "--user", "dev", "--data", data.to_str().unwrap()]).finish();
    assert!(link.succeeded().starts_with("https://127.0.0.1:"));
}

#[test]
fn a_request_without_tls_is_answered_with_the_way_out() {
    let pair = Pair::good();
    let server = pair.server().start();
    server.get("/healthz").send().refused(400, &["TLS", "https://"]);
    let answer = server
        .post("/api/workspaces")
        .json(&serde_json::json!({"name": "x"}))
        .send();
    answer.refused(400, &["https://"]);
    let mut wire = Wire::connect(server.address());
    wire.send("\0\0\0garbage, and no handshake of TLS");
    while !wire.is_closed() {}
}

#[test]
fn a_handshake_has_a_time_limit_and_counts_as_a_connection() {
    let pair = Pair::good();
    let server = pair
        .server()
        .set("header_timeout", "1")
        .set("max_connections", "2")
        .start();
    let began = Instant::now();
    let mut silent: Vec<_> = (0..2).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    // It waits until one of the two is closed.
    server.get("/healthz").send().refused(400, &["TLS"]);
    assert!(began.elapsed() >= Duration::from_millis(900));
    for stream in &mut silent {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert!(matches!(stream.read(&mut [0]), Ok(0)));
    }
}

#[test]
fn files_that_cannot_be_used_stop_the_start_and_leave_nothing_behind() {
    let open = Pair::good();
    fs::set_permissions(open.path("key.pem"), fs::Permissions::from_mode(0o644)).unwrap();
    let missing = Pair::good();
    fs::remove_file(missing.path("cert.pem")).unwrap();
    for (pair, said) in [
        (Pair::new("no PEM", KEY), &["tls_cert", "cert.pem"][..]),
        (Pair::new(CERT, "no PEM"), &["tls_key", "key.pem"]),
        (Pair::new(AUTHORITY, KEY), &["tls_key", "tls_cert", "is not that of"]),
        (open, &["tls_key", "key.pem", "644", "chmod 600"]),
        (missing, &["tls_cert", "cert.pem", "No such file"]),
    ] {
        let dir = agentcfg_tests::harness::scratch();
        let run = Run::new(["serve", "--listen", "127.0.0.1:0"])
            .env("AGENTCFG_TLS_CERT", pair.path("cert.pem"))
            .env("AGENTCFG_TLS_KEY", pair.path("key.pem"));
        run.in_dir(&dir).finish().failed_with(said);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }
    let pair = Pair::good();
    let alone = Run::new(["serve"]).env("AGENTCFG_TLS_CERT", pair.path("cert.pem"));
    alone.finish().failed_with(&["tls_cert", "needs tls_key"]);
    let alone = Run::new(["serve"]).env("AGENTCFG_TLS_KEY", pair.path("key.pem"));
    alone.finish().failed_with(&["tls_key", "needs tls_cert"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn renewed_files_are_taken_up_and_bad_ones_leave_the_certificate() {
    let pair = Pair::good();
    let server = pair.server().start();
    let open = Http2::connect(server.address()).await;
    assert_eq!(chain_length(&server).await, 1);
    pair.put("cert.pem", &format!("{CERT}{AUTHORITY}"));
    pair.put("key.pem", KEY);
    eventually("the renewed certificate is in use", || {
        server.stderr().contains("took up the renewed certificate")
    });
    assert_eq!(chain_length(&server).await, 2);
    pair.put("cert.pem", AUTHORITY);
    eventually("the other one is refused", || {
        server.stderr().contains("is not that of")
    });
    assert_eq!(chain_length(&server).await, 2);
    // Connections stay open through all of it.
    open.get("/healthz", &[]).await.expect(200);
    pair.put("cert.pem", CERT);
    eventually("the good one is in use", || {
        server.stderr().matches("took up the renewed certificate").count() == 2
    });
    assert_eq!(chain_length(&server).await, 1);
}
