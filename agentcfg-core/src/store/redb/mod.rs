//! The embedded store: everything in one file, with no server beside it.
//!
//! Reads run on the caller's thread in a snapshot of their own. Commits go through one writer
//! thread, which puts all that wait into one transaction, syncs once and answers them together.
//! When the engine fails, the same thread opens the file anew until it serves again; meanwhile each
//! call is answered with [`StoreError::Unavailable`].
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
//! Nothing follows. A stream that was cut has no end, and one that was changed has another
//! checksum. Keys are as [`Key::encode`] writes them, records as
//! [`envelope::seal`](super::envelope::seal) does.

mod backup;
mod check;
mod error;
mod heal;
mod hot;
mod open;
mod overlay;
mod read;
mod schema;
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
use tokio::sync::oneshot;

use self::heal::Healer;
use self::open::Opener;
use self::state::Shared;
use self::writer::Task;
use super::{Batch, CommitError, Committed, Key, Record, Scan, Scanned, Stamp, Store, StoreError};

pub use self::backup::{BackupError, BackupSummary, RestoreError, restore};
pub use self::check::{CheckReport, Problem, check};
pub use self::error::OpenError;
pub use self::state::Status;

/// How a [`RedbStore`] uses the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedbOptions {
    /// Memory for pages of the file.
    pub cache_bytes: usize,
    /// Memory for records that are read often. A read of one costs no transaction.
    pub hot_bytes: usize,
    /// How many batches may wait for the writer; one more is [`StoreError::Unavailable`].
    pub queue_depth: usize,
    /// At most how many batches share one transaction, so that none waits for ever; at least 1.
    pub group_size: usize,
    /// After a failure, the pause before the second attempt to open the file anew. It doubles with
    /// each further one.
    pub shortest_pause: Duration,
    /// The longest pause between two attempts.
    pub longest_pause: Duration,
}

impl Default for RedbOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            hot_bytes: 64 << 20,
            queue_depth: 1024,
            group_size: 1024,
            shortest_pause: Duration::from_millis(50),
            longest_pause: Duration::from_secs(5),
        }
    }
}

/// A store in one file.
///
/// One process holds the file at a time. Dropping the store closes it; see [`RedbStore::close`].
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
    queue: RwLock<Option<SyncSender<Task>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl RedbStore {
    /// Opens the store file at `path`, or creates it when nothing is there.
    ///
    /// A file that was not closed is recovered first, which takes time in proportion to its size.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]. A file that is damaged, foreign, empty or of a newer format is left as it is.
    pub fn open(path: impl AsRef<Path>, options: RedbOptions) -> Result<Self, OpenError> {
        let opener = open::file_opener(path.as_ref(), &options)?;
        Self::start(opener, &options)
    }

    /// Whether reads and commits are served right now.
    pub fn is_ready(&self) -> bool {
        self.status() == Status::Ready
    }

    /// What the store is doing.
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// Waits until the store serves again; `false` when it was closed instead.
    pub async fn until_ready(&self) -> bool {
        let mut status = self.shared.watch();
        let settled = status.wait_for(|status| *status != Status::Healing).await;
        settled.is_ok_and(|status| *status == Status::Ready)
    }

    /// Answers the batches that wait, and closes the file. Later calls are
    /// [`StoreError::Unavailable`].
    ///
    /// This blocks the thread for as long as those commits take. It is safe within an asynchronous
    /// runtime, because the writer needs nothing from one.
    pub fn close(&self) {
        drop(self.queue.write().unwrap_or_else(PoisonError::into_inner).take());
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // An answer may wake code that drops the last handle on the writer's own thread.
        if let Some(writer) = writer.filter(|writer| writer.thread().id() != thread::current().id()) {
            let _ = writer.join();
        }
    }

    fn start(opener: Opener, options: &RedbOptions) -> Result<Self, OpenError> {
        let shared = Arc::new(Shared::new(opener()?, options.hot_bytes));
        let (sender, queue) = sync_channel(options.queue_depth.max(1));
        let healer = Healer {
            opener,
            shortest_pause: options.shortest_pause,
            longest_pause: options.longest_pause,
        };
        let group_size = options.group_size.max(1);
        let writer = thread::Builder::new().name("agentcfg-writer".into()).spawn({
            let shared = shared.clone();
            move || writer::run(&shared, &queue, group_size, healer)
        })?;
        Ok(Self {
            shared,
            queue: RwLock::new(Some(sender)),
            writer: Mutex::new(Some(writer)),
        })
    }
}

impl Drop for RedbStore {
    fn drop(&mut self) {
        self.close();
    }
}

#[async_trait]
impl Store for RedbStore {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.shared.get(&self.queue, keys)
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        self.shared.read(&self.queue, |snapshot| read::scan(snapshot, scan))
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
                return Err(StoreError::Unavailable("too many commits are waiting".into()).into());
            }
            Err(TrySendError::Disconnected(_)) => {
                return Err(StoreError::Unavailable("the writer has ended".into()).into());
            }
        }
        verdict
            .await
            .unwrap_or_else(|_| Err(StoreError::OutcomeUnknown("the writer has ended".into()).into()))
    }

    fn stamp(&self, key: &Key) -> Option<Stamp> {
        self.shared.hot().stamp(&key.encode())
    }

    fn is_current(&self, stamp: Stamp) -> bool {
        self.shared.hot().is_current(stamp)
    }
}
