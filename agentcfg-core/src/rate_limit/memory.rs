//! Windows in the memory of one process.

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;

use super::{RateDecision, RateLimiter, Subject, Window};
use crate::clock::Moment;
use crate::sync::lock;

const SHARDS: usize = 64;
/// A shard that has grown to this number of windows is swept of those that have ended, and again at each doubling.
const SWEEP_AT: usize = 1024;

/// Windows in the memory of one process; a restart loses them.
///
/// ```
/// use agentcfg_core::rate_limit::MemoryLimiter;
/// use agentcfg_core::{AgentCfg, store::MemoryStore};
/// let service = AgentCfg::builder(MemoryStore::new()).rate_limiter(MemoryLimiter::default()).build();
/// ```
#[derive(Debug)]
pub struct MemoryLimiter {
    shards: Vec<Mutex<Shard>>,
}

#[derive(Debug)]
struct Shard {
    windows: HashMap<Box<str>, Window>,
    sweep_at: usize,
}

impl Default for Shard {
    fn default() -> Self {
        Self {
            windows: HashMap::new(),
            sweep_at: SWEEP_AT,
        }
    }
}

impl Default for MemoryLimiter {
    fn default() -> Self {
        Self {
            shards: std::iter::repeat_with(Mutex::default).take(SHARDS).collect(),
        }
    }
}

impl MemoryLimiter {
    /// Counts one request; see [`RateLimiter::hit`].
    ///
    /// ```
    /// use agentcfg_core::clock::{Moment, SystemClock};
    /// use agentcfg_core::rate_limit::{MemoryLimiter, Subject};
    /// let (limiter, now) = (MemoryLimiter::default(), Moment::of(&SystemClock));
    /// assert!(limiter.count(Subject::User("ada"), 1, now).allowed);
    /// assert!(!limiter.count(Subject::User("ada"), 1, now).allowed);
    /// assert!(limiter.count(Subject::User("grace"), 1, now).allowed);
    /// ```
    pub fn count(&self, subject: Subject<'_>, limit: u32, at: Moment) -> RateDecision {
        // A key's identifier has 20 characters of base 62; the prefix keeps users apart from keys.
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
        let mut shard = lock(&self.shards[tail % SHARDS]);
        if let Some(window) = shard.windows.get_mut(name) {
            return window.hit(limit, at);
        }
        shard.sweep(at);
        shard.windows.entry(name.into()).or_default().hit(limit, at)
    }
}

impl Shard {
    fn sweep(&mut self, at: Moment) {
        if self.windows.len() < self.sweep_at {
            return;
        }
        self.windows.retain(|_, window| !window.has_ended(at));
        self.sweep_at = (self.windows.len() * 2).max(SWEEP_AT);
    }
}

#[async_trait]
impl RateLimiter for MemoryLimiter {
    async fn hit(&self, subject: Subject<'_>, limit: u32, at: Moment) -> RateDecision {
        self.count(subject, limit, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_limit::WINDOW_MILLIS;
    use crate::rate_limit::window::tests::at;

    #[test]
    fn a_key_and_a_user_of_one_name_have_a_window_each() {
        let limiter = MemoryLimiter::default();
        let now = at(0);
        assert!(limiter.count(Subject::ApiKey("x"), 1, now).allowed);
        assert!(limiter.count(Subject::User("x"), 1, now).allowed);
        assert!(!limiter.count(Subject::ApiKey("x"), 1, now).allowed);
    }

    #[test]
    fn ended_windows_are_swept() {
        let limiter = MemoryLimiter::default();
        for i in 0..20 * SHARDS * SWEEP_AT / 4 {
            let _ = limiter.count(Subject::ApiKey(&format!("k{i}")), 1, at(i as i64 * 100));
        }
        let kept: usize = limiter
            .shards
            .iter()
            .map(|shard| shard.lock().unwrap().windows.len())
            .sum();
        assert!(kept <= SHARDS * SWEEP_AT, "{kept} windows are kept");
    }

    #[test]
    fn a_shard_is_swept_at_each_doubling() {
        let add = |shard: &mut Shard, name: &str, windows: usize, at: Moment| {
            for number in 0..windows {
                let window = shard.windows.entry(format!("{name}{number}").into()).or_default();
                assert!(window.hit(1, at).allowed);
            }
        };
        let mut shard = Shard::default();
        let later = at(10 * WINDOW_MILLIS);
        add(&mut shard, "ended", SWEEP_AT - 1, at(0));
        shard.sweep(later);
        assert_eq!(shard.windows.len(), SWEEP_AT - 1, "fewer are not swept");
        add(&mut shard, "last", 1, at(0));
        shard.sweep(later);
        assert_eq!((shard.windows.len(), shard.sweep_at), (0, SWEEP_AT));
        add(&mut shard, "open", SWEEP_AT, later);
        shard.sweep(later);
        assert_eq!((shard.windows.len(), shard.sweep_at), (SWEEP_AT, 2 * SWEEP_AT));
    }
}
