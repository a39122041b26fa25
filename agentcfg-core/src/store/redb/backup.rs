//! Backups: a consistent copy of a store that is in use, and a new store made from one.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use redb::ReadableTable;

use super::super::stream::{self, StreamFault, StreamReader, StreamWriter};
use super::super::{StoreError, envelope};
use super::error::OpenError;
use super::open::{Draft, builder, fault_while_creating};
use super::read::ReadFault;
use super::schema::{RECORDS, begin_write, initialise, read_sequence};
use super::{RedbOptions, RedbStore};

/// What a backup holds, or what was restored from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupSummary {
    /// The number of records.
    pub records: u64,
    /// The last version that the store had given away.
    pub sequence: u64,
}

/// Why a backup could not be made. What was written of it is of no use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The store could not be read. A damaged record ends a backup: run [`check`](super::check).
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The backup could not be written.
    #[error("the backup cannot be written: {0}")]
    Output(#[source] io::Error),
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// There is a file already where the store would be. It was left as it is.
    #[error("the file to restore into exists already")]
    Exists,
    /// A newer release made the backup.
    #[error("the backup has format {found}, this release reads up to {supported}")]
    TooNew {
        /// The format of the backup.
        found: u32,
        /// The newest format that this release reads.
        supported: u32,
    },
    /// The backup is not one, or not whole, or was changed.
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    /// The backup could not be read.
    #[error("the backup cannot be read: {0}")]
    Input(#[source] io::Error),
    /// The new store file could not be written.
    #[error("the store cannot be written: {0}")]
    Output(#[source] io::Error),
}

impl RedbStore {
    /// Writes a copy of the store as it is at this moment, while it goes on serving.
    ///
    /// The form of the copy does not depend on the engine and has checksums, so that [`restore`]
    /// finds out when a byte is missing or changed. It takes as long as `out` takes: call it on a
    /// thread that may block.
    ///
    /// # Errors
    ///
    /// See [`BackupError`].
    ///
    /// ```
    /// use agentcfg_core::store::redb::{RedbOptions, RedbStore, restore};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let store = RedbStore::open(directory.path().join("store.redb"), RedbOptions::default())?;
    /// let mut copy = Vec::new();
    /// let made = store.backup(&mut copy)?;
    ///
    /// let restored = restore(&copy[..], directory.path().join("restored.redb"))?;
    /// assert_eq!(restored, made);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn backup(&self, out: impl Write) -> Result<BackupSummary, BackupError> {
        // A failure of the output is no failure of the store, so it passes through as a result.
        self.shared.read(&self.queue, |snapshot| {
            let sequence = read_sequence(snapshot).map_err(damage)?;
            let table = snapshot.open_table(RECORDS)?;
            let mut stream = match StreamWriter::begin(BufWriter::new(out), sequence) {
                Ok(stream) => stream,
                Err(error) => return Ok(Err(BackupError::Output(error))),
            };
            for entry in table.iter()? {
                let (key, sealed) = entry?;
                envelope::open(key.value(), sealed.value()).map_err(ReadFault::Record)?;
                if let Err(error) = stream.record(key.value(), sealed.value()) {
                    return Ok(Err(BackupError::Output(error)));
                }
            }
            let ended = stream.end().map_err(BackupError::Output);
            Ok(ended.map(|records| BackupSummary { records, sequence }))
        })?
    }
}

/// Makes a new store file at `path` from a backup.
///
/// The file appears once all of the backup was read, found undamaged and put on disk; until then,
/// and after any error, there is nothing at `path`. Versions and log numbers go on where the backup ends.
///
/// # Errors
///
/// See [`RestoreError`].
pub fn restore(input: impl Read, path: impl AsRef<Path>) -> Result<BackupSummary, RestoreError> {
    let path = path.as_ref();
    if path.try_exists().map_err(RestoreError::Output)? {
        return Err(RestoreError::Exists);
    }
    let mut stream = StreamReader::begin(BufReader::new(input))?;
    let (draft, file) = Draft::create(path).map_err(RestoreError::Output)?;
    let database = builder(&RedbOptions::default()).create_file(file).map_err(output)?;
    let transaction = begin_write(&database).map_err(|fault| output(fault_while_creating(fault)))?;
    initialise(&transaction, stream.sequence).map_err(|fault| output(fault_while_creating(fault)))?;
    {
        let mut records = transaction.open_table(RECORDS).map_err(output)?;
        while let Some((key, sealed)) = stream.next()? {
            let record = envelope::open(&key, &sealed)?;
            if record.version > stream.sequence {
                let name = envelope::describe(&key);
                return Err(RestoreError::Damaged(format!(
                    "record {name} is ahead of the version sequence"
                )));
            }
            records.insert(&*key, &*sealed).map_err(output)?;
        }
    }
    transaction.commit().map_err(output)?;
    drop(database);
    draft.publish().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => RestoreError::Exists,
        _ => RestoreError::Output(error),
    })?;
    Ok(BackupSummary {
        records: stream.count(),
        sequence: stream.sequence,
    })
}

impl From<StreamFault> for RestoreError {
    fn from(fault: StreamFault) -> Self {
        match fault {
            StreamFault::Io(error) => Self::Input(error),
            StreamFault::TooNew(found) => Self::TooNew {
                found,
                supported: stream::FORMAT,
            },
            StreamFault::Damaged(text) => Self::Damaged(text),
        }
    }
}

impl From<StoreError> for RestoreError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::TooNew { found, supported } => Self::TooNew { found, supported },
            StoreError::Corrupt(text) => Self::Damaged(text),
            StoreError::Unavailable(text) | StoreError::OutcomeUnknown(text) => Self::Output(io::Error::other(text)),
        }
    }
}

/// An error of the engine on a file that is just being made is the operating system's.
fn output(error: impl std::error::Error) -> RestoreError {
    RestoreError::Output(io::Error::other(error.to_string()))
}

fn damage(error: OpenError) -> ReadFault {
    ReadFault::Record(StoreError::Corrupt(error.to_string()))
}
