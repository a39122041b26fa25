//! Guarantee 7: a stamp ends before the commit that changes its key is answered.
//!
//! A store that gives no stamps passes: it has nothing to guarantee here.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::JoinSet;

use super::*;

/// Every kind of write invalidates the stamps of the keys that it changes, also stamps of absent keys.
pub async fn a_write_ends_the_stamps_of_its_keys(store: Arc<dyn Store>) {
    let (record, total, log) = (agent("a"), counter("c"), workspace(2));
    let head = Key::log_head(log);
    let keys = [record.clone(), total.clone(), head, Key::log_entry(log, 1)];
    let stamps: Vec<_> = keys.iter().map(|key| store.stamp(key)).collect();
    for key in &keys {
        assert_eq!(read(&store, key).await, None);
    }
    write(&store, [put(&record, 1), add(&total, 1, None), append(log, "first")]).await;
    for (key, stamp) in keys.iter().zip(stamps) {
        let is_current = stamp.is_some_and(|stamp| store.is_current(stamp));
        assert!(!is_current, "{key:?} was written");
    }
    let stamp = store.stamp(&record);
    write(&store, [Write::Delete(record.clone())]).await;
    assert!(
        !stamp.is_some_and(|stamp| store.is_current(stamp)),
        "the key was deleted"
    );
}

/// A stamp that is current after a refused batch still guarantees the value that was read.
pub async fn a_refused_batch_keeps_stamps_current(store: Arc<dyn Store>) {
    let key = agent("a");
    write(&store, [put(&key, "first")]).await;
    let stamp = store.stamp(&key);
    let kept = read(&store, &key).await;
    assert!(
        try_commit(&store, [Check::Absent(key.clone())], [put(&key, "second")])
            .await
            .is_err()
    );
    if stamp.is_some_and(|stamp| store.is_current(stamp)) {
        assert_eq!(read(&store, &key).await, kept);
    }
}

/// Under concurrent writes, a value with a current stamp is never older than the last answered commit.
pub async fn stamps_end_before_the_commit_is_answered(store: Arc<dyn Store>) {
    const WRITERS: usize = 4;
    const WRITES: u64 = 50;
    let total = counter("c");
    let answered = Arc::new(AtomicU64::new(0));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, total, answered) = (store.clone(), total.clone(), answered.clone());
        writers.spawn(async move {
            for _ in 0..WRITES {
                let sum = write(&store, [add(&total, 1, None)]).await[0];
                answered.fetch_max(sum, Ordering::SeqCst);
            }
        });
    }
    let reader = |store: Arc<dyn Store>, total: Key, answered: Arc<AtomicU64>| async move {
        let mut kept: Option<(Stamp, u64)> = None;
        loop {
            let least = answered.load(Ordering::SeqCst);
            let good = kept.filter(|(stamp, _)| store.is_current(*stamp));
            let shown = match good {
                Some((_, kept)) => kept,
                None => {
                    let stamp = store.stamp(&total);
                    let read = value(&store, &total).await.as_u64().unwrap_or(0);
                    kept = stamp.map(|stamp| (stamp, read));
                    read
                }
            };
            assert!(shown >= least, "{shown} was shown after {least} was answered");
            if least == WRITERS as u64 * WRITES {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let mut readers = JoinSet::new();
    for _ in 0..2 {
        readers.spawn(reader(store.clone(), total.clone(), answered.clone()));
    }
    writers.join_all().await;
    readers.join_all().await;
}
