//! Guarantee 9: trackers know each change.
//!
//! A store that gives no trackers passes: the service reads all records of the kind each time.

use std::collections::HashMap;

use super::super::Changed;
use super::*;

fn report(item: &str) -> Key {
    Key::in_workspace(workspace(2), Kind::Status, item)
}

/// A tracker has the items that commits have put and deleted, and those alone, when the commit is answered.
pub async fn a_tracker_has_what_commits_have_changed(store: Arc<dyn Store>) {
    let Some(tracker) = store.track(workspace(2), Kind::Status) else {
        return;
    };
    assert_eq!(tracker.take(), Changed::All, "nothing was read yet");
    assert!(!tracker.has_changed());
    write(&store, [put(&report("a"), 1), append(workspace(2), "entry")]).await;
    assert!(tracker.has_changed());
    assert_eq!(tracker.take(), Changed::Items(vec!["a".into()]));
    write(&store, [put(&Key::in_workspace(workspace(3), Kind::Status, "b"), 1)]).await;
    write(&store, [put(&Key::in_workspace(workspace(2), Kind::Agent, "c"), 1)]).await;
    let refused = try_commit(&store, [Check::Absent(report("a"))], [put(&report("a"), 2)]).await;
    assert!(refused.is_err());
    if tracker.has_changed() {
        // A refused batch may be noted too.
        assert_eq!(tracker.take(), Changed::Items(vec!["a".into()]));
    }
    write(&store, [Write::Delete(report("a"))]).await;
    assert_eq!(tracker.take(), Changed::Items(vec!["a".into()]));
    assert_eq!(tracker.take(), Changed::Items(vec![]));
}

/// A reader that reads again what its tracker names has all that concurrent writers were answered.
pub async fn a_reader_that_follows_its_tracker_has_each_answered_commit(store: Arc<dyn Store>) {
    const WRITERS: u64 = 4;
    const WRITES: u64 = 100;
    let Some(tracker) = store.track(workspace(2), Kind::Status) else {
        return;
    };
    let mut writing = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = Arc::clone(&store);
        writing.spawn(async move {
            for number in 1..=WRITES {
                write(&store, [put(&report(&format!("a{writer}")), number)]).await;
            }
        });
    }
    let mut seen: HashMap<Box<str>, Value> = HashMap::new();
    let follow = async |seen: &mut HashMap<Box<str>, Value>| match tracker.take() {
        Changed::All => {
            let scan = Scan::all(Partition::Workspace(workspace(2)), Kind::Status);
            let found = store.scan(&scan).await.expect("a scan succeeds").entries;
            *seen = found
                .iter()
                .map(|(key, record)| (key.item().into(), parse(record)))
                .collect();
        }
        Changed::Items(items) => {
            for item in items {
                let now = value(&store, &report(&item)).await;
                seen.insert(item, now);
            }
        }
    };
    while !writing.is_empty() {
        follow(&mut seen).await;
        if writing.try_join_next().is_none() {
            tokio::task::yield_now().await;
        }
    }
    follow(&mut seen).await;
    assert_eq!(seen.len() as u64, WRITERS);
    assert!(seen.values().all(|value| *value == WRITES), "{seen:?}");
}
