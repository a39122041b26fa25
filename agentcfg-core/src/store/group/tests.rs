//! Tests with an engine that does what the test says.
#![allow(clippy::unwrap_used)]

mod random;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::*;
use crate::model::WorkspaceId;
use crate::store::{Check, Key, Kind, MemoryStore, Record, Store, Write};

/// An engine on the store in memory. Each group waits for a permit of the test.
struct Scripted {
    store: MemoryStore,
    permits: Semaphore,
    /// The sizes of the groups that started.
    started: mpsc::UnboundedSender<usize>,
    running: AtomicUsize,
    most: AtomicUsize,
    near: AtomicBool,
    /// The pause after a group of more than one batch, in milliseconds.
    pause: AtomicU64,
    fault: Mutex<Option<Fault>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Panic,
    /// The verdicts of all batches but the refused ones are unknown.
    Unknown,
    NoVerdict,
}

#[async_trait]
impl GroupEngine for Scripted {
    fn is_near(&self) -> bool {
        self.near.load(Ordering::SeqCst)
    }

    fn pause(&self, size: usize, _: Duration) -> Duration {
        let pause = if size > 1 { self.pause.load(Ordering::SeqCst) } else { 0 };
        Duration::from_millis(pause)
    }

    async fn commit_group(&self, batches: Vec<Batch>) -> Vec<Result<Committed, CommitError>> {
        self.most
            .fetch_max(self.running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        self.started.send(batches.len()).unwrap();
        self.permits.acquire().await.unwrap().forget();
        let fault = self.fault.lock().unwrap().take();
        let mut verdicts = Vec::new();
        for batch in batches {
            verdicts.push(self.store.commit(batch).await);
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
        match fault {
            None => verdicts,
            Some(Fault::Panic) => panic!("the engine's defect"),
            Some(Fault::NoVerdict) => Vec::new(),
            Some(Fault::Unknown) => verdicts
                .into_iter()
                .map(|verdict| match verdict {
                    Ok(_) => Err(StoreError::OutcomeUnknown("cut off".into()).into()),
                    refused => refused,
                })
                .collect(),
        }
    }
}

struct Bench {
    engine: Arc<Scripted>,
    groups: Arc<GroupCommit<Arc<Scripted>>>,
    started: mpsc::UnboundedReceiver<usize>,
}

type Caller = JoinHandle<Result<Committed, CommitError>>;

const LIMITS: Limits = Limits {
    group: 8,
    bytes: 1000,
    lane: 16,
    queue: 24,
    flights: 2,
    slow: Duration::from_secs(1),
    most: 3,
    queue_timeout: Duration::from_secs(5),
};

impl Bench {
    fn new(limits: Limits) -> Self {
        let (sender, started) = mpsc::unbounded_channel();
        let engine = Arc::new(Scripted {
            store: MemoryStore::new(),
            permits: Semaphore::new(0),
            started: sender,
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            near: AtomicBool::new(false),
            pause: AtomicU64::new(0),
            fault: Mutex::new(None),
        });
        let groups = Arc::new(GroupCommit::new(Arc::clone(&engine), limits));
        Self {
            engine,
            groups,
            started,
        }
    }

    /// Submits a batch and waits until it is queued or in flight.
    async fn submit(&self, batch: Batch) -> Caller {
        let groups = Arc::clone(&self.groups);
        let caller = tokio::spawn(async move { groups.commit(batch).await });
        tokio::task::yield_now().await;
        caller
    }

    fn permit(&self, groups: usize) {
        self.engine.permits.add_permits(groups);
    }

    fn fail(&self, fault: Fault) {
        *self.engine.fault.lock().unwrap() = Some(fault);
    }

    /// The size of the next group that starts.
    async fn group(&mut self) -> usize {
        self.started.recv().await.unwrap()
    }

    /// Lets all that was submitted finish.
    async fn end(&self) {
        self.permit(10_000);
        while !self.groups.0.is_idle() {
            tokio::task::yield_now().await;
        }
    }

    async fn value(&self, key: &Key) -> Option<Record> {
        self.engine
            .store
            .get(std::slice::from_ref(key))
            .await
            .unwrap()
            .remove(0)
    }
}

fn workspace(number: u128) -> WorkspaceId {
    WorkspaceId::new(uuid::Uuid::from_u128(number))
}

fn agent(number: u128, item: &str) -> Key {
    Key::in_workspace(workspace(number), Kind::Agent, item)
}

/// A batch that creates an agent and appends to the log of its workspace.
fn create(number: u128, item: &str) -> Batch {
    Batch {
        checks: vec![Check::Absent(agent(number, item))],
        writes: vec![
            Write::Put(agent(number, item), b"1".to_vec()),
            Write::Append {
                log: workspace(number),
                value: b"{}".to_vec(),
            },
        ],
    }
}

#[tokio::test]
async fn a_lone_batch_starts_at_once_and_the_ones_behind_it_share_the_next_group() {
    let mut bench = Bench::new(LIMITS);
    let first = bench.submit(create(1, "a")).await;
    assert_eq!(bench.group().await, 1);
    let mut rest = Vec::new();
    for item in ["b", "c", "d"] {
        rest.push(bench.submit(create(1, item)).await);
    }
    bench.permit(1);
    assert_eq!(first.await.unwrap().unwrap().numbers[1], 1);
    assert_eq!(bench.group().await, 3);
    bench.permit(1);
    for (caller, number) in rest.into_iter().zip(2..) {
        assert_eq!(
            caller.await.unwrap().unwrap().numbers[1],
            number,
            "in the order of arrival"
        );
    }
    assert!(bench.groups.0.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_pause_answers_the_callers_and_lets_them_come_into_the_next_group() {
    let mut bench = Bench::new(LIMITS);
    bench.engine.pause.store(5, Ordering::SeqCst);
    let first = bench.submit(create(1, "first")).await;
    assert_eq!(bench.group().await, 1);
    let second = bench.submit(create(1, "a")).await;
    let third = bench.submit(create(1, "b")).await;
    bench.permit(1);
    assert_eq!(bench.group().await, 2, "there is no pause after one batch");
    first.await.unwrap().unwrap();
    let waiting = bench.submit(create(1, "waiting")).await;
    bench.permit(1);
    let begin = tokio::time::Instant::now();
    second.await.unwrap().unwrap();
    third.await.unwrap().unwrap();
    assert!(
        begin.elapsed().is_zero(),
        "the callers do not wait for the end of the pause"
    );
    let repeated = [bench.submit(create(1, "c")).await, bench.submit(create(1, "d")).await];
    assert_eq!(bench.group().await, 3);
    assert!(begin.elapsed().is_zero(), "the pause ends once the callers are back");
    bench.permit(1);
    for caller in repeated.into_iter().chain([waiting]) {
        caller.await.unwrap().unwrap();
    }
    let lone = bench.submit(create(1, "e")).await;
    assert_eq!(bench.group().await, 1);
    assert_eq!(
        begin.elapsed(),
        Duration::from_millis(5),
        "two of three did not come back"
    );
    bench.permit(1);
    lone.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_a_task_submits_together_starts_together() {
    let mut bench = Bench::new(LIMITS);
    let groups = Arc::clone(&bench.groups);
    let both = tokio::spawn(async move { tokio::join!(groups.commit(create(1, "a")), groups.commit(create(2, "a"))) });
    assert_eq!(bench.group().await, 2);
    bench.permit(1);
    let (one, two) = both.await.unwrap();
    assert!(one.is_ok() && two.is_ok());
    assert!(bench.groups.0.is_idle());
}

#[tokio::test]
async fn a_failing_batch_leaves_alone() {
    let mut bench = Bench::new(LIMITS);
    let first = bench.submit(create(1, "a")).await;
    bench.group().await;
    let again = bench.submit(create(1, "a")).await;
    let other = bench.submit(create(1, "b")).await;
    bench.permit(2);
    assert!(first.await.unwrap().is_ok());
    assert_eq!(again.await.unwrap(), Err(CommitError::Conflict(0)));
    assert_eq!(other.await.unwrap().unwrap().numbers[1], 2);
}

#[tokio::test]
async fn workspaces_do_not_wait_for_each_other_while_the_engine_takes_more_groups() {
    let mut bench = Bench::new(LIMITS);
    let slow = bench.submit(create(1, "a")).await;
    assert_eq!(bench.group().await, 1);
    let other = bench.submit(create(2, "a")).await;
    assert_eq!(bench.group().await, 1, "another workspace starts at once");
    // As many groups as may be are in flight: all others form one group, with a share for each workspace.
    let mut many = Vec::new();
    for item in 0..12 {
        many.push(bench.submit(create(3, &item.to_string())).await);
    }
    let last = bench.submit(create(4, "a")).await;
    bench.permit(1);
    assert!(slow.await.unwrap().is_ok());
    assert_eq!(
        bench.group().await,
        4 + 1,
        "half of the group for the third workspace, and all of the fourth"
    );
    bench.permit(2);
    assert!(other.await.unwrap().is_ok() && last.await.unwrap().is_ok());
    bench.end().await;
    for caller in many {
        assert!(caller.await.unwrap().is_ok());
    }
    assert_eq!(bench.engine.most.load(Ordering::SeqCst), LIMITS.flights);
}

#[tokio::test]
async fn one_group_at_a_time_is_in_flight_to_an_engine_that_is_near() {
    let mut bench = Bench::new(LIMITS);
    bench.engine.near.store(true, Ordering::SeqCst);
    let mut callers = vec![bench.submit(create(1, "a")).await];
    assert_eq!(bench.group().await, 1);
    for number in 2..5 {
        callers.push(bench.submit(create(number, "a")).await);
    }
    assert!(bench.started.is_empty());
    bench.permit(1);
    assert_eq!(bench.group().await, 3);
    bench.end().await;
    for caller in callers {
        assert!(caller.await.unwrap().is_ok());
    }
    assert_eq!(bench.engine.most.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_group_lets_another_start() {
    let mut bench = Bench::new(LIMITS);
    let mut callers = Vec::new();
    for number in 1..5 {
        callers.push(bench.submit(create(number, "a")).await);
    }
    assert_eq!((bench.group().await, bench.group().await), (1, 1));
    // Both are slow after a second, but only one more group may be in flight.
    assert_eq!(bench.group().await, 2, "the two that waited share a group");
    callers.push(bench.submit(create(5, "a")).await);
    tokio::time::sleep(LIMITS.slow * 2).await;
    assert!(bench.started.is_empty());
    assert_eq!(bench.engine.most.load(Ordering::SeqCst), LIMITS.most);
    bench.end().await;
    for caller in callers {
        assert!(caller.await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_group_has_a_limit_of_bytes_and_a_larger_batch_goes_alone() {
    let mut bench = Bench::new(LIMITS);
    let large = |item: &str, bytes: usize| Batch {
        checks: Vec::new(),
        writes: vec![Write::Put(agent(1, item), vec![b'1'; bytes])],
    };
    let mut callers = vec![bench.submit(large("a", 1)).await];
    assert_eq!(bench.group().await, 1);
    for (item, bytes) in [("b", 600), ("c", 400), ("d", 1), ("e", 5000), ("f", 1)] {
        callers.push(bench.submit(large(item, bytes)).await);
    }
    bench.permit(10);
    let sizes = [
        bench.group().await,
        bench.group().await,
        bench.group().await,
        bench.group().await,
    ];
    assert_eq!(sizes, [2, 1, 1, 1]);
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_full_queue_refuses_and_changes_nothing() {
    let mut bench = Bench::new(LIMITS);
    let mut callers = vec![bench.submit(create(1, "a")).await];
    bench.group().await;
    for item in 0..LIMITS.lane {
        callers.push(bench.submit(create(1, &item.to_string())).await);
    }
    let refused = bench.submit(create(1, "refused")).await.await.unwrap();
    assert!(
        matches!(refused, Err(CommitError::Store(StoreError::Unavailable(_)))),
        "{refused:?}"
    );
    // One workspace does not take the room of the others.
    let other = bench.submit(create(2, "a")).await;
    bench.end().await;
    assert!(other.await.unwrap().is_ok());
    for caller in callers {
        assert!(caller.await.unwrap().is_ok());
    }
    assert_eq!(bench.value(&agent(1, "refused")).await, None);
}

#[tokio::test]
async fn a_caller_that_leaves_the_queue_sends_nothing_and_one_in_flight_commits() {
    let mut bench = Bench::new(LIMITS);
    let in_flight = bench.submit(create(1, "a")).await;
    bench.group().await;
    let queued = bench.submit(create(1, "b")).await;
    let stays = bench.submit(create(1, "c")).await;
    in_flight.abort();
    queued.abort();
    tokio::task::yield_now().await;
    bench.permit(1);
    assert_eq!(bench.group().await, 1, "the queued batch has left");
    bench.permit(1);
    assert_eq!(stays.await.unwrap().unwrap().numbers[1], 2);
    assert!(bench.value(&agent(1, "a")).await.is_some());
    assert_eq!(bench.value(&agent(1, "b")).await, None);
    assert!(bench.groups.0.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_has_waited_too_long_is_refused() {
    let mut bench = Bench::new(LIMITS);
    let first = bench.submit(create(1, "a")).await;
    bench.group().await;
    let late = bench.submit(create(1, "b")).await;
    tokio::time::advance(LIMITS.queue_timeout + Duration::from_millis(1)).await;
    let fresh = bench.submit(create(1, "c")).await;
    bench.permit(2);
    assert!(first.await.unwrap().is_ok());
    let refused = late.await.unwrap();
    assert!(
        matches!(refused, Err(CommitError::Store(StoreError::Unavailable(_)))),
        "{refused:?}"
    );
    assert_eq!(fresh.await.unwrap().unwrap().numbers[1], 2);
}

#[tokio::test]
async fn an_unknown_outcome_is_that_of_each_batch_and_refusals_stay() {
    let mut bench = Bench::new(LIMITS);
    let first = bench.submit(create(1, "a")).await;
    bench.group().await;
    let refused = bench.submit(create(1, "a")).await;
    let unknown = bench.submit(create(1, "b")).await;
    bench.permit(1);
    bench.group().await;
    assert!(first.await.unwrap().is_ok());
    bench.fail(Fault::Unknown);
    bench.permit(1);
    assert_eq!(refused.await.unwrap(), Err(CommitError::Conflict(0)));
    assert!(matches!(
        unknown.await.unwrap(),
        Err(CommitError::Store(StoreError::OutcomeUnknown(_)))
    ));
}

#[tokio::test]
async fn a_defect_of_the_engine_costs_one_group() {
    for fault in [Fault::Panic, Fault::NoVerdict] {
        let mut bench = Bench::new(LIMITS);
        let first = bench.submit(create(1, "a")).await;
        bench.group().await;
        let next = bench.submit(create(1, "b")).await;
        bench.fail(fault);
        bench.permit(2);
        let lost = first.await.unwrap();
        assert!(
            matches!(lost, Err(CommitError::Store(StoreError::OutcomeUnknown(_)))),
            "{lost:?}"
        );
        assert!(next.await.unwrap().is_ok());
        assert!(bench.groups.0.is_idle());
    }
}

/// A runtime that ends takes its tasks with it. Callers on another runtime get an answer, and the lanes stay usable.
#[test]
fn the_end_of_a_runtime_leaves_no_lane_in_flight() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let (ending, staying) = (runtime(), runtime());
    let mut bench = Bench::new(LIMITS);
    ending.block_on(async {
        bench.submit(create(1, "a")).await;
        assert_eq!(bench.group().await, 1);
    });
    let waiting = staying.block_on(bench.submit(create(1, "b")));
    drop(ending);
    let lost = staying.block_on(waiting).unwrap();
    assert!(
        matches!(lost, Err(CommitError::Store(StoreError::Unavailable(_)))),
        "{lost:?}"
    );
    assert!(bench.groups.0.is_idle());
    bench.permit(1);
    assert!(staying.block_on(bench.groups.commit(create(1, "c"))).is_ok());
}

#[tokio::test]
async fn a_batch_without_writes_waits_for_no_group() {
    let mut bench = Bench::new(LIMITS);
    let create = bench.submit(create(1, "a")).await;
    bench.group().await;
    let check = Batch {
        checks: vec![Check::Absent(agent(1, "z"))],
        writes: Vec::new(),
    };
    let checked = bench.submit(check).await;
    assert_eq!(bench.group().await, 1, "it runs beside the group");
    bench.end().await;
    assert!(create.await.unwrap().is_ok() && checked.await.unwrap().is_ok());
}
