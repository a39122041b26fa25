//! The store in memory: for tests, trials and services without durable data.

use std::collections::BTreeMap;
use std::sync::RwLock;

use async_trait::async_trait;

use super::plan::{decode_key, plan, scan_range};
use super::{
    Batch, CommitError, Committed, Direction, Hold, Holds, Key, Kind, Marks, Notifier, Record, Scan, Scanned, Stamp,
    Store, StoreError, Tracker, Trackers, Watcher,
};
use crate::model::WorkspaceId;
use crate::sync::{read_lock, write_lock};

/// A store in the memory of the process.
///
/// It keeps each guarantee of the [contract](super) except durability.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_core::store::{Batch, Check, Key, Kind, MemoryStore, Store, Write};
///
/// let store = MemoryStore::new();
/// let key = Key::global("store", Kind::Meta, "name");
/// let batch = Batch {
///     checks: vec![Check::Absent(key.clone())],
///     writes: vec![Write::Put(key.clone(), b"\"north\"".to_vec())],
/// };
/// store.commit(batch.clone()).await?;
/// assert!(store.commit(batch).await.is_err());
/// assert_eq!(&*store.get(&[key]).await?[0].as_ref().ok_or("absent")?.value, b"\"north\"");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    state: RwLock<MemoryState>,
    /// One number, which counts commits. It changes while the state is locked.
    commits: Marks,
    notifier: Notifier,
    trackers: Trackers,
    holds: Holds,
}

#[derive(Debug, Default)]
struct MemoryState {
    records: BTreeMap<Vec<u8>, Record>,
    last_version: u64,
}

impl MemoryStore {
    /// Makes an empty store.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// ```
    pub fn new() -> Self {
        Self {
            state: RwLock::default(),
            commits: Marks::new(1),
            notifier: Notifier::default(),
            trackers: Trackers::default(),
            holds: Holds::default(),
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn inner(&self) -> Option<&dyn Store> {
        None
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        let state = read_lock(&self.state);
        Ok(state.get(keys))
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        let state = read_lock(&self.state);
        let found = state.records.range(scan_range(scan));
        let entries = match scan.direction {
            Direction::Ascending => scan.take(found.map(entry))?,
            Direction::Descending => scan.take(found.rev().map(entry))?,
        };
        Ok(Scanned {
            entries,
            with: state.get(&scan.with),
        })
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.holds.wait(&batch).await;
        self.commit_now(batch)
    }

    async fn hold(&self, log: WorkspaceId) -> Result<Option<Hold>, StoreError> {
        Ok(Some(Hold::new(self.holds.take(log).await)))
    }

    async fn commit_held(&self, _: &Hold, batch: Batch) -> Result<Committed, CommitError> {
        self.commit_now(batch)
    }

    fn stamp(&self, _: &Key) -> Option<Stamp> {
        self.commits.stamp(0)
    }

    fn marks(&self) -> Option<&Marks> {
        Some(&self.commits)
    }

    fn watch(&self, workspace: WorkspaceId, kind: Kind) -> Option<Watcher> {
        Some(self.notifier.watch(workspace, kind))
    }

    fn track(&self, workspace: WorkspaceId, kind: Kind) -> Option<Tracker> {
        self.trackers.track(workspace, kind)
    }
}

impl MemoryStore {
    fn commit_now(&self, batch: Batch) -> Result<Committed, CommitError> {
        let (touched, tracked) = (batch.touched(), batch.tracked());
        let committed = self.apply(batch)?;
        self.trackers.note(&tracked);
        self.notifier.notify(touched);
        Ok(committed)
    }

    fn apply(&self, batch: Batch) -> Result<Committed, CommitError> {
        let mut state = write_lock(&self.state);
        let plan = plan(batch, state.last_version, |key| {
            Ok::<_, CommitError>(state.records.get(key).cloned())
        })?;
        self.commits.advance(0);
        state.last_version = plan.last_version;
        for (key, change) in plan.changes {
            match change {
                Some(record) => state.records.insert(key, record),
                None => state.records.remove(&key),
            };
        }
        Ok(Committed { numbers: plan.numbers })
    }
}

impl MemoryState {
    fn get(&self, keys: &[Key]) -> Vec<Option<Record>> {
        keys.iter()
            .map(|key| self.records.get(&key.encode()).cloned())
            .collect()
    }
}

fn entry((key, record): (&Vec<u8>, &Record)) -> Result<(Key, Record), StoreError> {
    Ok((decode_key(key)?, record.clone()))
}
