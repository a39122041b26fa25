//! How many sessions and attempts there are at a time, and what they have counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many webhooks are sent to at a time, and as many again whose receivers fail. Each has one attempt in flight.
const SESSIONS: usize = 128;

/// How many further attempts are in flight, of all sessions together. So the connections of a server are bounded, and each
/// session goes on with at least one.
const FURTHER_ATTEMPTS: usize = 384;

/// The places for sessions. Webhooks whose receivers fail have places of their own, so that they delay no other.
pub(super) struct Lanes {
    healthy: Arc<Semaphore>,
    failing: Arc<Semaphore>,
    further: Arc<Semaphore>,
    pub(super) numbers: SenderNumbers,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            healthy: Arc::new(Semaphore::new(SESSIONS)),
            failing: Arc::new(Semaphore::new(SESSIONS)),
            further: Arc::new(Semaphore::new(FURTHER_ATTEMPTS)),
            numbers: SenderNumbers::default(),
        }
    }
}

impl Lanes {
    fn of(&self, is_failing: bool) -> &Arc<Semaphore> {
        if is_failing { &self.failing } else { &self.healthy }
    }

    pub(super) fn enter(&self, is_failing: bool) -> Option<OwnedSemaphorePermit> {
        Arc::clone(self.of(is_failing)).try_acquire_owned().ok()
    }

    /// A place for an attempt that is not the only one of its session.
    pub(super) fn slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.further).try_acquire_owned().ok()
    }

    /// Moves a session to the lane that it belongs to now. False when that one is full.
    pub(super) fn fit(&self, permit: &mut OwnedSemaphorePermit, is_failing: bool) -> bool {
        if Arc::ptr_eq(permit.semaphore(), self.of(is_failing)) {
            return true;
        }
        match self.enter(is_failing) {
            Some(entered) => {
                *permit = entered;
                true
            }
            None => false,
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
