//! The state that the readers, the writer thread and the handle share.

use std::fmt;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, RwLock};

use redb::{Database, ReadTransaction, ReadableDatabase, TransactionError, WriteTransaction};
use tokio::sync::watch;

use super::super::{Key, Notifier, Partition, Record, StoreError, Trackers};
use super::blocks::{Freeze, Frozen};
use super::error::{Fault, catch_panic, contain_damage};
use super::health::Health;
use super::options::RedbOptions;
use super::queue::Task;
use super::read::{self, ReadFault};
use super::record_cache::RecordCache;
use super::schema;
use crate::sync::{read_lock, write_lock};

/// Whether a store serves reads and commits.
///
/// ```
/// use agentcfg_core::store::redb::{RedbStore, Status};
/// fn line(store: &RedbStore) -> &'static str {
///     match store.status() {
///         Status::Ready => "ready",
///         Status::Recovering => "reopening its file",
///         Status::Closed => "closed",
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Reads and commits are served.
    Ready,
    /// The engine failed and its file is being reopened. Reads are served from the last committed state, where that can
    /// be read; commits return [`StoreError::Unavailable`].
    Recovering,
    /// The store was closed.
    Closed,
}

/// How often a read that an engine failure broke off is repeated on the next engine.
const RETRIES: u32 = 3;

/// Why a read failed.
#[derive(Debug)]
pub(super) struct Failed {
    error: StoreError,
    /// The generation of the engine that failed, if the writer knows of the failure and will change the engine.
    engine_of: Option<u64>,
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self { error, engine_of: None }
    }
}

/// The shared state of one store.
#[derive(Debug)]
pub(super) struct StoreState {
    slot: RwLock<Slot>,
    /// The generation of the slot, for those that wait for the next one.
    generation: watch::Sender<u64>,
    cache_bytes: usize,
    hot: RecordCache,
    notifier: Notifier,
    trackers: Trackers,
    health: Arc<Health>,
    status: watch::Sender<Status>,
}

/// An open database, and what [freezes](Freeze) its last committed state after a failure.
pub(super) struct Opened {
    pub(super) database: Database,
    pub(super) freeze: Option<Arc<dyn Freeze>>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opened")
    }
}

#[derive(Debug)]
struct Slot {
    /// Counts the changes of the engine, so that a late failure report about an earlier one is ignored.
    generation: u64,
    engine: Engine,
}

/// The engine that serves the calls.
#[derive(Debug)]
enum Engine {
    /// Reads and commits.
    Open(Opened),
    /// Reads only, while the file is being reopened.
    Frozen(Frozen, Arc<dyn Freeze>),
    /// Nothing.
    None,
}

impl Engine {
    fn begin_read(&self) -> Option<Result<ReadTransaction, TransactionError>> {
        match self {
            Self::Open(opened) => Some(opened.database.begin_read()),
            Self::Frozen(frozen, _) => Some(frozen.database.begin_read()),
            Self::None => None,
        }
    }
}

impl StoreState {
    pub(super) fn new(opened: Opened, options: &RedbOptions, health: Arc<Health>) -> Self {
        let slot = Slot {
            generation: 0,
            engine: Engine::Open(opened),
        };
        Self {
            slot: RwLock::new(slot),
            generation: watch::Sender::new(0),
            cache_bytes: options.cache_bytes,
            hot: RecordCache::new(options.hot_bytes),
            notifier: Notifier::new(),
            trackers: Trackers::new(),
            health,
            status: watch::Sender::new(Status::Ready),
        }
    }

    pub(super) fn status(&self) -> Status {
        *self.status.borrow()
    }

    pub(super) fn watch(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// The watchers of what is committed.
    pub(super) fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    /// The trackers of what is committed.
    pub(super) fn trackers(&self) -> &Trackers {
        &self.trackers
    }

    /// The condition of the file.
    pub(super) fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// The cache of hot records.
    pub(super) fn hot(&self) -> &RecordCache {
        &self.hot
    }

    /// Reads records by their keys, from the cache if all of them are there.
    pub(super) async fn get(
        &self,
        writer: &RwLock<Option<SyncSender<Task>>>,
        keys: &[Key],
    ) -> Result<Vec<Option<Record>>, StoreError> {
        if let [key] = keys
            && let Some(record) = self.hot.get(&key.encode())
        {
            return Ok(vec![record]);
        }
        let encoded: Vec<Vec<u8>> = keys.iter().map(Key::encode).collect();
        if let Some(records) = self.hot.get_all(&encoded) {
            return Ok(records);
        }
        let place = || keys.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>().join(", ");
        let work = || {
            let marks: Vec<_> = encoded.iter().map(|key| self.hot.mark(key)).collect();
            let records = self.try_read(writer, place, |snapshot| read::get(snapshot, &encoded))?;
            Ok((records, marks))
        };
        let (records, marks) = self.retry(work).await?;
        for (((key, encoded), record), mark) in keys.iter().zip(encoded).zip(&records).zip(marks) {
            // Requests with invented API keys need no credential, and would fill the cache with absent records.
            if record.is_some() || matches!(key.partition(), Partition::Workspace(_)) {
                self.hot.insert_if_unchanged(encoded, record, mark);
            }
        }
        Ok(records)
    }

    /// Repeats a read that an engine failure broke off, once the writer has changed to another engine.
    pub(super) async fn retry<T>(&self, work: impl Fn() -> Result<T, Failed>) -> Result<T, StoreError> {
        let mut left = RETRIES;
        loop {
            let failed = match work() {
                Err(failed) if left > 0 => failed,
                outcome => return outcome.map_err(|failed| failed.error),
            };
            left -= 1;
            let Some(generation) = failed.engine_of else {
                return Err(failed.error);
            };
            let mut generations = self.generation.subscribe();
            if generations.wait_for(|now| *now != generation).await.is_err() {
                return Err(failed.error);
            }
        }
    }

    /// Runs a read in its own snapshot once, and reports an engine failure to the writer. `place` describes for the log
    /// what is read.
    pub(super) fn read<T>(
        &self,
        writer: &RwLock<Option<SyncSender<Task>>>,
        place: impl FnOnce() -> String,
        work: impl FnOnce(&ReadTransaction) -> Result<T, ReadFault>,
    ) -> Result<T, StoreError> {
        self.try_read(writer, place, work).map_err(|failed| failed.error)
    }

    /// As [`Self::read`], for [`Self::retry`].
    pub(super) fn try_read<T>(
        &self,
        writer: &RwLock<Option<SyncSender<Task>>>,
        place: impl FnOnce() -> String,
        work: impl FnOnce(&ReadTransaction) -> Result<T, ReadFault>,
    ) -> Result<T, Failed> {
        let (generation, begun) = {
            let slot = read_lock(&self.slot);
            (slot.generation, contain_damage(|| slot.engine.begin_read()))
        };
        // The lock is released before the read. If the database is closed meanwhile, the transaction
        // returns an error.
        let outcome = match begun {
            Ok(Some(Ok(transaction))) => contain_damage(|| work(&transaction)),
            Ok(Some(Err(error))) => Ok(Err(error.into())),
            Ok(None) => return Err(self.unavailable().into()),
            Err(fault) => Err(fault),
        };
        let fault = match outcome {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(ReadFault::Record(error))) => return Err(error.into()),
            Ok(Err(ReadFault::Engine(fault))) => fault,
            Err(fault) => fault,
        };
        if let Fault::Block(damage) = &fault {
            self.health.report(*damage, place);
        }
        let is_engine = matches!(fault, Fault::Engine(_) | Fault::Full(_));
        let mut is_reported = false;
        if is_engine && let Some(queue) = &*read_lock(writer) {
            // With a full queue no report is needed: the writer has commits that will fail as well.
            let sent = queue.try_send(Task::ReadFailed(generation));
            is_reported = !matches!(sent, Err(TrySendError::Disconnected(_)));
        }
        Err(Failed {
            error: fault.into_store_error(),
            engine_of: is_reported.then_some(generation),
        })
    }

    pub(super) fn begin_write(&self) -> Result<WriteTransaction, Fault> {
        match &read_lock(&self.slot).engine {
            Engine::Open(opened) => schema::begin_write(&opened.database),
            Engine::Frozen(..) | Engine::None => Err(Fault::Engine(self.unavailable().to_string())),
        }
    }

    /// Begins a read of the last committed state.
    pub(super) fn begin_read(&self) -> Result<ReadTransaction, Fault> {
        match contain_damage(|| read_lock(&self.slot).engine.begin_read())? {
            Some(begun) => Ok(begun?),
            None => Err(Fault::Engine(self.unavailable().to_string())),
        }
    }

    /// The generation of the engine.
    pub(super) fn generation(&self) -> u64 {
        read_lock(&self.slot).generation
    }

    /// Closes a failed database, and serves reads from the last committed state, as far as that can be read. Only the
    /// writer may call this, between two commits.
    pub(super) fn freeze(&self) {
        self.status.send_replace(Status::Recovering);
        let freeze = match &read_lock(&self.slot).engine {
            Engine::Open(opened) => opened.freeze.clone(),
            // A read of the last committed state failed.
            Engine::Frozen(_, freeze) => Some(Arc::clone(freeze)),
            Engine::None => None,
        };
        let next = freeze.and_then(|freeze| match self.open_frozen(&*freeze) {
            Ok(frozen) => Some(Engine::Frozen(frozen, freeze)),
            Err(fault) => {
                tracing::warn!(
                    cause = fault.text(),
                    "reads are not served until the file is open again"
                );
                None
            }
        });
        self.change(next.unwrap_or(Engine::None));
    }

    fn open_frozen(&self, freeze: &dyn Freeze) -> Result<Frozen, Fault> {
        let frozen = contain_damage(|| freeze.freeze(self.cache_bytes))?;
        frozen.map_err(|error| redb::Error::from(error).into())
    }

    /// Closes the database; each call fails from now on.
    pub(super) fn close(&self) {
        self.status.send_replace(Status::Closed);
        self.change(Engine::None);
    }

    /// Serves from a reopened database.
    pub(super) fn resume_serving(&self, opened: Opened) {
        self.change(Engine::Open(opened));
        self.status.send_replace(Status::Ready);
        // A commit whose outcome was unknown may be in the file.
        self.notifier.notify_all();
    }

    /// Changes the engine. The cache is empty and takes no records meanwhile, so that it has none of the engine before.
    fn change(&self, next: Engine) {
        self.hot.clear();
        let serves = !matches!(next, Engine::None);
        let (generation, before) = {
            let mut slot = write_lock(&self.slot);
            slot.generation += 1;
            (slot.generation, std::mem::replace(&mut slot.engine, next))
        };
        if let Engine::Frozen(frozen, _) = &before {
            frozen.end.end();
        }
        // A database that panicked may panic again when it is dropped. Its file is released in any case.
        let _ = catch_panic(|| drop(before));
        // Reads find the state of another engine from here on.
        self.trackers.note_all();
        if serves {
            self.hot.reopen();
        }
        self.generation.send_replace(generation);
    }

    fn unavailable(&self) -> StoreError {
        let why = match self.status() {
            Status::Closed => "the store is closed",
            Status::Ready | Status::Recovering => "the store file is being reopened after a failure",
        };
        StoreError::Unavailable(why.to_owned())
    }
}
