//! The fixed window as a pure function of the time.

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
            let mut now = Timestamp::from_unix_millis(1_800_000_000_000);
            let mut last: Option<RateStatus> = None;
            let mut allowed_in_window = 0;
            for step in steps {
                now = now.plus_millis(step);
                let decision = window.hit(limit, now);
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
