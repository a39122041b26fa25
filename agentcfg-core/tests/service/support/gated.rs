//! A store whose scans wait for the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agentcfg_core::store::{
    Batch, CommitError, Committed, Key, Kind, Marks, Record, Scan, Scanned, Stamp, Store, StoreError,
};
use tokio::sync::Semaphore;

/// A store that counts the scans of agents; each waits until the test lets it succeed or fail.
pub struct GatedStore {
    inner: Arc<dyn Store>,
    scans: AtomicUsize,
    gets: AtomicUsize,
    good: Semaphore,
    bad: Semaphore,
}

impl GatedStore {
    pub fn new(inner: &Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            scans: AtomicUsize::new(0),
            gets: AtomicUsize::new(0),
            good: Semaphore::new(0),
            bad: Semaphore::new(0),
        })
    }

    /// Lets this many scans of agents proceed.
    pub fn release(&self, scans: usize) {
        self.good.add_permits(scans);
    }

    /// Lets this many scans of agents fail.
    pub fn fail(&self, scans: usize) {
        self.bad.add_permits(scans);
    }

    /// The number of scans of agents that have begun.
    pub fn scans(&self) -> usize {
        self.scans.load(Ordering::SeqCst)
    }

    /// The number of other reads that have begun.
    pub fn gets(&self) -> usize {
        self.gets.load(Ordering::SeqCst)
    }
}

#[async_trait::async_trait]
impl Store for GatedStore {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.inner)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.gets.fetch_add(1, Ordering::SeqCst);
        self.inner.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        if scan.kind == Kind::Agent {
            self.scans.fetch_add(1, Ordering::SeqCst);
            tokio::select! {
                biased;
                permit = self.bad.acquire() => {
                    permit.unwrap().forget();
                    return Err(StoreError::Unavailable("not now".into()));
                }
                permit = self.good.acquire() => permit.unwrap().forget(),
            }
        }
        self.inner.scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.inner.commit(batch).await
    }

    /// Without stamps every request reads, so that its reads can be counted.
    fn stamp(&self, _: &Key) -> Option<Stamp> {
        None
    }

    fn is_current(&self, _: Stamp) -> bool {
        false
    }

    fn marks(&self) -> Option<&Marks> {
        None
    }
}
