//! The API keys that this process has verified, each with its rate window.
//!
//! All that a request needs of its key lies in one place, because each place in memory that has to be looked at costs a
//! request dearly when the keys are many: the record's facts, the window, and when a use was last noted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use foldhash::fast::RandomState;

use crate::model::{PermissionSet, Scope, Timestamp, WorkspaceId};
use crate::rate_limit::{AtomicWindow, RateDecision, WINDOW_MILLIS};
use crate::store::Stamp;
use crate::token::{Fingerprint, Id};

const SHARDS: usize = 64;
/// So many keys are kept before any is forgotten.
const KEYS: usize = 200_000;

/// The table; see the [module's text](self).
pub(super) struct KnownKeys {
    shards: Box<[RwLock<Shard>]>,
    /// A shard is swept of keys that are out of use when it has grown to this, and again at each doubling.
    sweep_at: usize,
}

struct Shard {
    slots: HashMap<Id, Slot, RandomState>,
    sweep_at: usize,
}

/// What matters of an API key's record at one version, once a plaintext was verified against it.
#[derive(Clone, Copy)]
pub(super) struct KnownKey {
    pub(super) version: u64,
    pub(super) workspace_id: WorkspaceId,
    pub(super) permissions: PermissionSet,
    pub(super) rate_limit: u32,
    pub(super) scope: Scope,
}

/// A known key, what its plaintext is told by, and how to know that its record is still the one that was read.
#[derive(Clone, Copy)]
pub(super) struct Verified {
    pub(super) key: KnownKey,
    /// In milliseconds since the Unix epoch, the greatest number for never; an option would take twice the room.
    pub(super) expires_at: i64,
    pub(super) stamp: Option<Stamp>,
    pub(super) fingerprint: Fingerprint,
}

/// What is kept of one key.
pub(super) struct Slot {
    window: AtomicWindow,
    /// When a use was last noted, in milliseconds since the Unix epoch.
    noted: AtomicI64,
    /// `None` for a key that was counted after it had been forgotten.
    verified: Option<Verified>,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            window: AtomicWindow::default(),
            noted: AtomicI64::new(i64::MIN),
            verified: None,
        }
    }
}

impl Slot {
    pub(super) fn verified(&self) -> Option<&Verified> {
        self.verified.as_ref()
    }

    /// Counts one request of the key.
    pub(super) fn hit(&self, limit: u32, now: Timestamp) -> RateDecision {
        self.window.hit(limit, now)
    }

    /// Whether nobody was told `true` by this in so many milliseconds. Of several who ask at once, one is.
    pub(super) fn is_due(&self, every_millis: i64, now: Timestamp) -> bool {
        let at = now.unix_millis();
        let last = self.noted.load(Ordering::Relaxed);
        let is_due = last == i64::MIN || at.saturating_sub(last) >= every_millis;
        is_due
            && self
                .noted
                .compare_exchange(last, at, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Whether the key is out of use. Its window has ended then, so that nothing is forgotten that still counts.
    fn is_idle(&self, now: Timestamp) -> bool {
        let now = now.unix_millis();
        let is_out_of_use = match self.noted.load(Ordering::Relaxed) {
            // What was verified this moment is about to be used.
            i64::MIN => self.verified.is_none(),
            noted => now.saturating_sub(noted) >= WINDOW_MILLIS,
        };
        is_out_of_use && self.window.has_ended(now)
    }
}

impl Default for KnownKeys {
    fn default() -> Self {
        Self::new(KEYS / SHARDS)
    }
}

impl KnownKeys {
    fn new(sweep_at: usize) -> Self {
        let shard = || {
            RwLock::new(Shard {
                slots: HashMap::default(),
                sweep_at,
            })
        };
        Self {
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
            sweep_at,
        }
    }

    /// Shows what is kept of a key. The look has to be short: it holds up who comes with a new key.
    pub(super) fn look<R>(&self, id: &Id, look: impl FnOnce(&Slot) -> R) -> Option<R> {
        let shard = self.shard(id).read().unwrap_or_else(PoisonError::into_inner);
        shard.slots.get(id).map(look)
    }

    /// Keeps what was verified of a key, in place of what was known before. The window stays.
    pub(super) fn remember(&self, id: Id, verified: Verified, now: Timestamp) {
        self.write(&id, now).slots.entry(id).or_default().verified = Some(verified);
    }

    /// Counts one request of a key.
    pub(super) fn count(&self, id: &Id, limit: u32, now: Timestamp) -> RateDecision {
        self.look(id, |slot| slot.hit(limit, now))
            .unwrap_or_else(|| self.write(id, now).slots.entry(*id).or_default().hit(limit, now))
    }

    fn write(&self, id: &Id, now: Timestamp) -> RwLockWriteGuard<'_, Shard> {
        let mut shard = self.shard(id).write().unwrap_or_else(PoisonError::into_inner);
        shard.sweep(self.sweep_at, now);
        shard
    }

    fn shard(&self, id: &Id) -> &RwLock<Shard> {
        &self.shards[id.spread() % SHARDS]
    }
}

impl Shard {
    fn sweep(&mut self, at_least: usize, now: Timestamp) {
        if self.slots.len() < self.sweep_at {
            return;
        }
        self.slots.retain(|_, slot| !slot.is_idle(now));
        self.sweep_at = (self.slots.len() * 2).max(at_least);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::clock::SystemEntropy;
    use crate::model::Environment;
    use crate::token;

    const SWEEP_AT: usize = 8;
    const START: i64 = 1_800_000_000_000;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_unix_millis(START + millis)
    }

    /// A key and what is known of it.
    fn key() -> (Id, Verified) {
        let minted = token::mint(Environment::Production, &SystemEntropy).unwrap();
        let text = token::Parts::of(&minted.plaintext).unwrap();
        let key = KnownKey {
            version: 1,
            workspace_id: WorkspaceId::new(uuid::Uuid::nil()),
            permissions: PermissionSet::default(),
            rate_limit: 1,
            scope: Scope::Read,
        };
        let verified = Verified {
            key,
            expires_at: i64::MAX,
            stamp: None,
            fingerprint: text.fingerprint(),
        };
        (text.id(), verified)
    }

    fn version(keys: &KnownKeys, id: &Id) -> Option<u64> {
        keys.look(id, |slot| slot.verified().map(|verified| verified.key.version))
            .flatten()
    }

    /// Fills a table until each shard was swept more than once.
    fn fill(keys: &KnownKeys, now: Timestamp) {
        for _ in 0..4 * SHARDS * SWEEP_AT {
            keys.count(&key().0, 1, now);
        }
    }

    fn len(keys: &KnownKeys) -> usize {
        let shards = keys.shards.iter();
        shards.map(|shard| shard.read().unwrap().slots.len()).sum()
    }

    #[test]
    fn what_is_verified_anew_keeps_its_window() {
        let keys = KnownKeys::new(SWEEP_AT);
        let (id, first) = key();
        assert_eq!(version(&keys, &id), None);
        assert!(keys.count(&id, 1, at(0)).allowed, "also of a key that is not known");
        keys.remember(id, first, at(1));
        let second = Verified {
            key: KnownKey {
                version: 2,
                ..first.key
            },
            ..first
        };
        keys.remember(id, second, at(2));
        assert_eq!(version(&keys, &id), Some(2));
        assert!(!keys.count(&id, 1, at(3)).allowed);
    }

    #[test]
    fn what_still_counts_is_never_forgotten() {
        let keys = KnownKeys::new(SWEEP_AT);
        let (id, verified) = key();
        keys.remember(id, verified, at(0));
        assert!(keys.count(&id, 1, at(0)).allowed);
        fill(&keys, at(WINDOW_MILLIS - 1));
        assert!(!keys.count(&id, 1, at(WINDOW_MILLIS - 1)).allowed);
    }

    #[test]
    fn keys_in_use_stay_and_the_others_go() {
        let keys = KnownKeys::new(SWEEP_AT);
        let ((used, verified), (idle, _)) = (key(), key());
        for id in [used, idle] {
            keys.remember(id, verified, at(0));
            assert!(keys.look(&id, |slot| slot.is_due(15_000, at(0))).unwrap());
        }
        assert!(keys.look(&used, |slot| slot.is_due(15_000, at(50_000))).unwrap());
        fill(&keys, at(100_000));
        assert_eq!(version(&keys, &used), Some(1));
        assert_eq!(version(&keys, &idle), None);
        // All those that were counted go too, once their windows have ended.
        fill(&keys, at(1_000_000));
        assert!(len(&keys) < 9 * SHARDS * SWEEP_AT, "{}", len(&keys));
    }

    #[test]
    fn a_use_is_due_once_in_a_while() {
        let slot = Slot::default();
        assert!(slot.is_due(15_000, at(0)));
        assert!(!slot.is_due(15_000, at(14_999)));
        assert!(slot.is_due(15_000, at(15_000)));
    }
}
