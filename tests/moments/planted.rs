//! Stores with a planted fault, which the oracle must find.

use std::sync::Arc;

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::{Batch, CommitError, Committed, Hold, Key, Kind, Record, Scan, Scanned, Store, StoreError};

/// What a store does wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It leaves out the checks of the log's head, by which a decision on many records is refused.
    HeadUnchecked,
    /// It leaves out the checks of the records that a decision has used and does not write.
    ReadsUnchecked,
    /// It says of the pieces of a long read that they are of the first revision, so that nothing is taken back.
    Uncorrected,
}

/// A store with a fault.
pub struct Planted {
    inner: Arc<dyn Store>,
    fault: Fault,
}

impl Planted {
    pub const FAULTS: [Fault; 3] = [Fault::HeadUnchecked, Fault::ReadsUnchecked, Fault::Uncorrected];

    pub fn new(inner: Arc<dyn Store>, fault: Fault) -> Arc<Self> {
        Arc::new(Self { inner, fault })
    }

    fn spoiled(&self, mut batch: Batch) -> Batch {
        let written: Vec<Key> = batch.writes.iter().map(|write| write.key()).collect();
        let is_kept = |key: &Key| match self.fault {
            Fault::HeadUnchecked => key.kind() != Kind::LogHead,
            Fault::ReadsUnchecked => written.contains(key) || !matches!(key.kind(), Kind::Agent | Kind::AgentLabels),
            Fault::Uncorrected => true,
        };
        batch.checks.retain(|check| is_kept(check.key()));
        batch
    }
}

#[async_trait::async_trait]
impl Store for Planted {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.inner)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.inner.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        let mut found = self.inner.scan(scan).await?;
        others_run().await;
        if self.fault == Fault::Uncorrected && scan.limit != usize::MAX {
            for (key, record) in scan.with.iter().zip(&mut found.with) {
                if let (Kind::LogHead, Some(record)) = (key.kind(), record) {
                    record.value = b"1"[..].into();
                }
            }
        }
        Ok(found)
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        others_run().await;
        self.inner.commit(self.spoiled(batch)).await
    }

    async fn hold(&self, _: WorkspaceId) -> Result<Option<Hold>, StoreError> {
        Ok(None)
    }
}

/// Lets the other clients act between what a client reads and what it commits, where the fault shows.
async fn others_run() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}
