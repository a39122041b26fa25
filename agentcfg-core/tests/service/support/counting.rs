//! A store that counts the reads of reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use agentcfg_core::store::{
    Batch, Changes, CommitError, Committed, Key, Kind, Partition, Position, Record, Scan, Scanned, Store, StoreError,
};

/// A store that counts the reads of reports, and fails them on request.
pub struct Counting {
    inner: Arc<dyn Store>,
    gets: AtomicUsize,
    scans: AtomicUsize,
    is_failing: AtomicBool,
}

impl Counting {
    pub fn new(inner: &Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            gets: AtomicUsize::new(0),
            scans: AtomicUsize::new(0),
            is_failing: AtomicBool::new(false),
        })
    }

    /// How many reports were read by their keys.
    pub fn status_gets(&self) -> usize {
        self.gets.load(Ordering::SeqCst)
    }

    /// How many times all reports were read.
    pub fn status_scans(&self) -> usize {
        self.scans.load(Ordering::SeqCst)
    }

    pub fn fail_statuses(&self, fail: bool) {
        self.is_failing.store(fail, Ordering::SeqCst);
    }

    async fn counted(&self, counter: &AtomicUsize, reports: usize) -> Result<(), StoreError> {
        counter.fetch_add(reports, Ordering::SeqCst);
        // Other requests come while this one reads.
        tokio::task::yield_now().await;
        match reports > 0 && self.is_failing.load(Ordering::SeqCst) {
            true => Err(StoreError::Unavailable("not now".into())),
            false => Ok(()),
        }
    }
}

#[async_trait::async_trait]
impl Store for Counting {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.inner)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        let reports = keys.iter().filter(|key| key.kind() == Kind::Status).count();
        self.counted(&self.gets, reports).await?;
        self.inner.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        self.counted(&self.scans, usize::from(scan.kind == Kind::Status))
            .await?;
        self.inner.scan(scan).await
    }

    async fn changed_since(
        &self,
        partition: &Partition,
        kind: Kind,
        position: Option<Position>,
    ) -> Result<Changes, StoreError> {
        self.counted(&self.scans, usize::from(kind == Kind::Status)).await?;
        self.inner.changed_since(partition, kind, position).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.inner.commit(batch).await
    }
}
