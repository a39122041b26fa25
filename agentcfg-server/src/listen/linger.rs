//! The lingering close of a connection.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::limits::{LINGER_IDLE, LINGER_TOTAL};

/// A lingering close: the sending side is shut down, and input is discarded.
pub(super) struct LingeringClose {
    idle: Pin<Box<Sleep>>,
    end: Instant,
}

impl LingeringClose {
    pub(super) fn begin() -> Self {
        Self {
            idle: Box::pin(sleep(LINGER_IDLE)),
            end: Instant::now() + LINGER_TOTAL,
        }
    }

    /// Reads and discards input until the client stops sending or the time limit is over.
    pub(super) fn poll(&mut self, io: &mut (impl AsyncRead + Unpin), cx: &mut Context<'_>) -> Poll<()> {
        const READS_IN_A_ROW: usize = 32;
        let mut scratch = [0; 8192];
        for _ in 0..READS_IN_A_ROW {
            if self.idle.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut *io).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    self.idle.as_mut().reset(self.end.min(Instant::now() + LINGER_IDLE));
                }
                _ => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
