//! Full disks and failing writes: reads are served all the time, commits are refused, and served again once there is
//! room.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::super::{CommitError, StoreError};
use super::super::room::{RESERVE, Space};
use super::super::shared_state::Status;
use super::faulty_disk::{Disk, Operation, options};
use super::*;

/// Makes all writes fail for want of room while `is_full`.
fn fill_up(disk: &Disk, is_full: &Arc<AtomicBool>) {
    let is_full = Arc::clone(is_full);
    disk.set_hook(move |operation| {
        let writes = matches!(operation, Operation::Write | Operation::Resize);
        match writes && is_full.load(Ordering::SeqCst) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    });
}

/// Readers on threads of their own, of every record and of the list.
fn read_until<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    store: &'scope RedbStore,
    stop: &'scope AtomicBool,
) {
    for _ in 0..2 {
        scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            while !stop.load(Ordering::SeqCst) {
                runtime.block_on(async {
                    let found = store.get(&[agent("agent-1"), agent("agent-2")]).await.unwrap();
                    assert!(found.iter().all(Option::is_some));
                    let all = Scan::all(Partition::Workspace(workspace()), Kind::Agent);
                    assert!(store.scan(&all).await.unwrap().entries.len() >= 39);
                });
            }
        });
    }
}

#[test]
fn no_read_fails_while_writes_fail_and_the_store_heals() {
    let disk = Disk::default();
    // Without caches every read goes to the file.
    let store = disk.store(&RedbOptions {
        hot_bytes: 0,
        ..options()
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(fill(&store));
    let (is_full, stop) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    fill_up(&disk, &is_full);
    std::thread::scope(|scope| {
        read_until(scope, &store, &stop);
        for round in 0..20 {
            is_full.store(true, Ordering::SeqCst);
            let late = batch([], [put("late", &format!("\"{round}\""))]);
            let refused = runtime.block_on(store.commit(late.clone()));
            assert!(matches!(refused, Err(CommitError::Store(_))), "{refused:?}");
            is_full.store(false, Ordering::SeqCst);
            assert!(runtime.block_on(store.until_ready()));
            // The pause after a full disk ends within a second.
            let outcome = loop {
                match runtime.block_on(store.commit(late.clone())) {
                    Err(CommitError::Store(StoreError::Unavailable(_))) => std::thread::yield_now(),
                    outcome => break outcome,
                }
            };
            assert!(outcome.is_ok(), "{outcome:?}");
        }
        stop.store(true, Ordering::SeqCst);
    });
    let condition = store.condition();
    assert!(condition.failures >= 20, "{condition:?}");
}

#[tokio::test]
async fn reads_are_served_at_every_point_of_failure_of_a_commit() {
    // Writes and syncs fail from the nth on, for each n until the commit succeeds.
    for allowed in 0_u32.. {
        let disk = Disk::default();
        let store = disk.store(&RedbOptions {
            hot_bytes: 0,
            ..options()
        });
        fill(&store).await;
        let before = dump(&store).await;
        let mut left = allowed;
        disk.set_hook(move |operation| {
            if operation != Operation::Read {
                left = left.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            }
            Ok(())
        });
        let long = format!("\"{}\"", "x".repeat(50_000));
        let outcome = store.commit(batch([], [put("a", &long)])).await;
        let served = dump(&store).await;
        if outcome.is_ok() {
            assert_eq!(served.len(), before.len() + 1);
            assert!(allowed > 4, "a commit takes more than {allowed} operations");
            return;
        }
        // A failure after the last sync, such as that of cutting the file, leaves the commit done.
        let is_done = served.len() == before.len() + 1;
        let is_unknown = matches!(outcome, Err(CommitError::Store(StoreError::OutcomeUnknown(_))));
        assert!(served == before || is_done && is_unknown, "after {allowed} operations");
        disk.work();
        assert!(store.until_ready().await);
        assert!(dump(&store).await.len() >= before.len());
    }
}

/// What the store serves while its file cannot be reopened at all.
#[tokio::test]
async fn the_last_committed_state_is_served_as_long_as_the_file_cannot_be_reopened() {
    let disk = Disk::default();
    let store = disk.store(&RedbOptions {
        hot_bytes: 0,
        ..options()
    });
    fill(&store).await;
    let before = dump(&store).await;
    disk.fail(&[Operation::Open, Operation::Write, Operation::Sync]);
    assert!(store.commit(batch([], [put("late", "1")])).await.is_err());
    for _ in 0..50 {
        assert!(dump(&store).await == before);
        assert!(store.commit(batch([], [put("late", "1")])).await.is_err());
    }
    assert_eq!(store.status(), Status::Recovering);
    assert!(store.read_only().is_some());
    let mut copy = Vec::new();
    assert_eq!(store.backup(&mut copy).unwrap().records, before.len() as u64);
    disk.work();
    assert!(store.until_ready().await);
    assert_eq!(store.read_only(), None);
    store.commit(batch([], [put("late", "1")])).await.unwrap();
    assert_eq!(dump(&store).await.len(), before.len() + 1);
}

#[tokio::test]
async fn a_commit_that_the_disk_has_no_room_for_does_not_touch_the_file() {
    let disk = Disk::default();
    let store = disk.store(&options());
    fill(&store).await;
    let free = Arc::new(AtomicU64::new(RESERVE - 1));
    let measured = Arc::clone(&free);
    store.shared.health().room().measure(move || {
        let free = measured.load(Ordering::SeqCst);
        Some(Space { free, total: 1 << 40 })
    });
    disk.set_hook(|operation| match operation {
        Operation::Read => Ok(()),
        other => Err(io::Error::other(format!("{other:?} on a full disk"))),
    });
    assert!(!store.is_ready());
    for _ in 0..10 {
        let refused = store.commit(batch([], [put("late", "1")])).await;
        assert!(
            matches!(&refused, Err(CommitError::Store(StoreError::Unavailable(why))) if why.contains("disk is full")),
            "{refused:?}"
        );
        assert!(store.get(&[agent("agent-1")]).await.unwrap()[0].is_some());
    }
    assert!(store.read_only().unwrap().contains("disk is full"));
    let condition = store.condition();
    assert_eq!((condition.failures, condition.refused_commits), (0, 10));

    disk.work();
    free.store(RESERVE + 100, Ordering::SeqCst);
    store.commit(batch([], [put("late", "1")])).await.unwrap();
    assert!(
        !store.is_ready() && store.read_only().is_some(),
        "the next one may find no room"
    );
    // A commit of many bytes needs more room.
    let long = format!("\"{}\"", "x".repeat(50_000));
    assert!(store.commit(batch([], [put("long", &long)])).await.is_err());
    free.store(RESERVE + 200_000, Ordering::SeqCst);
    store.commit(batch([], [put("long", &long)])).await.unwrap();
    assert!(!store.is_ready());
    free.store(8 * RESERVE, Ordering::SeqCst);
    assert!(store.is_ready() && store.read_only().is_none());
    let condition = store.condition();
    assert_eq!(condition.free_bytes, Some(8 * RESERVE));
}

/// A disk that turns out to be full although it seemed to have room: each attempt reads the whole file, so they are
/// rare.
#[tokio::test]
async fn attempts_on_a_full_disk_that_seems_to_have_room_are_bounded() {
    let disk = Disk::default();
    let store = disk.store(&options());
    fill(&store).await;
    let is_full = Arc::new(AtomicBool::new(true));
    fill_up(&disk, &is_full);
    for _ in 0..2_000 {
        assert!(store.commit(batch([], [put("late", "1")])).await.is_err());
    }
    let condition = store.condition();
    assert!(condition.failures < 100, "{condition:?}");
    assert!(condition.refused_commits > 1_900, "{condition:?}");
}

/// A read of the last committed state that lasts until the file is open again may not see blocks that were used again.
#[tokio::test]
async fn a_read_of_the_last_committed_state_ends_when_its_blocks_may_be_reused() {
    let disk = Disk::default();
    let store = disk.store(&RedbOptions {
        hot_bytes: 0,
        ..options()
    });
    fill(&store).await;
    let before = dump(&store).await;
    disk.fail(&[Operation::Open, Operation::Write, Operation::Sync]);
    assert!(store.commit(batch([], [put("late", "1")])).await.is_err());
    let snapshot = store.shared.begin_read().unwrap();
    disk.work();
    assert!(store.until_ready().await);
    for number in 0..60 {
        let long = format!("\"{}\"", number.to_string().repeat(4000));
        store
            .commit(batch([], [put(&format!("agent-{}", number % 20), &long)]))
            .await
            .unwrap();
    }
    for (key, record) in before {
        if let Ok(found) = super::super::read::get(&snapshot, &[key.encode()]) {
            assert_eq!(found[0].as_ref(), Some(&record), "a wrong answer");
        }
    }
}
