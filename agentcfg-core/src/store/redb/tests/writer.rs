//! The writer's queue, group commit, and closing.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use super::super::super::{CommitError, StoreError};
use super::super::shared_state::StoreState;
use super::super::writer::commit_group;
use super::faulty_disk::{Disk, Operation, options};
use super::*;

/// Blocks the writer at its next sync. The receiver signals that the writer is there; dropping the
/// sender unblocks it.
fn block_at_sync(disk: &Disk) -> (Receiver<()>, Sender<()>) {
    let (arrived, arrival) = channel();
    let (release, held) = channel::<()>();
    disk.set_hook(move |operation| {
        if operation == Operation::Sync {
            let _ = arrived.send(());
            let _ = held.recv();
        }
        Ok(())
    });
    (arrival, release)
}

fn is_pending(future: std::pin::Pin<&mut impl Future>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[tokio::test]
async fn a_full_queue_refuses_and_queued_batches_share_one_commit() {
    let disk = Disk::default();
    let store = disk.store(&RedbOptions {
        queue_depth: 2,
        ..options()
    });
    let (arrival, release) = block_at_sync(&disk);
    let mut first = pin!(store.commit(batch([], [put("a", "1")])));
    assert!(is_pending(first.as_mut()));
    arrival.recv().unwrap();

    let mut second = pin!(store.commit(batch([Check::Absent(agent("a"))], [put("a", "2")])));
    let mut third = pin!(store.commit(batch([], [put("c", "1")])));
    assert!(is_pending(second.as_mut()) && is_pending(third.as_mut()));
    let fourth = store.commit(batch([], [put("d", "1")])).await;
    assert!(
        matches!(fourth, Err(CommitError::Store(StoreError::Unavailable(_)))),
        "{fourth:?}"
    );

    drop(release);
    assert!(first.await.is_ok());
    assert_eq!(second.await, Err(CommitError::Conflict(0)));
    assert!(third.await.is_ok());
}

#[tokio::test]
async fn a_batch_is_committed_even_if_its_caller_was_dropped() {
    let disk = Disk::default();
    let store = disk.store(&options());
    let (arrival, release) = block_at_sync(&disk);
    {
        let mut abandoned = pin!(store.commit(batch([], [put("a", "1")])));
        assert!(is_pending(abandoned.as_mut()));
        arrival.recv().unwrap();
    }
    drop(release);
    store.commit(batch([Check::Absent(agent("b"))], [])).await.unwrap();
    assert!(store.get(&[agent("a")]).await.unwrap()[0].is_some());
}

#[tokio::test]
async fn closing_commits_and_answers_the_queued_batches() {
    let disk = Disk::default();
    let store = disk.store(&options());
    let (arrival, release) = block_at_sync(&disk);
    let mut first = pin!(store.commit(batch([], [put("a", "1")])));
    assert!(is_pending(first.as_mut()));
    arrival.recv().unwrap();
    let mut second = pin!(store.commit(batch([], [put("b", "1")])));
    assert!(is_pending(second.as_mut()));
    drop(release);
    store.close();
    assert!(first.await.is_ok() && second.await.is_ok());

    let refused = store.commit(batch([], [put("c", "1")])).await;
    assert!(
        matches!(refused, Err(CommitError::Store(StoreError::Unavailable(_)))),
        "{refused:?}"
    );
    assert!(matches!(
        store.get(&[agent("a")]).await,
        Err(StoreError::Unavailable(_))
    ));
    store.close();

    disk.work();
    let store = disk.store(&options());
    assert!(
        store
            .get(&[agent("a"), agent("b")])
            .await
            .unwrap()
            .iter()
            .all(Option::is_some)
    );
}

/// Polls its future on the thread that wakes it, so the future completes on the writer thread.
struct Inline(Mutex<Option<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>>);

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        let mut future = self.0.lock().unwrap();
        let waker = Waker::from(self.clone());
        let done = future
            .as_mut()
            .is_some_and(|f| f.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(()));
        if done {
            *future = None;
        }
    }
}

#[test]
fn the_last_handle_may_be_dropped_on_the_writer_thread() {
    let disk = Disk::default();
    let store = disk.store(&options());
    let shared = store.shared.clone();
    let (arrival, release) = block_at_sync(&disk);
    let (done, end) = channel();
    let future = Box::pin(async move {
        store.commit(batch([], [put("a", "1")])).await.unwrap();
        drop(store);
        done.send(()).unwrap();
    });
    Arc::new(Inline(Mutex::new(Some(future)))).wake();
    arrival.recv().unwrap();
    drop(release);
    end.recv().unwrap();
    // This is the only reference to the shared state once the writer has ended.
    while Arc::strong_count(&shared) > 1 {
        std::thread::yield_now();
    }
    assert_eq!(shared.status(), super::super::Status::Closed);
}

#[test]
fn a_group_commit_syncs_as_often_as_one_batch_and_a_refusal_never() {
    let disk = Disk::default();
    let shared = StoreState::new(disk.opener(&options())().unwrap(), &options(), Arc::default());
    let syncs = Arc::new(AtomicU32::new(0));
    disk.set_hook({
        let syncs = syncs.clone();
        move |operation| {
            syncs.fetch_add((operation == Operation::Sync).into(), Ordering::Relaxed);
            Ok(())
        }
    });
    let cost = |group: Vec<Batch>| {
        let (verdicts, fault) = commit_group(&shared, group, false);
        assert!(fault.is_none());
        (
            verdicts.iter().filter(|verdict| verdict.is_ok()).count(),
            syncs.swap(0, Ordering::Relaxed),
        )
    };
    // A two-phase commit syncs twice: the pages, then the header that makes them current.
    assert_eq!(cost(vec![batch([], [put("a", "1")])]), (1, 2));
    assert_eq!(
        cost(
            (0..50)
                .map(|number| batch([], [put(&number.to_string(), "1")]))
                .collect()
        ),
        (50, 2)
    );
    assert_eq!(cost(vec![batch([Check::Absent(agent("a"))], [put("a", "2")])]), (0, 0));
}
