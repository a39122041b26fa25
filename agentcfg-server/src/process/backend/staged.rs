//! A store that is prepared beside its final path.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use agentcfg_core::store::redb::{BackupSummary, RedbStore, RestoreError, restore};

use super::BackendError;
use super::file_store::open_file;
use crate::process::datadir::{DataDir, DataDirError, DataLock, STAGED, is_staged};
use crate::process::files;

/// A store that appears in a data directory once it is complete. Until then it has another name, under which no server
/// opens it. It is removed on drop, and leftovers of a killed process are removed by the next one.
pub struct StagedStore {
    dir: DataDir,
    path: PathBuf,
}

impl StagedStore {
    /// Begins without a file.
    ///
    /// # Errors
    ///
    /// When what a killed process left cannot be removed.
    pub fn begin(lock: &DataLock) -> Result<Self, DataDirError> {
        let dir = lock.dir().clone();
        let path = dir.path().join(STAGED);
        files::remove_drafts(dir.path(), is_staged)
            .map_err(|error| DataDirError::from_io("clean up", dir.path(), error))?;
        Ok(Self { dir, path })
    }

    /// Creates the store from a backup.
    ///
    /// # Errors
    ///
    /// See [`RestoreError`].
    pub fn fill(&self, backup: impl Read) -> Result<BackupSummary, RestoreError> {
        restore(backup, &self.path)
    }

    /// Opens the store. It must be closed before it is published.
    ///
    /// # Errors
    ///
    /// [`BackendError::Store`] with advice for the operator.
    pub fn open(&self, cache_mb: u64) -> Result<RedbStore, BackendError> {
        open_file(&self.path, &self.dir, cache_mb)
    }

    /// Gives the store its final name.
    ///
    /// # Errors
    ///
    /// When the directory has a store already, or cannot be written.
    pub fn publish(&self) -> Result<(), DataDirError> {
        let path = self.dir.store_path();
        files::publish(&self.path, &path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => DataDirError::HasStore {
                path: self.dir.path().to_owned(),
            },
            _ => DataDirError::from_io("create", &path, error),
        })
    }
}

impl Drop for StagedStore {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
