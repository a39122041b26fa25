//! The fixed window as a pure function of the time, and one that many count in at once.

use std::sync::atomic::{AtomicU64, Ordering};

use super::RateDecision;
use crate::model::{RateStatus, Timestamp};

/// How long a window lasts.
pub const WINDOW_MILLIS: i64 = 60_000;

/// The state of one window: when it ends and how many requests it has seen.
///
/// ```
/// use agentcfg_core::model::Timestamp;
/// use agentcfg_core::rate_limit::Window;
/// let mut window = Window::default();
/// let now = Timestamp::from_unix_millis(1_000_000);
/// assert!(window.hit(1, now).allowed);
/// assert!(!window.hit(1, now).allowed);
/// assert!(window.hit(1, now.plus_millis(60_000)).allowed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    ends_at_millis: i64,
    used: u32,
}

impl Default for Window {
    /// A window that has ended long ago.
    fn default() -> Self {
        Self {
            ends_at_millis: i64::MIN,
            used: 0,
        }
    }
}

impl Window {
    /// Counts one request at this time.
    ///
    /// A clock that steps back stays in the window and refills nothing.
    pub fn hit(&mut self, limit: u32, now: Timestamp) -> RateDecision {
        let now = now.unix_millis();
        if self.has_ended(now) {
            *self = Self {
                ends_at_millis: now + WINDOW_MILLIS,
                used: 0,
            };
        }
        let allowed = self.used < limit;
        self.used = self.used.saturating_add(1);
        RateDecision {
            allowed,
            status: RateStatus {
                limit,
                remaining: limit.saturating_sub(self.used),
                reset_unix_millis: self.ends_at_millis,
            },
            retry_after_millis: (self.ends_at_millis - now).max(1),
        }
    }

    /// Whether the window is over at this time.
    pub(super) fn has_ended(&self, now_millis: i64) -> bool {
        now_millis >= self.ends_at_millis
    }
}

/// Bits of an [`AtomicWindow`]'s word that count. Limits end at a million, which is far less than they hold.
const USED_BITS: u32 = 21;
const USED_MAX: u32 = (1 << USED_BITS) - 1;
/// The rest holds the end, in milliseconds since the Unix epoch, up to the year 2248.
const END_MAX: i64 = (1 << (u64::BITS - USED_BITS)) - 1;

/// A [`Window`] in one atomic word: counting in it takes no lock.
///
/// ```
/// use agentcfg_core::model::Timestamp;
/// use agentcfg_core::rate_limit::AtomicWindow;
/// let window = AtomicWindow::default();
/// let now = Timestamp::from_unix_millis(1_000_000);
/// assert!(window.hit(1, now).allowed);
/// assert!(!window.hit(1, now).allowed);
/// ```
#[derive(Debug, Default)]
pub struct AtomicWindow(AtomicU64);

impl AtomicWindow {
    /// Counts one request at this time; see [`Window::hit`].
    pub fn hit(&self, limit: u32, now: Timestamp) -> RateDecision {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let mut window = Window::from_word(word);
            let decision = window.hit(limit, now);
            match self
                .0
                .compare_exchange_weak(word, window.to_word(), Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return decision,
                Err(current) => word = current,
            }
        }
    }

    /// Whether the window is over at this time.
    pub(crate) fn has_ended(&self, now_millis: i64) -> bool {
        Window::from_word(self.0.load(Ordering::Relaxed)).has_ended(now_millis)
    }
}

impl Window {
    fn from_word(word: u64) -> Self {
        Self {
            ends_at_millis: (word >> USED_BITS) as i64,
            used: word as u32 & USED_MAX,
        }
    }

    fn to_word(self) -> u64 {
        (self.ends_at_millis.clamp(0, END_MAX) as u64) << USED_BITS | u64::from(self.used.min(USED_MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the clock does, a window lets through at most its limit, its end never moves
        /// while it lasts, and what remains never rises within it.
        #[test]
        fn a_window_is_exact(limit in 1_u32..6, steps in proptest::collection::vec(-30_000_i64..30_000, 1..200)) {
            let mut window = Window::default();
            let atomic = AtomicWindow::default();
            let mut now = Timestamp::from_unix_millis(1_800_000_000_000);
            let mut last: Option<RateStatus> = None;
            let mut allowed_in_window = 0;
            for step in steps {
                now = now.plus_millis(step);
                let decision = window.hit(limit, now);
                prop_assert_eq!(atomic.hit(limit, now), decision);
                let status = decision.status;
                match last {
                    Some(previous) if now.unix_millis() < previous.reset_unix_millis => {
                        prop_assert_eq!(status.reset_unix_millis, previous.reset_unix_millis);
                        prop_assert!(status.remaining <= previous.remaining);
                    }
                    _ => {
                        prop_assert_eq!(status.reset_unix_millis, now.unix_millis() + WINDOW_MILLIS);
                        allowed_in_window = 0;
                    }
                }
                allowed_in_window += u32::from(decision.allowed);
                prop_assert!(allowed_in_window <= limit);
                prop_assert_eq!(status.remaining, limit - allowed_in_window);
                prop_assert!(decision.retry_after_millis >= 1);
                last = Some(status);
            }
        }
    }

    #[test]
    fn many_who_count_at_once_get_through_exactly_as_often_as_allowed() {
        const LIMIT: u32 = 1000;
        let window = AtomicWindow::default();
        let now = Timestamp::from_unix_millis(1_800_000_000_000);
        let allowed: usize = std::thread::scope(|scope| {
            let count = || (0..LIMIT).filter(|_| window.hit(LIMIT, now).allowed).count();
            let threads: Vec<_> = std::iter::repeat_with(|| scope.spawn(count)).take(4).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(allowed, LIMIT as usize);
    }

    #[test]
    fn a_full_word_stays_full() {
        let word = Window {
            ends_at_millis: i64::MAX,
            used: u32::MAX,
        }
        .to_word();
        assert_eq!(word, u64::MAX);
        let full = AtomicWindow(AtomicU64::new(word));
        for _ in 0..2 {
            assert!(
                !full
                    .hit(1_000_000, Timestamp::from_unix_millis(1_800_000_000_000))
                    .allowed
            );
        }
    }

    #[test]
    fn reset_is_rounded_up_to_the_second() {
        let status = |reset_unix_millis| RateStatus {
            limit: 1,
            remaining: 0,
            reset_unix_millis,
        };
        assert_eq!(status(60_000).reset_unix_seconds(), 60);
        assert_eq!(status(60_001).reset_unix_seconds(), 61);
    }
}
