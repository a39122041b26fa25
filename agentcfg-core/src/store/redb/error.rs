//! What can go wrong with the file, told apart by what the operator should do.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::{DatabaseError, StorageError};

use super::super::StoreError;

/// Why a store file could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another handle in this one, has the file open. Ask that one, or stop it.
    #[error("the store is held by another process")]
    Held,
    /// A newer release wrote the file. It was left as it was: use that release.
    #[error("the store has format {found}, this release reads up to {supported}")]
    TooNew {
        /// The format of the file.
        found: u64,
        /// The newest format that this release reads.
        supported: u64,
    },
    /// The file is no store, or what is left of one. Restore a backup.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The operating system refused. Its error says what is missing: a path, a right, space.
    #[error("the store cannot be read or written: {0}")]
    Io(#[from] io::Error),
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
            // The engine reports a wrong magic number and a file that ends too early this way.
            StorageError::Io(error)
                if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
            {
                Self::Damaged(error.to_string())
            }
            StorageError::Io(error) => Self::Io(error),
            other => Self::Damaged(other.to_string()),
        }
    }
}

/// An error of the engine that ends a transaction.
#[derive(Debug)]
pub(super) enum Fault {
    /// The engine refuses everything from now on until its file is opened anew.
    Engine(String),
    /// A page holds what the engine never writes. To open the file anew changes nothing.
    Damage(String),
}

impl Fault {
    /// The answer of a read, or of a write before its commit began: nothing changed.
    pub(super) fn into_store_error(self) -> StoreError {
        match self {
            Self::Engine(text) => StoreError::Unavailable(text),
            Self::Damage(text) => StoreError::Corrupt(text),
        }
    }

    /// The text for the log.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Engine(text) | Self::Damage(text) => text,
        }
    }
}

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        match error.into() {
            error @ (redb::Error::Corrupted(_)
            | redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableDoesNotExist(_)) => Self::Damage(error.to_string()),
            error => Self::Engine(error.to_string()),
        }
    }
}

/// Runs code of the engine, which may panic where a damaged page breaks its assumptions, and turns
/// the panic into its text.
pub(super) fn shielded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // Whatever the panic left half done belongs to the engine: its locks are poisoned, and the
    // writer opens the file anew as soon as it meets that.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        format!("the engine gave up: {text}")
    })
}
