//! The errors of a data directory, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// There is nothing at the path.
    #[error("{} does not exist; check the path, or run `agentcfg-server serve --data {}` to create it", .path.display(), .path.display())]
    Missing {
        /// The missing directory.
        path: PathBuf,
    },
    /// The path, or one above it, is not a directory.
    #[error("{} is a file, and no data directory", .path.display())]
    NotADirectory {
        /// The path that is not a directory.
        path: PathBuf,
    },
    /// The system denies access.
    #[error("cannot {doing} {}: permission denied; run as the owner of the data directory, or name another with --data or AGENTCFG_DATA", .path.display())]
    Denied {
        /// The attempted operation.
        doing: &'static str,
        /// The path of the operation.
        path: PathBuf,
    },
    /// The file system takes no writes.
    #[error("cannot {doing} {}: the file system is read-only; name a writable directory with --data or AGENTCFG_DATA", .path.display())]
    ReadOnly {
        /// The attempted operation.
        doing: &'static str,
        /// The path of the operation.
        path: PathBuf,
    },
    /// The disk or the quota is used up.
    #[error("cannot {doing} {}: no space left; free some, or name another directory with --data or AGENTCFG_DATA", .path.display())]
    Full {
        /// The attempted operation.
        doing: &'static str,
        /// The path of the operation.
        path: PathBuf,
    },
    /// Another process has locked the directory.
    #[error("{} is in use by {holder}; stop it first, or name another directory with --data or AGENTCFG_DATA", .path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
        /// A description of the process, as far as the lock file names it.
        holder: String,
    },
    /// Something other than a socket has the name of the control socket.
    #[error("{} is {what}, and no socket: move it away, the server takes orders of the other commands there", .path.display())]
    NoSocket {
        /// The path.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// A restore or a migration into the directory was cut off.
    #[error(
        "{} is a part of a store: a `restore` or `migrate` into this directory was interrupted. Repeat it, or remove that file to \
         start with an empty store. Nothing was changed",
        .path.display()
    )]
    Interrupted {
        /// The file that was left.
        path: PathBuf,
    },
    /// A command needs a store, and the directory has none.
    #[error("{} has no store; check the path, or run `agentcfg-server serve --data {}` to make one", .path.display(), .path.display())]
    NoStore {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has the keys of a store, but no store.
    #[error(
        "{} has {key} but no store: the store was removed or is on another disk. Put it back, or restore a backup with \
         `agentcfg-server restore --from FILE --data {}`; to start with an empty store, move {key} away first. Nothing was changed",
        .path.display(), .path.display()
    )]
    LostStore {
        /// The directory.
        path: PathBuf,
        /// The file that shows that there was a store.
        key: &'static str,
    },
    /// A command would replace a store.
    #[error("{} already has a store, which is left as it is; name an empty directory with --data or AGENTCFG_DATA", .path.display())]
    HasStore {
        /// The directory.
        path: PathBuf,
    },
    /// Others can read a key.
    #[error("{} is open to other users (mode {mode:03o}); if no other user has read it, run `chmod 600 {}`, else delete it: all sessions end and the next start makes a new one", .path.display(), .path.display())]
    KeyExposed {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A key file has a wrong length.
    #[error("{} must hold 32 bytes, got {length}; put the original back, or delete it: all sessions end and the next start makes a new one", .path.display())]
    KeyLength {
        /// The key file.
        path: PathBuf,
        /// Its length in bytes.
        length: u64,
    },
    /// Others can read the file of the master keys.
    #[error("{} is open to other users (mode {mode:03o}); run `chmod 600 {}`, and if another user may have read it, then replace the master key with `agentcfg-server rotate-master-key`", .path.display(), .path.display())]
    MasterKeyExposed {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file of the master keys has a malformed line.
    #[error("{}:{line}: {rule}; put the original back", .path.display())]
    MasterKeyFile {
        /// The key file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The rule that the line breaks.
        rule: String,
    },
    /// The system has no randomness.
    #[error("cannot make a key: {0}")]
    Randomness(String),
    /// Any other error of the file system.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// The attempted operation.
        doing: &'static str,
        /// The path of the operation.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl DataDirError {
    pub(in crate::process) fn from_io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        use io::ErrorKind;
        let file = || path.ancestors().find(|path| path.is_file()).unwrap_or(path).to_owned();
        let (file, path) = (file(), path.to_owned());
        match source.kind() {
            ErrorKind::NotFound => Self::Missing { path },
            ErrorKind::NotADirectory | ErrorKind::AlreadyExists => Self::NotADirectory { path: file },
            ErrorKind::PermissionDenied => Self::Denied { doing, path },
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { doing, path },
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full { doing, path },
            _ => Self::Io { doing, path, source },
        }
    }
}
