//! The queue of the writer, and closing.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use super::super::super::{CommitError, StoreError};
use super::super::state::Shared;
use super::super::writer::commit_group;
use super::disk::{Disk, Operation, options};
use super::*;

/// Holds the writer at its next sync: tells when it is there, and lets go when the sender is dropped.
fn hold(disk: &Disk) -> (Receiver<()>, Sender<()>) {
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
async fn a_full_queue_refuses_and_what_waits_shares_one_commit() {
    let disk = Disk::default();
    let store = disk.store(&RedbOptions {
        queue_depth: 2,
        ..options()
    });
    let (arrival, release) = hold(&disk);
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
async fn a_batch_counts_even_if_nobody_waits_for_its_answer() {
    let disk = Disk::default();
    let store = disk.store(&options());
    let (arrival, release) = hold(&disk);
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
async fn closing_answers_what_waits() {
    let disk = Disk::default();
    let store = disk.store(&options());
    let (arrival, release) = hold(&disk);
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

/// Polls its future on whatever thread wakes it, so the future ends on the writer's own.
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
fn the_last_handle_may_be_dropped_on_the_thread_of_the_writer() {
    let disk = Disk::default();
    let store = disk.store(&options());
    let shared = store.shared.clone();
    let (arrival, release) = hold(&disk);
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
    // Each holder of the shared state but this one goes when the writer has ended.
    while Arc::strong_count(&shared) > 1 {
        std::thread::yield_now();
    }
    assert_eq!(shared.status(), super::super::Status::Closed);
}

#[test]
fn a_group_costs_as_many_syncs_as_one_batch_and_a_refusal_none() {
    let disk = Disk::default();
    let shared = Shared::new(disk.opener(&options())().unwrap(), 1 << 20);
    let syncs = Arc::new(AtomicU32::new(0));
    disk.set_hook({
        let syncs = syncs.clone();
        move |operation| {
            syncs.fetch_add((operation == Operation::Sync).into(), Ordering::Relaxed);
            Ok(())
        }
    });
    let cost = |group: Vec<Batch>| {
        let (verdicts, fault) = commit_group(&shared, group);
        assert!(fault.is_none());
        (
            verdicts.iter().filter(|verdict| verdict.is_ok()).count(),
            syncs.swap(0, Ordering::Relaxed),
        )
    };
    // Two phases are two syncs: first the pages, then the switch to them.
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
