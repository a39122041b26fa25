//! `backup` and `restore`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use agentcfg_tests::harness::{Server, Studio, run, scratch, server_binary};
use serde_json::{Value, json};
use tempfile::TempDir;

struct BackupDir(TempDir);

impl BackupDir {
    fn new() -> Self {
        Self(scratch())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
}

fn data(server: &Server) -> &str {
    server.data().to_str().unwrap()
}

fn enterprise_server() -> Server {
    Server::builder().set("default_plan", "enterprise").start()
}

#[test]
fn a_cold_backup_contains_the_store_and_prints_the_restore_command() {
    let (backups, server) = (BackupDir::new(), enterprise_server());
    let studio = Studio::on(&server);
    let key = studio.key("admin");
    studio.create("a", &Value::Null).expect(201);
    let (list, log) = (studio.list().json(), studio.audit());
    server.stop();
    let (copy, new) = (backups.path("copy"), backups.path("new"));
    let said = run(["backup", "--data", data(&server), "--out", &copy]).succeeded();
    assert!(said.contains(&format!("restore --from {copy}")), "{said}");
    let said = run(["restore", "--from", &copy, "--data", &new]).succeeded();
    assert!(said.contains(&format!("serve --data {new}")), "{said}");
    run(["check", "--data", &new]).succeeded();
    let restored = Server::builder().data(&new).start();
    let studio = Studio {
        server: &restored,
        owner: restored.token(&studio.user),
        ..studio.clone()
    };
    assert_eq!((studio.list().json(), studio.audit()), (list, log));
    restored.get("/api/workspaces").bearer(&key.key).send().expect(200);
}

#[test]
fn a_command_succeeds_though_what_it_prints_is_lost() {
    let (backups, server) = (BackupDir::new(), enterprise_server());
    Studio::on(&server).create("a", &Value::Null).expect(201);
    server.stop();
    let (copy, new) = (backups.path("copy"), backups.path("new"));
    let unread = |arguments: &[&str]| {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = Command::new(server_binary())
            .args(arguments)
            .env_clear()
            .stdout(full)
            .output()
            .unwrap();
        (ended.status.success(), String::from_utf8(ended.stderr).unwrap())
    };
    for arguments in [
        &["backup", "--data", data(&server), "--out", &copy][..],
        &["restore", "--from", &copy, "--data", &new],
        &["check", "--data", &new],
    ] {
        assert_eq!(unread(arguments), (true, String::new()), "{arguments:?}");
    }
    run(["check", "--data", &new]).succeeded();
    let restored = Server::builder().data(&new).start();
    assert_eq!(
        unread(&["rotate-master-key", "--data", &new]),
        (true, String::new()),
        "by the server"
    );
    drop(restored);
    let (is_good, said) = unread(&["token", "--user", "ada", "--data", &new]);
    assert!(!is_good && said.contains("cannot write to standard output"), "{said}");
}

#[test]
fn a_tag_from_before_a_restore_is_not_accepted_after_it() {
    let (backups, server) = (BackupDir::new(), enterprise_server());
    let studio = Studio::on(&server);
    studio.create("a", &Value::Null).expect(201);
    let (copy, new) = (backups.path("copy"), backups.path("new"));
    run(["backup", "--data", data(&server), "--out", &copy]).succeeded();
    let (tag, list_tag) = (studio.change("a", &json!({})).etag(), studio.list().etag());
    let cursor = studio.list().need("change-cursor").to_owned();
    server.stop();
    run(["restore", "--from", &copy, "--data", &new]).succeeded();
    let restored = Server::builder().data(&new).start();
    let studio = Studio {
        server: &restored,
        owner: restored.token(&studio.user),
        ..studio.clone()
    };
    // As many changes as before, so that the numbers of the versions are the same again.
    assert_ne!(studio.change("a", &json!({})).etag(), tag);
    let change = studio.on_agent("PATCH", "a").json(&json!({}));
    change.header("If-Match", tag).send().expect(412);
    let list = studio.list_request("").header("If-None-Match", list_tag);
    list.send().expect(200);
    // A reader of the change feed must read the list again.
    let target = format!("/api/changes?workspace_id={}&after={cursor}", studio.id);
    let changes = restored.get(target).bearer(&studio.owner);
    changes.send().refused(410, &["read the list again"]);
}

#[test]
fn a_hot_backup_is_a_consistent_snapshot_under_writes() {
    let (backups, server) = (BackupDir::new(), enterprise_server());
    let studio = Studio::on(&server);
    let done = AtomicBool::new(false);
    let copies: Vec<_> = (0..3).map(|number| backups.path(&format!("copy-{number}"))).collect();
    thread::scope(|scope| {
        for writer in 0..2 {
            let (studio, done) = (&studio, &done);
            scope.spawn(move || {
                let mut number = 0;
                while !done.load(Ordering::Relaxed) {
                    studio.create(&format!("w{writer}-{number}"), &Value::Null).expect(201);
                    number += 1;
                }
            });
        }
        for copy in &copies {
            studio.create(&format!("before-{}", copy.len()), &Value::Null);
            run(["backup", "--data", data(&server), "--out", copy]).succeeded();
        }
        done.store(true, Ordering::Relaxed);
    });
    for copy in &copies {
        let new = format!("{copy}-restored");
        run(["restore", "--from", copy, "--data", &new]).succeeded();
        let restored = Server::builder().data(&new).start();
        let studio = Studio {
            server: &restored,
            owner: restored.token(&studio.user),
            ..studio.clone()
        };
        let agents = studio.agent_ids().len();
        assert!(agents > 0);
        assert_eq!(
            studio.audit().len(),
            (agents + 1).min(1000),
            "each agent with its entry, and the workspace"
        );
    }
}

#[test]
fn a_backup_is_readable_by_its_owner_only_and_contains_no_key() {
    let (backups, server) = (BackupDir::new(), Server::start());
    server.token("u");
    let copy = backups.path("copy");
    run(["backup", "--data", data(&server), "--out", &copy]).succeeded();
    assert_eq!(fs::metadata(&copy).unwrap().mode() & 0o777, 0o600);
    let secret = fs::read(server.data().join("session.key")).unwrap();
    let bytes = fs::read(&copy).unwrap();
    assert!(!bytes.windows(secret.len()).any(|window| window == secret));
    assert_eq!(server.data().join("control.sock").metadata().unwrap().mode() & 0o077, 0);
}

#[test]
fn a_backup_overwrites_no_file_and_leaves_no_partial_file() {
    let (backups, server) = (BackupDir::new(), Server::start());
    let copy = backups.path("copy");
    fs::write(&copy, "precious").unwrap();
    run(["backup", "--data", data(&server), "--out", &copy]).failed_with(&[&copy, "exists", "--out"]);
    assert_eq!(fs::read_to_string(&copy).unwrap(), "precious");
    let nowhere = backups.path("no/such/dir/copy");
    run(["backup", "--data", data(&server), "--out", &nowhere]).failed_with(&["no/such/dir"]);
    assert_eq!(fs::read_dir(backups.0.path()).unwrap().count(), 1);
}

#[test]
fn a_backup_without_a_store_is_refused_with_a_remedy() {
    let backups = BackupDir::new();
    let (nowhere, copy) = (backups.path("nowhere"), backups.path("copy"));
    run(["backup", "--data", &nowhere, "--out", &copy]).failed_with(&[&nowhere, "does not exist", "--data"]);
    let empty = backups.path("empty");
    fs::create_dir(&empty).unwrap();
    run(["backup", "--data", &empty, "--out", &copy]).failed_with(&[&empty, "no store"]);
    assert!(!PathBuf::from(copy).exists());
}

#[test]
fn a_restore_does_not_touch_an_existing_store() {
    let (backups, server) = (BackupDir::new(), enterprise_server());
    let studio = Studio::on(&server);
    let copy = backups.path("copy");
    run(["backup", "--data", data(&server), "--out", &copy]).succeeded();
    studio.create("later", &Value::Null).expect(201);
    server.stop();
    run(["restore", "--from", &copy, "--data", data(&server)]).failed_with(&["already has a store", "--data"]);
    let again = Server::builder().data(server.data()).start();
    let studio = Studio {
        server: &again,
        ..studio.clone()
    };
    assert_eq!(studio.agent_ids(), ["later"]);
}

#[test]
fn an_incomplete_backup_is_refused_and_leaves_no_store() {
    let (backups, server) = (BackupDir::new(), enterprise_server());
    let studio = Studio::on(&server);
    studio.create("a", &Value::Null).expect(201);
    let copy = backups.path("copy");
    run(["backup", "--data", data(&server), "--out", &copy]).succeeded();
    let good = fs::read(&copy).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 0x20;
    let mut bad: Vec<(String, Vec<u8>)> = vec![
        ("empty".into(), Vec::new()),
        ("text".into(), b"this is no backup\n".repeat(100)),
        ("flipped".into(), flipped),
        ("longer".into(), [&good[..], b"x"].concat()),
    ];
    bad.extend(
        [1, 10, good.len() / 2, good.len() - 1].map(|length| (format!("cut-{length}"), good[..length].to_vec())),
    );
    for (name, bytes) in bad {
        let (from, new) = (backups.path(&name), backups.path(&format!("{name}-new")));
        fs::write(&from, bytes).unwrap();
        run(["restore", "--from", &from, "--data", &new]).failed_with(&[&from]);
        assert!(!PathBuf::from(new).join("store.redb").exists(), "{name}");
    }
    let nowhere = backups.path("nowhere");
    run(["restore", "--from", &nowhere, "--data", &backups.path("n")]).failed_with(&[&nowhere]);
}

#[test]
fn a_running_server_detects_and_saves_a_removed_store() {
    let server = Server::start();
    let studio = Studio::on(&server);
    studio.create("kept", &Value::Null).expect(201);
    let store = server.data().join("store.redb");
    fs::remove_file(&store).unwrap();
    studio.create("late", &Value::Null).expect(503);
    let ready = server.get("/readyz").send().expect(200).json();
    assert_eq!(ready, serde_json::json!({"status": "degraded", "reason": "read-only"}));
    let listed = studio.list().json();
    assert_eq!(listed[0]["agent_id"], "kept", "reads are served: {listed}");
    let dir = scratch();
    let copy = dir.path().join("copy").to_str().unwrap().to_owned();
    run(["backup", "--data", data(&server), "--out", &copy]).succeeded();
    server.stop();
    run(["serve", "--data", data(&server), "--listen", "127.0.0.1:0"]).failed_with(&[
        "master.key",
        "no store",
        "restore --from",
    ]);
    run(["restore", "--from", &copy, "--data", data(&server)]).succeeded();
    let again = Server::builder().data(data(&server)).start();
    let studio = Studio {
        server: &again,
        ..studio
    };
    assert_eq!(studio.list().json()[0]["agent_id"], "kept");
}
