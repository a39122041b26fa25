//! The handle of a store: the calls of the contract, and the start and the end of the writer.

use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::{self, JoinHandle};

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::super::{
    Batch, CommitError, Committed, Hold, Holds, Key, Kind, Marks, Record, Scan, Scanned, Stamp, Store, StoreError,
    Tracker, Watcher,
};
use super::compacted::{CompactError, Compacted};
use super::draft::remove_leftovers;
use super::error::OpenError;
use super::health::Health;
use super::open::{self, Opener};
use super::options::RedbOptions;
use super::queue::{Compaction, Task};
use super::recovery::Healer;
use super::shared_state::{Status, StoreState};
use super::{read, writer};
use crate::model::WorkspaceId;
use crate::sync::{lock, read_lock, write_lock};

/// The number of records that a scan reads on the caller's thread. A scan that finds as many is run on the blocking
/// pool.
pub(super) const SHORT_SCAN: usize = 512;
/// The same for the length of their values, in bytes.
const SHORT_BYTES: usize = 1 << 20;

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
    pub(super) shared: Arc<StoreState>,
    pub(super) queue: Arc<RwLock<Option<SyncSender<Task>>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    holds: Holds,
}

impl RedbStore {
    /// Opens the store file at `path`, or creates it if it does not exist.
    ///
    /// A file that was not closed cleanly is recovered first. That takes time proportional to its size, unless its last
    /// commit was a checkpoint; see [`RedbOptions::checkpoint_from`].
    ///
    /// The app must be built with `panic = "unwind"`, which is the default of cargo: a damaged block of the file fails
    /// the calls that need it by unwinding out of the engine.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]. A file that is damaged, foreign, empty or of another format stays unchanged.
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
        let store = Self::start(opener, health, &options)?;
        remove_leftovers(path.as_ref());
        Ok(store)
    }

    /// Opens the store in the file at `path` for reads and backups, and changes no byte of it: its directory may be
    /// read-only. A file that was not closed in order is recovered in memory. Commits are refused.
    ///
    /// # Errors
    ///
    /// As [`Self::open`], and [`OpenError::Io`] if there is no file.
    ///
    /// ```
    /// # use agentcfg_core::store::redb::{OpenError, RedbOptions, RedbStore};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("store.redb");
    /// drop(RedbStore::open(&path, RedbOptions::default())?);
    /// let before = std::fs::read(&path)?;
    /// let store = RedbStore::open_to_read(&path, RedbOptions::default())?;
    /// store.backup(std::io::sink()).expect("a backup");
    /// drop(store);
    /// assert!(std::fs::read(&path)? == before);
    /// # Ok::<(), OpenError>(())
    /// ```
    pub fn open_to_read(path: impl AsRef<Path>, options: RedbOptions) -> Result<Self, OpenError> {
        let opener = open::reading_opener(path.as_ref(), &options)?;
        Self::start(opener, Arc::new(Health::for_reading()), &options)
    }

    /// Whether reads and commits are served right now. Once a commit found no room on the disk, they are not until
    /// clearly more is free than it needs.
    ///
    /// ```
    /// # use agentcfg_core::store::redb::{OpenError, RedbOptions, RedbStore};
    /// # let directory = tempfile::tempdir()?;
    /// let store = RedbStore::open(directory.path().join("store.redb"), RedbOptions::default())?;
    /// assert!(store.is_ready());
    /// # Ok::<(), OpenError>(())
    /// ```
    pub fn is_ready(&self) -> bool {
        self.status() == Status::Ready && self.shared.health().read_only().is_none()
    }

    /// Verifies that the open file is still the file at its path. While it was removed or replaced, the store serves
    /// reads and backups and refuses commits, because they would be lost when the process ends.
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
        drop(write_lock(&self.queue).take());
        let writer = lock(&self.writer).take();
        // Answering a batch can run the caller's future on the writer thread, and that future can
        // drop the last handle. A thread cannot join itself.
        if let Some(writer) = writer.filter(|writer| writer.thread().id() != thread::current().id()) {
            let _ = writer.join();
        }
    }

    pub(super) fn start(opener: Opener, health: Arc<Health>, options: &RedbOptions) -> Result<Self, OpenError> {
        let shared = Arc::new(StoreState::new(opener()?, options, health));
        let (sender, queue) = sync_channel(options.queue_depth.max(1));
        let healer = Healer {
            opener,
            min_backoff: options.min_backoff,
            max_backoff: options.max_backoff,
        };
        let writer = thread::Builder::new().name("agentcfg-writer".into()).spawn({
            let (shared, options) = (shared.clone(), options.clone());
            move || writer::run(&shared, &queue, &options, healer)
        })?;
        Ok(Self {
            shared,
            queue: Arc::new(RwLock::new(Some(sender))),
            writer: Mutex::new(Some(writer)),
            holds: Holds::default(),
        })
    }
}

impl RedbStore {
    /// Copies all records into a new file, which takes the place of the store file. So the file has its smallest
    /// length, and no content of deleted or replaced records.
    ///
    /// Reads are served meanwhile, and commits wait: about a second for 100 MB of records. The disk needs room for the
    /// new file beside the old one. The file is replaced in one step, so that a crash leaves one or the other. `report`
    /// is called with the number of copied records from time to time, on the thread of the writer. The call blocks:
    /// make it on a thread that may.
    ///
    /// # Errors
    ///
    /// See [`CompactError`].
    ///
    /// ```
    /// use agentcfg_core::store::redb::{RedbOptions, RedbStore};
    /// # let directory = tempfile::tempdir()?;
    /// let store = RedbStore::open(directory.path().join("store.redb"), RedbOptions::default())?;
    /// let done = store.compact(|records| println!("{records} records"))?;
    /// assert!(done.bytes_after <= done.bytes_before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compact(&self, report: impl FnMut(u64) + Send + 'static) -> Result<Compacted, CompactError> {
        let (answer, outcome) = oneshot::channel();
        let compaction = Compaction {
            report: Box::new(report),
            answer,
        };
        self.send(Task::Compact(compaction))?;
        let dropped =
            |_| Err(StoreError::Unavailable("the store is closed, or its file is being reopened".into()).into());
        outcome.blocking_recv().unwrap_or_else(dropped)
    }
}

impl RedbStore {
    /// Hands a task to the writer.
    pub(super) fn send(&self, task: Task) -> Result<(), StoreError> {
        let unavailable = |why: &str| Err(StoreError::Unavailable(why.to_owned()));
        match &*read_lock(&self.queue) {
            Some(queue) => match queue.try_send(task) {
                Ok(()) => Ok(()),
                Err(TrySendError::Full(_)) => unavailable("the queue of commits is full"),
                Err(TrySendError::Disconnected(_)) => unavailable("the writer thread has stopped"),
            },
            None => unavailable("the store is closed"),
        }
    }

    async fn commit_now(&self, batch: Batch) -> Result<Committed, CommitError> {
        let (answer, verdict) = oneshot::channel();
        self.send(Task::Commit(batch, answer))?;
        verdict
            .await
            .unwrap_or_else(|_| Err(StoreError::OutcomeUnknown("the writer thread has stopped".into()).into()))
    }

    /// Runs a scan on the blocking pool, so that it occupies no async worker; without a runtime, on the caller's
    /// thread.
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
    fn inner(&self) -> Option<&dyn Store> {
        None
    }

    /// It waits for the commits in the queue.
    async fn shutdown(&self) {
        self.close();
    }

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
        self.holds.wait(&batch).await;
        self.commit_now(batch).await
    }

    async fn hold(&self, log: WorkspaceId) -> Result<Option<Hold>, StoreError> {
        Ok(Some(Hold::new(self.holds.take(log).await)))
    }

    async fn commit_held(&self, _: &Hold, batch: Batch) -> Result<Committed, CommitError> {
        self.commit_now(batch).await
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
            Status::Ready => self.shared.health().read_only(),
            Status::Recovering => Some("the store file is being reopened after a failure".into()),
            Status::Closed => None,
        }
    }
}
