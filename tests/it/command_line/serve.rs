//! `serve`: what it prints, and how it shuts down.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use agentcfg_tests::harness::{Server, Studio, Wire, dies_with_parent, eventually, free_address, server_binary, spawn};
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn standard_output_is_one_line_with_the_address() {
    let server = Server::start();
    server.get("/readyz").send().expect(200);
    server.stop();
    assert_eq!(server.stdout(), format!("listening on http://{}\n", server.address()));
}

#[test]
fn the_first_start_prints_the_data_directory_the_next_command_and_how_to_stop() {
    let server = Server::start();
    let (said, data) = (server.stderr(), server.data().display().to_string());
    for needed in [&*data, "agentcfg-server token", "Ctrl-C", "backup"] {
        assert!(said.contains(needed), "{needed}: {said}");
    }
    // Conflict markers of a merge compile inside a string literal.
    assert!(!said.contains("<<<<") && !said.contains(">>>>"), "{said}");
    server.stop();
    let again = Server::builder().data(&data).start();
    assert!(
        !again.stderr().contains("Made a new data directory"),
        "{}",
        again.stderr()
    );
    assert!(again.stderr().contains(&data));
}

#[test]
fn sigterm_and_sigint_shut_down_with_exit_status_zero() {
    for signal in [Signal::TERM, Signal::INT] {
        let server = Server::start();
        server.get("/readyz").send().expect(200);
        server.signal(signal);
        assert!(server.wait().success(), "{signal:?}");
    }
}

/// The database does not answer, and the start would wait for it.
#[test]
fn a_start_that_waits_for_its_database_is_stopped() {
    for (number, status) in [(Signal::TERM, Some(0)), (Signal::INT, Some(0))] {
        let mut command = dies_with_parent(server_binary(), None);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--wait-for", "600"])
            .env(
                "AGENTCFG_DATABASE_URL",
                format!("postgres://agentcfg@{}/agentcfg", free_address()),
            )
            .env("AGENTCFG_SESSION_SECRET", "a secret of a test that has enough bytes")
            .stderr(Stdio::piped());
        let mut child = spawn(command).unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let pid = rustix::process::Pid::from_child(&child);
        let mut says = |text: &str| said.by_ref().map(Result::unwrap).any(|line| line.contains(text));
        assert!(says("database"));
        rustix::process::kill_process(pid, Signal::HUP).unwrap();
        assert!(says("the settings are read again when the server has started"));
        rustix::process::kill_process(pid, number).unwrap();
        assert!(said.any(|line| line.unwrap().contains("stopped before the server was ready")));
        assert_eq!(child.wait().unwrap().code(), status);
    }
}

#[test]
fn a_hangup_reads_the_log_filter_again_and_other_signals_are_logged() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("settings.toml");
    std::fs::write(&file, "log = \"info\"\n").unwrap();
    let server = Server::builder().argument("--config").argument(&file).start();
    let is_logged = |text: &str| {
        server.get("/healthz").send().expect(200);
        server.stderr().contains(text)
    };
    assert!(!is_logged("DEBUG"));
    for (signal, name) in [
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::VTALARM, "SIGVTALRM"),
        (Signal::PROF, "SIGPROF"),
        (Signal::IO, "SIGIO"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::POWER, "SIGPWR"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::SYS, "SIGSYS"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::STKFLT, "SIGSTKFLT"),
    ] {
        server.signal(signal);
        eventually("the signal is logged", || is_logged(name));
    }
    std::fs::write(&file, "log = \"no such level, at all=\"\n").unwrap();
    server.signal(Signal::HUP);
    eventually("the settings are refused", || is_logged("the old ones stay"));
    std::fs::write(&file, "log = \"debug\"\n").unwrap();
    server.signal(Signal::HUP);
    eventually("the filter is taken", || is_logged("DEBUG"));
    server.signal(Signal::TERM);
    assert!(server.wait().success());
}

#[test]
fn a_hangup_takes_limits_and_prices() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("settings.toml");
    let write = |agents: u32, price: &str, provider: &str| {
        let model = format!("[[models]]\nid = \"small\"\nprovider = \"{provider}\"\ninput_price = {price}\n");
        let limits =
            format!("default_plan = \"free\"\nplan_limit_free = {agents}\nmax_workspaces_per_user = {agents}\n");
        std::fs::write(&file, limits + &model).unwrap();
    };
    write(1, "1.5", "openai");
    let server = Server::builder().argument("--config").argument(&file).start();
    let studio = Studio::on(&server);
    let price = || {
        let models = format!("/api/models?workspace_id={}", studio.id);
        let models = server.get(models).bearer(&studio.owner).send().expect(200).json();
        models[0]["input_price"].clone()
    };
    studio.create("first", &Value::Null).expect(201);
    studio.create("second", &Value::Null).expect(422);
    let second = serde_json::json!({"name": "second"});
    let workspace = || {
        server
            .post("/api/workspaces")
            .bearer(&studio.owner)
            .json(&second)
            .send()
    };
    workspace().expect(422);
    assert_eq!(price(), 1.5);
    // A provider that the start did not know is refused, and nothing is taken.
    write(2, "2", "vllm");
    std::fs::write(
        &file,
        std::fs::read_to_string(&file).unwrap()
            + "[[providers]]\nid = \"vllm\"\napi = \"openai\"\nbase_url = \"http://127.0.0.1:9\"\n",
    )
    .unwrap();
    server.signal(Signal::HUP);
    eventually("the provider is refused", || {
        server.stderr().contains("needs a restart")
    });
    studio.create("second", &Value::Null).expect(422);
    write(2, "2", "openai");
    server.signal(Signal::HUP);
    eventually("the settings are taken", || server.stderr().contains("read again: log"));
    studio.create("second", &Value::Null).expect(201);
    workspace().expect(201);
    assert_eq!(price(), 2);
}

#[test]
fn a_malformed_request_is_logged_with_the_address_of_its_client() {
    let server = Server::start();
    let mut wire = Wire::connect(server.address());
    wire.send("G(ET / HTTP/1.1\r\nHost: x\r\n\r\n");
    eventually("the refusal is logged", || {
        let log = server.stderr();
        let line = log.lines().find(|line| line.contains("refused a malformed request"));
        line.is_some_and(|line| line.contains("client=127.0.0.1"))
    });
}

#[test]
fn idle_connections_do_not_delay_the_shutdown() {
    let server = Server::start();
    let mut idle: Vec<_> = (0..5).map(|_| Wire::connect(server.address())).collect();
    server.get("/healthz").send_on(&mut idle[0]).expect(200);
    let began = std::time::Instant::now();
    server.stop();
    assert!(began.elapsed().as_secs() < 10, "took {:?}", began.elapsed());
    assert!(idle.iter_mut().all(Wire::is_closed));
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let server = Server::start();
    let mut hanging = Wire::connect(server.address());
    hanging.send(
        "POST /api/workspaces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\
         Authorization: Bearer ",
    );
    hanging.send(server.token("u")).send("\r\n\r\n{");
    // The log shows that the first signal has arrived; two signals that arrive together would count as one.
    server.get("/healthz").send().expect(200);
    server.signal(Signal::TERM);
    eventually("the first signal arrives", || server.stderr().contains("shutting down"));
    assert_eq!(server.ended(), None, "a request is in flight");
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(130));
}

#[test]
fn all_records_survive_a_restart() {
    let server = Server::builder().set("default_plan", "enterprise").start();
    let studio = Studio::on(&server);
    for id in ["a", "b", "c"] {
        studio.create(id, &Value::Null).expect(201);
    }
    studio.remove("b").expect(200);
    let (live, dead) = (studio.key("admin"), studio.key("admin"));
    studio.revoke(&dead);
    let (list, log) = (studio.list(), studio.audit());
    server.stop();
    let server = Server::builder()
        .data(server.data())
        .set("default_plan", "enterprise")
        .start();
    let studio = Studio {
        server: &server,
        ..studio.clone()
    };
    assert_eq!((studio.list().json(), studio.list().etag()), (list.json(), list.etag()));
    assert_eq!(studio.audit(), log);
    server.get("/api/workspaces").bearer(&live.key).send().expect(200);
    server.get("/api/workspaces").bearer(&dead.key).send().expect(401);
    studio.create("b", &Value::Null).refused(409, &["deactivated"]);
}

#[test]
fn a_start_prints_no_secret() {
    let server = Server::start();
    let said = format!("{}{}", server.stdout(), server.stderr());
    assert!(!said.contains("svc_") && !said.contains("eyJ"), "{said}");
}
