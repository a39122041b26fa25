//! Accepting connections, with back-off when the system is out of resources.

use std::io;
use std::time::Duration;

use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::net::{TcpListener, TcpStream};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What the kernel keeps of responses that a client has not yet received, in bytes for each connection.
const SEND_BUFFER: usize = 128 << 10;

/// Exponential back-off between failed accepts.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    last: Option<Duration>,
}

/// Accepts the next connection.
pub(super) async fn next(listener: &TcpListener, backoff: &mut Backoff) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                backoff.last = None;
                // Responses are written whole, so Nagle's algorithm would only delay them.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "cannot set TCP_NODELAY");
                }
                // Else the kernel keeps megabytes for each client that does not read, until its limit for all
                // connections of the machine is reached and no client gets an answer.
                if let Err(error) = set_socket_send_buffer_size(&stream, SEND_BUFFER) {
                    tracing::debug!(%error, "cannot set SO_SNDBUF");
                }
                return stream;
            }
            Err(error) => {
                let first = backoff.last.is_none();
                if let Some(pause) = backoff.after(&error) {
                    if first {
                        tracing::error!(%error, "cannot accept connections, trying again");
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
}

impl Backoff {
    /// The pause after an error; `None` for a connection that was closed in the backlog, which affects no other.
    /// Any other error, such as a lack of file descriptors, would repeat at once: without a pause the loop would spin.
    fn after(&mut self, error: &io::Error) -> Option<Duration> {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
        if matches!(
            error.kind(),
            ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
        ) {
            return None;
        }
        let pause = self.last.map_or(FIRST_PAUSE, |last| (last * 2).min(LONGEST_PAUSE));
        self.last = Some(pause);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_out_of_descriptors_pauses_longer_each_time() {
        let mut backoff = Backoff::default();
        let full = io::Error::from_raw_os_error(24);
        let pauses: Vec<_> = (0..8).map(|_| backoff.after(&full).unwrap()).collect();
        assert_eq!(pauses[0], FIRST_PAUSE);
        assert!(pauses.is_sorted());
        assert_eq!(pauses[7], LONGEST_PAUSE);
    }

    #[test]
    fn a_connection_closed_in_the_backlog_causes_no_pause() {
        assert_eq!(Backoff::default().after(&io::ErrorKind::ConnectionAborted.into()), None);
    }
}
