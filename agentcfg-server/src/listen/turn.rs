//! Whose turn it is on a connection: the client's to ask, or the service's to answer.
//!
//! The socket needs to know. What hyper writes while no service was asked is hyper's own; how long a read may take
//! depends on what is being read. All parties live in one task, so that the atomics only satisfy the compiler.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::task::{Context, Poll};

use hyper::body::{Body, Frame, SizeHint};

use crate::http::{Leaving, WatchClient};

/// The state of one connection, shared by its socket and its service.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn(Arc<State>);

#[derive(Debug, Default)]
struct State {
    phase: AtomicU8,
    body_sent: AtomicBool,
    /// Whether the client is told the end of a response by the end of the connection alone.
    is_old: AtomicBool,
    /// Whether the service wants to know when the client leaves.
    watched: AtomicBool,
    left: AtomicBool,
}

/// Where a connection is in its current exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// No service was asked yet.
    Asking,
    /// The service has the request, or its response is being taken.
    Answering,
    /// The whole response was handed to hyper, which may still hold some of it back.
    Flushing,
}

impl Turn {
    pub(super) fn phase(&self) -> Phase {
        match self.0.phase.load(Relaxed) {
            0 => Phase::Asking,
            1 => Phase::Answering,
            _ => Phase::Flushing,
        }
    }

    /// The service gets a request. The response is done when the returned guard is dropped.
    pub(super) fn begin(&self, has_body: bool, is_old: bool) -> Answering {
        self.0.phase.store(1, Relaxed);
        self.0.is_old.store(is_old, Relaxed);
        self.0.body_sent.store(has_body, Relaxed);
        self.0.watched.store(false, Relaxed);
        self.0.left.store(false, Relaxed);
        Answering(self.clone())
    }

    /// Whether it matters that the client leaves, and nobody knows yet that it did.
    pub(super) fn is_watched(&self) -> bool {
        self.phase() == Phase::Answering && self.0.watched.load(Relaxed) && !self.0.left.load(Relaxed)
    }

    /// The client has closed its side.
    pub(super) fn left(&self) {
        self.0.left.store(true, Relaxed);
    }

    /// Whether the end of the connection would be taken for the end of a response that is not at its end.
    pub(super) fn is_unfinished(&self) -> bool {
        self.phase() != Phase::Asking && self.0.is_old.load(Relaxed)
    }

    /// Tells the service when the client leaves.
    pub(super) fn leaving(&self) -> Leaving {
        Leaving::new(Arc::clone(&self.0) as _)
    }

    /// Everything is on the wire.
    pub(super) fn flushed(&self) {
        self.0.phase.store(0, Relaxed);
    }

    /// Whether the client may still be sending a body that nobody reads.
    pub(super) fn may_be_sending(&self) -> bool {
        self.0.body_sent.load(Relaxed)
    }

    /// The connection is between requests: nothing is being sent.
    pub(super) fn nothing_is_sent(&self) {
        self.0.body_sent.store(false, Relaxed);
    }
}

/// One response under way.
#[derive(Debug)]
pub(super) struct Answering(Turn);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.0.phase.store(2, Relaxed);
    }
}

impl WatchClient for State {
    fn poll_left(&self, _: &mut Context<'_>) -> Poll<()> {
        self.watched.store(true, Relaxed);
        if self.left.load(Relaxed) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// A response body that tells when it is done.
#[derive(Debug)]
pub(super) struct Tracked<B> {
    body: B,
    _answering: Option<Answering>,
}

impl<B> Tracked<B> {
    pub(super) fn new(body: B, answering: Option<Answering>) -> Self {
        Self {
            body,
            _answering: answering,
        }
    }
}

impl<B: Body + Unpin> Body for Tracked<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
