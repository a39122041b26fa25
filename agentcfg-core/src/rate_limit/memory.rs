//! Windows in the memory of one process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::{RateDecision, RateLimiter, Subject, Tally};
use crate::model::Timestamp;

const SHARDS: usize = 64;
/// A shard is swept of ended windows when it has grown to this, and again at each doubling.
const SWEEP_AT: usize = 1024;

/// Windows in the memory of one process; they are lost with it.
#[derive(Debug)]
pub struct MemoryLimiter {
    shards: Vec<Mutex<Shard>>,
}

#[derive(Debug)]
struct Shard {
    tallies: HashMap<Box<str>, Arc<Tally>>,
    sweep_at: usize,
}

impl Default for MemoryLimiter {
    fn default() -> Self {
        let shard = || {
            Mutex::new(Shard {
                tallies: HashMap::new(),
                sweep_at: SWEEP_AT,
            })
        };
        Self {
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
        }
    }
}

impl MemoryLimiter {
    /// Counts one request; see [`RateLimiter::hit`].
    pub fn count(&self, subject: Subject<'_>, limit: u32, now: Timestamp) -> RateDecision {
        self.find(subject, now).window().hit(limit, now)
    }

    /// The tally of a subject, a fresh one if there is none.
    fn find(&self, subject: Subject<'_>, now: Timestamp) -> Arc<Tally> {
        // A key's identifier has 20 characters of base 62; the mark keeps users apart from keys.
        let owned;
        let name = match subject {
            Subject::ApiKey(id) => id,
            Subject::User(id) => {
                owned = format!("user {id}");
                &owned
            }
        };
        // Keys' identifiers are random, and users spread well enough over the shards by their last letters.
        let tail = name
            .bytes()
            .rev()
            .take(8)
            .fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let mut shard = self.shards[tail % SHARDS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(tally) = shard.tallies.get(name) {
            return Arc::clone(tally);
        }
        shard.sweep(now);
        let tally = Arc::<Tally>::default();
        shard.tallies.insert(name.into(), Arc::clone(&tally));
        tally
    }
}

impl Shard {
    fn sweep(&mut self, now: Timestamp) {
        if self.tallies.len() < self.sweep_at {
            return;
        }
        // Who keeps a tally counts in it, so that nobody else may get another one meanwhile.
        self.tallies
            .retain(|_, tally| Arc::strong_count(tally) > 1 || !tally.window().has_ended(now.unix_millis()));
        self.sweep_at = (self.tallies.len() * 2).max(SWEEP_AT);
    }
}

#[async_trait]
impl RateLimiter for MemoryLimiter {
    async fn hit(&self, subject: Subject<'_>, limit: u32, now: Timestamp) -> RateDecision {
        self.count(subject, limit, now)
    }

    fn tally(&self, subject: Subject<'_>, now: Timestamp) -> Option<Arc<Tally>> {
        Some(self.find(subject, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_and_a_user_of_one_name_have_a_window_each() {
        let limiter = MemoryLimiter::default();
        let now = Timestamp::from_unix_millis(1_800_000_000_000);
        assert!(limiter.count(Subject::ApiKey("x"), 1, now).allowed);
        assert!(limiter.count(Subject::User("x"), 1, now).allowed);
        assert!(!limiter.count(Subject::ApiKey("x"), 1, now).allowed);
    }

    #[test]
    fn a_tally_that_somebody_keeps_is_the_one_that_all_count_in() {
        let limiter = MemoryLimiter::default();
        let start = Timestamp::from_unix_millis(1_800_000_000_000);
        let kept = limiter.tally(Subject::ApiKey("kept"), start).unwrap();
        for i in 0..4 * SHARDS * SWEEP_AT {
            limiter.count(Subject::ApiKey(&format!("k{i}")), 1, start.plus_millis(i as i64));
        }
        let later = start.plus_millis(10_000_000);
        assert!(kept.window().hit(1, later).allowed);
        assert!(!limiter.count(Subject::ApiKey("kept"), 1, later).allowed);
    }

    #[test]
    fn ended_windows_are_swept() {
        let limiter = MemoryLimiter::default();
        let start = Timestamp::from_unix_millis(1_800_000_000_000);
        for i in 0..20 * SHARDS * SWEEP_AT / 4 {
            limiter.count(Subject::ApiKey(&format!("k{i}")), 1, start.plus_millis(i as i64 * 100));
        }
        let kept: usize = limiter
            .shards
            .iter()
            .map(|shard| shard.lock().unwrap().tallies.len())
            .sum();
        assert!(kept <= SHARDS * SWEEP_AT, "{kept} windows are kept");
    }
}
