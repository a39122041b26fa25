//! The API keys that this process has verified, each with its rate window.
//!
//! All that a request needs of its key is in one entry: the facts of its record, the window, and when a use was last
//! noted. With many keys, each further cache miss would cost a request as much as all of its arithmetic.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{RwLock, RwLockWriteGuard};

use ctutils::CtEq;
use foldhash::fast::RandomState;

use super::caller::KeyFacts;
use crate::clock::Moment;
use crate::rate_limit::{AtomicWindow, RateDecision, WINDOW_MILLIS};
use crate::store::Stamps;
use crate::sync::{read_lock, write_lock};
use crate::token::{Fingerprint, Id, Parts};

const SHARDS: usize = 64;
/// The number of keys above which unused ones are evicted.
const KEYS: usize = 200_000;
/// Milliseconds after which a use of a key is noted again.
const NOTE_EVERY: i64 = 15_000;

/// The table; see the [module's text](self).
pub(in crate::service) struct KeyTable {
    shards: Box<[RwLock<Shard>]>,
    /// A shard that has grown to this number of keys is swept of idle ones, and again at each doubling.
    sweep_at: usize,
}

struct Shard {
    slots: HashMap<Id, Slot, RandomState>,
    sweep_at: usize,
}

/// A key whose plaintext was verified against its record.
#[derive(Clone)]
pub(super) struct Verified {
    pub(super) facts: KeyFacts,
    pub(super) fingerprint: Fingerprint,
}

impl Verified {
    /// Whether a text with the key's identifier is its plaintext, by its fingerprint.
    pub(super) fn is_plaintext(&self, fingerprint: &Fingerprint) -> bool {
        self.fingerprint.ct_eq(fingerprint).into()
    }
}

/// The result of a lookup of a credential. `R` is the result of counting the request.
pub(super) enum KeyLookup<R> {
    /// Not an API key, not verified yet, or verified by a record that may have changed.
    Unknown,
    /// A wrong plaintext, or an expired key.
    Refused,
    /// A valid key.
    Good {
        id: Id,
        facts: KeyFacts,
        counted: R,
        /// Whether to note this use.
        note: bool,
    },
}

/// The entry of one key.
struct Slot {
    window: AtomicWindow,
    /// When a use was last noted, by the monotonic clock.
    noted: AtomicI64,
    /// `None` for an evicted key whose window is still open.
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
    /// Whether to note a use. Of several concurrent threads, one gets `true`.
    fn is_use_due(&self, at: Moment) -> bool {
        let at = at.steady_millis;
        let last = self.noted.load(Ordering::Relaxed);
        let is_due = last == i64::MIN || at.saturating_sub(last) >= NOTE_EVERY;
        is_due
            && self
                .noted
                .compare_exchange(last, at, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Whether the entry can be evicted: the key is out of use and its window has ended.
    fn is_idle(&self, at: Moment) -> bool {
        let is_out_of_use = match self.noted.load(Ordering::Relaxed) {
            // A key that has just been verified is about to be used.
            i64::MIN => self.verified.is_none(),
            noted => at.steady_millis.saturating_sub(noted) >= WINDOW_MILLIS,
        };
        is_out_of_use && self.window.has_ended(at)
    }
}

impl Default for KeyTable {
    fn default() -> Self {
        Self::new(KEYS / SHARDS)
    }
}

impl KeyTable {
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

    /// The fast path of an entry, for a known key whose record has not changed. Counts the request in its rate window.
    pub(super) fn enter(&self, credential: &str, at: Moment, stamps: &Stamps) -> KeyLookup<RateDecision> {
        self.find(credential, at, stamps, |slot, limit| slot.window.hit(limit, at))
    }

    /// Like [`Self::enter`], but counts nothing.
    pub(super) fn authenticate(&self, credential: &str, at: Moment, stamps: &Stamps) -> KeyLookup<()> {
        self.find(credential, at, stamps, |_, _| ())
    }

    fn find<R>(
        &self,
        credential: &str,
        at: Moment,
        stamps: &Stamps,
        count: impl FnOnce(&Slot, u32) -> R,
    ) -> KeyLookup<R> {
        let Some(text) = Parts::of(credential) else {
            return KeyLookup::Unknown;
        };
        let known = self.look(&text.id, |slot| {
            let Some(verified) = slot.verified.as_ref().filter(|known| known.facts.are_current(stamps)) else {
                return KeyLookup::Unknown;
            };
            if !verified.is_plaintext(&text.fingerprint) || verified.facts.are_expired(|| at.now) {
                return KeyLookup::Refused;
            }
            KeyLookup::Good {
                id: text.id,
                facts: verified.facts.clone(),
                counted: count(slot, verified.facts.rate_limit),
                note: slot.is_use_due(at),
            }
        });
        known.unwrap_or(KeyLookup::Unknown)
    }

    /// The facts of a key that was verified with this plaintext, current or not.
    pub(super) fn verified(&self, text: &Parts) -> Option<KeyFacts> {
        let verified = self.look(&text.id, |slot| slot.verified.clone())??;
        verified.is_plaintext(&text.fingerprint).then_some(verified.facts)
    }

    /// The key, if it was verified at this version of its record.
    pub(super) fn verified_at(&self, id: &Id, version: u64) -> Option<Verified> {
        let verified = self.look(id, |slot| slot.verified.clone())??;
        (verified.facts.version == version).then_some(verified)
    }

    /// Stores a verified key in place of its earlier entry. The window stays.
    pub(super) fn remember(&self, id: Id, verified: Verified, at: Moment) {
        self.write(&id, at).slots.entry(id).or_default().verified = Some(verified);
    }

    /// Counts one request of a key.
    pub(super) fn count(&self, id: &Id, limit: u32, at: Moment) -> RateDecision {
        self.look(id, |slot| slot.window.hit(limit, at))
            .unwrap_or_else(|| self.write(id, at).slots.entry(*id).or_default().window.hit(limit, at))
    }

    /// Whether to note a use of a known key.
    pub(super) fn is_use_due(&self, id: &Id, at: Moment) -> bool {
        self.look(id, |slot| slot.is_use_due(at)).unwrap_or(false)
    }

    /// Calls a function with the entry of a key, under the lock of its shard.
    fn look<R>(&self, id: &Id, look: impl FnOnce(&Slot) -> R) -> Option<R> {
        let shard = read_lock(self.shard(id));
        shard.slots.get(id).map(look)
    }

    fn write(&self, id: &Id, at: Moment) -> RwLockWriteGuard<'_, Shard> {
        let mut shard = write_lock(self.shard(id));
        shard.sweep(self.sweep_at, at);
        shard
    }

    fn shard(&self, id: &Id) -> &RwLock<Shard> {
        &self.shards[id.spread() % SHARDS]
    }
}

impl Shard {
    fn sweep(&mut self, at_least: usize, at: Moment) {
        if self.slots.len() < self.sweep_at {
            return;
        }
        self.slots.retain(|_, slot| !slot.is_idle(at));
        self.sweep_at = (self.slots.len() * 2).max(at_least);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::clock::SystemEntropy;
    use crate::model::{Environment, Scope, Timestamp, WorkspaceId};
    use crate::service::Settings;
    use crate::service::records::StoredApiKey;
    use crate::token;

    const SWEEP_AT: usize = 8;
    const START: i64 = 1_800_000_000_000;

    fn at(millis: i64) -> Moment {
        Moment {
            now: Timestamp::from_unix_millis(START + millis),
            steady_millis: millis,
        }
    }

    /// A key and its facts.
    fn key() -> (Id, Verified) {
        key_at_version(1)
    }

    fn key_at_version(version: u64) -> (Id, Verified) {
        let minted = token::mint(Environment::Production, &SystemEntropy).unwrap();
        let text = Parts::of(&minted.plaintext).unwrap();
        let stored = StoredApiKey {
            id: minted.id,
            workspace_id: WorkspaceId::new(uuid::Uuid::nil()),
            name: "ci".into(),
            environment: Environment::Production,
            scope: Scope::Read,
            permissions: None,
            agents: None,
            label: None,
            rate_limit: 1,
            expires_at: None,
            created_at: at(0).now,
            revoked_at: None,
            replaced_by: None,
            hash: String::new(),
        };
        let verified = Verified {
            facts: KeyFacts::of(&stored, version, None, &Settings::default()),
            fingerprint: text.fingerprint,
        };
        (text.id, verified)
    }

    fn version(keys: &KeyTable, id: &Id) -> Option<u64> {
        keys.look(id, |slot| slot.verified.clone())?
            .map(|verified| verified.facts.version)
    }

    /// Fills a table until each shard was swept more than once.
    fn fill(keys: &KeyTable, now: Moment) {
        for _ in 0..4 * SHARDS * SWEEP_AT {
            let _ = keys.count(&key().0, 1, now);
        }
    }

    fn len(keys: &KeyTable) -> usize {
        let shards = keys.shards.iter();
        shards.map(|shard| shard.read().unwrap().slots.len()).sum()
    }

    #[test]
    fn a_key_that_is_verified_again_keeps_its_window() {
        let keys = KeyTable::new(SWEEP_AT);
        let (id, first) = key();
        assert_eq!(version(&keys, &id), None);
        assert!(keys.count(&id, 1, at(0)).allowed, "also of a key that is not known");
        keys.remember(id, first, at(1));
        let (_, second) = key_at_version(2);
        keys.remember(id, second, at(2));
        assert_eq!(version(&keys, &id), Some(2));
        assert!(!keys.count(&id, 1, at(3)).allowed);
    }

    #[test]
    fn what_still_counts_is_never_forgotten() {
        let keys = KeyTable::new(SWEEP_AT);
        let (id, verified) = key();
        keys.remember(id, verified, at(0));
        assert!(keys.count(&id, 1, at(0)).allowed);
        fill(&keys, at(WINDOW_MILLIS - 1));
        assert!(!keys.count(&id, 1, at(WINDOW_MILLIS - 1)).allowed);
    }

    #[test]
    fn keys_in_use_stay_and_the_others_go() {
        let keys = KeyTable::new(SWEEP_AT);
        let ((used, verified), (idle, _)) = (key(), key());
        for id in [used, idle] {
            keys.remember(id, verified.clone(), at(0));
            assert!(keys.is_use_due(&id, at(0)));
        }
        assert!(keys.is_use_due(&used, at(50_000)));
        fill(&keys, at(100_000));
        assert_eq!(version(&keys, &used), Some(1));
        assert_eq!(version(&keys, &idle), None);
        // All those that were counted go too, once their windows have ended.
        fill(&keys, at(1_000_000));
        assert!(len(&keys) < 9 * SHARDS * SWEEP_AT, "{}", len(&keys));
    }

    #[test]
    fn a_shard_is_swept_when_it_is_full_and_then_may_grow_to_twice_its_size() {
        let mut shard = Shard {
            slots: HashMap::default(),
            sweep_at: 3,
        };
        let in_use = || Slot {
            verified: Some(key().1),
            ..Slot::default()
        };
        for (slots, left) in [(2, 2), (1, 0)] {
            shard.slots.extend((0..slots).map(|_| (key().0, Slot::default())));
            shard.sweep(3, at(0));
            assert_eq!(shard.slots.len(), left);
        }
        shard.slots.extend((0..5).map(|_| (key().0, in_use())));
        shard.sweep(3, at(0));
        assert_eq!((shard.slots.len(), shard.sweep_at), (5, 10));
    }

    #[test]
    fn a_use_is_due_once_in_a_while() {
        let slot = Slot::default();
        assert!(slot.is_use_due(at(0)));
        assert!(!slot.is_use_due(at(14_999)));
        assert!(slot.is_use_due(at(15_000)));
    }
}
