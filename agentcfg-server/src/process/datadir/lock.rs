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

/// The beginning of the line with the address that the holder serves.
const LISTEN: &str = "listen ";

/// As [`LISTEN`], of a server from before, while another process has the lock.
const SERVED: &str = "served ";

/// The line of a server that signs session tokens with a secret of its settings.
const OTHER_SECRET: &str = "session_secret elsewhere";

/// The line of a server whose session tokens are of an identity provider.
const PROVIDER: &str = "session_provider elsewhere";

/// Where the session tokens of a server come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenSource {
    /// The key of the data directory signs them.
    Directory,
    /// A secret of the settings signs them.
    Settings,
    /// An identity provider issues them.
    Provider,
}

/// The lock file, held by this process. What the last server has written stays until this process serves: it shows that
/// there was a store, and where the secret of the session tokens is.
#[derive(Debug)]
pub(super) struct LockFile {
    path: PathBuf,
    file: File,
    /// What was in the file, for as long as this process has only claimed it.
    before: Option<Vec<u8>>,
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
        Ok(Self {
            path,
            file,
            before: None,
        })
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

    /// Writes into the file which process has the lock, until it is released.
    pub(super) fn claim(&mut self) -> Result<(), DataDirError> {
        let mut before = Vec::new();
        let read = self.file.rewind().and_then(|()| self.file.read_to_end(&mut before));
        read.map_err(|source| DataDirError::from_io("read", &self.path, source))?;
        let mut text = format!("pid {}\n", std::process::id());
        for line in String::from_utf8_lossy(&before)
            .lines()
            .filter(|line| !line.starts_with("pid "))
        {
            match line.strip_prefix(LISTEN) {
                Some(address) => text += &format!("{SERVED}{address}\n"),
                None => text += &format!("{line}\n"),
            }
        }
        self.before = Some(before);
        self.write(text.as_bytes())
    }

    /// Writes the address that the process serves into the file, and where its session tokens come from.
    pub(super) fn announce(&mut self, listen: impl fmt::Display, tokens: TokenSource) -> Result<(), DataDirError> {
        let mut text = format!("pid {}\n{LISTEN}{listen}\n", std::process::id());
        match tokens {
            TokenSource::Directory => {}
            TokenSource::Settings => text += &format!("{OTHER_SECRET}\n"),
            TokenSource::Provider => text += &format!("{PROVIDER}\n"),
        }
        self.write(text.as_bytes())?;
        self.before = None;
        Ok(())
    }

    /// Removes the file, and with it the lock.
    pub(super) fn remove(mut self) -> Result<(), DataDirError> {
        self.before = None;
        fs::remove_file(&self.path).map_err(|source| DataDirError::from_io("remove", &self.path, source))
    }

    fn write(&mut self, text: &[u8]) -> Result<(), DataDirError> {
        let write = |file: &mut File| {
            file.rewind()?;
            // Over the old text, so that a full disk does not leave an empty file.
            file.write_all(text)?;
            file.set_len(text.len() as u64)
        };
        write(&mut self.file).map_err(|source| DataDirError::from_io("write to", &self.path, source))
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            // Otherwise the lines of the last server are still there, below the process of this one.
            let _ = self.write(&before);
        }
    }
}

/// Whether a server has accepted connections here.
pub(super) fn was_served(dir: &Path) -> bool {
    let text = fs::read_to_string(dir.join(NAME));
    text.is_ok_and(|text| {
        text.lines()
            .any(|line| line.starts_with(LISTEN) || line.starts_with(SERVED))
    })
}

/// The address that the last server has written, unless another process has the lock since.
pub(super) fn served_address(dir: &Path) -> Option<SocketAddr> {
    let text = fs::read_to_string(dir.join(NAME)).ok()?;
    text.lines().find_map(|line| line.strip_prefix(LISTEN))?.parse().ok()
}

/// Where the session tokens of the last server came from.
pub(super) fn token_source(dir: &Path) -> TokenSource {
    let text = fs::read_to_string(dir.join(NAME)).unwrap_or_default();
    let has = |line: &str| text.lines().any(|found| found == line);
    match (has(PROVIDER), has(OTHER_SECRET)) {
        (true, _) => TokenSource::Provider,
        (false, true) => TokenSource::Settings,
        (false, false) => TokenSource::Directory,
    }
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
