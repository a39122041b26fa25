//! The lock file of a data directory: one process works on the directory at a time.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::DataDirError;

/// Name of the file in the data directory.
pub(super) const NAME: &str = "lock";

/// The line of a server that does not sign session tokens with the key of the directory.
const OTHER_SECRET: &str = "session_secret elsewhere\n";

/// The lock file, held by this process.
#[derive(Debug)]
pub(super) struct LockFile {
    path: PathBuf,
    file: File,
}

impl LockFile {
    /// Takes the lock of this directory, and leaves the content of the file as it is.
    pub(super) fn take(dir: &Path) -> Result<Self, DataDirError> {
        let path = dir.join(NAME);
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
                    path: dir.to_owned(),
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
        Ok(Self { path, file })
    }

    /// Takes a lock that other readers may share, without a change of the directory; `None` where no process has locked
    /// it yet.
    pub(super) fn share(dir: &Path) -> Result<Option<File>, DataDirError> {
        let path = dir.join(NAME);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(DataDirError::from_io("read", &path, source)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Err(DataDirError::Locked {
                path: dir.to_owned(),
                holder: holder(&mut file),
            }),
            Err(TryLockError::Error(source)) => Err(DataDirError::from_io("lock", &path, source)),
        }
    }

    /// Writes into the file which process has the lock.
    pub(super) fn claim(&mut self) -> Result<(), DataDirError> {
        self.write(&format!("pid {}\n", std::process::id()))
    }

    /// Writes the address that the process serves into the file, and whether the secret of its session tokens is
    /// elsewhere.
    pub(super) fn announce(&mut self, listen: impl fmt::Display, has_other_secret: bool) -> Result<(), DataDirError> {
        let other = if has_other_secret { OTHER_SECRET } else { "" };
        self.write(&format!("pid {}\nlisten {listen}\n{other}", std::process::id()))
    }

    /// Removes the file, and with it the lock.
    pub(super) fn remove(self) -> Result<(), DataDirError> {
        fs::remove_file(&self.path).map_err(|source| DataDirError::from_io("remove", &self.path, source))
    }

    fn write(&mut self, text: &str) -> Result<(), DataDirError> {
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(text.as_bytes())
        };
        write(&mut self.file).map_err(|source| DataDirError::from_io("write to", &self.path, source))
    }
}

/// Whether the last process that wrote the lock file was a server that had accepted connections.
pub(super) fn was_served(dir: &Path) -> bool {
    let text = fs::read_to_string(dir.join(NAME));
    text.is_ok_and(|text| text.lines().any(|line| line.starts_with("listen ")))
}

/// The address that the last server has written, if a server was the last process that wrote the lock file.
pub(super) fn served_address(dir: &Path) -> Option<SocketAddr> {
    let text = fs::read_to_string(dir.join(NAME)).ok()?;
    text.lines().find_map(|line| line.strip_prefix("listen "))?.parse().ok()
}

/// Whether the last server had the secret of its session tokens elsewhere.
pub(super) fn has_other_secret(dir: &Path) -> bool {
    fs::read_to_string(dir.join(NAME)).is_ok_and(|text| text.contains(OTHER_SECRET))
}

/// The holder of the lock, as it described itself in the file.
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
