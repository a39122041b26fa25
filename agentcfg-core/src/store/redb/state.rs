//! The state that the readers, the writer thread and the handle share.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use redb::{Database, ReadTransaction, ReadableDatabase, WriteTransaction};
use tokio::sync::watch;

use super::super::{Key, Notifier, Record, StoreError};
use super::error::{Fault, catch_panic, contain_damage};
use super::health::Health;
use super::hot::Hot;
use super::read::{self, ReadFault};
use super::schema;
use super::writer::Task;

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
    /// The engine failed and its file is being reopened; every call returns
    /// [`StoreError::Unavailable`].
    Recovering,
    /// The store was closed.
    Closed,
}

/// The shared state of one store.
#[derive(Debug)]
pub(super) struct Shared {
    database: RwLock<Slot>,
    hot: Hot,
    notifier: Notifier,
    health: Arc<Health>,
    status: watch::Sender<Status>,
}

#[derive(Debug)]
struct Slot {
    /// Counts the reopenings, so that a late failure report about an earlier database is ignored.
    generation: u64,
    database: Option<Database>,
}

impl Shared {
    pub(super) fn new(database: Database, hot_bytes: usize, health: Arc<Health>) -> Self {
        let slot = Slot {
            generation: 0,
            database: Some(database),
        };
        Self {
            database: RwLock::new(slot),
            hot: Hot::new(hot_bytes),
            notifier: Notifier::new(),
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

    /// The condition of the file.
    pub(super) fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// The cache of hot records.
    pub(super) fn hot(&self) -> &Hot {
        &self.hot
    }

    /// Reads records by their keys, from the cache if all of them are there.
    pub(super) fn get(
        &self,
        writer: &RwLock<Option<SyncSender<Task>>>,
        keys: &[Key],
    ) -> Result<Vec<Option<Record>>, StoreError> {
        if let [key] = keys
            && let Some(record) = self.hot.get(&key.encode())
        {
            return Ok(vec![Some(record)]);
        }
        let encoded: Vec<Vec<u8>> = keys.iter().map(Key::encode).collect();
        if let Some(records) = self.hot.get_all(&encoded) {
            return Ok(records);
        }
        let marks: Vec<_> = encoded.iter().map(|key| self.hot.mark(key)).collect();
        let place = || keys.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>().join(", ");
        let records = self.read(writer, place, |snapshot| read::get(snapshot, &encoded))?;
        for ((key, record), mark) in encoded.into_iter().zip(&records).zip(marks) {
            if let Some(record) = record {
                self.hot.offer(key, record, mark);
            }
        }
        Ok(records)
    }

    /// Runs a read in its own snapshot, and reports an engine failure to the writer. `place` describes for the log what
    /// is read.
    pub(super) fn read<T>(
        &self,
        writer: &RwLock<Option<SyncSender<Task>>>,
        place: impl FnOnce() -> String,
        work: impl FnOnce(&ReadTransaction) -> Result<T, ReadFault>,
    ) -> Result<T, StoreError> {
        let (generation, begun) = {
            let slot = self.slot();
            (
                slot.generation,
                contain_damage(|| slot.database.as_ref().map(Database::begin_read)),
            )
        };
        // The lock is released before the read. If the database is closed meanwhile, the transaction
        // returns an error.
        let outcome = match begun {
            Ok(Some(Ok(transaction))) => contain_damage(|| work(&transaction)),
            Ok(Some(Err(error))) => Ok(Err(error.into())),
            Ok(None) => return Err(self.unavailable()),
            Err(fault) => Err(fault),
        };
        let fault = match outcome {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(ReadFault::Record(error))) => return Err(error),
            Ok(Err(ReadFault::Engine(fault))) => fault,
            Err(fault) => fault,
        };
        if let Fault::Block(damage) = &fault {
            self.health.report(*damage, place);
        }
        if matches!(fault, Fault::Engine(_)) {
            // With a full queue no report is needed: the writer has commits that will fail as well.
            if let Some(queue) = &*writer.read().unwrap_or_else(PoisonError::into_inner) {
                let _ = queue.try_send(Task::ReadFailed(generation));
            }
        }
        Err(fault.into_store_error())
    }

    pub(super) fn begin_write(&self) -> Result<WriteTransaction, Fault> {
        match &self.slot().database {
            Some(database) => schema::begin_write(database),
            None => Err(Fault::Engine(self.unavailable().to_string())),
        }
    }

    /// Begins a read of the last committed state.
    pub(super) fn begin_read(&self) -> Result<ReadTransaction, Fault> {
        match &self.slot().database {
            Some(database) => Ok(contain_damage(|| database.begin_read())??),
            None => Err(Fault::Engine(self.unavailable().to_string())),
        }
    }

    /// The generation of the open database.
    pub(super) fn generation(&self) -> u64 {
        self.slot().generation
    }

    /// Closes the database; each call fails from now on.
    pub(super) fn stop_serving(&self, status: Status) {
        self.status.send_replace(status);
        self.hot.clear();
        let database = self
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .database
            .take();
        // A database that panicked may panic again when it is dropped. Its file is released in any case.
        let _ = catch_panic(|| drop(database));
    }

    /// Serves from a reopened database.
    pub(super) fn resume_serving(&self, database: Database) {
        {
            self.hot.reopen();
            let mut slot = self.database.write().unwrap_or_else(PoisonError::into_inner);
            slot.generation += 1;
            slot.database = Some(database);
        }
        self.status.send_replace(Status::Ready);
        // A commit whose outcome was unknown may be in the file.
        self.notifier.notify_all();
    }

    fn slot(&self) -> RwLockReadGuard<'_, Slot> {
        self.database.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn unavailable(&self) -> StoreError {
        let why = match self.status() {
            Status::Closed => "the store is closed",
            Status::Ready | Status::Recovering => "the store file is being reopened after a failure",
        };
        StoreError::Unavailable(why.to_owned())
    }
}
