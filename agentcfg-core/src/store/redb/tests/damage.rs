//! Damage in use: calls that need the damaged block are refused, all others are served.

use std::os::unix::fs::FileExt;

use super::super::{Scrub, check};
use super::*;

/// Two workspaces far apart, and a file in which the block with a text of the first one is damaged.
async fn damaged(path: &Path) -> Key {
    let store = open(path);
    fill(&store).await;
    let victim = agent("victim");
    let text = format!("\"the-victim-{}\"", "v".repeat(3000));
    for number in 0..30 {
        let near = Write::Put(agent(&format!("agent-{number}-near")), text.clone().into_bytes());
        store.commit(batch([], [near])).await.unwrap();
    }
    let put = Write::Put(victim.clone(), b"\"here-is-the-victim\"".to_vec());
    store.commit(batch([], [put])).await.unwrap();
    drop(store);
    flip(path);
    victim
}

fn flip(path: &Path) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let bytes = std::fs::read(path).unwrap();
    let text = b"here-is-the-victim";
    for at in (0..bytes.len() - text.len()).filter(|at| bytes[*at..].starts_with(text)) {
        file.write_all_at(b"X", at as u64).unwrap();
    }
}

#[tokio::test]
async fn calls_that_need_a_damaged_block_are_refused_and_others_are_served() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let victim = damaged(&path).await;
    let store = open(&path);
    let other = Key::global("key-1", Kind::ApiKey, "");
    for _ in 0..3 {
        let refused = store.get(std::slice::from_ref(&victim)).await;
        assert!(
            matches!(refused, Err(super::super::super::StoreError::Unavailable(_))),
            "{refused:?}"
        );
        let refused = store
            .commit(batch([], [Write::Put(victim.clone(), b"1".to_vec())]))
            .await;
        assert!(refused.is_err(), "{refused:?}");
        assert!(store.get(std::slice::from_ref(&other)).await.unwrap()[0].is_some());
        store
            .commit(batch([], [Write::Put(other.clone(), b"{}".to_vec())]))
            .await
            .unwrap();
        assert!(store.is_ready(), "the file is not reopened");
    }
    assert_eq!(store.condition().damaged_blocks, 1);
    assert!(store.backup(Vec::new()).is_err());
    drop(store);
    let report = check(&path).unwrap();
    let told = report.problems[0].to_string();
    assert!(
        told.contains("does not match its checksum") && told.contains("/Agent/agent-"),
        "{report:?}"
    );
}

#[tokio::test]
async fn a_scrub_finds_damage_before_a_request_does() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    damaged(&path).await;
    let store = open(&path);
    let mut scrub = Scrub::default();
    while !store.scrub(&mut scrub).unwrap() {}
    assert_eq!(store.condition().damaged_blocks, 1);
}

#[tokio::test]
async fn a_scrub_finds_damage_that_the_cache_hides() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = open(&path);
    fill(&store).await;
    let put = Write::Put(agent("victim"), b"\"here-is-the-victim\"".to_vec());
    store.commit(batch([], [put])).await.unwrap();
    let mut scrub = Scrub::default();
    while !store.scrub(&mut scrub).unwrap() {}
    let condition = store.condition();
    assert_eq!(condition.damaged_blocks, 0);
    assert!(condition.scrubbed_bytes > 0);
    flip(&path);
    assert!(
        store.get(&[agent("victim")]).await.unwrap()[0].is_some(),
        "the cache has it"
    );
    while !store.scrub(&mut scrub).unwrap() {}
    assert!(store.condition().damaged_blocks > 0);
}

#[tokio::test]
async fn a_store_whose_file_was_removed_refuses_commits_and_makes_backups() {
    let place = tempfile::tempdir().unwrap();
    let (path, moved) = (place.path().join("store.redb"), place.path().join("moved.redb"));
    let store = open(&path);
    fill(&store).await;
    store.ready().await.unwrap();
    assert!(store.is_ready());
    std::fs::rename(&path, &moved).unwrap();
    for (change, what) in [(None, "was removed"), (Some("another file"), "was replaced")] {
        if let Some(content) = change {
            std::fs::write(&path, content).unwrap();
        }
        let refused = store
            .commit(batch([], [put("late", "1")]))
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains(what), "{refused}");
        store.ready().await.unwrap();
        let why = store.read_only().unwrap();
        assert!(!store.is_ready() && why.contains(what), "{why}");
        assert!(store.get(&[agent("agent-1")]).await.unwrap()[0].is_some());
        let mut copy = Vec::new();
        assert!(store.backup(&mut copy).unwrap().records > 0);
    }
    std::fs::rename(&moved, &path).unwrap();
    store.commit(batch([], [put("late", "1")])).await.unwrap();
}

#[tokio::test]
async fn a_store_whose_file_was_truncated_refuses_commits() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = open(&path);
    fill(&store).await;
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let refused = store.commit(batch([], [put("late", "1")])).await.unwrap_err();
    assert!(refused.to_string().contains("was truncated"), "{refused}");
    assert!(!store.is_ready());
    std::fs::write(&path, &whole).unwrap();
    store.commit(batch([], [put("late", "1")])).await.unwrap();
}

#[tokio::test]
async fn a_scrub_beside_a_writer_finds_nothing() {
    let place = tempfile::tempdir().unwrap();
    let options = RedbOptions {
        // So that reads go to the file.
        cache_bytes: 0,
        hot_bytes: 0,
        ..RedbOptions::default()
    };
    let store = RedbStore::open(place.path().join("store.redb"), options).unwrap();
    let stopped = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, stopped) = (&store, &stopped);
        scope.spawn(move || {
            let mut scrub = Scrub::default();
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                store.scrub(&mut scrub).unwrap();
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let writing = scope.spawn(move || {
            runtime.block_on(async {
                for number in 0..150_usize {
                    let text = format!("\"{}\"", "x".repeat(number * 397 % 20_000));
                    let item = format!("agent-{}", number % 23);
                    store.commit(batch([], [put(&item, &text)])).await.unwrap();
                    assert!(store.get(&[agent(&item)]).await.unwrap()[0].is_some());
                }
            });
        });
        let written = writing.join();
        stopped.store(true, std::sync::atomic::Ordering::Relaxed);
        written.unwrap();
    });
    assert_eq!(store.condition().damaged_blocks, 0);
}
