//! The limits of sessions and attempts of all webhooks, and the signal from the sender to the sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::sender_numbers::SenderNumbers;

/// The greatest number of sessions, and again as many for failing receivers. Each session has one attempt in flight.
const SESSIONS: usize = 128;

/// The greatest number of further attempts in flight, over all sessions. So the connections of a server are bounded,
/// and each session goes on with at least one.
const FURTHER_ATTEMPTS: usize = 384;

/// The permits of sessions. Webhooks whose receivers fail have permits of their own, so that they delay no other.
pub(super) struct SessionPermits {
    healthy: Lane,
    failing: Lane,
    further: Arc<Semaphore>,
    pub(super) numbers: SenderNumbers,
}

/// The permits of one lane, and the number of webhooks that wait for one.
struct Lane {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// Whether a webhook found no permit since the last tick began.
    is_short: AtomicBool,
}

impl Lane {
    fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(SESSIONS)),
            waiting: AtomicUsize::new(0),
            is_short: AtomicBool::new(false),
        }
    }
}

impl Default for SessionPermits {
    fn default() -> Self {
        Self {
            healthy: Lane::default(),
            failing: Lane::default(),
            further: Arc::new(Semaphore::new(FURTHER_ATTEMPTS)),
            numbers: SenderNumbers::default(),
        }
    }
}

impl SessionPermits {
    fn of(&self, is_failing: bool) -> &Lane {
        if is_failing { &self.failing } else { &self.healthy }
    }

    /// A permit for a session. Without a free one, the webhook counts as waiting.
    pub(super) fn enter(&self, is_failing: bool) -> Option<OwnedSemaphorePermit> {
        let lane = self.of(is_failing);
        let permit = lane.place();
        if permit.is_none() {
            lane.waiting.fetch_add(1, Ordering::Relaxed);
            lane.is_short.store(true, Ordering::Relaxed);
        }
        permit
    }

    /// Whether webhooks found no permit since the last tick began. The next tick then gives the permits in its order.
    pub(super) fn is_short(&self, is_failing: bool) -> bool {
        self.of(is_failing).is_short.load(Ordering::Relaxed)
    }

    /// Whether the session with this permit must end for a webhook that waits in the same lane. One session ends for
    /// each waiting webhook.
    pub(super) fn must_leave(&self, permit: &OwnedSemaphorePermit) -> bool {
        let is_failing = Arc::ptr_eq(permit.semaphore(), &self.failing.places);
        let less_one = |waiting: usize| waiting.checked_sub(1);
        let waiting = &self.of(is_failing).waiting;
        waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less_one)
            .is_ok()
    }

    /// Resets the waiting webhooks, until they find no permit again.
    pub(super) fn look_again(&self) {
        for lane in [&self.healthy, &self.failing] {
            lane.waiting.store(0, Ordering::Relaxed);
            lane.is_short.store(false, Ordering::Relaxed);
        }
    }

    /// A permit for an attempt beside the first one of its session.
    pub(super) fn slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.further).try_acquire_owned().ok()
    }

    /// Moves a session to the lane that it belongs to now. False when that lane is full: the session ends, and its
    /// webhook waits for the next tick.
    pub(super) fn fit(&self, permit: &mut OwnedSemaphorePermit, is_failing: bool) -> bool {
        let lane = self.of(is_failing);
        if Arc::ptr_eq(permit.semaphore(), &lane.places) {
            return true;
        }
        match lane.place() {
            Some(entered) => {
                *permit = entered;
                true
            }
            None => false,
        }
    }
}

/// The signal from the sender to its sessions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signal {
    pub(super) ticks: u64,
    /// Whether the sessions must end: no further attempt begins.
    pub(super) is_stopping: bool,
}
