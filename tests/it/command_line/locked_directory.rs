//! A data directory that another process has locked.

use agentcfg_tests::harness::{Run, Server, Studio, run, scratch};
use serde_json::Value;

#[test]
fn a_second_server_reports_the_process_that_locks_the_data() {
    let server = Server::start();
    let studio = Studio::on(&server);
    let data = server.data().to_str().unwrap();
    let said = [
        data,
        &server.pid().to_string(),
        &server.address().to_string(),
        "stop it",
        "--data",
    ];
    for _ in 0..2 {
        run(["serve", "--data", data, "--listen", "127.0.0.1:0"]).failed_with(&said);
    }
    studio.create("still-serving", &Value::Null).expect(201);
}

#[test]
fn check_and_restore_refuse_data_that_a_server_has_locked() {
    let server = Server::start();
    let data = server.data().to_str().unwrap();
    run(["check", "--data", data]).failed_with(&[data, &server.pid().to_string()]);
    let out = server.data().join("../copy");
    run(["backup", "--data", data, "--out", out.to_str().unwrap()]).succeeded();
    run(["restore", "--from", out.to_str().unwrap(), "--data", data]).failed_with(&["already has a store"]);
    server.get("/readyz").send().expect(200);
}

#[test]
fn a_token_can_be_issued_while_a_server_runs() {
    let server = Server::start();
    let token = server.token("meanwhile");
    server.get("/api/workspaces").bearer(token).send().expect(200);
}

#[test]
fn a_killed_server_leaves_no_lock() {
    let server = Server::start();
    let data = server.data().to_owned();
    server.kill();
    let next = Server::builder().data(&data).start();
    next.get("/readyz").send().expect(200);
}

#[test]
fn a_data_path_that_is_no_directory_is_named() {
    let dir = scratch();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let path = file.to_str().unwrap();
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["token", "--user", "u"],
        &["check"],
    ] {
        let arguments = arguments.iter().copied().chain(["--data", path]);
        Run::new(arguments)
            .finish()
            .failed_with(&[path, "is a file, and no data directory"]);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x");
}
