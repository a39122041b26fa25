//! The failures of orders.

use std::io;
use std::path::PathBuf;

/// Why an order was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No process listens on the socket. The lock is held by another command, or by a server that is starting or
    /// stopping.
    #[error("no server answers on {}; if one is starting, try again", .path.display())]
    NotRunning {
        /// The socket.
        path: PathBuf,
    },
    /// The server refused the order, or failed while it carried it out.
    #[error("the server reports: {0}")]
    Server(String),
    /// The connection broke during the transfer. What was written is not a backup.
    #[error("the transfer from the server broke off, try again")]
    Broken,
    /// The answer has another version of the protocol.
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
