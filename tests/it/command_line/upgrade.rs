//! Stores of older releases, and starts beside keys.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use agentcfg_tests::harness::{NOBODY, Server, run, scratch, server_binary};

/// A data directory with a store file that a release without block checksums wrote.
fn older(dir: &Path) -> PathBuf {
    let data = dir.join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agentcfg-core/tests/golden/store-v1.redb");
    let store = data.join("store.redb");
    fs::copy(golden, &store).unwrap();
    fs::set_permissions(&store, Permissions::from_mode(0o600)).unwrap();
    data
}

/// What `check` prints about a store. The older file has records without their workspace, which a check reports.
fn checked(data: &Path) -> String {
    let finished = run(["check", "--data", data.to_str().unwrap()]);
    format!("{}{}", finished.stdout, finished.stderr)
}

#[test]
fn a_store_of_an_older_release_is_converted_at_the_start() {
    let dir = scratch();
    let data = older(dir.path());
    let said = checked(&data);
    assert!(said.contains("has no block checksums"), "{said}");
    let server = Server::builder().data(&data).start();
    assert!(
        server.stderr().contains("the store file was converted"),
        "{}",
        server.stderr()
    );
    server.stop();
    let said = checked(&data);
    assert!(said.contains("has block checksums"), "{said}");
    let mode = data.join("store.redb").metadata().unwrap().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let again = Server::builder().data(&data).start();
    assert!(!again.stderr().contains("converted"), "{}", again.stderr());
}

#[test]
fn a_converted_store_keeps_its_owner() {
    let dir = scratch();
    let data = older(dir.path());
    let store = data.join("store.redb");
    if chown(&store, Some(NOBODY), Some(NOBODY)).is_err() {
        return agentcfg_tests::harness::not_run("only root can give a file to another user");
    }
    let out = dir.path().join("copy");
    run([
        "backup",
        "--data",
        data.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ])
    .succeeded();
    assert!(checked(&data).contains("has block checksums"));
    let found = store.metadata().unwrap();
    assert_eq!((found.uid(), found.gid()), (NOBODY, NOBODY));
}

/// Kills the first start at many moments. Whatever it had done, the next one finds a whole store.
#[test]
fn a_kill_during_the_conversion_leaves_a_whole_store() {
    let dir = scratch();
    for round in 0..12 {
        let own = dir.path().join(round.to_string());
        fs::create_dir(&own).unwrap();
        let data = older(&own);
        let mut child = Command::new(server_binary())
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(&data)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The rounds differ by the number of reads of the directory before the kill.
        for _ in 0..round * 400 {
            let _ = fs::read_dir(&data).map(Iterator::count);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let said = checked(&data);
        assert!(said.contains("block checksums"), "{said}");
        let server = Server::builder().data(&data).start();
        server.stop();
        let drafts = fs::read_dir(&data).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().ends_with(".tmp")
        });
        assert_eq!(drafts.count(), 0);
    }
}

#[test]
fn a_token_before_the_first_start_is_valid_after_it() {
    let dir = scratch();
    let data = dir.path().join("data");
    let text = data.to_str().unwrap();
    let token = run(["token", "--user", "ada", "--data", text]).succeeded();
    let server = Server::builder().data(&data).start();
    server.get("/api/workspaces").bearer(token.trim()).send().expect(200);
}
