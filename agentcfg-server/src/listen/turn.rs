//! Whose turn it is on a connection: the client's to ask, or the service's to answer.
//!
//! The socket needs to know. What hyper writes while no service was asked is hyper's own; how long a read may take
//! depends on what is being read. All parties live in one task, so that the atomics only satisfy the compiler.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::task::{Context, Poll};

use hyper::body::{Body, Frame, SizeHint};

/// The state of one connection, shared by its socket and its service.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn(Arc<State>);

#[derive(Debug, Default)]
struct State {
    phase: AtomicU8,
    body_sent: AtomicBool,
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
    pub(super) fn begin(&self, has_body: bool) -> Answering {
        self.0.phase.store(1, Relaxed);
        self.0.body_sent.store(has_body, Relaxed);
        Answering(self.clone())
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

/// A response body that tells when it is done.
#[derive(Debug)]
pub(super) struct Tracked<B> {
    body: B,
    _answering: Answering,
}

impl<B> Tracked<B> {
    pub(super) fn new(body: B, answering: Answering) -> Self {
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
