//! The lingering close of a connection.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A lingering close: the sending side is shut down, and input is discarded.
pub(super) struct LingeringClose {
    idle_timeout: Duration,
    idle: Pin<Box<Sleep>>,
    end: Instant,
}

impl LingeringClose {
    /// It ends when the client has sent nothing for `idle_timeout`, and after `total` at the latest.
    pub(super) fn begin(idle_timeout: Duration, total: Duration) -> Self {
        Self {
            idle_timeout,
            idle: Box::pin(sleep(idle_timeout)),
            end: Instant::now() + total,
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
                    self.idle
                        .as_mut()
                        .reset(self.end.min(Instant::now() + self.idle_timeout));
                }
                _ => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
