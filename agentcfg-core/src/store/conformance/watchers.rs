//! Guarantee 8: watchers are notified after each commit that writes what they watch.
//!
//! A store that gives no watchers passes: the service reads the heads of its logs instead.

use super::*;

/// An append notifies the watchers of the log, and a report those of the status, and the read that follows finds the
/// commit.
pub async fn a_commit_notifies_the_watchers_of_what_it_wrote(store: Arc<dyn Store>) {
    let (log, other) = (workspace(2), workspace(3));
    let status = Key::in_workspace(log, Kind::Status, "a");
    let watch = |workspace, kind| store.watch(workspace, kind);
    let (Some(mut head), Some(mut report), Some(elsewhere)) = (
        watch(log, Kind::LogHead),
        watch(log, Kind::Status),
        watch(other, Kind::LogHead),
    ) else {
        return;
    };
    for number in 1..=20_u64 {
        write(&store, [append(log, "entry")]).await;
        head.changed().await;
        assert!(read(&store, &Key::log_entry(log, number)).await.is_some());
        write(&store, [put(&status, number)]).await;
        report.changed().await;
        assert_eq!(value(&store, &status).await, number);
    }
    assert!(!elsewhere.has_changed(), "nothing was written in that workspace");
    write(&store, [Write::Delete(status)]).await;
    report.changed().await;
}

/// A watcher that marks before it reads and waits after it misses no commit of concurrent writers.
pub async fn no_commit_is_missed_between_a_read_and_a_wait(store: Arc<dyn Store>) {
    const ENTRIES: u64 = 200;
    let log = workspace(2);
    let Some(mut head) = store.watch(log, Kind::LogHead) else {
        return;
    };
    let writer = Arc::clone(&store);
    let writing = tokio::spawn(async move {
        for _ in 0..ENTRIES {
            write(&writer, [append(log, "entry")]).await;
        }
    });
    loop {
        head.mark_seen();
        if value(&store, &Key::log_head(log)).await == ENTRIES {
            break;
        }
        head.changed().await;
    }
    writing.await.unwrap();
}
