//! What this server relies on of hyper that hyper's documentation does not promise. Each assumption is a function or a
//! type here, or a sentence of this text, and has a test in `tests.rs` that runs hyper alone. So hyper is pinned in
//! `Cargo.toml`, where it says how to update it.
//!
//! - hyper drops the body of a response when it has encoded all of it, and flushes the socket only when it has written what it
//!   encoded. So a flush after the drop shows that the response was written completely.
//! - While a response is awaited, hyper does not read, and flushes at each poll of the connection. So the end of the client's
//!   side is not seen by a read, and can be looked for in each flush.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use atomic_waker::AtomicWaker;
use hyper::Request;
use hyper::client::conn::TrySendError;
use tokio::task::coop;

/// The maximum size of a request head that hyper reads. It is well above the limits of the service, so that the service
/// refuses with its own message, and below 64 KiB, the maximum of a header name in hyper.
#[cfg(feature = "process")]
pub(crate) const MAX_HEAD: usize = 65_000;

/// The status of a refusal by hyper, when a write starts with these bytes while no request was passed to the service.
///
/// hyper answers a malformed head by itself, with one of three statuses and without a body, and writes nothing else
/// before the service has a request, but for `100 Continue`.
#[cfg(feature = "process")]
pub(crate) fn refusal(start: &[u8]) -> Option<u16> {
    let status = start
        .strip_prefix(b"HTTP/1.1 ")
        .or_else(|| start.strip_prefix(b"HTTP/1.0 "))?
        .get(..3)?;
    match status {
        b"400" => Some(400),
        b"414" => Some(414),
        b"431" => Some(431),
        _ => None,
    }
}

/// Makes hyper refuse the request that this line feed belongs to, after the requests before it. hyper takes NUL in no
/// part of a head or of trailers.
#[cfg(feature = "process")]
pub(crate) fn spoil(bytes: &mut [u8], line_feed: usize) {
    bytes[line_feed] = 0;
}

/// The request that has no response, when nothing of it was sent. hyper gives a request back only while it has written
/// none of it.
pub(crate) fn unsent<B>(error: &mut TrySendError<Request<B>>) -> Option<Request<B>> {
    error.take_message()
}

/// How often one poll goes through what has woken itself before it yields to other tasks.
const ROUNDS: usize = 8;

/// Polls something in place until it no longer wakes itself.
///
/// The two sides of a body in hyper wake each other through the waker of the task that polls both. A runtime answers
/// that by queueing the task and waking another thread to take it: two system calls and a change of the core for each
/// request with a body.
#[derive(Debug)]
pub(crate) struct InPlace {
    wakes: Arc<Wakes>,
    /// The waker of `wakes`.
    waker: Waker,
}

impl Default for InPlace {
    fn default() -> Self {
        let wakes = Arc::new(Wakes::default());
        Self {
            waker: Waker::from(Arc::clone(&wakes)),
            wakes,
        }
    }
}

impl InPlace {
    /// Polls until `work` is ready or waits for something else. Different tasks may call it, one after the other.
    pub(crate) fn poll<T>(&self, cx: &mut Context<'_>, mut work: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.wakes.task.register(cx.waker());
        let mut inner = Context::from_waker(&self.waker);
        for _ in 0..ROUNDS {
            self.wakes.begin();
            let polled = work(&mut inner);
            if polled.is_ready() || self.wakes.park() {
                return polled;
            }
            // Without a budget, sockets and channels are never ready.
            if !coop::has_budget_remaining() {
                break;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Polls once, for no task: a wake by what is polled is forgotten.
    pub(crate) fn poll_once<T>(&self, work: impl FnOnce(&mut Context<'_>) -> T) -> T {
        self.wakes.begin();
        work(&mut Context::from_waker(&self.waker))
    }
}

/// The wakes of what is polled: those during a poll are seen by that poll, others wake the task that polled last.
#[derive(Debug, Default)]
struct Wakes {
    state: AtomicU8,
    task: AtomicWaker,
}

const PARKED: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

impl Wakes {
    /// A poll begins. What woke before is part of it.
    fn begin(&self) {
        self.state.store(POLLED, SeqCst);
    }

    /// Ends a poll; false when something woke during it.
    fn park(&self) -> bool {
        self.state.compare_exchange(POLLED, PARKED, SeqCst, SeqCst).is_ok()
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, SeqCst) == PARKED {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests;
