//! Compaction: what the new file has, what it has no more, and what goes on meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use super::super::super::StoreError;
use super::super::{CompactError, Compacted, Status, check};
use super::*;

/// A text that only the deleted records have.
const ERASED: &[u8] = b"erased-by-its-owner";

fn contains(path: &Path, text: &[u8]) -> bool {
    std::fs::read(path)
        .unwrap()
        .windows(text.len())
        .any(|part| part == text)
}

/// Records with a marked text that are deleted again.
async fn fill_and_erase(store: &RedbStore) {
    let text = format!("\"{}{}\"", String::from_utf8_lossy(ERASED), "x".repeat(4000));
    let name = |number: usize| format!("erased-{number}");
    for number in 0..200 {
        store.commit(batch([], [put(&name(number), &text)])).await.unwrap();
    }
    for number in 0..200 {
        store
            .commit(batch([], [Write::Delete(agent(&name(number)))]))
            .await
            .unwrap();
    }
}

fn compact(store: &Arc<RedbStore>) -> Result<Compacted, CompactError> {
    let store = Arc::clone(store);
    std::thread::spawn(move || store.compact(|_| {})).join().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_file_has_the_records_alone_and_the_store_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = Arc::new(open(&path));
    fill(&store).await;
    fill_and_erase(&store).await;
    let before = dump(&store).await;
    assert!(contains(&path, ERASED), "the engine keeps free pages");
    let done = compact(&store).unwrap();
    assert_eq!(done.records, before.len() as u64);
    assert!(done.bytes_after < done.bytes_before, "{done:?}");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), done.bytes_after);
    assert!(!contains(&path, ERASED));
    assert_eq!(store.status(), Status::Ready);
    assert_eq!(dump(&store).await, before);
    // Versions continue, and what is committed from now on is in the new file.
    let greatest = before.iter().map(|(_, record)| record.version).max().unwrap();
    let committed = store.commit(batch([], [put("agent-3", "1")])).await.unwrap();
    assert!(committed.numbers[0] > greatest);
    let before = dump(&store).await;
    compact(&store).unwrap();
    store.close();
    assert!(check(&path).unwrap().is_sound());
    assert_eq!(dump(&open(&path)).await, before);
    let names: Vec<_> = place
        .path()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["store.redb"], "nothing else is left behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_and_writers_go_on_meanwhile() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = Arc::new(open(&path));
    fill(&store).await;
    let known = dump(&store).await;
    let ended = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn({
        let (store, ended, known) = (Arc::clone(&store), Arc::clone(&ended), known.clone());
        async move {
            let mut rounds = 0_u64;
            while !ended.load(Ordering::Relaxed) {
                for (key, record) in &known {
                    if key.kind() == Kind::Agent && key.item() != "counted" {
                        assert_eq!(
                            store.get(std::slice::from_ref(key)).await.unwrap(),
                            [Some(record.clone())]
                        );
                    }
                }
                rounds += 1;
                tokio::task::yield_now().await;
            }
            rounds
        }
    });
    let writer = tokio::spawn({
        let (store, ended) = (Arc::clone(&store), Arc::clone(&ended));
        async move {
            let mut last = 0;
            while !ended.load(Ordering::Relaxed) {
                last += 1;
                store
                    .commit(batch([], [put("counted", &last.to_string())]))
                    .await
                    .unwrap();
            }
            last
        }
    });
    for _ in 0..10 {
        compact(&store).unwrap();
    }
    ended.store(true, Ordering::Relaxed);
    assert!(reader.await.unwrap() > 0);
    let last: u64 = writer.await.unwrap();
    let found = store.get(&[agent("counted")]).await.unwrap().remove(0).unwrap();
    assert_eq!(&*found.value, last.to_string().as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_store_is_left_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = Arc::new(open(&path));
    fill(&store).await;
    // An entry that the head of its log does not count.
    let entry = Write::Put(Key::log_entry(workspace(), 90), b"{}".to_vec());
    store.commit(batch([], [entry])).await.unwrap();
    let before = dump(&store).await;
    assert!(matches!(
        compact(&store),
        Err(CompactError::Store(StoreError::Corrupt(_)))
    ));
    assert_eq!(dump(&store).await, before);
    assert_eq!(place.path().read_dir().unwrap().count(), 1, "no draft is left");
    store.close();
    assert!(matches!(
        compact(&store),
        Err(CompactError::Store(StoreError::Unavailable(_)))
    ));
}

#[test]
fn an_open_removes_what_a_killed_compaction_has_left() {
    let place = tempfile::tempdir().unwrap();
    let left = |name: &str| place.path().join(name);
    let others = [
        ".store.redb.staged.7-0.tmp",
        ".store.redb.7-0.tmp.old",
        ".store.redb.a-0.tmp",
        "store.redb.7-0.tmp",
    ];
    for name in others.iter().chain(&[".store.redb.7-12.tmp"]) {
        std::fs::write(left(name), "").unwrap();
    }
    drop(open(&left("store.redb")));
    assert!(!left(".store.redb.7-12.tmp").exists());
    assert!(others.iter().all(|name| left(name).exists()), "they are not its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_file_is_little_longer_than_its_records() {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(open(&place.path().join("store.redb")));
    let mut dice = Dice::new();
    let mut bytes = 0;
    for number in 0..200 {
        let texts = (0..50).map(|_| "x".repeat(200 + dice.below(1500))).collect::<Vec<_>>();
        bytes += texts.iter().map(String::len).sum::<usize>() as u64;
        let texts = texts.iter().enumerate();
        let writes =
            texts.map(|(place, text)| put(&format!("agent-{}-{number}", place * 7919 % 50), &format!("\"{text}\"")));
        store.commit(batch([], writes.collect::<Vec<_>>())).await.unwrap();
    }
    let done = compact(&store).unwrap();
    assert!(done.bytes_after < bytes * 3 / 2, "{done:?} for {bytes} bytes");
    let again = compact(&store).unwrap();
    assert_eq!(again.records, done.records);
}
