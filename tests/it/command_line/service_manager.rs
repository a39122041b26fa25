//! The messages that a service manager gets, such as systemd, and what it offers to the server.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use agentcfg_tests::harness::{Server, scratch, until};
use rustix::process::Signal;

/// The next message. The manager waits as long as a slow machine may take.
fn message(manager: &UnixDatagram) -> String {
    let mut bytes = [0; 512];
    let length = manager.recv(&mut bytes).expect("a message in time");
    String::from_utf8(bytes[..length].to_vec()).unwrap()
}

#[test]
fn a_server_reports_its_start_its_life_and_its_end() {
    let dir = scratch();
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let server = Server::builder()
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "400000")
        .set("shutdown_timeout", "7")
        .start();

    let mut all = Vec::new();
    let mut next = || {
        all.push(message(&manager));
        all.last().cloned().unwrap()
    };
    until("it is ready", || next().contains("READY=1").then_some(()));
    for _ in 0..3 {
        until("the watchdog is told", || (next() == "WATCHDOG=1").then_some(()));
    }
    server.signal(Signal::TERM);
    until("it is stopping", || next().contains("STOPPING=1").then_some(()));
    assert!(server.wait().success());

    all.retain(|message| message != "WATCHDOG=1");
    let address = server.address();
    assert_eq!(
        all,
        [
            "STATUS=opening the store\nEXTEND_TIMEOUT_USEC=60000000".to_owned(),
            format!("READY=1\nSTATUS=serving on http://{address}"),
            "STOPPING=1\nSTATUS=finishing requests in flight\nEXTEND_TIMEOUT_USEC=67000000".to_owned(),
        ]
    );
}

#[test]
fn a_process_that_does_not_run_tells_the_watchdog_nothing() {
    let dir = scratch();
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let server = Server::builder()
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "200000")
        .start();
    until("the watchdog is told", || {
        (message(&manager) == "WATCHDOG=1").then_some(())
    });
    server.signal(Signal::STOP);
    // What it sent before is read, then nothing comes for ten times the interval.
    manager.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut bytes = [0; 512];
    until("it is silent", || manager.recv(&mut bytes).is_err().then_some(()));
    server.signal(Signal::CONT);
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(message(&manager), "WATCHDOG=1");
}

#[test]
fn a_socket_that_cannot_be_used_is_logged_and_the_server_serves() {
    for (name, reason) in [("notify", "absolute path"), ("/nonexistent/notify", "service manager")] {
        let server = Server::builder().env("NOTIFY_SOCKET", name).start();
        server.get("/readyz").send().expect(200);
        assert!(server.stderr().contains(reason), "{}", server.stderr());
    }
}

#[test]
fn a_credential_of_the_service_manager_is_a_secret_file() {
    // systemd puts what LoadCredential= names into a directory that only the service can read.
    let credentials = scratch();
    let file = credentials.path().join("session-secret");
    fs::write(&file, "0123456789abcdef0123456789abcdef\n").unwrap();
    let server = Server::builder()
        .env("CREDENTIALS_DIRECTORY", credentials.path())
        .set("session_secret_file", &file)
        .start();
    server.get("/readyz").send().expect(200);
    assert!(
        !server.data().join("session.key").exists(),
        "the secret is not made when it is given"
    );
}
