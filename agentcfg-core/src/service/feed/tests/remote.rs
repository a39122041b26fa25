//! The feed on a store that other servers write too.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;

use super::*;
use crate::store::{Batch, CommitError, Committed, Key, Kind, Record, Scan, Scanned, StoreError};

/// A store that other servers write too: it does not notify.
struct Remote {
    store: Arc<MemoryStore>,
    /// How many times all statuses were read.
    status_scans: Arc<AtomicUsize>,
    /// Whether the heads of logs cannot be read after the statuses were.
    fails: Arc<AtomicBool>,
}

impl Remote {
    fn on(store: &Arc<MemoryStore>) -> Self {
        Self {
            store: Arc::clone(store),
            status_scans: Arc::default(),
            fails: Arc::default(),
        }
    }
}

#[async_trait]
impl Store for Remote {
    fn inner(&self) -> Option<&dyn Store> {
        None
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        let is_head = |key: &Key| key.kind() == Kind::LogHead;
        if self.status_scans.load(Ordering::SeqCst) > 0 && keys.iter().any(is_head) && self.fails.load(Ordering::SeqCst)
        {
            return Err(StoreError::Unavailable("not now".into()));
        }
        self.store.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        if scan.kind == Kind::Status {
            self.status_scans.fetch_add(1, Ordering::SeqCst);
            // Other tasks run while this one reads.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        }
        self.store.scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.store.commit(batch).await
    }
}

#[tokio::test(start_paused = true)]
async fn the_commits_of_another_server_are_seen_within_a_second() {
    let store = Arc::new(MemoryStore::new());
    let here = Stage::on(Remote::on(&store)).await;
    let there = AgentCfg::builder(Remote::on(&store)).build();
    here.create("writer").await;
    let mut watch = here.watch(&here.ada).await.with_statuses();
    watch.read().await.unwrap();
    for round in 0..3 {
        let begun = tokio::time::Instant::now();
        let new = NewAgent::new(here.studio, format!("agent-{round}").parse().unwrap(), "x");
        there.create_agent(&here.ada, new).await.unwrap();
        assert_eq!(watch.next().await.unwrap().target.id, format!("agent-{round}"));
        assert!(begun.elapsed() <= Duration::from_secs(1));
    }
    // Its own commits wake a service at once.
    let begun = tokio::time::Instant::now();
    here.create("own").await;
    assert_eq!(watch.next().await.unwrap().target.id, "own");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    drop(watch);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!here.service.is_watched());
    // The reading of heads has stopped, and begins again.
    let mut watch = here.watch(&here.ada).await;
    watch.read().await.unwrap();
    let new = NewAgent::new(here.studio, "again".parse().unwrap(), "x");
    there.create_agent(&here.ada, new).await.unwrap();
    assert_eq!(watch.next().await.unwrap().target.id, "again");
}

#[tokio::test]
async fn readers_that_waited_for_a_read_of_the_statuses_do_not_repeat_it() {
    let store = Remote::on(&Arc::new(MemoryStore::new()));
    let scans = Arc::clone(&store.status_scans);
    let stage = Stage::on(store).await;
    stage.create("writer").await;
    let mut watches = Vec::new();
    for _ in 0..20 {
        let mut watch = stage.watch(&stage.ada).await.with_statuses();
        watch.read().await.unwrap();
        watches.push(watch);
    }
    report(&stage, StatusReport::working("T-1", "Notes")).await;
    let before = scans.load(Ordering::SeqCst);
    let mut reading = tokio::task::JoinSet::new();
    for mut watch in watches {
        reading.spawn(async move {
            let update = watch.read().await.unwrap();
            assert_eq!(update.statuses[0].status, LiveStatus::Working);
        });
    }
    // Each read of all statuses is followed by another report.
    while !reading.is_empty() {
        report(&stage, StatusReport::working("T-2", "Notes")).await;
        tokio::task::yield_now().await;
        while let Some(read) = reading.try_join_next() {
            read.unwrap();
        }
    }
    // One that had begun before the last of the readers came, and one for all others.
    let scans = scans.load(Ordering::SeqCst) - before;
    assert!((1..=2).contains(&scans), "{scans} scans");
}

#[tokio::test]
async fn a_read_that_failed_is_repeated_with_its_statuses() {
    let store = Remote::on(&Arc::new(MemoryStore::new()));
    let fails = Arc::clone(&store.fails);
    let stage = Stage::on(store).await;
    stage.create("writer").await;
    let mut watch = stage.watch(&stage.ada).await.with_statuses();
    fails.store(true, Ordering::SeqCst);
    assert_eq!(ended(watch.read().await), ErrorKind::Unavailable);
    fails.store(false, Ordering::SeqCst);
    assert_eq!(shown(&mut watch).await.len(), 1);
    assert_eq!(shown(&mut watch).await.len(), 0);
}
