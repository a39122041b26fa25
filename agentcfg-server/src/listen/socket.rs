//! The socket as hyper sees it: with deadlines, with whole answers in place of hyper's empty ones, and with a slow close.
//!
//! On the usual path everything is forwarded as it is, vectored writes included, and nothing is copied.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::answers;
use super::limits::Limits;
use super::turn::{Phase, Turn};
use crate::http::BodyTimeout;

/// How long a client that still sends may take to notice that it was answered. Closing before that would make the
/// system reset the connection, and the reset may overtake the answer.
const LINGER: Duration = Duration::from_secs(3);

/// How long such a client may be silent before it counts as done.
const QUIET: Duration = Duration::from_millis(500);

/// See the module.
pub(super) struct Socket<T: Presence> {
    io: T,
    turn: Turn,
    times: Times,
    /// What the pending read waits for, and until when.
    deadline: Option<(Awaited, Instant)>,
    read_clock: Pin<Box<Sleep>>,
    /// Whom the read clock wakes when it rings, once it was told.
    woken: Option<Waker>,
    write_clock: Option<Pin<Box<Sleep>>>,
    head: Head,
    /// The answer that replaces hyper's, as far as it is not sent. From then on hyper's writes go nowhere.
    replacement: Option<Bytes>,
    end_seen: bool,
    closing: Option<Closing>,
}

/// Whether the other side is still there.
pub(super) trait Presence {
    /// Ready when the other side has closed the connection or its side of it. What it sent stays unread, and hides the end
    /// that comes behind it.
    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// Makes the coming close one that the other side sees as a fault.
    fn will_break(&self);
}

impl Presence for TcpStream {
    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut byte = [0];
        match self.poll_peek(cx, &mut ReadBuf::new(&mut byte)) {
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(()),
            Poll::Ready(Ok(_)) | Poll::Pending => Poll::Pending,
        }
    }

    fn will_break(&self) {
        if let Err(error) = self.set_zero_linger() {
            tracing::debug!(%error, "cannot set SO_LINGER");
        }
    }
}

impl<T: Presence> Drop for Socket<T> {
    fn drop(&mut self) {
        // To HTTP/1.0, which proxies in front may well speak, an orderly close is the end of a whole response.
        if self.turn.is_unfinished() {
            self.io.will_break();
        }
    }
}

/// A connection whose sending side is shut down while the client may still send.
struct Closing {
    quiet: Pin<Box<Sleep>>,
    end: Instant,
}

struct Times {
    head: Duration,
    body: Duration,
    idle: Duration,
    write: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Request,
    Head,
    Body,
}

/// How far the head of the request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    Nothing,
    Line,
    Fields,
}

impl<T: Presence> Socket<T> {
    pub(super) fn new(io: T, turn: Turn, limits: &Limits) -> Self {
        let times = Times {
            head: limits.header_timeout,
            body: limits.body_timeout,
            idle: limits.idle_timeout,
            write: limits.write_timeout,
        };
        // Who connects and says nothing has no request to be idle after.
        let first = Instant::now() + times.head;
        Self {
            io,
            turn,
            times,
            deadline: Some((Awaited::Request, first)),
            read_clock: Box::pin(sleep_until(first)),
            woken: None,
            write_clock: None,
            head: Head::Nothing,
            replacement: None,
            end_seen: false,
            closing: None,
        }
    }

    /// Notes what arrived. Only the first line end matters, and finding it costs one short scan for each request.
    fn arrived(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.end_seen = true;
        }
        if self.turn.phase() == Phase::Answering || self.head == Head::Fields {
            return;
        }
        // Empty lines before a request are no request.
        let skipped = match self.head {
            Head::Nothing => bytes.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count(),
            _ => 0,
        };
        if skipped < bytes.len() {
            self.head = if bytes[skipped..].contains(&b'\n') {
                Head::Fields
            } else {
                Head::Line
            };
        }
    }

    /// Ready when the pending read has taken too long.
    fn poll_read_clock(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let awaited = match (self.turn.phase(), self.head) {
            (Phase::Answering, _) => Awaited::Body,
            (_, Head::Nothing) => Awaited::Request,
            _ => Awaited::Head,
        };
        let deadline = match self.deadline {
            Some((same, deadline)) if same == awaited => deadline,
            _ => {
                let time = match awaited {
                    Awaited::Request => self.times.idle,
                    Awaited::Head => self.times.head,
                    Awaited::Body => self.times.body,
                };
                let deadline = Instant::now() + time;
                self.deadline = Some((awaited, deadline));
                deadline
            }
        };
        // A clock that rings early is set again then. That is rarer than moving it with every request.
        if self.read_clock.deadline() > deadline {
            self.read_clock.as_mut().reset(deadline);
            self.woken = None;
        }
        // Nor is it asked with every request: until it rings, it has nothing to say and knows whom to wake.
        let knows = self.woken.as_ref().is_some_and(|woken| woken.will_wake(cx.waker()));
        if knows && !self.read_clock.is_elapsed() {
            return Poll::Pending;
        }
        loop {
            if self.read_clock.as_mut().poll(cx).is_pending() {
                self.woken = Some(cx.waker().clone());
                return Poll::Pending;
            }
            self.woken = None;
            if self.read_clock.deadline() >= deadline {
                return Poll::Ready(());
            }
            self.read_clock.as_mut().reset(deadline);
        }
    }

    /// Passes a write on unless the client has not read for too long.
    fn bounded(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.write_clock = None;
            return written;
        }
        let time = self.times.write;
        let clock = self.write_clock.get_or_insert_with(|| Box::pin(sleep(time)));
        ready!(clock.as_mut().poll(cx));
        Poll::Ready(Err(timed_out("client does not read its response")))
    }

    /// Whether a write that starts with `start` is one of hyper's own answers, which is then replaced.
    fn intercept(&mut self, start: &[u8]) -> bool {
        if self.replacement.is_none() && self.turn.phase() == Phase::Asking {
            self.replacement = answers::instead_of(start, self.head == Head::Fields);
        }
        self.replacement.is_some()
    }
}

impl<T: AsyncRead + AsyncWrite + Presence + Unpin> Socket<T> {
    fn poll_replacement(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.replacement.as_ref().filter(|rest| !rest.is_empty()) {
            let written = Pin::new(&mut self.io).poll_write(cx, rest);
            match ready!(self.bounded(cx, written))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => {
                    if let Some(rest) = &mut self.replacement {
                        rest.advance(n);
                    }
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads and drops what the client still sends, until it stops or takes too long.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        const READS_IN_A_ROW: usize = 32;
        let Some(closing) = &mut self.closing else {
            return Poll::Ready(());
        };
        let mut scratch = [0; 8192];
        for _ in 0..READS_IN_A_ROW {
            if closing.quiet.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    closing.quiet.as_mut().reset(closing.end.min(Instant::now() + QUIET));
                }
                _ => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<T: AsyncRead + Presence + Unpin> AsyncRead for Socket<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.io).poll_read(cx, buffer) {
            Poll::Ready(Ok(())) => {
                self.arrived(&buffer.filled()[before..]);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                ready!(self.poll_read_clock(cx));
                Poll::Ready(Err(BodyTimeout.into()))
            }
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Presence + Unpin> AsyncWrite for Socket<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.intercept(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.bounded(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let start = slices
            .iter()
            .find(|slice| !slice.is_empty())
            .map_or(&[][..], |slice| slice);
        if self.intercept(start) {
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.bounded(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replacement(cx))?;
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        // hyper does not read while an answer is on its way, but it flushes each time that it looks after the connection.
        if self.turn.is_watched() && self.io.poll_gone(cx).is_ready() {
            self.turn.left();
            cx.waker().wake_by_ref();
        }
        // hyper flushes when its own buffer is empty, so that the response is out.
        if self.turn.phase() == Phase::Flushing {
            self.turn.flushed();
            self.head = Head::Nothing;
            self.deadline = None;
            // hyper may already have a read pending, which would then wait without a clock. A clock that has rung wakes
            // nobody, so that it is set going here.
            let _ = self.poll_read_clock(cx);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            ready!(self.poll_replacement(cx))?;
            ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
            if self.end_seen || !(self.replacement.is_some() || self.turn.may_be_sending()) {
                return Poll::Ready(Ok(()));
            }
            self.closing = Some(Closing {
                quiet: Box::pin(sleep(QUIET)),
                end: Instant::now() + LINGER,
            });
        }
        ready!(self.poll_linger(cx));
        Poll::Ready(Ok(()))
    }
}

fn timed_out(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, message)
}
