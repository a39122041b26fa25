//! The socket that hyper uses: it adds timeouts, replaces hyper's responses without a body, and closes with a lingering
//! close.
//!
//! On the fast path every call is forwarded, vectored writes included, and nothing is copied.
//!
//! The socket depends on the state of the request and the response, the [`ConnectionState`]: bytes that hyper writes
//! while no request was passed to the service are a refusal by hyper, and the timeout of a read depends on what is
//! read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until};

use super::answers;
use super::connection_state::{ConnectionState, Phase};
use super::demand::Demand;
use super::framing::Framing;
use super::limits::{LINGER_IDLE, LINGER_TOTAL, Limits};
use super::linger::LingeringClose;
use crate::http::BodyTimeout;
use crate::hyper_internals;

/// See the module's text.
pub(super) struct Socket<T: Peer> {
    io: T,
    state: ConnectionState,
    limits: Limits,
    /// What the pending read waits for.
    wait: Option<Wait>,
    demand: watch::Receiver<Demand>,
    /// How long the connection may be idle, as the last demand says.
    longest_idle: Duration,
    /// Bytes of the body that have arrived since its deadline was set.
    body_received: u64,
    read_timer: Pin<Box<Sleep>>,
    /// The waker that is registered with the read timer.
    read_waker: Option<Waker>,
    write_timeout: WriteTimeout,
    head: HeadProgress,
    framing: Framing,
    /// The unsent part of the response that replaces hyper's. While it is set, hyper's writes are discarded.
    replacement: Option<Bytes>,
    end_seen: bool,
    closing: Option<LingeringClose>,
}

/// The remote side of a connection.
pub(super) trait Peer {
    /// Ready when the peer has closed or half-closed the connection. It only peeks: unread input stays unread, and
    /// hides a close behind it.
    fn poll_disconnect(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Makes the close of this socket a reset, which the peer sees as an error.
    fn reset_on_close(&self);
}

impl Peer for TcpStream {
    fn poll_disconnect(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut byte = [0];
        match self.poll_peek(cx, &mut ReadBuf::new(&mut byte)) {
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(()),
            Poll::Ready(Ok(_)) | Poll::Pending => Poll::Pending,
        }
    }

    fn reset_on_close(&self) {
        if let Err(error) = self.set_zero_linger() {
            tracing::debug!(%error, "cannot set SO_LINGER");
        }
    }
}

impl<T: Peer> Drop for Socket<T> {
    fn drop(&mut self) {
        // An HTTP/1.0 peer, such as a proxy, takes an orderly close for the end of a complete response.
        if self.state.would_truncate_silently() {
            self.io.reset_on_close();
        }
    }
}

/// The time limit of a pending write. Each write that succeeds starts it again.
#[derive(Debug)]
pub(super) struct WriteTimeout {
    time: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeout {
    pub(super) fn new(time: Duration) -> Self {
        Self { time, timer: None }
    }

    /// Applies the limit to the result of a write. No write waits beyond `end`, if there is one.
    pub(super) fn apply(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
        end: impl FnOnce() -> Option<Instant>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.timer = None;
            return written;
        }
        let time = self.time;
        let timer = self.timer.get_or_insert_with(|| {
            let deadline = Instant::now() + time;
            Box::pin(sleep_until(end().map_or(deadline, |end| end.min(deadline))))
        });
        ready!(timer.as_mut().poll(cx));
        let message = "the client does not read its response";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Request,
    Head,
    Body,
}

/// A pending read: what it waits for, since when and until when.
#[derive(Debug, Clone, Copy)]
struct Wait {
    awaited: Awaited,
    since: Instant,
    deadline: Instant,
}

/// How much of the request head has arrived: nothing, a part of the request line, or header fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeadProgress {
    Nothing,
    Line,
    Fields,
}

impl<T: Peer> Socket<T> {
    pub(super) fn new(io: T, state: ConnectionState, limits: Limits, demand: watch::Receiver<Demand>) -> Self {
        // The first request has no request before it, so the header timeout applies instead of the idle timeout.
        let since = Instant::now();
        let first = since + limits.header_timeout;
        Self {
            io,
            state,
            wait: Some(Wait {
                awaited: Awaited::Request,
                since,
                deadline: first,
            }),
            demand,
            longest_idle: limits.idle_timeout,
            body_received: 0,
            read_timer: Box::pin(sleep_until(first)),
            read_waker: None,
            write_timeout: WriteTimeout::new(limits.write_timeout),
            limits,
            head: HeadProgress::Nothing,
            framing: Framing::default(),
            replacement: None,
            end_seen: false,
            closing: None,
        }
    }

    /// Tracks how much of the head has arrived. Only the first line end matters: one short scan for each request.
    fn track_head(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.end_seen = true;
        }
        if self.state.phase() == Phase::Responding || self.head == HeadProgress::Fields {
            return;
        }
        // Empty lines before a request line are ignored, as hyper does.
        let skipped = match self.head {
            HeadProgress::Nothing => bytes.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count(),
            _ => 0,
        };
        if skipped < bytes.len() {
            self.head = if bytes[skipped..].contains(&b'\n') {
                HeadProgress::Fields
            } else {
                HeadProgress::Line
            };
        }
    }

    /// How long the connection may be idle now.
    fn longest_idle(&mut self) -> Duration {
        if self.demand.has_changed().unwrap_or(false) {
            self.longest_idle = match *self.demand.borrow_and_update() {
                Demand::Hurry(idle) => idle,
                Demand::Serve | Demand::Leave | Demand::Close => self.limits.idle_timeout,
            };
        }
        self.longest_idle
    }

    /// Ready when the pending read has passed its deadline.
    fn poll_read_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let awaited = match (self.state.phase(), self.head) {
            (Phase::Responding, _) => Awaited::Body,
            (_, HeadProgress::Nothing) => Awaited::Request,
            _ => Awaited::Head,
        };
        let wait = match self.wait {
            Some(same) if same.awaited == awaited => same,
            _ => {
                let time = match awaited {
                    Awaited::Request => self.limits.idle_timeout,
                    Awaited::Head => self.limits.header_timeout,
                    Awaited::Body => self.limits.body_timeout,
                };
                let since = Instant::now();
                self.body_received = 0;
                *self.wait.insert(Wait {
                    awaited,
                    since,
                    deadline: since + time,
                })
            }
        };
        let deadline = match awaited {
            Awaited::Request => wait.deadline.min(wait.since + self.longest_idle()),
            Awaited::Head => wait.deadline,
            Awaited::Body => self.limits.body_pace().deadline(wait.deadline, self.body_received),
        };
        // The timer is moved only to an earlier deadline. A later deadline is set when the timer fires: that happens
        // less often than requests.
        if self.read_timer.deadline() > deadline {
            self.read_timer.as_mut().reset(deadline);
            self.read_waker = None;
        }
        // Nor is the timer polled for each request: until it fires, the registered waker is enough.
        let is_registered = self
            .read_waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()));
        if is_registered && !self.read_timer.is_elapsed() {
            return Poll::Pending;
        }
        loop {
            if self.read_timer.as_mut().poll(cx).is_pending() {
                self.read_waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            self.read_waker = None;
            if self.read_timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            self.read_timer.as_mut().reset(deadline);
        }
    }

    /// Whether a write that starts with `start` is a refusal by hyper, which is then replaced.
    fn intercept(&mut self, start: &[u8]) -> bool {
        if self.replacement.is_none() && self.state.phase() == Phase::AwaitingRequest {
            let line_seen = self.head == HeadProgress::Fields;
            self.replacement = answers::replacement_for(start, line_seen, &self.framing, self.state.client());
        }
        self.replacement.is_some()
    }
}

impl<T: AsyncRead + AsyncWrite + Peer + Unpin> Socket<T> {
    fn poll_replacement(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.replacement.as_ref().filter(|rest| !rest.is_empty()) {
            let written = Pin::new(&mut self.io).poll_write(cx, rest);
            match ready!(self.write_timeout.apply(cx, written, || None))? {
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
}

impl<T: AsyncRead + Peer + Unpin> AsyncRead for Socket<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.io).poll_read(cx, buffer) {
            Poll::Ready(Ok(())) => {
                let bytes = &mut buffer.filled_mut()[before..];
                self.body_received += bytes.len() as u64;
                self.track_head(bytes);
                // hyper would accept the request.
                if let Some(at) = self.framing.scan(bytes) {
                    hyper_internals::spoil(bytes, at);
                }
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                ready!(self.poll_read_timer(cx));
                Poll::Ready(Err(BodyTimeout.into()))
            }
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Peer + Unpin> AsyncWrite for Socket<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.intercept(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let this = &mut *self;
        let written = Pin::new(&mut this.io).poll_write(cx, bytes);
        this.write_timeout.apply(cx, written, || this.state.end())
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
        let this = &mut *self;
        let written = Pin::new(&mut this.io).poll_write_vectored(cx, slices);
        this.write_timeout.apply(cx, written, || this.state.end())
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replacement(cx))?;
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        // hyper does not read while a response is awaited, and flushes at each poll.
        if self.state.is_watched() && self.io.poll_disconnect(cx).is_ready() {
            self.state.disconnected();
            cx.waker().wake_by_ref();
        }
        // hyper has dropped the body and flushes, so the response is written completely.
        if self.state.phase() == Phase::Flushing {
            self.state.flushed();
            self.head = HeadProgress::Nothing;
            self.wait = None;
            // hyper may already have a pending read, which would wait without a timeout: a timer that has fired does
            // not wake the task again. So the timer is polled here.
            let _ = self.poll_read_timer(cx);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            ready!(self.poll_replacement(cx))?;
            ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
            if self.end_seen || !(self.replacement.is_some() || self.state.may_be_sending()) {
                return Poll::Ready(Ok(()));
            }
        }
        let this = &mut *self;
        let closing = this
            .closing
            .get_or_insert_with(|| LingeringClose::begin(LINGER_IDLE, LINGER_TOTAL));
        closing.poll(&mut this.io, cx).map(Ok)
    }
}
