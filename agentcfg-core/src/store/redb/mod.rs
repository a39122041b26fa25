//! The embedded store: one file, without a database server.
//!
//! Each read runs on the caller's thread in its own snapshot. One writer thread does group commit: it
//! applies the queued batches in one transaction, syncs once, and then answers each batch. After an
//! engine failure the writer thread reopens the file with exponential back-off; until that succeeds,
//! each call returns [`StoreError::Unavailable`].
//!
//! # The form of a backup
//!
//! All numbers are big-endian.
//!
//! | part | bytes |
//! | --- | --- |
//! | head | the 8 bytes `AGENTCFG`, the format (4), the store's version sequence (8) |
//! | each record, keys ascending | `01`, length of the key (4), length of the envelope (4), key, envelope |
//! | end | `00`, the number of records (8), CRC-32 of everything before it (4) |
//!
//! No bytes follow the end. A truncated stream lacks the end, and a modified stream fails the
//! checksum. Keys are encoded by [`Key::encode`], records by
//! [`envelope::seal`](super::envelope::seal).

mod agent_counts;
mod backup;
mod blocks;
mod check;
mod convert;
mod error;
mod health;
mod open;
mod opened_file;
mod overlay;
mod read;
mod record_cache;
mod recovery;
mod schema;
mod scrub;
mod state;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use self::health::Health;
use self::open::Opener;
use self::recovery::Healer;
use self::state::Shared;
use self::writer::Task;
use super::{
    Batch, CommitError, Committed, Key, Kind, Marks, Record, Scan, Scanned, Stamp, Store, StoreError, Tracker, Watcher,
};
use crate::model::WorkspaceId;

pub use self::backup::{BackupError, BackupSummary, RestoreError, restore, verify_backup};
pub use self::check::{CheckReport, Problem, check};
pub use self::error::OpenError;
pub use self::scrub::{Condition, Scrub};
pub use self::state::Status;

/// The number of records that a scan reads on the caller's thread. A scan that finds as many is run on the blocking pool.
const SHORT_SCAN: usize = 512;
/// The same for the length of their values, in bytes.
const SHORT_BYTES: usize = 1 << 20;

/// Memory limits, queue limits and retry pauses of a [`RedbStore`].
///
/// ```
/// use agentcfg_core::store::redb::RedbOptions;
/// let small = RedbOptions { cache_bytes: 8 << 20, hot_bytes: 8 << 20, ..RedbOptions::default() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedbOptions {
    /// Size of the engine's page cache in bytes.
    pub cache_bytes: usize,
    /// Size of the cache of hot records in bytes. Reading a cached record needs no transaction.
    pub hot_bytes: usize,
    /// Capacity of the writer's queue in batches. A commit to a full queue returns
    /// [`StoreError::Unavailable`] (back-pressure).
    pub queue_depth: usize,
    /// The most batches in one group commit, which bounds how long each of them waits; 0 counts as 1.
    pub group_size: usize,
    /// After a failure, the pause before the second attempt to reopen the file. The pause doubles
    /// with each further attempt.
    pub min_backoff: Duration,
    /// The upper bound of the pause between two attempts.
    pub max_backoff: Duration,
}

impl Default for RedbOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            hot_bytes: 64 << 20,
            queue_depth: 1024,
            group_size: 1024,
            min_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_secs(5),
        }
    }
}

/// A store in one file.
///
/// One process at a time holds the lock of the file. Dropping the store closes it; see
/// [`RedbStore::close`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_core::store::redb::{RedbOptions, RedbStore};
/// use agentcfg_core::store::{Batch, Key, Kind, Store, Write};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("store.redb");
/// let key = Key::global("store", Kind::Meta, "name");
///
/// let store = RedbStore::open(&path, RedbOptions::default())?;
/// let writes = vec![Write::Put(key.clone(), b"\"north\"".to_vec())];
/// store.commit(Batch { checks: vec![], writes }).await?;
/// drop(store);
///
/// let store = RedbStore::open(&path, RedbOptions::default())?;
/// assert!(store.get(&[key]).await?[0].is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RedbStore {
    shared: Arc<Shared>,
    queue: Arc<RwLock<Option<SyncSender<Task>>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl RedbStore {
    /// Opens the store file at `path`, or creates it if it does not exist.
    ///
    /// A file that was not closed cleanly is recovered first; that takes time proportional to its size.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]. A file that is damaged, foreign, empty or of a newer format stays unchanged.
    ///
    /// ```
    /// use agentcfg_core::AgentCfg;
    /// use agentcfg_core::store::redb::{OpenError, RedbOptions, RedbStore};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("store.redb");
    /// let store = RedbStore::open(&path, RedbOptions::default())?;
    /// assert!(matches!(RedbStore::open(&path, RedbOptions::default()), Err(OpenError::Held)));
    /// let service = AgentCfg::builder(store).build();
    /// # Ok::<(), OpenError>(())
    /// ```
    pub fn open(path: impl AsRef<Path>, options: RedbOptions) -> Result<Self, OpenError> {
        let health = Arc::new(Health::default());
        let opener = open::file_opener(path.as_ref(), &options, Arc::clone(&health))?;
        Self::start(opener, health, &options)
    }

    /// Whether reads and commits are served right now.
    ///
    /// ```
    /// # use agentcfg_core::store::redb::{OpenError, RedbOptions, RedbStore};
    /// # let directory = tempfile::tempdir()?;
    /// let store = RedbStore::open(directory.path().join("store.redb"), RedbOptions::default())?;
    /// assert!(store.is_ready());
    /// # Ok::<(), OpenError>(())
    /// ```
    pub fn is_ready(&self) -> bool {
        self.status() == Status::Ready && self.shared.health().refusal(0).is_none()
    }

    /// Verifies that the open file is still the file at its path. While it was removed or replaced, the store serves reads and
    /// backups and refuses commits, because they would be lost when the process ends.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] with what happened to the file.
    ///
    /// ```
    /// use agentcfg_core::store::redb::{RedbOptions, RedbStore};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().join("store.redb");
    /// let store = RedbStore::open(&path, RedbOptions::default())?;
    /// assert!(store.file_in_place().is_ok());
    /// std::fs::remove_file(&path)?;
    /// assert!(store.file_in_place().is_err() && !store.is_ready());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn file_in_place(&self) -> Result<(), StoreError> {
        match self.shared.health().lost() {
            Some(why) => Err(StoreError::Unavailable(why)),
            None => Ok(()),
        }
    }

    /// The state of the store: serving, recovering from a failure, or closed.
    ///
    /// ```
    /// # use agentcfg_core::store::redb::{OpenError, RedbOptions, RedbStore};
    /// use agentcfg_core::store::redb::Status;
    /// # let directory = tempfile::tempdir()?;
    /// let store = RedbStore::open(directory.path().join("store.redb"), RedbOptions::default())?;
    /// assert_eq!(store.status(), Status::Ready);
    /// store.close();
    /// assert_eq!(store.status(), Status::Closed);
    /// # Ok::<(), OpenError>(())
    /// ```
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// Waits until the store serves reads and commits; returns `false` if it was closed instead.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::redb::{RedbOptions, RedbStore};
    /// # let directory = tempfile::tempdir()?;
    /// let store = RedbStore::open(directory.path().join("store.redb"), RedbOptions::default())?;
    /// assert!(store.until_ready().await);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn until_ready(&self) -> bool {
        let mut status = self.shared.watch();
        let settled = status.wait_for(|status| *status != Status::Recovering).await;
        settled.is_ok_and(|status| *status == Status::Ready)
    }

    /// Commits and answers the queued batches, then closes the file. Later calls return
    /// [`StoreError::Unavailable`].
    ///
    /// This blocks the thread for as long as those commits take. It is safe within an asynchronous
    /// runtime, because the writer needs nothing from one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::redb::{RedbOptions, RedbStore};
    /// # use agentcfg_core::store::Store;
    /// # let directory = tempfile::tempdir()?;
    /// let store = RedbStore::open(directory.path().join("store.redb"), RedbOptions::default())?;
    /// store.close();
    /// assert!(store.ready().await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn close(&self) {
        drop(self.queue.write().unwrap_or_else(PoisonError::into_inner).take());
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Answering a batch can run the caller's future on the writer thread, and that future can
        // drop the last handle. A thread cannot join itself.
        if let Some(writer) = writer.filter(|writer| writer.thread().id() != thread::current().id()) {
            let _ = writer.join();
        }
    }

    fn start(opener: Opener, health: Arc<Health>, options: &RedbOptions) -> Result<Self, OpenError> {
        let shared = Arc::new(Shared::new(opener()?, options, health));
        let (sender, queue) = sync_channel(options.queue_depth.max(1));
        let healer = Healer {
            opener,
            min_backoff: options.min_backoff,
            max_backoff: options.max_backoff,
        };
        let group_size = options.group_size.max(1);
        let writer = thread::Builder::new().name("agentcfg-writer".into()).spawn({
            let shared = shared.clone();
            move || writer::run(&shared, &queue, group_size, healer)
        })?;
        Ok(Self {
            shared,
            queue: Arc::new(RwLock::new(Some(sender))),
            writer: Mutex::new(Some(writer)),
        })
    }
}

impl RedbStore {
    /// Runs a scan on the blocking pool, so that it occupies no async worker; without a runtime, on the caller's thread.
    ///
    /// It starts from the beginning, because one call of [`Store::scan`] is one snapshot.
    async fn long_scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        let (shared, queue, scan) = (Arc::clone(&self.shared), Arc::clone(&self.queue), scan.clone());
        let work = move || shared.try_read(&queue, || scanned(&scan), |snapshot| read::scan(snapshot, &scan));
        let Ok(runtime) = Handle::try_current() else {
            return self.shared.retry(work).await;
        };
        let shared = Arc::clone(&self.shared);
        let blocking = runtime.clone();
        let stopped = |error| Err(StoreError::Unavailable(format!("the scan was stopped: {error}")));
        runtime
            .spawn_blocking(move || blocking.block_on(shared.retry(work)))
            .await
            .unwrap_or_else(stopped)
    }
}

/// A description for the log of what a scan reads.
fn scanned(scan: &Scan) -> String {
    format!("{:?}", Key::new(scan.partition.clone(), scan.kind, ""))
}

impl Drop for RedbStore {
    fn drop(&mut self) {
        self.close();
    }
}

#[async_trait]
impl Store for RedbStore {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.shared.get(&self.queue, keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        let first = Scan {
            limit: scan.limit.min(SHORT_SCAN),
            max_bytes: scan.max_bytes.min(SHORT_BYTES),
            ..scan.clone()
        };
        let place = || scanned(scan);
        let work = || {
            self.shared
                .try_read(&self.queue, place, |snapshot| read::scan(snapshot, &first))
        };
        let found = self.shared.retry(work).await?;
        let (records, bytes) = (found.entries.len(), found.bytes());
        if !first.is_full(records, bytes) || scan.is_full(records, bytes) {
            return Ok(found);
        }
        self.long_scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        let (answer, verdict) = oneshot::channel();
        let sent = match &*self.queue.read().unwrap_or_else(PoisonError::into_inner) {
            Some(queue) => queue.try_send(Task::Commit(batch, answer)),
            None => return Err(StoreError::Unavailable("the store is closed".into()).into()),
        };
        match sent {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                return Err(StoreError::Unavailable("the queue of commits is full".into()).into());
            }
            Err(TrySendError::Disconnected(_)) => {
                return Err(StoreError::Unavailable("the writer thread has stopped".into()).into());
            }
        }
        verdict
            .await
            .unwrap_or_else(|_| Err(StoreError::OutcomeUnknown("the writer thread has stopped".into()).into()))
    }

    fn stamp(&self, key: &Key) -> Option<Stamp> {
        self.shared.hot().stamp(&key.encode())
    }

    fn marks(&self) -> Option<&Marks> {
        Some(self.shared.hot().marks())
    }

    fn watch(&self, workspace: WorkspaceId, kind: Kind) -> Option<Watcher> {
        Some(self.shared.notifier().watch(workspace, kind))
    }

    fn track(&self, workspace: WorkspaceId, kind: Kind) -> Option<Tracker> {
        self.shared.trackers().track(workspace, kind)
    }

    fn read_only(&self) -> Option<String> {
        match self.status() {
            Status::Ready => self.shared.health().refusal(0),
            Status::Recovering => Some("the store file is being reopened after a failure".into()),
            Status::Closed => None,
        }
    }
}
