//! `healthcheck`: what a container asks that has no shell.

use std::ffi::OsString;
use std::fs;

use agentcfg_tests::harness::{Finished, Run, Server, Wire, certificate, eventually, free_address, scratch};
use rustix::process::Signal;

/// Runs `healthcheck` with the settings of a server.
fn healthcheck(server: &Server, settings: &[(&str, OsString)]) -> Finished {
    let run = Run::new([
        "healthcheck".into(),
        "--data".into(),
        server.data().as_os_str().to_owned(),
        "--listen".into(),
        OsString::from(server.address().to_string()),
    ]);
    let with = |run: Run, (name, value): &(&str, OsString)| run.env(&format!("AGENTCFG_{name}"), value);
    settings.iter().fold(run, with).finish()
}

#[test]
fn a_server_that_is_ready_exits_zero_and_one_that_is_gone_does_not() {
    let server = Server::start();
    assert_eq!(healthcheck(&server, &[]).succeeded(), "{\"status\":\"ready\"}\n");
    server.stop();
    healthcheck(&server, &[]).failed_with(&[
        "not ready",
        &format!("http://{}/readyz", server.address()),
        "nothing listens there",
    ]);
}

#[test]
fn the_port_that_a_server_has_chosen_is_found() {
    let dir = scratch();
    let server = Server::builder().data(dir.path().join("data")).start();
    let run = || {
        let run = Run::new(["healthcheck", "--listen", "127.0.0.1:0"]);
        run.env("AGENTCFG_DATA", server.data()).finish()
    };
    run().succeeded();
    server.stop();
    run().failed_with(&["not ready", &server.address().to_string()]);
    Run::new(["healthcheck", "--listen", "127.0.0.1:0"])
        .in_dir(&dir)
        .finish()
        .failed_with(&["agentcfg-data does not exist"]);
}

#[test]
fn a_server_with_tls_is_asked_by_tls_whatever_name_its_certificate_has() {
    let dir = scratch();
    if !certificate(dir.path(), "other", None, &["subjectAltName=DNS:agents.example.com"]) {
        return;
    }
    let (cert, key) = (dir.path().join("other.crt"), dir.path().join("other.key"));
    let server = Server::builder().set("tls_cert", &cert).set("tls_key", &key).start();
    let tls = [("TLS_CERT", cert.into_os_string()), ("TLS_KEY", key.into_os_string())];
    healthcheck(&server, &tls).succeeded();
    healthcheck(&server, &[]).failed_with(&["not ready", "400"]);
}

#[test]
fn a_server_without_a_free_connection_is_asked_on_the_address_of_the_metrics() {
    let metrics = free_address();
    let server = Server::builder()
        .set("max_connections", "1")
        .set("metrics_listen", metrics.to_string())
        .start();
    let mut taken = Wire::connect(server.address());
    server.get("/healthz").send_on(&mut taken).expect(200);
    let _waiting = Wire::connect(server.address());
    healthcheck(&server, &[("METRICS_LISTEN", metrics.to_string().into())]).succeeded();
    eventually("the log says so", || {
        server.stderr().contains("max_connections are open")
    });
    assert_eq!(server.stderr().matches("max_connections are open").count(), 1);
}

/// Neither the probes of a container nor those on the address of the metrics come through the proxy of the clients.
#[test]
fn a_server_that_expects_the_proxy_protocol_is_asked() {
    let metrics = free_address();
    let server = Server::builder()
        .set("proxy_protocol", "true")
        .set("trusted_proxies", "127.0.0.1")
        .set("metrics_listen", metrics.to_string())
        .start();
    let trusted = [
        ("PROXY_PROTOCOL", "true".into()),
        ("TRUSTED_PROXIES", "127.0.0.1".into()),
    ];
    healthcheck(&server, &trusted).succeeded();
    healthcheck(&server, &[("METRICS_LISTEN", metrics.to_string().into())]).succeeded();
    let shown = Wire::connect(metrics)
        .send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        .receive("GET");
    assert_eq!(shown.unwrap().status, 200);
}

#[test]
fn a_server_that_is_about_to_stop_is_not_ready_and_serves() {
    let metrics = free_address();
    let server = Server::builder()
        .set("metrics_listen", metrics.to_string())
        .set("shutdown_delay", "60")
        .start();
    let mut before = Wire::connect(server.address());
    let answer = server.get("/healthz").send_on(&mut before).expect(200);
    assert_eq!(answer.header("connection"), None);
    server.signal(Signal::TERM);
    eventually("readiness fails", || server.get("/readyz").send().status == 503);
    server.get("/readyz").send().refused(503, &["shutting down"]);
    healthcheck(&server, &[("METRICS_LISTEN", metrics.to_string().into())]).failed_with(&["503", "shutting down"]);
    healthcheck(&server, &[]).failed_with(&["503", "shutting down"]);
    for wire in [&mut before, &mut Wire::connect(server.address())] {
        let answer = server.get("/openapi.json").send_on(wire).expect(200);
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(wire.is_closed());
    }
    assert_eq!(server.ended(), None);
    let log = server.stderr();
    assert!(log.contains("shutdown_delay") && !log.contains("ERROR"), "{log}");
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(130));
}

#[test]
fn after_the_delay_the_server_ends_in_order() {
    let server = Server::builder().set("shutdown_delay", "1").start();
    server.signal(Signal::TERM);
    eventually("readiness fails", || server.get("/readyz").send().status == 503);
    assert!(server.wait().success());
}

#[test]
fn a_healthcheck_with_settings_that_cannot_be_read_fails() {
    let dir = scratch();
    fs::write(dir.path().join("a.toml"), "lisen = \"127.0.0.1:0\"\n").unwrap();
    Run::new(["healthcheck", "--config", "a.toml"])
        .in_dir(&dir)
        .finish()
        .failed_with(&["lisen"]);
}
