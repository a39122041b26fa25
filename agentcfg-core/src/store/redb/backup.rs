//! Online backup of a store, and restore into a new store file.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use redb::ReadableTable;

use super::super::stream::{StreamFault, StreamReader, StreamWriter};
use super::super::{OtherFormat, StoreError, envelope};
use super::check::Walk;
use super::compact::fill;
use super::draft::Draft;
use super::error::OpenError;
use super::read::ReadFault;
use super::schema::{RECORDS, read_sequence};
use super::store::RedbStore;

/// The totals of a backup or a restore.
///
/// ```
/// # use agentcfg_core::store::redb::{RedbOptions, RedbStore};
/// # let directory = tempfile::tempdir()?;
/// # let store = RedbStore::open(directory.path().join("store.redb"), RedbOptions::default())?;
/// let summary = store.backup(std::io::sink())?;
/// println!("{} records", summary.records);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupSummary {
    /// The number of records.
    pub records: u64,
    /// The last version that the store had assigned.
    pub sequence: u64,
}

/// Why a backup failed. Its partial output cannot be restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The store could not be read, or its content is inconsistent: run [`check`](super::check).
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The backup could not be written.
    #[error("the backup cannot be written: {0}")]
    Output(#[source] io::Error),
}

/// Why a restore failed. There is no file at the target path, or the file that was there is unchanged.
///
/// ```
/// use agentcfg_core::store::redb::{RestoreError, restore};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("store.redb");
/// std::fs::write(&path, "what was there")?;
/// assert!(matches!(restore(std::io::empty(), &path), Err(RestoreError::Exists)));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// A file exists at the target path. It was not changed.
    #[error("the file to restore into already exists")]
    Exists,
    /// The backup has another format. Restore it with the build that made it.
    #[error("the backup was {0}")]
    OtherFormat(OtherFormat),
    /// The input is not a backup, is truncated, or was modified.
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
    /// Writes a consistent snapshot of the store, which serves reads and commits meanwhile.
    ///
    /// The format is independent of the engine. Its checksums let [`restore`] detect every missing or
    /// changed byte. The call blocks on `out`: make it on a thread that may block.
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
        // An output error must not make the store recover, so it is returned inside the `Ok` of the read.
        self.shared.read(
            &self.queue,
            || "a backup".into(),
            |snapshot| {
                let sequence = read_sequence(snapshot).map_err(damage)?;
                let table = snapshot.open_table(RECORDS)?;
                let mut stream = match StreamWriter::begin(BufWriter::new(out), sequence) {
                    Ok(stream) => stream,
                    Err(error) => return Ok(Err(BackupError::Output(error))),
                };
                let mut walk = Walk::default();
                for entry in table.iter()? {
                    let (key, sealed) = entry?;
                    walk.record(key.value(), sealed.value(), sequence);
                    if let Err(error) = stream.record(key.value(), sealed.value()) {
                        return Ok(Err(BackupError::Output(error)));
                    }
                }
                // A backup of an inconsistent store would go unnoticed until a restore needs it.
                if let Some(problem) = walk.end() {
                    return Err(ReadFault::Record(StoreError::Corrupt(problem.to_string())));
                }
                let ended = stream.end().map_err(BackupError::Output);
                Ok(ended.map(|records| BackupSummary { records, sequence }))
            },
        )?
    }
}

/// Reads a backup to its end and verifies it as [`restore`] does, without creating a store.
///
/// # Errors
///
/// [`RestoreError::Damaged`], [`RestoreError::OtherFormat`] or [`RestoreError::Input`].
///
/// ```
/// use agentcfg_core::store::redb::{RedbOptions, RedbStore, verify_backup};
///
/// let directory = tempfile::tempdir()?;
/// let store = RedbStore::open(directory.path().join("store.redb"), RedbOptions::default())?;
/// let mut copy = Vec::new();
/// let made = store.backup(&mut copy)?;
/// assert_eq!(verify_backup(&copy[..])?, made);
/// assert!(verify_backup(&copy[..copy.len() - 1]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verify_backup(input: impl Read) -> Result<BackupSummary, RestoreError> {
    let mut stream = StreamReader::begin(BufReader::new(input))?;
    while let Some((key, sealed)) = stream.next()? {
        verify_record(&key, &sealed, stream.sequence)?;
    }
    Ok(BackupSummary {
        records: stream.count(),
        sequence: stream.sequence,
    })
}

/// Verifies one record of a backup with this version sequence.
fn verify_record(key: &[u8], sealed: &[u8], sequence: u64) -> Result<(), RestoreError> {
    let record = envelope::open(key, sealed)?;
    if record.version > sequence {
        let name = envelope::describe(key);
        return Err(RestoreError::Damaged(format!(
            "record {name} is ahead of the version sequence"
        )));
    }
    Ok(())
}

/// Creates a new store file at `path` from a backup.
///
/// The file appears atomically after the whole backup was read, verified and synced; before that,
/// and after any error, no file exists at `path`. Versions and log numbers continue after those of
/// the backup.
///
/// # Errors
///
/// See [`RestoreError`].
///
/// ```
/// use agentcfg_core::store::redb::{RestoreError, restore};
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("store.redb");
/// let restored = restore(&b"this is no backup"[..], &path);
/// assert!(matches!(restored, Err(RestoreError::Damaged(_))));
/// assert!(!path.exists());
/// ```
pub fn restore(input: impl Read, path: impl AsRef<Path>) -> Result<BackupSummary, RestoreError> {
    let path = path.as_ref();
    if path.try_exists().map_err(RestoreError::Output)? {
        return Err(RestoreError::Exists);
    }
    let mut stream = StreamReader::begin(BufReader::new(input))?;
    let (draft, file) = Draft::create(path).map_err(RestoreError::Output)?;
    fill(file, stream.sequence, |insert| {
        while let Some((key, sealed)) = stream.next()? {
            verify_record(&key, &sealed, stream.sequence)?;
            insert(&key, &sealed)?;
        }
        Ok::<_, RestoreError>(())
    })?;
    draft.publish().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => RestoreError::Exists,
        _ => RestoreError::Output(error),
    })?;
    Ok(BackupSummary {
        records: stream.count(),
        sequence: stream.sequence,
    })
}

impl From<io::Error> for RestoreError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<StreamFault> for RestoreError {
    fn from(fault: StreamFault) -> Self {
        match fault {
            StreamFault::Io(error) => Self::Input(error),
            StreamFault::Other(other) => Self::OtherFormat(other),
            StreamFault::Damaged(text) => Self::Damaged(text),
        }
    }
}

impl From<StoreError> for RestoreError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt(text) => Self::Damaged(text),
            StoreError::Unavailable(text)
            | StoreError::OutcomeUnknown(text)
            | StoreError::TooLarge(text)
            | StoreError::Misuse(text) => Self::Output(io::Error::other(text)),
        }
    }
}

fn damage(error: OpenError) -> ReadFault {
    ReadFault::Record(StoreError::Corrupt(error.to_string()))
}
