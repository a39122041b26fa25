//! `compact`, and backups to standard output and compressed.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use agentcfg_tests::harness::{Server, Studio, run, scratch, server_binary};
use serde_json::{Value, json};

/// A text that only a deleted workspace has.
const ERASED: &str = "erased-by-its-owner";

fn enterprise_server() -> Server {
    Server::builder().set("default_plan", "enterprise").start()
}

fn data(server: &Server) -> &str {
    server.data().to_str().unwrap()
}

fn contains(path: &Path, text: &str) -> bool {
    let bytes = fs::read(path).unwrap();
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// A studio with agents whose prompts have the text, which is deleted again.
fn erase_a_studio(server: &Server) {
    let studio = Studio::on(server);
    for number in 0..20 {
        let prompt = format!("{ERASED} {}", "x".repeat(4000));
        studio
            .create(&format!("a{number}"), &json!({ "persona_prompt": prompt }))
            .expect(201);
    }
    let target = format!("/api/workspaces?workspace_id={}&confirm=Studio", studio.id);
    server.delete(target).bearer(&studio.owner).send().expect(200);
}

#[test]
fn a_compacted_store_has_no_text_of_a_deleted_workspace() {
    let server = enterprise_server();
    let kept = Studio::on(&server);
    kept.create("kept", &json!({"persona_prompt": "kept"})).expect(201);
    erase_a_studio(&server);
    let store = server.data().join("store.redb");
    assert!(contains(&store, ERASED));
    let (list, log) = (kept.list().json(), kept.audit());
    // What the server has not removed in the background by now is removed first.
    let said = run(["compact", "--data", data(&server)]).succeeded();
    assert!(!contains(&store, ERASED));
    assert!(said.contains("bytes before") && said.contains("bytes now"), "{said}");
    assert_eq!((kept.list().json(), kept.audit()), (list.clone(), log.clone()));
    // A change after it is in the new file.
    kept.create("later", &Value::Null).expect(201);
    let list = kept.list().json();
    server.get("/readyz").send().expect(200);
    server.stop();
    run(["check", "--data", data(&server)]).succeeded();
    let said = run(["compact", "--data", data(&server)]).succeeded();
    assert!(said.contains("compacted"), "{said}");
    let again = Server::builder().data(data(&server)).start();
    let kept = Studio {
        server: &again,
        owner: again.token(&kept.user),
        ..kept.clone()
    };
    assert_eq!(kept.list().json(), list);
}

#[test]
fn a_stopped_server_is_compacted_without_the_text_of_a_deleted_workspace() {
    let server = enterprise_server();
    erase_a_studio(&server);
    server.kill();
    run(["compact", "--data", data(&server)]).succeeded();
    assert!(!contains(&server.data().join("store.redb"), ERASED));
    run(["check", "--data", data(&server)]).succeeded();
}

#[test]
fn a_server_serves_while_it_compacts() {
    let server = enterprise_server();
    let studio = Studio::on(&server);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut made = 0;
            while !done.load(Ordering::Relaxed) {
                studio.create(&format!("a{made}"), &Value::Null).expect(201);
                studio.list().expect(200);
                made += 1;
            }
            made
        });
        for _ in 0..5 {
            run(["compact", "--data", data(&server)]).succeeded();
        }
        done.store(true, Ordering::Relaxed);
        let made: usize = writer.join().unwrap();
        assert_eq!(studio.agent_ids().len(), made);
    });
}

#[test]
fn a_directory_without_a_store_is_not_compacted() {
    let place = scratch();
    let nowhere = place.path().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    run(["compact", "--data", nowhere]).failed_with(&[nowhere, "does not exist", "--data"]);
    run(["compact"]).failed_with(&["--data", "AGENTCFG_DATA"]);
}

/// Restores a backup into a new directory, and compares the studio.
fn is_whole(backup: &Path, studio: &Studio<'_>, list: &Value) {
    let new = format!("{}-restored", backup.display());
    run(["restore", "--from", backup.to_str().unwrap(), "--data", &new]).succeeded();
    let restored = Server::builder().data(&new).start();
    let studio = Studio {
        server: &restored,
        owner: restored.token(&studio.user),
        ..studio.clone()
    };
    assert_eq!(studio.list().json(), *list);
}

#[test]
fn a_backup_can_be_compressed_and_go_to_standard_output() {
    let (place, server) = (scratch(), enterprise_server());
    let studio = Studio::on(&server);
    studio
        .create("a", &json!({"persona_prompt": "again and ".repeat(400)}))
        .expect(201);
    let list = studio.list().json();
    let path = |name: &str| place.path().join(name);
    let (plain, compressed, piped) = (path("plain"), path("compressed"), path("piped"));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    run(["backup", "--data", data(&server), "--out", &text(&plain)]).succeeded();
    run([
        "backup",
        "--data",
        data(&server),
        "--compress",
        "--out",
        &text(&compressed),
    ])
    .succeeded();
    assert!(fs::metadata(&compressed).unwrap().len() * 2 < fs::metadata(&plain).unwrap().len());
    let to_output = |arguments: &[&str]| {
        let ended = Command::new(server_binary())
            .args(["backup", "--data", data(&server), "--out", "-"])
            .args(arguments)
            .env_clear()
            .stdout(File::create(&piped).unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.success() && said.starts_with("wrote "), "{said}");
    };
    to_output(&[]);
    is_whole(&piped, &studio, &list);
    to_output(&["--compress"]);
    is_whole(&compressed, &studio, &list);
    let new = text(&path("from-input"));
    let restored = Command::new(server_binary())
        .args(["restore", "--from", "-", "--data", &new])
        .env_clear()
        .stdin(Stdio::from(File::open(&piped).unwrap()))
        .output()
        .unwrap();
    assert!(
        restored.status.success(),
        "{}",
        String::from_utf8_lossy(&restored.stderr)
    );
    run(["check", "--data", &new]).succeeded();
    // A broken one is refused.
    let bytes = fs::read(&compressed).unwrap();
    let broken = path("broken");
    for end in [bytes.len() / 2, bytes.len() - 1] {
        fs::write(&broken, &bytes[..end]).unwrap();
        let target = text(&path("broken-restored"));
        run(["restore", "--from", &text(&broken), "--data", &target]).failed_with(&["cannot restore"]);
    }
}
