//! Orders to a running server from the owner of its data directory, over a Unix socket in that directory.
//!
//! An order is a line; the version of the exchange is part of it:
//!
//! | order | answer |
//! |---|---|
//! | `backup 1` | a copy of the store |
//! | `rotate-master-key 1`, `rotate-master-key 1 drop-old` | lines that say how far it is |
//!
//! The answer is a series of frames that ends with a count of all bytes, so that a transfer that broke is told from one
//! that is complete.

mod frames;
mod server;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use server::{Control, spawn};

use crate::process::datadir::DataDir;

/// What a running server can be asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Write a consistent copy of the store.
    Backup,
    /// Put a new master key before the others, and seal everything under it.
    RotateMasterKey {
        /// Whether to remove the old ones in the end.
        drop_old: bool,
    },
}

impl Order {
    const ALL: [Self; 3] = [
        Self::Backup,
        Self::RotateMasterKey { drop_old: false },
        Self::RotateMasterKey { drop_old: true },
    ];

    const fn line(self) -> &'static [u8] {
        match self {
            Self::Backup => b"backup 1\n",
            Self::RotateMasterKey { drop_old: false } => b"rotate-master-key 1\n",
            Self::RotateMasterKey { drop_old: true } => b"rotate-master-key 1 drop-old\n",
        }
    }
}

/// How long either side waits for the other to move.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why the running server did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// Nobody listens. Whoever holds the lock is another command, or a server that is starting or stopping.
    #[error("no server answers on {}; if one is starting, try again", .path.display())]
    NotRunning {
        /// The socket.
        path: PathBuf,
    },
    /// The server said no, or failed half-way.
    #[error("the server reports: {0}")]
    Server(String),
    /// The connection ended before the transfer did. What was written is no backup.
    #[error("the transfer from the server broke off, try again")]
    Broken,
    /// What arrived is not what this version speaks.
    #[error("the server speaks another version of the control protocol; use the binary that it runs")]
    Protocol,
    /// The copy cannot be written.
    #[error("cannot write what the server sends: {0}")]
    Output(#[source] io::Error),
    /// The socket fails otherwise.
    #[error("cannot talk to the server on {}: {source}", .path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Asks the server that runs on `dir` for a backup, writes it to `out` and returns its length.
///
/// `out` is flushed, not synced. After an error it holds a part that is good for nothing.
///
/// # Errors
///
/// When no server runs there, or the copy did not arrive whole.
pub fn request_backup(dir: &DataDir, out: &mut dyn Write) -> Result<u64, ControlError> {
    request(dir, Order::Backup, out)
}

/// Gives the server that runs on `dir` an order, writes its answer to `out` as it arrives and returns its length.
///
/// # Errors
///
/// When no server runs there, it refused, or the answer did not arrive whole.
pub fn request(dir: &DataDir, order: Order, out: &mut dyn Write) -> Result<u64, ControlError> {
    let path = dir.socket_path();
    let stream = at(&path, |reachable| UnixStream::connect(reachable));
    let mut stream = stream.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ControlError::NotRunning { path: path.clone() },
        _ => ControlError::Io {
            path: path.clone(),
            source,
        },
    })?;
    let asked = stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
        .and_then(|()| stream.write_all(order.line()));
    asked.map_err(|source| ControlError::Io { path, source })?;
    let length = frames::receive(&mut stream, out)?;
    out.flush().map_err(ControlError::Output)?;
    Ok(length)
}

/// Calls `act` with a path to the socket that the system accepts. An address holds 107 bytes; a longer path is reached
/// through the open directory.
fn at<T>(path: &Path, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    const LONGEST: usize = if cfg!(target_os = "linux") { 107 } else { 103 };
    if path.as_os_str().len() <= LONGEST {
        return act(path);
    }
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return act(path);
    };
    if !cfg!(target_os = "linux") {
        let message = format!(
            "the path of the socket must be at most {LONGEST} bytes, got {}",
            path.as_os_str().len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let dir = File::open(dir)?;
    let mut reachable = PathBuf::from("/proc/self/fd");
    reachable.push(OsStr::from_bytes(dir.as_raw_fd().to_string().as_bytes()));
    act(&reachable.join(name))
}
