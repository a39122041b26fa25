use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinSet;

use super::*;

/// How often a holder decides at most: once, and again if a commit was on its way.
const DECISIONS: usize = 4;

async fn append_held(store: &Arc<dyn Store>, hold: &crate::store::Hold, head: &Record) -> bool {
    let log = workspace(1);
    let batch = Batch {
        checks: vec![Check::Version(Key::log_head(log), head.version)],
        writes: vec![append(log, "held")],
    };
    match store.commit_held(hold, batch).await {
        Ok(_) => true,
        Err(CommitError::Conflict(0)) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Guarantee 11: a decision on a whole workspace is made however busy its other writers are.
pub async fn a_holder_goes_before_writers_that_never_rest(store: Arc<dyn Store>) {
    let log = workspace(1);
    write(&store, [append(log, 0)]).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for _ in 0..4 {
        let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
        writers.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                write(&store, [append(workspace(1), 1)]).await;
                // An engine in memory answers at once.
                tokio::task::yield_now().await;
            }
        });
    }
    for _ in 0..3 {
        let Some(hold) = store.hold(log).await.expect("a hold is given or not") else {
            break;
        };
        let mut is_done = false;
        for _ in 0..DECISIONS {
            let head = read(&store, &Key::log_head(log)).await.expect("the log has entries");
            // Long enough for many commits of others, if they did not wait.
            for _ in 0..50 {
                read(&store, &agent("long")).await;
                tokio::task::yield_now().await;
            }
            is_done = append_held(&store, &hold, &head).await;
            if is_done {
                break;
            }
        }
        assert!(is_done, "others committed all the time");
    }
    stop.store(true, Ordering::SeqCst);
    while let Some(writer) = writers.join_next().await {
        writer.expect("a writer goes on after a hold");
    }
}

/// Guarantee 11: others wait as long as the hold lives, and no longer.
pub async fn a_hold_ends_when_it_is_dropped(store: Arc<dyn Store>) {
    let log = workspace(1);
    write(&store, [append(log, 0)]).await;
    for is_used in [true, false] {
        let Some(hold) = store.hold(log).await.expect("a hold is given or not") else {
            return;
        };
        let waiting = tokio::spawn({
            let store = Arc::clone(&store);
            async move { write(&store, [append(workspace(1), 1)]).await }
        });
        let others = [append(workspace(2), 1), add(&counter("c"), 1, None)];
        for write_of_others in others {
            write(&store, [write_of_others]).await;
        }
        let head = read(&store, &Key::log_head(log)).await.expect("the log has entries");
        if is_used {
            assert!(append_held(&store, &hold, &head).await);
        }
        assert!(!waiting.is_finished(), "it waits");
        drop(hold);
        waiting.await.expect("it goes on");
        // The next one gets it.
        drop(store.hold(log).await.expect("a hold is given or not"));
    }
}
