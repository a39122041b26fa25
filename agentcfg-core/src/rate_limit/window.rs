//! The fixed window: as a pure function of the time, and as an atomic that many threads count in.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::clock::Moment;
use crate::model::RateStatus;
use crate::sync::lock;

/// How long a window lasts.
///
/// ```
/// assert_eq!(agentcfg_core::rate_limit::WINDOW_MILLIS, 60_000);
/// ```
pub const WINDOW_MILLIS: i64 = 60_000;
/// The length by the steady clock. It is a little longer, so that the wall clock decides while it is not set: readings
/// of the steady clock are a few milliseconds old, and a time service may slow the wall clock down a little.
const STEADY_MILLIS: i64 = WINDOW_MILLIS + 50;

/// The decision on one request.
///
/// ```
/// use agentcfg_core::clock::{Moment, SystemClock};
/// use agentcfg_core::rate_limit::Window;
/// let decision = Window::default().hit(100, Moment::of(&SystemClock));
/// assert!(decision.allowed);
/// assert_eq!(decision.status.remaining, 99);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a request that is over the limit must be refused"]
pub struct RateDecision {
    /// Whether the request is within the limit.
    pub allowed: bool,
    /// The figures for the caller.
    pub status: RateStatus,
    /// How long until the window ends, in milliseconds, at least 1.
    pub retry_after_millis: i64,
}

/// The name of the header field that says when the next request is admitted.
const RETRY_AFTER: &str = "retry-after";

impl RateDecision {
    /// The header fields of the answer, in lower case: the [figures](RateStatus::headers), and `retry-after` of a
    /// refused request.
    ///
    /// ```
    /// use agentcfg_core::clock::{Moment, SystemClock};
    /// use agentcfg_core::rate_limit::Window;
    /// let (mut window, now) = (Window::default(), Moment::of(&SystemClock));
    /// let names = |decision: agentcfg_core::rate_limit::RateDecision| decision.headers().map(|(name, _)| name).collect();
    /// let (allowed, refused): (Vec<_>, Vec<_>) = (names(window.hit(1, now)), names(window.hit(1, now)));
    /// assert_eq!(allowed, ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]);
    /// assert_eq!(refused.last(), Some(&"retry-after"));
    /// ```
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, i64)> + use<> {
        let wait = self.into_result().err().map(|limited| limited.retry_after_header());
        self.status.headers().into_iter().chain(wait)
    }

    /// The figures of an allowed request, or the error of a refused one.
    ///
    /// # Errors
    ///
    /// [`RateLimited`] over the limit.
    ///
    /// ```
    /// use agentcfg_core::clock::{Moment, SystemClock};
    /// use agentcfg_core::rate_limit::Window;
    /// let mut window = Window::default();
    /// let now = Moment::of(&SystemClock);
    /// assert_eq!(window.hit(1, now).into_result()?.remaining, 0);
    /// assert!(window.hit(1, now).into_result().is_err());
    /// # Ok::<(), agentcfg_core::rate_limit::RateLimited>(())
    /// ```
    pub fn into_result(self) -> Result<RateStatus, RateLimited> {
        match self.allowed {
            true => Ok(self.status),
            false => Err(RateLimited {
                status: self.status,
                retry_after_millis: self.retry_after_millis,
            }),
        }
    }
}

/// The caller has made all the requests that the limit allows in this window.
///
/// ```
/// use agentcfg_core::model::RateStatus;
/// use agentcfg_core::rate_limit::RateLimited;
/// let status = RateStatus { limit: 100, remaining: 0, reset_unix_millis: 1_795_167_060_000 };
/// let limited = RateLimited { status, retry_after_millis: 1200 };
/// assert_eq!(limited.to_string(), "rate limit of 100 requests per minute exceeded, try again in 2 s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("rate limit of {} requests per minute exceeded, try again in {} s", .status.limit, self.retry_after_seconds())]
pub struct RateLimited {
    /// The figures for the caller; `remaining` is 0.
    pub status: RateStatus,
    /// How long until the window ends, in milliseconds, at least 1.
    pub retry_after_millis: i64,
}

impl RateLimited {
    /// How long until the window ends, in whole seconds, rounded up: the value of `Retry-After`.
    ///
    /// ```
    /// use agentcfg_core::model::RateStatus;
    /// use agentcfg_core::rate_limit::RateLimited;
    /// # let status = RateStatus { limit: 100, remaining: 0, reset_unix_millis: 1_795_167_060_000 };
    /// let limited = RateLimited { status, retry_after_millis: 1200 };
    /// assert_eq!(limited.retry_after_seconds(), 2);
    /// ```
    pub fn retry_after_seconds(&self) -> i64 {
        (self.retry_after_millis + 999) / 1000
    }

    /// The header fields of the refusal, in lower case: the [figures](RateStatus::headers) and `retry-after`.
    ///
    /// ```
    /// use agentcfg_core::model::RateStatus;
    /// use agentcfg_core::rate_limit::RateLimited;
    /// # let status = RateStatus { limit: 100, remaining: 0, reset_unix_millis: 1_795_167_060_000 };
    /// let limited = RateLimited { status, retry_after_millis: 1200 };
    /// assert_eq!(limited.headers().last(), Some(("retry-after", 2)));
    /// ```
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, i64)> + use<> {
        self.status.headers().into_iter().chain([self.retry_after_header()])
    }

    fn retry_after_header(&self) -> (&'static str, i64) {
        (RETRY_AFTER, self.retry_after_seconds())
    }
}

/// The state of one window: when it ends and how many requests it has seen.
///
/// A window ends when either clock says so. By the wall clock alone, one that is set back by hours would keep the
/// window open for hours; the steady clock bounds it to 60 s. Within a window the end that callers are told stays the
/// same.
///
/// ```
/// use agentcfg_core::clock::{ManualClock, Moment};
/// use agentcfg_core::rate_limit::Window;
/// let clock = ManualClock::at("2026-11-20T09:30:00Z".parse()?);
/// let mut window = Window::default();
/// assert!(window.hit(1, Moment::of(&clock)).allowed);
/// assert!(!window.hit(1, Moment::of(&clock)).allowed);
/// clock.advance_millis(60_000);
/// assert!(window.hit(1, Moment::of(&clock)).allowed);
/// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// By the wall clock, in milliseconds since the Unix epoch.
    ends_at: i64,
    /// By the monotonic clock, in milliseconds.
    steady_end: i64,
    used: u32,
}

impl Default for Window {
    /// A window that has ended.
    fn default() -> Self {
        Self {
            ends_at: i64::MIN,
            steady_end: i64::MIN,
            used: 0,
        }
    }
}

impl Window {
    /// Counts one request at this time.
    ///
    /// When the clock steps back, the window stays the same and is not refilled.
    ///
    /// ```
    /// use agentcfg_core::clock::{Moment, SystemClock};
    /// use agentcfg_core::rate_limit::Window;
    /// let decision = Window::default().hit(100, Moment::of(&SystemClock));
    /// assert_eq!(decision.status.remaining, 99);
    /// ```
    pub fn hit(&mut self, limit: u32, at: Moment) -> RateDecision {
        if self.has_ended(at) {
            *self = Self::opened(at);
        }
        let allowed = self.used < limit;
        self.used = self.used.saturating_add(1);
        let left = (self.ends_at - at.now.unix_millis).min(self.steady_end - at.steady_millis);
        RateDecision {
            allowed,
            status: RateStatus {
                limit,
                remaining: limit.saturating_sub(self.used),
                reset_unix_millis: self.ends_at,
            },
            retry_after_millis: left.max(1),
        }
    }

    /// Whether the window is over.
    pub(super) fn has_ended(&self, at: Moment) -> bool {
        at.now.unix_millis >= self.ends_at || at.steady_millis >= self.steady_end
    }

    fn opened(at: Moment) -> Self {
        Self {
            ends_at: at.now.unix_millis + WINDOW_MILLIS,
            steady_end: at.steady_millis + STEADY_MILLIS,
            used: 0,
        }
    }
}

/// Bits of an [`AtomicWindow`]'s word that hold the count. The greatest limit, a million, needs 20.
const USED_BITS: u32 = 21;
const USED_MAX: u32 = (1 << USED_BITS) - 1;
/// The rest holds the end, in milliseconds since the Unix epoch, up to the year 2248.
const END_MAX: i64 = (1 << (u64::BITS - USED_BITS)) - 1;

/// A [`Window`] that threads share. Counting takes no lock.
///
/// One word holds the end by the wall clock and the count. The end by the steady clock is beside it: whenever a new
/// window shows in the word, its steady end was stored before, so a thread that reads the window never counts it as
/// ended.
///
/// ```
/// use agentcfg_core::clock::{Moment, SystemClock};
/// use agentcfg_core::rate_limit::AtomicWindow;
/// let window = AtomicWindow::default();
/// let now = Moment::of(&SystemClock);
/// assert!(window.hit(1, now).allowed);
/// assert!(!window.hit(1, now).allowed);
/// ```
#[derive(Debug)]
pub struct AtomicWindow {
    word: AtomicU64,
    /// Never decreases.
    steady_end: AtomicI64,
}

impl Default for AtomicWindow {
    fn default() -> Self {
        Self {
            word: AtomicU64::new(0),
            steady_end: AtomicI64::new(i64::MIN),
        }
    }
}

/// One thread at a time ends a window that only the steady clock ends. The word does not show that such a window was
/// replaced in between, as it does with one that ended by the wall clock. It happens once after a clock was set back.
static ENDING_BY_STEADY_CLOCK: Mutex<()> = Mutex::new(());

impl AtomicWindow {
    /// Counts one request at this time; see [`Window::hit`].
    ///
    /// ```
    /// use agentcfg_core::clock::{Moment, SystemClock};
    /// use agentcfg_core::rate_limit::AtomicWindow;
    /// let decision = AtomicWindow::default().hit(100, Moment::of(&SystemClock));
    /// assert_eq!(decision.status.remaining, 99);
    /// ```
    pub fn hit(&self, limit: u32, at: Moment) -> RateDecision {
        let mut window = self.load();
        loop {
            let before = window.to_word();
            let ends_by_wall_clock = at.now.unix_millis >= window.ends_at;
            if !ends_by_wall_clock && window.has_ended(at) {
                let _one = lock(&ENDING_BY_STEADY_CLOCK);
                if let Some(decision) = self.replace(limit, at) {
                    return decision;
                }
                window = self.load();
                continue;
            }
            let decision = window.hit(limit, at);
            if ends_by_wall_clock {
                self.steady_end.fetch_max(window.steady_end, Ordering::Release);
            }
            if self.exchange(before, window) {
                return decision;
            }
            window = self.load();
        }
    }

    /// Opens a window in place of one that ended by the steady clock; `None` if another thread did.
    fn replace(&self, limit: u32, at: Moment) -> Option<RateDecision> {
        loop {
            let mut window = self.load();
            if !window.has_ended(at) {
                return None;
            }
            let before = window.to_word();
            let decision = window.hit(limit, at);
            if self.exchange(before, window) {
                // Stored last, unlike above: until then other threads see the old end as passed, and wait for the lock.
                self.steady_end.fetch_max(window.steady_end, Ordering::Release);
                return Some(decision);
            }
        }
    }

    /// Whether the window is over.
    pub(crate) fn has_ended(&self, at: Moment) -> bool {
        self.load().has_ended(at)
    }

    fn load(&self) -> Window {
        // The word first: the steady end is then that of the window in the word, or a later one.
        let word = self.word.load(Ordering::Acquire);
        Window {
            ends_at: (word >> USED_BITS) as i64,
            steady_end: self.steady_end.load(Ordering::Acquire),
            used: word as u32 & USED_MAX,
        }
    }

    fn exchange(&self, before: u64, window: Window) -> bool {
        self.word
            .compare_exchange_weak(before, window.to_word(), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

impl Window {
    fn to_word(self) -> u64 {
        (self.ends_at.clamp(0, END_MAX) as u64) << USED_BITS | u64::from(self.used.min(USED_MAX))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Timestamp;

    const START: i64 = 1_800_000_000_000;

    /// A moment on clocks that were never set.
    pub(in crate::rate_limit) fn at(millis: i64) -> Moment {
        after_step(millis, 0)
    }

    /// A moment after so much time, on a wall clock that was set by so much.
    fn after_step(millis: i64, step: i64) -> Moment {
        Moment {
            now: Timestamp::from_unix_millis(START + millis + step),
            steady_millis: millis,
        }
    }

    proptest! {
        /// For any steps of the clock, a window allows at most its limit, its end never moves
        /// while it is open, and the remaining number never rises within it.
        #[test]
        fn a_window_is_exact(
            limit in 1_u32..6,
            steps in proptest::collection::vec((0_i64..20_000, -30_000_i64..30_000), 1..200),
        ) {
            let mut window = Window::default();
            let atomic = AtomicWindow::default();
            let (mut passed, mut stepped) = (0, 0);
            let mut last: Option<(RateStatus, i64)> = None;
            let mut allowed_in_window = 0;
            for (millis, step) in steps {
                (passed, stepped) = (passed + millis, stepped + step);
                let now = after_step(passed, stepped);
                let decision = window.hit(limit, now);
                prop_assert_eq!(atomic.hit(limit, now), decision);
                let status = decision.status;
                match last {
                    Some((previous, opened))
                        if now.now.unix_millis() < previous.reset_unix_millis && passed < opened + STEADY_MILLIS =>
                    {
                        prop_assert_eq!(status.reset_unix_millis, previous.reset_unix_millis);
                        prop_assert!(status.remaining <= previous.remaining);
                        last = Some((status, opened));
                    }
                    _ => {
                        prop_assert_eq!(status.reset_unix_millis, now.now.unix_millis() + WINDOW_MILLIS);
                        allowed_in_window = 0;
                        last = Some((status, passed));
                    }
                }
                allowed_in_window += u32::from(decision.allowed);
                prop_assert!(allowed_in_window <= limit);
                prop_assert_eq!(status.remaining, limit - allowed_in_window);
                let opened = last.map_or(passed, |(_, opened)| opened);
                let left = (status.reset_unix_millis - now.now.unix_millis()).min(opened + STEADY_MILLIS - passed);
                prop_assert_eq!(decision.retry_after_millis, left.max(1));
            }
        }
    }

    #[test]
    fn a_clock_that_was_set_by_hours_keeps_no_window_open() {
        const HOURS: i64 = 3 * 3_600_000;
        let window = AtomicWindow::default();
        // The wall clock runs ahead when the window opens, and is then set right.
        let first = window.hit(1, after_step(0, HOURS));
        assert!(first.allowed);
        let back = window.hit(1, at(10));
        assert!(!back.allowed, "a clock that steps back refills nothing");
        assert_eq!(back.status.reset_unix_millis, first.status.reset_unix_millis);
        assert_eq!(back.retry_after_millis, STEADY_MILLIS - 10);
        assert!(!window.hit(1, at(STEADY_MILLIS - 1)).allowed);
        let next = window.hit(1, at(STEADY_MILLIS));
        assert!(next.allowed);
        assert_eq!(next.status.reset_unix_millis, START + STEADY_MILLIS + WINDOW_MILLIS);
        assert!(!window.hit(1, at(STEADY_MILLIS + 1)).allowed);
    }

    #[test]
    fn a_window_lasts_a_minute_by_either_clock() {
        let opened = || {
            let mut window = Window::default();
            assert!(window.hit(1, at(0)).allowed);
            window
        };
        assert!(!opened().hit(1, at(59_999)).allowed);
        assert!(opened().hit(1, at(60_000)).allowed);
        // The wall clock was set back by an hour, and forward by half a minute.
        assert!(!opened().hit(1, after_step(60_000, -3_600_000)).allowed);
        assert!(opened().hit(1, after_step(61_000, -3_600_000)).allowed);
        assert_eq!(opened().hit(1, after_step(10_000, 30_000)).retry_after_millis, 20_000);
        let shared = AtomicWindow::default();
        assert!(shared.hit(1, at(0)).allowed && !shared.has_ended(at(59_999)) && shared.has_ended(at(60_000)));
    }

    #[test]
    fn a_refusal_says_when_to_come_back() {
        let mut window = Window::default();
        let status = RateStatus {
            limit: 1,
            remaining: 0,
            reset_unix_millis: START + WINDOW_MILLIS,
        };
        assert!(window.hit(1, at(0)).headers().eq(status.headers()));
        for (passed, seconds) in [(0, 60), (1, 60), (1000, 59), (58_999, 2), (59_000, 1), (59_999, 1)] {
            let refused = window.hit(1, at(passed));
            let expected: Vec<_> = status.headers().into_iter().chain([("retry-after", seconds)]).collect();
            assert!(refused.headers().eq(expected.clone()), "{passed}");
            assert!(refused.into_result().unwrap_err().headers().eq(expected), "{passed}");
        }
    }

    /// How many requests of concurrent threads are allowed.
    fn allowed_at_once(window: &AtomicWindow, limit: u32, at: Moment) -> usize {
        std::thread::scope(|scope| {
            let count = || (0..limit).filter(|_| window.hit(limit, at).allowed).count();
            let threads: Vec<_> = std::iter::repeat_with(|| scope.spawn(count)).take(4).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        })
    }

    #[test]
    fn threads_that_count_at_once_get_through_exactly_as_often_as_allowed() {
        const LIMIT: u32 = 1000;
        let window = AtomicWindow::default();
        assert_eq!(allowed_at_once(&window, LIMIT, at(0)), LIMIT as usize);
        // The next window opens by the wall clock, and the one after it by the steady clock alone.
        assert_eq!(allowed_at_once(&window, LIMIT, at(WINDOW_MILLIS)), LIMIT as usize);
        let set_back = after_step(WINDOW_MILLIS + STEADY_MILLIS, -3_600_000);
        assert_eq!(allowed_at_once(&window, LIMIT, set_back), LIMIT as usize);
    }

    #[test]
    fn a_full_word_stays_full() {
        let word = Window {
            ends_at: i64::MAX,
            steady_end: i64::MAX,
            used: u32::MAX,
        }
        .to_word();
        assert_eq!(word, u64::MAX);
        let full = AtomicWindow {
            word: AtomicU64::new(word),
            steady_end: AtomicI64::new(i64::MAX),
        };
        for _ in 0..2 {
            assert!(!full.hit(1_000_000, at(0)).allowed);
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
