//! The outcome of a compaction.

use std::io;

use super::super::StoreError;

/// What a compaction did.
///
/// ```
/// # use agentcfg_core::store::redb::{RedbOptions, RedbStore};
/// # let directory = tempfile::tempdir()?;
/// # let store = RedbStore::open(directory.path().join("store.redb"), RedbOptions::default())?;
/// let done = store.compact(|_| {})?;
/// println!("{} records, from {} to {} bytes", done.records, done.bytes_before, done.bytes_after);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// The number of records.
    pub records: u64,
    /// The length of the file before, in bytes.
    pub bytes_before: u64,
    /// The length of the file after, in bytes.
    pub bytes_after: u64,
}

/// Why a compaction failed. The store file is the one from before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// The store could not be read, or its content is inconsistent: run [`check`](super::check).
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The new file could not be written beside the store file. It needs room for all records.
    #[error("the compacted file cannot be written: {0}")]
    Output(#[source] io::Error),
}

impl From<io::Error> for CompactError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
