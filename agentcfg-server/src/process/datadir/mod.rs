//! The data directory: its files, its lock, and its errors, each with advice for the operator.
//!
//! | file | what |
//! |---|---|
//! | `store.redb` | the store |
//! | `store.redb.staged` | a store that `restore` or `migrate` prepares |
//! | `session.key` | the secret of the local identity provider, 32 bytes |
//! | `master.key` | the master keys that seal provider keys, one a line, the sealing one first |
//! | `lock` | held by the process that works on the store |
//! | `control.sock` | the socket on which that process takes orders from the owner of the directory |

mod error;
mod first_start;
mod inspect;
mod lock;
mod master_key;
mod secret_file;
mod session_key;
#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use agentcfg_core::vault::MasterKey;

pub use error::DataDirError;
pub use first_start::FirstStart;
pub use inspect::{Expected, faults, faults_of_content};
use lock::LockFile;
pub use lock::TokenSource;
use secret_file::GroupRights;
pub use session_key::SessionSecret;

use crate::process::files::directory_of;

/// The name of a store until it is complete.
pub(in crate::process) const STAGED: &str = "store.redb.staged";

/// Whether a file of this name is a staged store, or a draft of one that the engine fills first.
pub(in crate::process) fn is_staged(name: &str) -> bool {
    let is_draft = |name: &str| name.starts_with(STAGED) && name.ends_with(".tmp");
    name == STAGED || name.strip_prefix('.').is_some_and(is_draft)
}

/// A data directory that exists.
#[derive(Debug, Clone)]
pub struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// Opens the directory at `path`. When there is none, it is created with permissions for its owner alone.
    ///
    /// # Errors
    ///
    /// When something else is there, or it cannot be created.
    pub fn open_or_create(path: impl Into<PathBuf>) -> Result<Self, DataDirError> {
        let path = path.into();
        // Not the error that advises to create the directory, because that has just failed.
        let io = |source: io::Error| DataDirError::Io {
            doing: "create",
            path: path.clone(),
            source,
        };
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => io(source),
            _ => DataDirError::from_io("create", &path, source),
        };
        match Self::open(&path) {
            Err(DataDirError::Missing { .. }) => {}
            other => return other,
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
            // Another process has created the directory meanwhile.
            _ => Self::open(&path).map_err(|error| match error {
                DataDirError::Missing { .. } => io(io::Error::other("it is a symbolic link that leads nowhere")),
                other => other,
            }),
        }
    }

    /// Whether there is something at `path`.
    ///
    /// # Errors
    ///
    /// When the file system cannot be read.
    pub fn is_there(path: &Path) -> Result<bool, DataDirError> {
        let found = path.try_exists();
        found.map_err(|source| DataDirError::from_io("look into", directory_of(path), source))
    }

    /// Opens the directory at `path`.
    ///
    /// # Errors
    ///
    /// When there is no directory.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, DataDirError> {
        let path = path.into();
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Ok(Self { path }),
            Ok(_) => Err(DataDirError::NotADirectory { path }),
            Err(source) => Err(DataDirError::from_io("open", &path, source)),
        }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// File of the embedded store.
    pub fn store_path(&self) -> PathBuf {
        self.path.join("store.redb")
    }

    /// Socket of the process that holds the lock.
    pub fn socket_path(&self) -> PathBuf {
        self.path.join("control.sock")
    }

    /// Whether there is a store.
    ///
    /// # Errors
    ///
    /// When the file system cannot be read.
    pub fn has_store(&self) -> Result<bool, DataDirError> {
        let path = self.store_path();
        path.try_exists()
            .map_err(|source| DataDirError::from_io("look into", &self.path, source))
    }

    /// The length of the store file, 0 where there is none.
    ///
    /// # Errors
    ///
    /// When the file system cannot be read.
    pub fn store_bytes(&self) -> Result<u64, DataDirError> {
        match fs::metadata(self.store_path()) {
            Ok(found) => Ok(found.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(source) => Err(DataDirError::from_io("look into", &self.path, source)),
        }
    }

    /// Requires a store, for commands that work on one.
    ///
    /// # Errors
    ///
    /// [`DataDirError::NoStore`] when there is none.
    pub fn require_store(&self) -> Result<(), DataDirError> {
        if self.has_store()? {
            Ok(())
        } else {
            Err(DataDirError::NoStore {
                path: self.path.clone(),
            })
        }
    }

    /// Requires that there is no store, for commands that create one.
    ///
    /// # Errors
    ///
    /// [`DataDirError::HasStore`] when there is one.
    pub fn require_no_store(&self) -> Result<(), DataDirError> {
        if self.has_store()? {
            Err(DataDirError::HasStore {
                path: self.path.clone(),
            })
        } else {
            Ok(())
        }
    }

    /// Whether a process has locked the directory before.
    pub fn has_lock(&self) -> bool {
        self.path.join(lock::NAME).exists()
    }

    /// Refuses a directory that has the keys of a store but no store, before a server creates an empty one.
    ///
    /// A master key is created after its store. The secret of the session tokens may be created first, so it counts
    /// only if a server ran in the directory, and that alone counts too, because the settings may have both.
    ///
    /// # Errors
    ///
    /// [`DataDirError::LostStore`] if the store is missing.
    pub fn refuse_lost_store(&self) -> Result<(), DataDirError> {
        if self.has_store()? {
            return Ok(());
        }
        let has = |name: &str| self.path.join(name).exists();
        let key = match (has(master_key::NAME), lock::was_served(&self.path)) {
            (true, _) => master_key::NAME,
            (false, true) if has(session_key::NAME) => session_key::NAME,
            // The secrets may be in the settings.
            (false, true) => lock::NAME,
            (false, false) => return Ok(()),
        };
        Err(DataDirError::LostStore {
            path: self.path.clone(),
            key,
        })
    }

    /// Locks the directory for this process, until the guard is dropped. The lock file names the process until then.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Locked`] when another process has it; others when the directory is not writable.
    pub fn lock(&self) -> Result<DataLock, DataDirError> {
        let mut lock = self.lock_quietly()?;
        lock.claim()?;
        Ok(lock)
    }

    /// As [`Self::lock`], without a word in the lock file until the holder [claims](DataLock::claim) it.
    ///
    /// # Errors
    ///
    /// As [`Self::lock`].
    pub fn lock_quietly(&self) -> Result<DataLock, DataDirError> {
        Ok(DataLock {
            dir: self.clone(),
            file: LockFile::take(&self.path)?,
        })
    }

    /// Keeps servers out while the directory is read, and changes nothing in it: it may be read-only.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Locked`] when a process works on the directory.
    pub fn lock_to_read(&self) -> Result<impl Drop + use<>, DataDirError> {
        LockFile::share(&self.path).map(ReadLock)
    }

    /// The secret of the local identity provider. The first call creates it; concurrent calls get the same one.
    ///
    /// Needs no lock, so that tokens can be made while a server runs.
    ///
    /// # Errors
    ///
    /// When the file is open to others, is not 32 bytes, or cannot be read or made.
    pub fn session_secret(&self) -> Result<SessionSecret, DataDirError> {
        session_key::load_or_create(&self.path)
    }

    /// Whether the secret of the local identity provider was lost: a store exists, so there was a secret. The next
    /// [`Self::session_secret`] creates another one.
    ///
    /// # Errors
    ///
    /// When the file system cannot be read.
    pub fn has_lost_session_secret(&self) -> Result<bool, DataDirError> {
        let path = self.path.join(session_key::NAME);
        let has_key = path.try_exists();
        let has_key = has_key.map_err(|source| DataDirError::from_io("look into", &self.path, source))?;
        Ok(!has_key && self.has_store()?)
    }

    /// The address that the last server has served; `None` if none did, or while a command has locked the directory.
    pub fn served_address(&self) -> Option<SocketAddr> {
        lock::served_address(&self.path)
    }

    /// Where the session tokens of the last server came from. It accepts no others.
    pub fn token_source(&self) -> TokenSource {
        lock::token_source(&self.path)
    }

    /// File of the master keys.
    pub fn master_key_path(&self) -> PathBuf {
        self.path.join(master_key::NAME)
    }

    /// The master keys, the sealing one first; `None` when there is no file of them.
    ///
    /// # Errors
    ///
    /// When the file is open to others, holds something else, or cannot be read.
    pub fn master_keys(&self) -> Result<Option<Vec<MasterKey>>, DataDirError> {
        master_key::load(&self.path, GroupRights::TakenBack)
    }

    /// As [`Self::master_keys`], for a command that changes nothing: the rights of the file stay.
    ///
    /// # Errors
    ///
    /// As [`Self::master_keys`].
    pub fn master_keys_unchanged(&self) -> Result<Option<Vec<MasterKey>>, DataDirError> {
        master_key::load(&self.path, GroupRights::Kept)
    }

    /// Creates the file of the master keys with a fresh key unless it exists, and returns its keys.
    ///
    /// # Errors
    ///
    /// When it cannot be made, and as [`Self::master_keys`].
    pub fn make_master_key(&self) -> Result<Vec<MasterKey>, DataDirError> {
        master_key::create(&self.path)?;
        self.master_keys()?.ok_or_else(|| DataDirError::Missing {
            path: self.master_key_path(),
        })
    }

    /// Adds a new master key before these to the file, and returns all.
    ///
    /// # Errors
    ///
    /// When the file cannot be written; it is left as it was then.
    pub fn add_master_key(&self, mut keys: Vec<MasterKey>) -> Result<Vec<MasterKey>, DataDirError> {
        keys.insert(0, master_key::generate()?);
        self.replace_master_keys(&keys)?;
        Ok(keys)
    }

    /// Writes exactly these master keys into the file.
    ///
    /// # Errors
    ///
    /// When the file cannot be written; it is left as it was then.
    pub fn replace_master_keys(&self, keys: &[MasterKey]) -> Result<(), DataDirError> {
        master_key::replace(&self.path, keys)
    }
}

/// The exclusive lock of a data directory. The system releases it when the process ends.
#[derive(Debug)]
pub struct DataLock {
    dir: DataDir,
    file: LockFile,
}

/// See [`DataDir::lock_to_read`].
struct ReadLock(Option<File>);

impl Drop for ReadLock {
    fn drop(&mut self) {
        // Closing the file releases the lock.
        drop(self.0.take());
    }
}

impl DataLock {
    /// Writes into the lock file that this process has the directory, until the lock is dropped. What the last server
    /// has written stays there until [`Self::announce`].
    ///
    /// # Errors
    ///
    /// When the lock file cannot be written.
    pub fn claim(&mut self) -> Result<(), DataDirError> {
        self.file.claim()
    }

    /// Takes the rights of other users away: from the files, and from the directory where others may write to it. What
    /// belongs to another user, such as a volume, stays as it is, and a warning says so.
    pub fn close_to_others(&self) {
        const OTHERS: u32 = 0o007;
        const OTHERS_WRITE: u32 = 0o002;
        const STICKY: u32 = 0o1000;
        let dir = &self.dir.path;
        let files = [
            (dir.clone(), OTHERS_WRITE),
            (self.dir.store_path(), OTHERS),
            (dir.join(lock::NAME), OTHERS),
        ];
        for (path, rights) in files {
            let Ok(found) = fs::metadata(&path) else { continue };
            let mode = found.mode() & 0o7777;
            if mode & rights == 0 {
                continue;
            }
            // A directory for temporary files is one of all users.
            let closed = match mode & STICKY {
                0 => fs::set_permissions(&path, Permissions::from_mode(mode & !OTHERS)),
                _ => Err(io::Error::other("it is a directory for files of all users")),
            };
            let (path, mode) = (path.display(), format!("{mode:o}"));
            match closed {
                Ok(()) => tracing::info!(%path, mode, "it was open to other users, whose rights are taken away"),
                Err(error) => tracing::warn!(%path, mode, %error, "other users can change or read the data directory"),
            }
        }
    }

    /// The directory that is held.
    pub fn dir(&self) -> &DataDir {
        &self.dir
    }

    /// Writes the address that the process serves into the lock file, for other processes, and where its session tokens
    /// come from.
    ///
    /// # Errors
    ///
    /// When the lock file cannot be written.
    pub fn announce(&mut self, listen: impl std::fmt::Display, tokens: TokenSource) -> Result<(), DataDirError> {
        self.file.announce(listen, tokens)
    }

    /// Releases the directory and removes the lock file, for a command that leaves nothing behind.
    ///
    /// # Errors
    ///
    /// When the lock file cannot be removed.
    pub fn remove(self) -> Result<(), DataDirError> {
        self.file.remove()
    }
}
