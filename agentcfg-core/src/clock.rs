//! Time, identifiers and randomness: the only module that gets them from the operating system.
//!
//! All other code uses these traits, so that a test can set the clock and make identifiers deterministic.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use uuid::Uuid;

use crate::model::Timestamp;

/// A source of the current time.
pub trait Clock: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// A source of random bytes.
pub trait Entropy: Send + Sync + 'static {
    /// Fills the buffer with cryptographically secure random bytes.
    ///
    /// # Errors
    ///
    /// [`EntropyError`] if the source fails; the content of the buffer must then not be used.
    fn fill(&self, buffer: &mut [u8]) -> Result<(), EntropyError>;
}

/// The source of randomness failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no randomness: {0}")]
pub struct EntropyError(pub String);

/// The clock of the operating system.
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
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[allow(clippy::disallowed_methods, reason = "the only place that reads random bytes")]
    fn fill(&self, buffer: &mut [u8]) -> Result<(), EntropyError> {
        getrandom::fill(buffer).map_err(|error| EntropyError(error.to_string()))
    }
}

/// A clock for tests, which changes only when it is moved.
///
/// ```
/// use agentcfg_core::clock::{Clock, ManualClock};
/// let clock = ManualClock::at("2026-11-20T09:30:00Z".parse()?);
/// clock.advance_millis(1500);
/// assert_eq!(clock.now().to_string(), "2026-11-20T09:30:01.500Z");
/// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
/// ```
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows this time.
    pub fn at(time: Timestamp) -> Self {
        Self(AtomicI64::new(time.unix_millis()))
    }

    /// Moves the clock; a negative number moves it back.
    pub fn advance_millis(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.0.load(Ordering::SeqCst))
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
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
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
    fn identifiers_are_strictly_increasing() {
        let ids = Ids::default();
        let now = Timestamp::from_unix_millis(1_800_000_000_000);
        let mut last = Uuid::nil();
        for i in 0..20_000 {
            // The clock stands still, steps forward and steps back.
            let at = now.plus_millis(if i % 1000 == 0 { -5 } else { i / 5000 });
            let id = ids.next(at, &SystemEntropy).unwrap();
            assert!(id > last, "{id} after {last}");
            assert_eq!(id.get_version_num(), 7);
            last = id;
        }
    }
}
