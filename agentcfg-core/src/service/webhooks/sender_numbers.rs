//! Counters of the webhook sender.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of a sender since its start, for metrics. Clones share them.
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

    /// Revisions that the enabled webhooks of all workspaces have not read yet, as of the last
    /// [`WebhookSender::tick`](super::WebhookSender::tick).
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
