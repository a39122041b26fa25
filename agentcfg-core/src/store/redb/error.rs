//! Errors of the store file, classified by what the operator should do.

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::{DatabaseError, StorageError};

use super::super::{OtherFormat, StoreError};
use super::blocks::{Broken, Damage, HeadFault, contained};

/// Why a store file could not be opened.
///
/// ```
/// # use agentcfg_core::store::redb::{RedbOptions, RedbStore};
/// use agentcfg_core::store::redb::OpenError;
/// # let directory = tempfile::tempdir().unwrap();
/// let missing = RedbStore::open(directory.path().join("no/such/folder/store.redb"), RedbOptions::default());
/// assert!(matches!(missing, Err(OpenError::Io(_))));
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another handle in this process, holds the lock of the file. Close it first.
    #[error("the store is open already, in this process or another one")]
    Held,
    /// The file has another format. It was not changed: use the build that made it.
    #[error("the store was {0}")]
    OtherFormat(OtherFormat),
    /// The app is built with `panic = "abort"`: one damaged block would end its process. The file was not touched.
    #[error(
        "the app is built with panic = \"abort\", so that one damaged block would end it: build it with panic = \"unwind\""
    )]
    PanicAborts,
    /// The file is not a store, or is damaged. Restore a backup.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The operating system returned an error, such as a missing path, a missing permission or a full disk.
    #[error("the store cannot be read or written: {0}")]
    Io(#[from] io::Error),
}

/// The message, because a `main` that returns the error prints this form.
impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<DatabaseError> for OpenError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen => Self::Held,
            DatabaseError::Storage(error) => error.into(),
            other => Self::Damaged(other.to_string()),
        }
    }
}

impl From<StorageError> for OpenError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Io(error) => match (other_format(&error), error.kind()) {
                (Some(other), _) => Self::OtherFormat(other),
                // The engine reports a wrong magic number and a truncated file as these I/O errors.
                (None, io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => Self::Damaged(error.to_string()),
                (None, _) => Self::Io(error),
            },
            other => Self::Damaged(other.to_string()),
        }
    }
}

/// The refusal of a file that has another format.
fn other_format(error: &io::Error) -> Option<OtherFormat> {
    match error.get_ref()?.downcast_ref()? {
        HeadFault::Other(other) => Some(other.clone()),
        _ => None,
    }
}

/// An error of the engine that aborts a transaction.
#[derive(Debug)]
pub(super) enum Fault {
    /// The engine fails every further call until its file is reopened.
    Engine(String),
    /// As [`Self::Engine`], because the disk or a quota is full.
    Full(String),
    /// A page is damaged. Reopening the file would not help.
    Damage(String),
    /// A block cannot be read, or does not match its checksum. Other blocks are not affected.
    Block(Damage),
}

impl Fault {
    /// The error of a read, or of a write before its commit began: nothing changed.
    pub(super) fn into_store_error(self) -> StoreError {
        match self {
            Self::Engine(text) | Self::Full(text) => StoreError::Unavailable(text),
            Self::Damage(text) => StoreError::Corrupt(text),
            Self::Block(damage) => StoreError::Unavailable(damage.to_string()),
        }
    }

    /// The message for the log.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Engine(text) | Self::Full(text) | Self::Damage(text) => text.clone(),
            Self::Block(damage) => damage.to_string(),
        }
    }
}

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        match error.into() {
            error @ (redb::Error::Corrupted(_)
            | redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableDoesNotExist(_)) => Self::Damage(error.to_string()),
            redb::Error::Io(error) if is_full(&error) => Self::Full(error.to_string()),
            error => Self::Engine(error.to_string()),
        }
    }
}

/// Whether an operation failed because there is no room for more data.
pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Refuses an app in which nothing unwinds: damage of the file fails single reads by unwinding out of the engine.
pub(super) fn require_unwinding(panic_aborts: bool) -> Result<(), OpenError> {
    match panic_aborts {
        true => Err(OpenError::PanicAborts),
        false => Ok(()),
    }
}

/// Runs engine code and returns a panic's message as the error: a damaged page can break the
/// engine's assumptions and make it panic.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // Unwind safety: a panic leaves only engine state incomplete. The engine's locks are then
    // poisoned, and the writer reopens the file at the next error.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_text(&*panic))
}

/// Runs a read transaction, or a part of one, so that a damaged block fails this read and the engine continues.
pub(super) fn contain_damage<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    contained(work).map_err(|broken| match broken {
        Broken::Damage(damage) => Fault::Block(damage),
        Broken::Panic(panic) => Fault::Damage(panic_text(&*panic)),
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    format!("the engine failed with an internal error: {text}")
}
