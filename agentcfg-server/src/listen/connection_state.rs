//! The state of one connection, as its socket and its service see it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use agentcfg_core::sync::lock;
use tokio::time::Instant;

use crate::http::{Disconnect, Leaving, WatchClient};

/// The state of one connection, shared by its socket and its service. Everything runs in one task; the atomics are
/// needed only because the types must be `Send` and `Sync`.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionState(Arc<ConnectionFlags>);

#[derive(Debug, Default)]
struct ConnectionFlags {
    phase: AtomicU8,
    body_sent: AtomicBool,
    /// Whether the request is HTTP/1.0, where the end of the connection may mark the end of the response.
    is_http10: AtomicBool,
    /// Whether the service polls for a disconnect of the client.
    watched: AtomicBool,
    left: AtomicBool,
    /// Whether `end` is set, so that the start of a request takes no lock.
    has_end: AtomicBool,
    /// When the client must have taken the whole response.
    end: Mutex<Option<Instant>>,
    leaving: Leaving,
    address: Option<IpAddr>,
}

/// The phase of the current request and response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// No complete request head was passed to the service yet.
    AwaitingRequest,
    /// The service has the request, or hyper is reading its response body.
    Responding,
    /// hyper has the whole response and may still buffer a part of it.
    Flushing,
}

impl ConnectionState {
    /// The state of a new connection from this address to a server that may leave.
    pub(super) fn new(leaving: Leaving, address: Option<IpAddr>) -> Self {
        Self(Arc::new(ConnectionFlags {
            leaving,
            address,
            ..ConnectionFlags::default()
        }))
    }

    pub(super) fn phase(&self) -> Phase {
        match self.0.phase.load(Relaxed) {
            0 => Phase::AwaitingRequest,
            1 => Phase::Responding,
            _ => Phase::Flushing,
        }
    }

    /// The service gets a request. Dropping the returned guard marks the end of the response.
    pub(super) fn begin(&self, has_body: bool, is_http10: bool) -> ResponseGuard {
        self.0.phase.store(1, Relaxed);
        self.0.is_http10.store(is_http10, Relaxed);
        self.0.body_sent.store(has_body, Relaxed);
        self.0.watched.store(false, Relaxed);
        self.0.left.store(false, Relaxed);
        self.0.has_end.store(false, Relaxed);
        ResponseGuard(self.clone())
    }

    /// Whether the service polls for a disconnect of the client that was not detected yet.
    pub(super) fn is_watched(&self) -> bool {
        self.phase() == Phase::Responding && self.0.watched.load(Relaxed) && !self.0.left.load(Relaxed)
    }

    /// Notes that the client has closed the connection or its sending side.
    pub(super) fn disconnected(&self) {
        self.0.left.store(true, Relaxed);
    }

    /// When the client must have taken the whole response, if the service has said so.
    pub(super) fn end(&self) -> Option<Instant> {
        let has_end = self.0.has_end.load(Relaxed);
        has_end.then(|| *lock(&self.0.end))?
    }

    /// Whether an orderly close now would make an incomplete HTTP/1.0 response look complete.
    pub(super) fn would_truncate_silently(&self) -> bool {
        self.phase() != Phase::AwaitingRequest && self.0.is_http10.load(Relaxed)
    }

    /// The handle by which the service detects a disconnect.
    pub(super) fn disconnect(&self) -> Disconnect {
        Disconnect::new(Arc::clone(&self.0) as _)
    }

    /// The address of the client.
    pub(super) fn client(&self) -> Option<IpAddr> {
        self.0.address
    }

    /// Notes that the response was written to the socket completely.
    pub(super) fn flushed(&self) {
        self.0.phase.store(0, Relaxed);
    }

    /// Whether the client may still be sending a request body that is not read.
    pub(super) fn may_be_sending(&self) -> bool {
        self.0.body_sent.load(Relaxed)
    }

    /// Notes that the connection is between requests, so the client is sending no body.
    pub(super) fn no_body_is_sent(&self) {
        self.0.body_sent.store(false, Relaxed);
    }
}

/// Marks the end of a response when it is dropped.
#[derive(Debug)]
pub(super) struct ResponseGuard(ConnectionState);

impl ResponseGuard {
    /// Whether the connection ends with this response.
    pub(super) fn is_last(&self) -> bool {
        self.0.0.leaving.has_begun()
    }
}

impl Drop for ResponseGuard {
    fn drop(&mut self) {
        self.0.0.phase.store(2, Relaxed);
    }
}

impl WatchClient for ConnectionFlags {
    fn poll_disconnected(&self, _: &mut Context<'_>) -> Poll<()> {
        self.watched.store(true, Relaxed);
        if self.left.load(Relaxed) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn end_by(&self, end: std::time::Instant) {
        *lock(&self.end) = Some(end.into());
        self.has_end.store(true, Relaxed);
    }

    fn address(&self) -> Option<IpAddr> {
        self.address
    }
}
