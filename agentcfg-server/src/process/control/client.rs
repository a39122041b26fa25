//! The client of the control socket.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;

use super::error::ControlError;
use super::frames;
use super::order::Order;
use super::socket::{self, IO_TIMEOUT};
use crate::process::datadir::DataDir;

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

/// Sends an order to the server that runs on `dir`, writes its answer to `out` as it arrives and returns its length.
///
/// # Errors
///
/// When no server runs there, it refused, or the answer is incomplete.
pub fn request(dir: &DataDir, order: &Order, out: &mut dyn Write) -> Result<u64, ControlError> {
    let path = dir.socket_path();
    let stream = socket::at(&path, |reachable| UnixStream::connect(reachable));
    let mut stream = stream.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ControlError::NotRunning { path: path.clone() },
        _ => ControlError::Io {
            path: path.clone(),
            source,
        },
    })?;
    let asked = stream
        .set_read_timeout(Some(IO_TIMEOUT))
        .and_then(|()| stream.set_write_timeout(Some(IO_TIMEOUT)))
        .and_then(|()| stream.write_all(&order.line()));
    asked.map_err(|source| ControlError::Io { path, source })?;
    let length = frames::receive(&mut stream, out)?;
    out.flush().map_err(ControlError::Output)?;
    Ok(length)
}
