//! Orders to a running server from the owner of its data directory, over a Unix socket in that directory.
//!
//! An order is a line; the version of the exchange is part of it:
//!
//! | order | answer |
//! |---|---|
//! | `backup 1` | a copy of the store |
//! | `rotate-master-key 1`, `rotate-master-key 1 drop-old` | lines that report progress |
//! | `login-link 1 USER` | a line with a link that signs this user in |
//!
//! The answer is a series of frames that ends with a count of all bytes, so that a broken transfer is detected.

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

use agentcfg_core::model::UserId;

pub use server::{Control, spawn};

use crate::process::datadir::DataDir;

/// An order to a running server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Write a consistent copy of the store.
    Backup,
    /// Put a new master key before the others, and seal everything under it.
    RotateMasterKey {
        /// Whether to remove the old ones at the end.
        drop_old: bool,
    },
    /// Make a link that signs this user in.
    LoginLink {
        /// The user.
        user: UserId,
    },
}

impl Order {
    fn line(&self) -> Vec<u8> {
        match self {
            Self::Backup => BACKUP.to_vec(),
            Self::RotateMasterKey { drop_old: false } => ROTATE.to_vec(),
            Self::RotateMasterKey { drop_old: true } => ROTATE_AND_DROP.to_vec(),
            // An identifier has no control characters, so no line end.
            Self::LoginLink { user } => [LOGIN_LINK, user.as_bytes(), b"\n"].concat(),
        }
    }

    /// Reads a line; `None` for an order that this server does not know.
    fn read(line: &[u8]) -> Option<Self> {
        match line {
            BACKUP => Some(Self::Backup),
            ROTATE => Some(Self::RotateMasterKey { drop_old: false }),
            ROTATE_AND_DROP => Some(Self::RotateMasterKey { drop_old: true }),
            _ => {
                let user = line.strip_prefix(LOGIN_LINK)?.strip_suffix(b"\n")?;
                let user = std::str::from_utf8(user).ok()?.parse().ok()?;
                Some(Self::LoginLink { user })
            }
        }
    }
}

const BACKUP: &[u8] = b"backup 1\n";
const ROTATE: &[u8] = b"rotate-master-key 1\n";
const ROTATE_AND_DROP: &[u8] = b"rotate-master-key 1 drop-old\n";
const LOGIN_LINK: &[u8] = b"login-link 1 ";

/// The longest line: an identifier has up to 200 characters of up to four bytes.
const LONGEST_LINE: usize = 1024;

/// The read and write timeout of both sides.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why an order was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No process listens on the socket. The lock is held by another command, or by a server that is starting or stopping.
    #[error("no server answers on {}; if one is starting, try again", .path.display())]
    NotRunning {
        /// The socket.
        path: PathBuf,
    },
    /// The server refused the order, or failed while it carried it out.
    #[error("the server reports: {0}")]
    Server(String),
    /// The connection ended before the transfer did. What was written is no backup.
    #[error("the transfer from the server broke off, try again")]
    Broken,
    /// The answer is not of this version of the protocol.
    #[error("the server has another version of the control protocol; use the binary that it runs")]
    Protocol,
    /// The copy cannot be written.
    #[error("cannot write what the server sends: {0}")]
    Output(#[source] io::Error),
    /// Another error of the socket.
    #[error("cannot talk to the server on {}: {source}", .path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Asks the server that runs on `dir` for a backup, writes it to `out` and returns its length.
///
/// `out` is flushed, not synced. After an error its content is incomplete and must be discarded.
///
/// # Errors
///
/// When no server runs there, or the copy is incomplete.
pub fn request_backup(dir: &DataDir, out: &mut dyn Write) -> Result<u64, ControlError> {
    request(dir, &Order::Backup, out)
}

/// Gives the server that runs on `dir` an order, writes its answer to `out` as it arrives and returns its length.
///
/// # Errors
///
/// When no server runs there, it refused, or the answer is incomplete.
pub fn request(dir: &DataDir, order: &Order, out: &mut dyn Write) -> Result<u64, ControlError> {
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
        .and_then(|()| stream.write_all(&order.line()));
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
