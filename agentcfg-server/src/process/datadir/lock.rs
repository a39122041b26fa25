//! The lock of a data directory: one process works on it at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use super::{DataDir, DataDirError};

/// The exclusive right to work on a data directory. The system takes it back when the process ends, however it ends.
#[derive(Debug)]
pub struct DataLock {
    dir: DataDir,
    file: File,
}

impl DataLock {
    /// The directory that is held.
    pub fn dir(&self) -> &DataDir {
        &self.dir
    }

    /// Writes the address that the process serves into the lock file, for the error message of other processes.
    ///
    /// # Errors
    ///
    /// When the lock file cannot be written.
    pub fn announce(&mut self, listen: impl std::fmt::Display) -> Result<(), DataDirError> {
        self.write(&format!("pid {}\nlisten {listen}\n", std::process::id()))
    }

    pub(super) fn take(dir: &DataDir) -> Result<Self, DataDirError> {
        let path = dir.path().join("lock");
        let failed = |source| DataDirError::from_io("write to", &path, source);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(DataDirError::Locked {
                    path: dir.path().to_owned(),
                    holder: holder(&mut file),
                });
            }
            Err(TryLockError::Error(source)) => return Err(DataDirError::from_io("lock", &path, source)),
        }
        // A lock on a file that was removed since it was opened excludes no other process.
        let held = file.metadata().map_err(failed)?;
        if !fs::metadata(&path).is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())) {
            return Self::take(dir);
        }
        let mut lock = Self { dir: dir.clone(), file };
        lock.write(&format!("pid {}\n", std::process::id()))?;
        Ok(lock)
    }

    /// Gives the directory back, and removes the lock file, for a command that leaves nothing behind.
    ///
    /// # Errors
    ///
    /// When the lock file cannot be removed.
    pub fn remove(self) -> Result<(), DataDirError> {
        let path = self.dir.path().join("lock");
        fs::remove_file(&path).map_err(|source| DataDirError::from_io("remove", &path, source))
    }

    fn write(&mut self, text: &str) -> Result<(), DataDirError> {
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(text.as_bytes())
        };
        write(&mut self.file).map_err(|source| DataDirError::from_io("write to", &self.dir.path().join("lock"), source))
    }
}

/// Whether the last process that wrote the lock file was a server that accepted connections.
pub(super) fn was_served(dir: &DataDir) -> bool {
    let text = std::fs::read_to_string(dir.path().join("lock"));
    text.is_ok_and(|text| text.lines().any(|line| line.starts_with("listen ")))
}

/// Who holds the lock, from what it wrote into the file.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    // Without the text the message is less helpful, but correct.
    let _ = file.take(1024).read_to_string(&mut text);
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    match (field("pid"), field("listen")) {
        (Some(pid), Some(listen)) => format!("process {pid}, which serves {listen}"),
        (Some(pid), None) => format!("process {pid}"),
        _ => "another process".to_owned(),
    }
}
