//! Windows that several processes share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use async_trait::async_trait;

use super::{MemoryLimiter, RateDecision, RateLimiter, Subject, WINDOW_MILLIS};
use crate::clock::{FollowingClock, Moment};
use crate::model::{RateStatus, Timestamp};
use crate::store::{SharedWindow, SharedWindows, StoreError};

/// Counts in a shared counter. While the counter does not answer, it counts in this process alone.
pub struct SharedLimiter {
    windows: Arc<dyn SharedWindows>,
    clock: Option<Arc<FollowingClock>>,
    alone: MemoryLimiter,
    state: Arc<SharedState>,
}

impl fmt::Debug for SharedLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLimiter").finish_non_exhaustive()
    }
}

/// The state of a [`SharedLimiter`], for metrics.
///
/// ```
/// use agentcfg_core::rate_limit::SharedState;
/// let state = SharedState::default();
/// assert!(!state.is_alone());
/// assert_eq!(state.counted_alone(), 0);
/// ```
#[derive(Debug, Default)]
pub struct SharedState {
    is_alone: AtomicBool,
    counted_alone: AtomicU64,
    /// When to try the shared counter again, by the monotonic clock: a wall clock that is set back would delay it.
    ask_again_at: AtomicI64,
}

impl SharedState {
    /// Whether the last request was counted in this process alone.
    ///
    /// ```no_run
    /// # fn example(limiter: agentcfg_core::rate_limit::SharedLimiter) {
    /// if limiter.state().is_alone() {
    ///     eprintln!("each instance counts for itself");
    /// }
    /// # }
    /// ```
    pub fn is_alone(&self) -> bool {
        self.is_alone.load(Ordering::Relaxed)
    }

    /// How many requests were counted in this process alone.
    ///
    /// ```no_run
    /// # fn example(limiter: agentcfg_core::rate_limit::SharedLimiter) {
    /// println!("{} requests were counted alone", limiter.state().counted_alone());
    /// # }
    /// ```
    pub fn counted_alone(&self) -> u64 {
        self.counted_alone.load(Ordering::Relaxed)
    }
}

impl SharedLimiter {
    /// A limiter on this counter.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use agentcfg_core::rate_limit::{SharedLimiter, SharedWindows};
    /// # fn example(place: Arc<dyn SharedWindows>) {
    /// let limiter = SharedLimiter::new(place);
    /// # }
    /// ```
    pub fn new(windows: Arc<dyn SharedWindows>) -> Self {
        Self {
            windows,
            clock: None,
            alone: MemoryLimiter::default(),
            state: Arc::default(),
        }
    }

    /// Lets a clock follow that of the counter, which each count reads. Give the service the same clock, and all
    /// processes on the counter show one time. Only a counter with a clock of its own is worth following.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// use agentcfg_core::clock::{FollowingClock, SystemClock};
    /// # fn example(limiter: agentcfg_core::rate_limit::SharedLimiter) {
    /// let clock = Arc::new(FollowingClock::new(Arc::new(SystemClock)));
    /// let limiter = limiter.followed_by(Arc::clone(&clock));
    /// let service = AgentCfg::builder(MemoryStore::new()).rate_limiter(limiter).clock(clock).build();
    /// # }
    /// ```
    #[must_use]
    pub fn followed_by(mut self, clock: Arc<FollowingClock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Reads the clock of the counter, so that the clock which [follows](Self::followed_by) it shows its time before the
    /// first request is counted.
    ///
    /// # Errors
    ///
    /// When the counter does not answer.
    ///
    /// ```no_run
    /// # async fn example(limiter: agentcfg_core::rate_limit::SharedLimiter) -> Result<(), Box<dyn std::error::Error>> {
    /// limiter.read_clock().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_clock(&self) -> Result<(), StoreError> {
        if self.clock.is_none() {
            return Ok(());
        }
        // No key and no user has this name.
        self.hit_named("clock").await.map(drop)
    }

    async fn hit_named(&self, name: &str) -> Result<SharedWindow, StoreError> {
        let window = self.windows.hit(name, WINDOW_MILLIS).await?;
        if let Some(clock) = &self.clock {
            clock.follow(Timestamp::from_unix_millis(window.now_millis));
        }
        Ok(window)
    }

    /// The live state of the limiter; clones share it.
    ///
    /// ```no_run
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # fn example(limiter: agentcfg_core::rate_limit::SharedLimiter) {
    /// // Keep the state: the builder takes the limiter.
    /// let state = limiter.state();
    /// let service = AgentCfg::builder(MemoryStore::new()).rate_limiter(limiter).build();
    /// println!("{}", state.is_alone());
    /// # }
    /// ```
    pub fn state(&self) -> Arc<SharedState> {
        Arc::clone(&self.state)
    }

    async fn hit_shared(&self, subject: Subject<'_>, limit: u32) -> Result<RateDecision, StoreError> {
        let name = match subject {
            Subject::ApiKey(id) => format!("key {id}"),
            Subject::User(id) => format!("user {id}"),
        };
        let window = self.hit_named(&name).await?;
        let remaining = u64::from(limit).saturating_sub(window.used);
        Ok(RateDecision {
            allowed: window.used <= u64::from(limit),
            status: RateStatus {
                limit,
                remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
                reset_unix_millis: window.ends_at_millis,
            },
            retry_after_millis: (window.ends_at_millis - window.now_millis).max(1),
        })
    }
}

#[async_trait]
impl RateLimiter for SharedLimiter {
    async fn hit(&self, subject: Subject<'_>, limit: u32, at: Moment) -> RateDecision {
        /// The pause after a failure of the counter, so that not every request waits for its timeout. It begins with the
        /// request, and is longer than the timeout.
        const PAUSE: i64 = 2000;
        let state = &*self.state;
        if at.steady_millis >= state.ask_again_at.load(Ordering::Relaxed) || !state.is_alone() {
            match self.hit_shared(subject, limit).await {
                Ok(decision) => {
                    if state.is_alone.swap(false, Ordering::Relaxed) {
                        tracing::info!("rate limits are counted together with the other instances again");
                    }
                    return decision;
                }
                Err(error) => {
                    state.ask_again_at.store(at.steady_millis + PAUSE, Ordering::Relaxed);
                    if !state.is_alone.swap(true, Ordering::Relaxed) {
                        tracing::warn!(%error, "rate limits are counted by this instance alone for now");
                    }
                }
            }
        }
        state.counted_alone.fetch_add(1, Ordering::Relaxed);
        self.alone.count(subject, limit, at)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::clock::{Clock as _, ManualClock};
    use crate::rate_limit::window::tests::at;

    /// A counter with fixed answers, in their order.
    struct Place(Mutex<Vec<Option<u64>>>);

    #[async_trait]
    impl SharedWindows for Place {
        async fn hit(&self, _: &str, window: i64) -> Result<SharedWindow, StoreError> {
            let used = self.0.lock().unwrap().remove(0);
            let used = used.ok_or_else(|| StoreError::Unavailable("no answer".into()))?;
            Ok(SharedWindow {
                ends_at_millis: window,
                used,
                now_millis: 1,
            })
        }

        async fn sweep(&self) -> Result<(), StoreError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_counter_that_does_not_answer_is_tried_again_after_two_seconds() {
        let place = Arc::new(Place(Mutex::new(vec![Some(2), Some(3), None, Some(1)])));
        let limiter = SharedLimiter::new(place);
        let state = limiter.state();
        let key = Subject::ApiKey("k");
        let decision = limiter.hit(key, 2, at(0)).await;
        assert!(decision.allowed && decision.status.remaining == 0 && decision.retry_after_millis == 59_999);
        assert!(!limiter.hit(key, 2, at(0)).await.allowed);
        for passed in [0, 10, 1999] {
            assert_eq!(limiter.hit(key, 2, at(passed)).await.allowed, passed < 1999);
            assert!(state.is_alone());
        }
        assert!(limiter.hit(key, 2, at(2000)).await.allowed);
        assert!(!state.is_alone());
        assert_eq!(state.counted_alone(), 3);
    }

    #[tokio::test]
    async fn a_clock_follows_that_of_the_counter_before_the_first_request() {
        let machine = Arc::new(ManualClock::at(Timestamp::from_unix_millis(5000)));
        let clock = Arc::new(FollowingClock::new(machine));
        let place = || Arc::new(Place(Mutex::new(vec![Some(1), None])));
        let limiter = SharedLimiter::new(place()).followed_by(Arc::clone(&clock));
        limiter.read_clock().await.unwrap();
        assert_eq!(clock.now(), Timestamp::from_unix_millis(1));
        assert!(limiter.read_clock().await.is_err(), "the counter does not answer");
        // Without a clock that follows, there is nothing to read.
        let place = place();
        SharedLimiter::new(place.clone()).read_clock().await.unwrap();
        assert_eq!(place.0.lock().unwrap().len(), 2);
    }
}
