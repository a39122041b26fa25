//! Stores that fail on request, and one that yields before every call.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::{
    Batch, Changes, CommitError, Committed, Key, Kind, Marks, Partition, Position, Record, Scan, Scanned, Stamp, Store,
    StoreError, Write,
};

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The fate of one commit.
pub enum Fault {
    /// Refused; nothing changed.
    Unavailable,
    /// Not applied, and the store reports an unknown outcome.
    Lost,
    /// Applied, and the store reports an unknown outcome.
    Made,
    /// Not applied before [`Faulty::commit_late`], and the store reports an unknown outcome.
    Late,
    /// Refused as if the check with this index had failed.
    Conflict(usize),
    /// Applied after this work has run.
    After(Work),
}

/// A store whose commits fail according to a script.
pub struct Faulty {
    inner: Arc<dyn Store>,
    script: Mutex<VecDeque<Fault>>,
    reads_fail: Mutex<bool>,
    commits: AtomicUsize,
    late: Mutex<Vec<Batch>>,
}

impl Faulty {
    pub fn new(inner: &Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            script: Mutex::default(),
            reads_fail: Mutex::default(),
            commits: AtomicUsize::new(0),
            late: Mutex::default(),
        })
    }

    /// Commits what was late, and returns whether each of it was applied.
    pub async fn commit_late(&self) -> Vec<bool> {
        let late = std::mem::take(&mut *self.late.lock().unwrap());
        let mut applied = Vec::new();
        for batch in late {
            applied.push(self.inner.commit(batch).await.is_ok());
        }
        applied
    }

    /// Sets the fate of the next commits; those after the script succeed.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        *self.script.lock().unwrap() = faults.into_iter().collect();
    }

    pub fn fail_reads(&self, fail: bool) {
        *self.reads_fail.lock().unwrap() = fail;
    }

    /// The number of commits so far.
    pub fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }

    fn readable(&self) -> Result<(), StoreError> {
        match *self.reads_fail.lock().unwrap() {
            true => Err(StoreError::Unavailable("the disk of /secret/path is gone".into())),
            false => Ok(()),
        }
    }
}

#[async_trait::async_trait]
impl Store for Faulty {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.inner)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.readable()?;
        self.inner.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        self.readable()?;
        self.inner.scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.commits.fetch_add(1, Ordering::SeqCst);
        let fault = self.script.lock().unwrap().pop_front();
        match fault {
            Some(Fault::Unavailable) => {
                return Err(StoreError::Unavailable("the disk of /secret/path is gone".into()).into());
            }
            Some(Fault::Lost) => return Err(StoreError::OutcomeUnknown("the line broke".into()).into()),
            Some(Fault::Made) => {
                self.inner.commit(batch).await?;
                return Err(StoreError::OutcomeUnknown("the line broke".into()).into());
            }
            Some(Fault::Late) => {
                self.late.lock().unwrap().push(batch);
                return Err(StoreError::OutcomeUnknown("the line broke".into()).into());
            }
            Some(Fault::Conflict(index)) => return Err(CommitError::Conflict(index)),
            Some(Fault::After(work)) => work.await,
            None => {}
        }
        self.inner.commit(batch).await
    }

    async fn changed_since(
        &self,
        partition: &Partition,
        kind: Kind,
        position: Option<Position>,
    ) -> Result<Changes, StoreError> {
        self.readable()?;
        self.inner.changed_since(partition, kind, position).await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.readable()?;
        self.inner.ready().await
    }

    /// A commit as the others, so that the script decides on it.
    async fn end_removal(&self, _: WorkspaceId, marker: Key) -> Result<(), StoreError> {
        let batch = Batch {
            checks: Vec::new(),
            writes: vec![Write::Delete(marker)],
        };
        match self.commit(batch).await {
            Ok(_) => Ok(()),
            Err(CommitError::Store(error)) => Err(error),
            Err(refused) => panic!("a deletion was refused: {refused}"),
        }
    }

    fn is_current(&self, stamp: Stamp) -> bool {
        self.readable().is_ok() && self.inner.is_current(stamp)
    }

    fn marks(&self) -> Option<&Marks> {
        None
    }
}

/// A store that yields a pseudo-random number of times before each call. Tasks on one thread then
/// interleave between every read and its commit, in an order that the seed determines.
pub struct Yielding {
    inner: Arc<dyn Store>,
    state: AtomicU64,
}

impl Yielding {
    pub fn new(inner: Arc<dyn Store>, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            inner,
            state: AtomicU64::new(seed),
        })
    }

    async fn yield_some(&self) {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.state.fetch_add(STEP, Ordering::Relaxed);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        for _ in 0..(mixed >> 60) % 4 {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait::async_trait]
impl Store for Yielding {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.inner)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.yield_some().await;
        self.inner.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        self.yield_some().await;
        self.inner.scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.yield_some().await;
        self.inner.commit(batch).await
    }
}

/// A store that gives no stamps, as one that other servers share.
pub struct Unstamped(Arc<dyn Store>);

impl Unstamped {
    pub fn new(inner: &Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self(Arc::clone(inner)))
    }
}

#[async_trait::async_trait]
impl Store for Unstamped {
    fn inner(&self) -> Option<&dyn Store> {
        None
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.0.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        self.0.scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.0.commit(batch).await
    }
}

/// A store that says that other processes use it too.
pub struct Shared<S>(pub S);

#[async_trait::async_trait]
impl<S: Store> Store for Shared<S> {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.0)
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.0.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        self.0.scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.0.commit(batch).await
    }
}
