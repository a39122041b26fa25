//! `check`, and a server on damaged data.

use std::fs;
use std::path::Path;

use agentcfg_tests::harness::{Server, Studio, Wire, run};
use serde_json::{Value, json};

const MARK: &str = "mark-of-the-damaged-record";

/// Changes one letter of the mark wherever it occurs in the file; returns the number of occurrences.
fn damage(file: &Path) -> usize {
    let mut bytes = fs::read(file).unwrap();
    let places: Vec<_> = (0..bytes.len() - MARK.len())
        .filter(|at| bytes[*at..].starts_with(MARK.as_bytes()))
        .collect();
    for at in &places {
        bytes[*at] = b'b';
    }
    fs::write(file, bytes).unwrap();
    places.len()
}

fn filled() -> (Server, String) {
    let server = Server::builder().set("default_plan", "enterprise").start();
    let studio = Studio::on(&server);
    for number in 0..20 {
        studio.create(&format!("a{number}"), &Value::Null).expect(201);
    }
    let data = server.data().to_str().unwrap().to_owned();
    (server, data)
}

#[test]
fn an_intact_store_passes_the_check() {
    let (server, data) = filled();
    server.stop();
    let said = run(["check", "--data", &data]).succeeded();
    assert!(said.starts_with("sound: ") && said.contains(&data), "{said}");
}

#[test]
fn a_damaged_record_is_named_with_a_remedy() {
    let (server, data) = filled();
    let studio = Studio::on(&server);
    studio.create("victim", &json!({"role": MARK})).expect(201);
    server.stop();
    assert!(damage(&server.data().join("store.redb")) > 0);
    let finished = run(["check", "--data", &data]);
    assert_eq!(finished.status.code(), Some(1), "{finished:?}");
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(said.contains("restore") && said.contains(&data), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn a_damaged_block_is_503_without_details_and_is_logged() {
    let (server, data) = filled();
    let studio = Studio::on(&server);
    studio.create("victim", &json!({"role": MARK})).expect(201);
    // Damage affects the whole block. Records of no workspace follow those of the last workspace, so another workspace
    // keeps them in other blocks.
    let between = Studio::on(&server);
    for number in 0..20 {
        between.create(&format!("b{number}"), &Value::Null).expect(201);
    }
    server.stop();
    assert!(damage(&server.data().join("store.redb")) > 0);
    let server = Server::builder().data(&data).start();
    let request = server.request(
        "PATCH",
        format!("/api/agents/configs?agent_id=victim&workspace_id={}", studio.id),
    );
    let request = request
        .bearer(&studio.owner)
        .header("X-Request-Id", "the-one")
        .json(&json!({}));
    let mut wire = Wire::connect(server.address());
    let answer = wire.send(request.to_bytes()).receive("PATCH").unwrap();
    assert_eq!(answer.status, 503, "{answer:?}");
    for internal in ["checksum", "victim", "store", "redb", "mark"] {
        assert!(!answer.error().contains(&format!(" {internal} ")), "{answer:?}");
    }
    assert_eq!(answer.need("x-request-id"), "the-one");
    assert!(
        server.stderr().contains("the-one"),
        "the id finds the line: {}",
        server.stderr()
    );
    let other = Studio {
        server: &server,
        ..Studio::on(&server)
    };
    assert_eq!(other.list().json(), json!([]), "others are not harmed");
}

#[test]
fn a_file_that_is_no_store_is_refused_by_every_command() {
    let (server, data) = filled();
    server.stop();
    let store = server.data().join("store.redb");
    let good = fs::read(&store).unwrap();
    for bytes in [
        b"this is no store".repeat(1000),
        good[..good.len() / 3].to_vec(),
        vec![0; good.len()],
        Vec::new(),
    ] {
        fs::write(&store, &bytes).unwrap();
        let finished = run(["check", "--data", &data]);
        assert_eq!(finished.status.code(), Some(1), "{finished:?}");
        assert!(!finished.stderr.contains("panicked"), "{finished:?}");
        run(["serve", "--data", &data, "--listen", "127.0.0.1:0"]).failed_with(&[&data, "restore"]);
        assert_eq!(fs::read(&store).unwrap(), bytes, "nothing was changed");
    }
}

#[test]
fn a_check_without_a_store_is_refused() {
    let dir = agentcfg_tests::harness::scratch();
    let path = dir.path().to_str().unwrap();
    run(["check", "--data", path]).failed_with(&[path, "no store"]);
    let nowhere = format!("{path}/nowhere");
    run(["check", "--data", &nowhere]).failed_with(&["does not exist", "--data"]);
    assert!(!Path::new(&nowhere).exists());
}
