//! What the sender shares with its sessions: the places for them, the signal, the rule of the lease, and the counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::service::records::{Stored, WebhookState};

/// How many webhooks are sent to at a time, and as many again whose receivers fail. Each has one attempt in flight.
const SESSIONS: usize = 128;

/// How many further attempts are in flight, of all sessions together. So the connections of a server are bounded, and each
/// session goes on with at least one.
const FURTHER_ATTEMPTS: usize = 384;

/// The places for sessions. Webhooks whose receivers fail have places of their own, so that they delay no other.
pub(super) struct Lanes {
    healthy: Lane,
    failing: Lane,
    further: Arc<Semaphore>,
    pub(super) numbers: SenderNumbers,
}

/// Some places, and how many webhooks wait for one.
struct Lane {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// Whether a webhook has found no place since the last tick began.
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

impl Default for Lanes {
    fn default() -> Self {
        Self {
            healthy: Lane::default(),
            failing: Lane::default(),
            further: Arc::new(Semaphore::new(FURTHER_ATTEMPTS)),
            numbers: SenderNumbers::default(),
        }
    }
}

impl Lanes {
    fn of(&self, is_failing: bool) -> &Lane {
        if is_failing { &self.failing } else { &self.healthy }
    }

    /// A place for a session. When there is none, the webhook counts as waiting.
    pub(super) fn enter(&self, is_failing: bool) -> Option<OwnedSemaphorePermit> {
        let lane = self.of(is_failing);
        let permit = lane.place();
        if permit.is_none() {
            lane.waiting.fetch_add(1, Ordering::Relaxed);
            lane.is_short.store(true, Ordering::Relaxed);
        }
        permit
    }

    /// Whether webhooks have found no place since the last tick began. Then the next places are given by the next tick, in its order.
    pub(super) fn is_short(&self, is_failing: bool) -> bool {
        self.of(is_failing).is_short.load(Ordering::Relaxed)
    }

    /// Whether the session with this place is to leave it to a webhook that waits in the same lane. One session leaves for each.
    pub(super) fn must_leave(&self, permit: &OwnedSemaphorePermit) -> bool {
        let is_failing = Arc::ptr_eq(permit.semaphore(), &self.failing.places);
        let less_one = |waiting: usize| waiting.checked_sub(1);
        let waiting = &self.of(is_failing).waiting;
        waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less_one)
            .is_ok()
    }

    /// No webhook counts as waiting until it finds no place again.
    pub(super) fn look_again(&self) {
        for lane in [&self.healthy, &self.failing] {
            lane.waiting.store(0, Ordering::Relaxed);
            lane.is_short.store(false, Ordering::Relaxed);
        }
    }

    /// A place for an attempt that is not the only one of its session.
    pub(super) fn slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.further).try_acquire_owned().ok()
    }

    /// Moves a session to the lane that it belongs to now. False when that one is full: the session ends, and its webhook
    /// waits from the next tick on.
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

/// What the sessions are told.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signal {
    pub(super) ticks: u64,
    /// No further attempt begins, and the sessions end.
    pub(super) is_stopping: bool,
}

/// The state of a webhook as the sender has seen it, for the decision whether a session may take the lease.
pub(super) struct Kept {
    pub(super) version: u64,
}

impl Kept {
    /// How long a lease is kept without a commit of its holder, in milliseconds. Each process measures it on its own steady
    /// clock from the moment at which it first saw the state, so clocks that differ do no harm.
    pub(super) const LEASE: i64 = 20_000;

    /// Whether the lease in this state may be taken: it is free, or the one that has been waited for.
    pub(super) fn may_take(&self, state: &Stored<WebhookState>, holder: &str) -> bool {
        match state.value.lease.as_deref() {
            None => true,
            Some(other) => other == holder || state.version == self.version,
        }
    }
}

/// What a sender has counted since its start, for metrics. Clones count the same.
///
/// ```
/// use agentcfg_core::service::SenderNumbers;
/// let numbers = SenderNumbers::default();
/// assert_eq!((numbers.delivered(), numbers.failed(), numbers.given_up(), numbers.lag()), (0, 0, 0, 0));
/// ```
#[derive(Debug, Clone, Default)]
pub struct SenderNumbers(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    delivered: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
    lag: AtomicU64,
}

impl SenderNumbers {
    /// Attempts that the receiver has answered with 2xx.
    pub fn delivered(&self) -> u64 {
        self.0.delivered.load(Ordering::Relaxed)
    }

    /// Attempts that failed.
    pub fn failed(&self) -> u64 {
        self.0.failed.load(Ordering::Relaxed)
    }

    /// Events that were given up after the last attempt.
    pub fn given_up(&self) -> u64 {
        self.0.given_up.load(Ordering::Relaxed)
    }

    /// Revisions that the enabled webhooks of all workspaces have not read yet, as of the last [`WebhookSender::tick`](super::WebhookSender::tick).
    pub fn lag(&self) -> u64 {
        self.0.lag.load(Ordering::Relaxed)
    }

    pub(super) fn set_lag(&self, lag: u64) {
        self.0.lag.store(lag, Ordering::Relaxed);
    }

    pub(super) fn count(&self, is_success: bool) {
        let counter = if is_success { &self.0.delivered } else { &self.0.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_given_up(&self) {
        self.0.given_up.fetch_add(1, Ordering::Relaxed);
    }
}
