//! Time, identifiers and randomness, where anything that is stored, shown or decided by a rule depends on them: the
//! only module that gets these from the operating system. A lint refuses the other ways (`clippy.toml`).
//!
//! All other code uses these traits, so that a test can set the clock and make identifiers deterministic. What names
//! [`SystemClock`] or [`SystemEntropy`] chooses them: the defaults of a builder, and the server's own program.
//!
//! Timers, deadlines and pauses are `tokio::time`'s, whose clock a test pauses, and hash tables have seeds of their
//! own. Neither changes a record, an answer or a decision.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use uuid::Uuid;

use crate::model::Timestamp;
use crate::sync::lock;

/// Spans of time in milliseconds, the unit of timestamps and of both clocks.
pub(crate) const SECOND: i64 = 1000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

/// A source of the current time.
///
/// ```
/// use agentcfg_core::clock::Clock;
/// use agentcfg_core::model::Timestamp;
///
/// /// A clock that shows one moment.
/// struct Frozen(Timestamp);
///
/// impl Clock for Frozen {
///     fn now(&self) -> Timestamp {
///         self.0
///     }
/// }
/// ```
pub trait Clock: Send + Sync + 'static {
    /// The current time. An operator or a time service can set this clock, so it may step back.
    ///
    /// ```
    /// use agentcfg_core::clock::{Clock, SystemClock};
    /// println!("it is {}", SystemClock.now());
    /// ```
    fn now(&self) -> Timestamp;

    /// Milliseconds on a monotonic clock with an arbitrary zero. The default reads the machine's clock, to within a few
    /// milliseconds.
    ///
    /// ```
    /// use agentcfg_core::clock::{Clock, SystemClock};
    /// let started = SystemClock.steady_millis();
    /// assert!(SystemClock.steady_millis() >= started);
    /// ```
    fn steady_millis(&self) -> i64 {
        machine_steady_millis()
    }
}

/// One moment on both clocks. Deadlines use the monotonic reading, so they hold when the wall clock is set.
///
/// ```
/// use agentcfg_core::clock::{ManualClock, Moment};
/// let clock = ManualClock::at("2026-11-20T09:30:00Z".parse()?);
/// let before = Moment::of(&clock);
/// clock.advance_millis(-3_600_000);
/// let after = Moment::of(&clock);
/// assert!(after.now < before.now);
/// assert_eq!(after.steady_millis, before.steady_millis);
/// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock, from [`Clock::now`].
    pub now: Timestamp,
    /// The monotonic clock, from [`Clock::steady_millis`].
    pub steady_millis: i64,
}

impl Moment {
    /// Reads both clocks.
    ///
    /// ```
    /// use agentcfg_core::clock::{Clock, ManualClock, Moment};
    /// let clock = ManualClock::at("2026-11-20T09:30:00Z".parse()?);
    /// assert_eq!(Moment::of(&clock).now, clock.now());
    /// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
    /// ```
    pub fn of(clock: &dyn Clock) -> Self {
        Self {
            now: clock.now(),
            steady_millis: clock.steady_millis(),
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the one place that reads the time")]
fn machine_steady_millis() -> i64 {
    static ORIGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let elapsed = ORIGIN.get_or_init(std::time::Instant::now).elapsed();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}

/// A source of random bytes.
///
/// ```
/// use agentcfg_core::clock::{Entropy, EntropyError};
///
/// /// Not random at all: for tests that compare what was made.
/// struct Sevens;
///
/// impl Entropy for Sevens {
///     fn fill(&self, buffer: &mut [u8]) -> Result<(), EntropyError> {
///         buffer.fill(7);
///         Ok(())
///     }
/// }
/// ```
pub trait Entropy: Send + Sync + 'static {
    /// Fills the buffer with cryptographically secure random bytes.
    ///
    /// # Errors
    ///
    /// [`EntropyError`] if the source fails; the content of the buffer must then not be used.
    ///
    /// ```
    /// use agentcfg_core::clock::{Entropy, SystemEntropy};
    /// let mut nonce = [0; 24];
    /// SystemEntropy.fill(&mut nonce)?;
    /// # Ok::<(), agentcfg_core::clock::EntropyError>(())
    /// ```
    fn fill(&self, buffer: &mut [u8]) -> Result<(), EntropyError>;
}

/// The source of randomness failed.
///
/// ```
/// use agentcfg_core::clock::EntropyError;
/// assert_eq!(EntropyError("the device is gone".into()).to_string(), "no randomness: the device is gone");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no randomness: {0}")]
pub struct EntropyError(pub String);

/// The clock of the operating system.
///
/// ```
/// use agentcfg_core::clock::{Clock, SystemClock};
/// assert!(SystemClock.now() > "2020-01-01T00:00:00Z".parse()?);
/// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the only place that reads the time")]
    fn now(&self) -> Timestamp {
        let since_epoch = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_unix_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The random generator of the operating system.
///
/// ```
/// use agentcfg_core::clock::{Entropy, SystemEntropy};
/// let (mut one, mut other) = ([0; 32], [0; 32]);
/// SystemEntropy.fill(&mut one)?;
/// SystemEntropy.fill(&mut other)?;
/// assert_ne!(one, other);
/// # Ok::<(), agentcfg_core::clock::EntropyError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[allow(clippy::disallowed_methods, reason = "the only place that reads random bytes")]
    fn fill(&self, buffer: &mut [u8]) -> Result<(), EntropyError> {
        getrandom::fill(buffer).map_err(|error| EntropyError(error.to_string()))
    }
}

/// A clock that follows the clock of another machine, such as a database that several processes share, so that all of
/// them show one time.
///
/// Between two readings of the other clock it goes by the monotonic clock, so a wall clock that is set on this machine
/// has no influence. Until the first reading it shows the time of the clock that it was made with.
///
/// ```
/// use std::sync::Arc;
/// use agentcfg_core::clock::{Clock, FollowingClock, ManualClock};
/// let machine = Arc::new(ManualClock::at("2026-11-20T09:30:00Z".parse()?));
/// let clock = FollowingClock::new(machine.clone());
/// // The database's clock is ten seconds ahead.
/// clock.follow(machine.now().plus_millis(10_000));
/// machine.step_millis(3_600_000);
/// machine.advance_millis(1000);
/// assert_eq!(clock.now().to_string(), "2026-11-20T09:30:11.000Z");
/// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
/// ```
pub struct FollowingClock {
    machine: Arc<dyn Clock>,
    /// The other clock less the monotonic one, in milliseconds; `UNKNOWN` before the first reading.
    offset: AtomicI64,
    /// When the offset was taken, on the monotonic clock.
    taken_at: AtomicI64,
}

impl FollowingClock {
    const UNKNOWN: i64 = i64::MIN;

    /// How long the largest offset is kept. A reading is always late by its way here, so the largest offset of several
    /// is the most exact; an older one may be one from before the other clock was set.
    const KEPT: i64 = 10_000;

    /// A clock that shows the time of this one until it has a reading to follow.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use agentcfg_core::clock::{Clock, FollowingClock, ManualClock};
    /// let machine = Arc::new(ManualClock::at("2026-11-20T09:30:00Z".parse()?));
    /// assert_eq!(FollowingClock::new(machine.clone()).now(), machine.now());
    /// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
    /// ```
    pub fn new(machine: Arc<dyn Clock>) -> Self {
        Self {
            machine,
            offset: AtomicI64::new(Self::UNKNOWN),
            taken_at: AtomicI64::new(0),
        }
    }

    /// Whether it has a reading to follow.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use agentcfg_core::clock::{Clock, FollowingClock, SystemClock};
    /// let clock = FollowingClock::new(Arc::new(SystemClock));
    /// assert!(!clock.is_following());
    /// clock.follow(SystemClock.now());
    /// assert!(clock.is_following());
    /// ```
    pub fn is_following(&self) -> bool {
        self.offset.load(Ordering::Relaxed) != Self::UNKNOWN
    }

    /// Takes a reading of the other clock that arrived just now.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use agentcfg_core::clock::{Clock, FollowingClock, SystemClock};
    /// let clock = FollowingClock::new(Arc::new(SystemClock));
    /// clock.follow("2026-11-20T09:30:00Z".parse()?);
    /// assert!(clock.now() < "2026-11-20T09:31:00Z".parse()?);
    /// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
    /// ```
    pub fn follow(&self, reading: Timestamp) {
        let steady = self.machine.steady_millis();
        let offset = reading.unix_millis().saturating_sub(steady);
        let is_old = steady.saturating_sub(self.taken_at.load(Ordering::Relaxed)) > Self::KEPT;
        if is_old || offset > self.offset.load(Ordering::Relaxed) {
            self.offset.store(offset, Ordering::Relaxed);
            self.taken_at.store(steady, Ordering::Relaxed);
        }
    }
}

impl Clock for FollowingClock {
    fn now(&self) -> Timestamp {
        match self.offset.load(Ordering::Relaxed) {
            Self::UNKNOWN => self.machine.now(),
            offset => Timestamp::from_unix_millis(self.machine.steady_millis().saturating_add(offset)),
        }
    }

    fn steady_millis(&self) -> i64 {
        self.machine.steady_millis()
    }
}

impl fmt::Debug for FollowingClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FollowingClock").field("now", &self.now()).finish()
    }
}

/// A clock for tests, which changes only when it is moved.
///
/// Moving it forward also moves its steady reading. Moving it back acts as a wall clock that is set: the steady reading
/// stays.
///
/// ```
/// use agentcfg_core::clock::{Clock, ManualClock};
/// let clock = ManualClock::at("2026-11-20T09:30:00Z".parse()?);
/// clock.advance_millis(1500);
/// assert_eq!(clock.now().to_string(), "2026-11-20T09:30:01.500Z");
/// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
/// ```
#[derive(Debug)]
pub struct ManualClock {
    now: AtomicI64,
    steady: AtomicI64,
}

impl ManualClock {
    /// A clock that shows this time.
    ///
    /// ```
    /// use agentcfg_core::clock::{Clock, ManualClock};
    /// let start = "2026-11-20T09:30:00Z".parse()?;
    /// assert_eq!(ManualClock::at(start).now(), start);
    /// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
    /// ```
    pub fn at(time: Timestamp) -> Self {
        Self {
            now: AtomicI64::new(time.unix_millis()),
            steady: AtomicI64::new(0),
        }
    }

    /// Moves the clock; a negative number moves it back.
    ///
    /// ```
    /// use agentcfg_core::clock::{Clock, ManualClock};
    /// let clock = ManualClock::at("2026-11-20T09:30:00Z".parse()?);
    /// clock.advance_millis(60_000);
    /// assert_eq!(clock.now().to_string(), "2026-11-20T09:31:00.000Z");
    /// assert_eq!(clock.steady_millis(), 60_000);
    /// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
    /// ```
    pub fn advance_millis(&self, millis: i64) {
        self.now.fetch_add(millis, Ordering::SeqCst);
        self.steady.fetch_add(millis.max(0), Ordering::SeqCst);
    }

    /// Sets the wall clock forward or back. The steady reading stays.
    ///
    /// ```
    /// use agentcfg_core::clock::{Clock, ManualClock};
    /// let clock = ManualClock::at("2026-11-20T09:30:00Z".parse()?);
    /// clock.step_millis(60_000);
    /// assert_eq!(clock.now().to_string(), "2026-11-20T09:31:00.000Z");
    /// assert_eq!(clock.steady_millis(), 0);
    /// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
    /// ```
    pub fn step_millis(&self, millis: i64) {
        self.now.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.now.load(Ordering::SeqCst))
    }

    fn steady_millis(&self) -> i64 {
        self.steady.load(Ordering::SeqCst)
    }
}

/// Generates UUIDs of version 7 that are strictly increasing within this process.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// The last millisecond and its counter, which is the 12-bit field `rand_a` after the time.
    last: Mutex<(i64, u16)>,
}

impl Ids {
    /// A new identifier for something that happens now.
    pub(crate) fn next(&self, now: Timestamp, entropy: &dyn Entropy) -> Result<Uuid, EntropyError> {
        const COUNTER_MAX: u16 = 0x0fff;
        let mut random = [0; 10];
        entropy.fill(&mut random)?;
        let mut last = lock(&self.last);
        let now = now.unix_millis().max(0);
        // Within a millisecond, or after the clock stepped back, the counter is incremented; when it
        // overflows, the next millisecond is used early. It starts in its lower half to leave room.
        *last = match *last {
            (millis, COUNTER_MAX) if millis >= now => (millis + 1, 0),
            (millis, counter) if millis >= now => (millis, counter + 1),
            _ => (now, u16::from_be_bytes([random[0], random[1]]) >> 5),
        };
        let (millis, counter) = *last;
        drop(last);
        let [high, low] = counter.to_be_bytes();
        random[0] = high;
        random[1] = low;
        let id = uuid::Builder::from_unix_timestamp_millis(millis.unsigned_abs(), &random).into_uuid();
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_follows_another_takes_the_reading_that_came_fastest() {
        let machine = Arc::new(ManualClock::at(Timestamp::from_unix_millis(1_800_000_000_000)));
        let clock = FollowingClock::new(machine.clone());
        let start = machine.now();
        let ahead = |millis: i64| start.plus_millis(machine.steady_millis() + millis);
        clock.follow(ahead(9_700));
        clock.follow(ahead(10_000));
        machine.advance_millis(5_000);
        // This reading took 400 ms more than the one before.
        clock.follow(ahead(9_600));
        assert_eq!(clock.now(), ahead(10_000));
        // The other clock was set back: its readings are taken once the offset is old.
        for (passed, shown) in [(4_000, 10_000), (2_000, -60_000)] {
            machine.advance_millis(passed);
            clock.follow(ahead(-60_000));
            assert_eq!(clock.now(), ahead(shown));
        }
        // The wall clock of this machine is of no importance.
        machine.step_millis(-3_600_000);
        assert_eq!(clock.now(), ahead(-60_000));
        assert_eq!(clock.steady_millis(), machine.steady_millis());
    }

    #[test]
    fn identifiers_are_strictly_increasing() {
        let ids = Ids::default();
        let now = Timestamp::from_unix_millis(1_800_000_000_000);
        let mut last = Uuid::nil();
        for i in 0..20_000 {
            // The clock stops, steps forward and steps back.
            let at = now.plus_millis(if i % 1000 == 0 { -5 } else { i / 5000 });
            let id = ids.next(at, &SystemEntropy).unwrap();
            assert!(id > last, "{id} after {last}");
            assert_eq!(id.get_version_num(), 7);
            last = id;
        }
    }
}
