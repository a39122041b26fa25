//! Golden files: store files and backups of earlier releases, which every later release must read.
//!
//! A released golden file is never regenerated. A release with another format adds its own files:
//! `cargo test -p agentcfg-core --all-features -- --ignored make_the_golden_files`.

use std::path::PathBuf;

use super::super::{Problem, check, restore};
use super::*;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The content of the files of format 1.
fn content() -> Vec<Batch> {
    let count = |delta| Write::Add {
        counter: Key::in_workspace(workspace(), Kind::Counter, "agents"),
        delta,
        max: None,
    };
    let entry = |text: &str| Write::Append {
        log: workspace(),
        value: format!("{{\"action\":\"{text}\"}}").into_bytes(),
    };
    let global = Key::global("user-ä", Kind::Membership, workspace().to_string());
    vec![
        batch(
            [],
            [
                put("first", "{\"name\":\"Grüße\",\"number\":0.1}"),
                count(2),
                entry("agent.created"),
            ],
        ),
        batch(
            [],
            [
                put("second", "[]"),
                Write::Put(global, b"{\"role\":\"owner\"}".to_vec()),
                entry("member.set"),
            ],
        ),
        batch(
            [],
            [Write::Delete(agent("second")), count(-1), entry("agent.deactivated")],
        ),
    ]
}

async fn verify(store: &RedbStore) {
    let keys = [
        agent("first"),
        agent("second"),
        Key::in_workspace(workspace(), Kind::Counter, "agents"),
        Key::log_head(workspace()),
        Key::log_entry(workspace(), 2),
        Key::global("user-ä", Kind::Membership, workspace().to_string()),
    ];
    let found = store.get(&keys).await.unwrap();
    let found: Vec<_> = found
        .iter()
        .flatten()
        .map(|record| (record.version, &*record.value))
        .collect();
    let expected: [(u64, &[u8]); 5] = [
        (1, "{\"name\":\"Grüße\",\"number\":0.1}".as_bytes()),
        (9, b"1"),
        (11, b"3"),
        (7, b"{\"action\":\"member.set\"}"),
        (6, b"{\"role\":\"owner\"}"),
    ];
    assert_eq!(found, expected);
    let committed = store.commit(batch([], [put("third", "1")])).await.unwrap();
    assert_eq!(committed.numbers, [12]);
}

#[tokio::test]
async fn the_store_file_of_format_1_opens() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    std::fs::copy(golden("store-v1.redb"), &path).unwrap();
    let report = check(&path).unwrap();
    // The file was made without the workspace's own record, so its records belong to none that exists.
    assert!(
        matches!(report.problems[..], [Problem::Remains(_, id)] if id == workspace()),
        "{report:?}"
    );
    verify(&open(&path)).await;
}

#[tokio::test]
async fn the_backup_of_format_1_restores() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    restore(std::fs::File::open(golden("store-v1.backup")).unwrap(), &path).unwrap();
    verify(&open(&path)).await;
}

#[tokio::test]
async fn the_store_file_of_block_format_1_opens() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    std::fs::copy(golden("store-blocks-v1.redb"), &path).unwrap();
    let report = check(&path).unwrap();
    assert!(report.block_checksums, "{report:?}");
    assert!(
        matches!(report.problems[..], [Problem::Remains(_, id)] if id == workspace()),
        "{report:?}"
    );
    verify(&open(&path)).await;
}

#[tokio::test]
#[ignore = "generates the golden files"]
async fn make_the_golden_files() {
    let file = golden("store-blocks-v1.redb");
    assert!(!file.exists(), "released files are never overwritten");
    let store = open(&file);
    for batch in content() {
        store.commit(batch).await.unwrap();
    }
    drop(store);
    // Keeps the golden file small.
    raw(&file).compact().unwrap();
}
