//! The reason of a refusal: the common planner on a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use agentcfg_core::store::plan::plan;
use agentcfg_core::store::{Batch, CommitError, Key, Record, StoreError, Write};

use super::super::{Engine, read};

/// A version that no record has: the planned versions of a group begin behind it.
const PLANNED: u64 = 1 << 63;

/// The records that some batches check or write, in one snapshot, and what has been planned on it.
pub(super) struct SnapshotState {
    found: BTreeMap<Vec<u8>, Option<Record>>,
    planned: BTreeMap<Vec<u8>, Option<Record>>,
}

impl SnapshotState {
    pub(super) async fn read(engine: &Engine, batches: impl IntoIterator<Item = &Batch>) -> Result<Self, StoreError> {
        let mut keys: BTreeSet<Key> = BTreeSet::new();
        for batch in batches {
            keys.extend(batch.checks.iter().map(|check| check.key().clone()));
            keys.extend(batch.writes.iter().map(Write::key));
        }
        let keys: Vec<Key> = keys.into_iter().collect();
        let records = read::get(&engine.connections, &engine.sql, &keys).await?;
        Ok(Self {
            found: keys.iter().map(Key::encode).zip(records).collect(),
            planned: BTreeMap::new(),
        })
    }

    /// Plans a batch on the snapshot alone: its error is the reason of a refusal.
    pub(super) fn decide(&self, batch: &Batch) -> Result<(), CommitError> {
        let read = |key: &[u8]| Ok::<_, CommitError>(self.found.get(key).cloned().flatten());
        plan(batch.clone(), 0, read).map(drop)
    }

    /// Plans a batch on the snapshot and the batches that were planned before. A refused batch changes nothing.
    pub(super) fn plan(&mut self, batch: &Batch) -> Result<(), CommitError> {
        let read = |key: &[u8]| {
            let record = self.planned.get(key).or_else(|| self.found.get(key));
            Ok::<_, CommitError>(record.cloned().flatten())
        };
        let version = PLANNED + self.planned.len() as u64;
        let plan = plan(batch.clone(), version, read)?;
        self.planned.extend(plan.changes);
        Ok(())
    }
}
