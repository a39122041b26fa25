//! What happens on one connection: how many of its streams are open, and whether its client resets them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentcfg_core::sync::lock;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::listen::limits::Limits;

/// How many more requests a client may reset than it lets the server answer. A browser resets a few when a page is
/// left.
const MAX_ABANDONED: u32 = 256;

/// What happens on one connection.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<StreamCounts>,
    header_timeout: Duration,
    abuse: Notify,
    /// Whether the socket takes nothing more before the client has read.
    is_blocked: AtomicBool,
    /// Whether the client has sent anything since this was last asked.
    is_heard: AtomicBool,
}

#[derive(Debug)]
struct StreamCounts {
    open: usize,
    has_begun: bool,
    /// Since when no request is open, if none is.
    idle_since: Instant,
    /// Requests that the client has reset, less those that were answered.
    abandoned: u32,
}

impl Activity {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            state: Mutex::new(StreamCounts {
                open: 0,
                has_begun: false,
                idle_since: Instant::now(),
                abandoned: 0,
            }),
            header_timeout: limits.header_timeout,
            abuse: Notify::new(),
            is_blocked: AtomicBool::new(false),
            is_heard: AtomicBool::new(false),
        }
    }

    pub(super) fn set_blocked(&self, is_blocked: bool) {
        self.is_blocked.store(is_blocked, Relaxed);
    }

    /// Whether the socket takes nothing more. Then the client may be slow, and has a time limit of its own.
    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked.load(Relaxed)
    }

    pub(super) fn set_heard(&self) {
        self.is_heard.store(true, Relaxed);
    }

    /// Whether the client has sent anything since the last call.
    pub(super) fn take_heard(&self) -> bool {
        self.is_heard.swap(false, Relaxed)
    }

    /// Whether a response has ended within this time, so that the client may be reading it.
    pub(super) fn has_answered_within(&self, time: Duration) -> bool {
        let state = lock(&self.state);
        state.has_begun && (state.open > 0 || state.idle_since.elapsed() < time)
    }

    /// When the connection has been idle for too long; `None` while requests are in flight.
    pub(super) fn deadline(&self, idle_timeout: Duration) -> Option<Instant> {
        let state = lock(&self.state);
        // The first request has no request before it, so the header timeout applies instead of the idle timeout.
        let timeout = if state.has_begun {
            idle_timeout
        } else {
            self.header_timeout
        };
        (state.open == 0).then(|| state.idle_since + timeout)
    }

    /// Resolves when the client has reset too many requests.
    pub(super) async fn abused(&self) {
        self.abuse.notified().await;
    }

    /// Whether there was a request.
    pub(super) fn has_begun(&self) -> bool {
        lock(&self.state).has_begun
    }

    fn opened(&self) {
        let mut state = lock(&self.state);
        state.open += 1;
        state.has_begun = true;
    }

    fn closed(&self, is_complete: bool) {
        let mut state = lock(&self.state);
        state.open -= 1;
        if state.open == 0 {
            state.idle_since = Instant::now();
        }
        if is_complete {
            state.abandoned = state.abandoned.saturating_sub(1);
        } else {
            state.abandoned += 1;
            if state.abandoned > MAX_ABANDONED {
                self.abuse.notify_one();
            }
        }
    }
}

/// Counts a stream as open until it is dropped.
#[derive(Debug)]
pub(super) struct OpenStream {
    activity: Arc<Activity>,
    /// Whether the response has come to its end.
    is_complete: bool,
}

impl OpenStream {
    pub(super) fn new(activity: &Arc<Activity>) -> Self {
        activity.opened();
        Self {
            activity: Arc::clone(activity),
            is_complete: false,
        }
    }

    pub(super) fn activity(&self) -> &Activity {
        &self.activity
    }

    /// The response has come to its end.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.activity.closed(self.is_complete);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_while_no_stream_is_open() {
        let activity = Activity::new(&Limits::default());
        let begin = Instant::now();
        assert_eq!(
            activity.deadline(Duration::from_secs(75)),
            Some(begin + Duration::from_secs(10))
        );
        activity.opened();
        activity.opened();
        activity.closed(true);
        assert_eq!(activity.deadline(Duration::from_secs(75)), None);
        activity.closed(true);
        assert_eq!(
            activity.deadline(Duration::from_secs(75)),
            Some(begin + Duration::from_secs(75))
        );
    }

    #[tokio::test]
    async fn a_client_that_resets_more_than_it_lets_finish_is_found() {
        let activity = Activity::new(&Limits::default());
        let is_abused = || tokio::time::timeout(Duration::ZERO, activity.abused());
        for round in 0..1000 {
            activity.opened();
            activity.closed(round % 2 == 0);
        }
        assert!(is_abused().await.is_err());
        for _ in 0..=MAX_ABANDONED {
            activity.opened();
            activity.closed(false);
        }
        assert!(is_abused().await.is_ok());
    }
}
