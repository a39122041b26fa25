//! Records in memory that are never stale, so that a read of one costs no transaction.
//!
//! The writer keeps them coherent. Before it commits, it takes each key that the transaction touches
//! out of here and marks the key's stripe; after the commit, and before it answers anybody, it puts
//! the new records in place of those that were here and marks the stripe again. So a record in here
//! is the committed one, and a reader that looks while a commit is under way asks the engine.
//!
//! A reader that missed may put what it read in here only if no commit touched the key meanwhile: it
//! compares the stripe's mark with the one from before its read. A reader that keeps what it read
//! knows in the same way, later, whether it is still true: that is what a [`Stamp`] is.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::super::{Record, Stamp};

/// Keys share a stripe by their hash. More stripes make it rarer that a commit of one key keeps
/// another key's reader from putting its record in here, or ends another key's stamps; all of them
/// should still fit a core's own cache.
const STRIPES: usize = 8192;

/// What the tables have room for at first; they grow with what comes.
const FIRST_ITEMS: usize = 1024;

/// What a record costs beside its bytes.
const OVERHEAD: u64 = 96;

/// The records in memory; see the [module's text](self).
#[derive(Debug)]
pub(super) struct Hot {
    records: Cache<Box<[u8]>, Record, BySize>,
    /// Odd while a commit that touches a key of the stripe is under way.
    stripes: Vec<AtomicU64>,
    hasher: RandomState,
    /// Held to put a record in, and to mark stripes: the two exclude each other.
    gate: Mutex<()>,
}

/// The mark of a key's stripe before a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark(u64);

/// A commit under way.
#[derive(Debug)]
#[must_use = "a commit that is begun must be ended"]
pub(super) struct Commit {
    stripes: Vec<usize>,
    /// The new records of the keys that were in memory.
    publish: Vec<(Box<[u8]>, Record)>,
}

#[derive(Debug, Clone)]
struct BySize;

impl Weighter<Box<[u8]>, Record> for BySize {
    fn weight(&self, key: &Box<[u8]>, record: &Record) -> u64 {
        key.len() as u64 + record.value.len() as u64 + OVERHEAD
    }
}

impl Hot {
    /// Room for so many bytes of records.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            records: Cache::with_weighter(FIRST_ITEMS, bytes as u64, BySize),
            stripes: std::iter::repeat_with(AtomicU64::default).take(STRIPES).collect(),
            hasher: RandomState::new(),
            gate: Mutex::new(()),
        }
    }

    /// The record under one key, if it is in memory.
    pub(super) fn get(&self, key: &[u8]) -> Option<Record> {
        self.records.get(key)
    }

    /// The records under several keys, if all are in memory and were true at one moment.
    pub(super) fn get_all(&self, keys: &[Vec<u8>]) -> Option<Vec<Option<Record>>> {
        let before: Vec<Mark> = keys.iter().map(|key| self.mark(key)).collect();
        let records: Option<Vec<_>> = keys
            .iter()
            .map(|key| self.records.get(key.as_slice()).map(Some))
            .collect();
        // An odd mark that stays may be a commit that took out one key before this look and put in another.
        let unmoved = keys
            .iter()
            .zip(&before)
            .all(|(key, mark)| mark.0.is_multiple_of(2) && self.mark(key) == *mark);
        records.filter(|_| unmoved)
    }

    /// The mark of a key's stripe. Take it before reading what is to be [offered](Self::offer).
    pub(super) fn mark(&self, key: &[u8]) -> Mark {
        Mark(self.stripes[self.stripe(key)].load(Ordering::SeqCst))
    }

    /// What to keep beside that which is read under a key from now on; `None` while a commit is under way.
    pub(super) fn stamp(&self, key: &[u8]) -> Option<Stamp> {
        let stripe = self.stripe(key);
        let mark = self.stripes[stripe].load(Ordering::SeqCst);
        let slot = NonZeroU32::new(u32::try_from(stripe + 1).ok()?)?;
        mark.is_multiple_of(2).then_some(Stamp { slot, mark })
    }

    /// Whether no commit has touched the stamp's stripe since.
    pub(super) fn is_current(&self, stamp: Stamp) -> bool {
        self.stripes
            .get(stamp.slot.get() as usize - 1)
            .is_some_and(|mark| mark.load(Ordering::SeqCst) == stamp.mark)
    }

    /// Puts in a record that was read from the engine after the mark was taken, unless a commit has
    /// touched the stripe since.
    pub(super) fn offer(&self, key: Vec<u8>, record: &Record, mark: Mark) {
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        if mark.0.is_multiple_of(2) && self.mark(&key) == mark {
            self.records.insert(key.into(), record.clone());
        }
    }

    /// Takes out the keys that a transaction is about to change.
    pub(super) fn begin(&self, changes: BTreeMap<Vec<u8>, Option<Record>>) -> Commit {
        let mut stripes: Vec<usize> = changes.keys().map(|key| self.stripe(key)).collect();
        stripes.sort_unstable();
        stripes.dedup();
        self.move_marks(&stripes);
        let mut publish = Vec::new();
        for (key, record) in changes {
            let removed = self.records.remove(key.as_slice());
            publish.extend(removed.zip(record).map(|((key, _), record)| (key, record)));
        }
        Commit { stripes, publish }
    }

    /// Puts in the records of a transaction that is committed.
    pub(super) fn end(&self, commit: Commit) {
        for (key, record) in commit.publish {
            self.records.insert(key, record);
        }
        self.move_marks(&commit.stripes);
    }

    /// Forgets everything, because the engine can no longer be asked. All stripes are marked as under
    /// way until [`Self::reopen`], so that no stamp is good meanwhile.
    pub(super) fn clear(&self) {
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        for stripe in &self.stripes {
            stripe.fetch_or(1, Ordering::SeqCst);
        }
        self.records.clear();
    }

    /// Ends what a failed commit left under way, once no commit is: the engine was opened anew.
    pub(super) fn reopen(&self) {
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.records.clear();
        for stripe in &self.stripes {
            // Two on, or one on for a stripe that was under way: no mark from before is valid.
            let mark = stripe.load(Ordering::SeqCst);
            stripe.store(mark + 2 - mark % 2, Ordering::SeqCst);
        }
    }

    fn move_marks(&self, stripes: &[usize]) {
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        for stripe in stripes {
            self.stripes[*stripe].fetch_add(1, Ordering::SeqCst);
        }
    }

    fn stripe(&self, key: &[u8]) -> usize {
        self.hasher.hash_one(key) as usize % STRIPES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(version: u64) -> Record {
        Record {
            version,
            value: format!("{version}").into_bytes().into(),
        }
    }

    fn change(key: &[u8], record: Option<Record>) -> BTreeMap<Vec<u8>, Option<Record>> {
        [(key.to_vec(), record)].into()
    }

    #[test]
    fn what_was_read_is_found_again() {
        let hot = Hot::new(1 << 20);
        let mark = hot.mark(b"a");
        hot.offer(b"a".to_vec(), &record(1), mark);
        assert_eq!(hot.get(b"a"), Some(record(1)));
        assert_eq!(hot.get(b"b"), None);
    }

    #[test]
    fn a_commit_hides_its_keys_and_then_shows_the_new_records() {
        let hot = Hot::new(1 << 20);
        hot.offer(b"a".to_vec(), &record(1), hot.mark(b"a"));
        let commit = hot.begin(change(b"a", Some(record(2))));
        assert_eq!(hot.get(b"a"), None);
        hot.end(commit);
        assert_eq!(hot.get(b"a"), Some(record(2)));
        let commit = hot.begin(change(b"a", None));
        hot.end(commit);
        assert_eq!(hot.get(b"a"), None);
    }

    #[test]
    fn a_stamp_ends_with_the_commit_that_touches_its_key() {
        let hot = Hot::new(1 << 20);
        let stamp = hot.stamp(b"a").unwrap();
        let commit = hot.begin(change(b"a", Some(record(2))));
        assert!(!hot.is_current(stamp));
        assert_eq!(hot.stamp(b"a"), None);
        hot.end(commit);
        assert!(!hot.is_current(stamp));
        assert!(hot.is_current(hot.stamp(b"a").unwrap()));
    }

    #[test]
    fn a_reader_that_a_commit_overtook_puts_nothing_in() {
        let hot = Hot::new(1 << 20);
        let before = hot.mark(b"a");
        let commit = hot.begin(change(b"a", Some(record(2))));
        let during = hot.mark(b"a");
        hot.offer(b"a".to_vec(), &record(1), before);
        hot.offer(b"a".to_vec(), &record(1), during);
        assert_eq!(hot.get(b"a"), None);
        hot.end(commit);
        hot.offer(b"a".to_vec(), &record(1), before);
        hot.offer(b"a".to_vec(), &record(1), during);
        assert_eq!(hot.get(b"a"), None);
        hot.offer(b"a".to_vec(), &record(2), hot.mark(b"a"));
        assert_eq!(hot.get(b"a"), Some(record(2)));
    }

    #[test]
    fn after_a_failed_commit_nothing_is_believed() {
        let hot = Hot::new(1 << 20);
        hot.offer(b"a".to_vec(), &record(1), hot.mark(b"a"));
        let stamp = hot.stamp(b"a").unwrap();
        assert!(hot.is_current(stamp));
        let before = hot.mark(b"b");
        let _failed = hot.begin(change(b"b", Some(record(2))));
        hot.clear();
        assert_eq!(hot.get(b"a"), None);
        assert_eq!(hot.stamp(b"a"), None);
        assert!(!hot.is_current(stamp));
        hot.offer(b"b".to_vec(), &record(1), hot.mark(b"b"));
        assert_eq!(hot.get(b"b"), None);
        hot.reopen();
        assert!(!hot.is_current(stamp));
        hot.offer(b"b".to_vec(), &record(1), before);
        assert_eq!(hot.get(b"b"), None);
        hot.offer(b"b".to_vec(), &record(3), hot.mark(b"b"));
        assert_eq!(hot.get(b"b"), Some(record(3)));
    }

    #[test]
    fn several_keys_are_read_of_one_moment() {
        let hot = Hot::new(1 << 20);
        let keys = [b"a".to_vec(), b"b".to_vec()];
        hot.offer(b"a".to_vec(), &record(1), hot.mark(b"a"));
        assert_eq!(hot.get_all(&keys), None);
        hot.offer(b"b".to_vec(), &record(1), hot.mark(b"b"));
        assert_eq!(hot.get_all(&keys), Some(vec![Some(record(1)), Some(record(1))]));
        // Between the new records going in and the end of the commit, nothing is believed yet.
        let changes = [(b"a".to_vec(), Some(record(2))), (b"b".to_vec(), Some(record(2)))].into();
        let mut commit = hot.begin(changes);
        for (key, record) in commit.publish.drain(..) {
            hot.records.insert(key, record);
        }
        assert_eq!(hot.get_all(&keys), None);
        hot.end(commit);
        assert_eq!(hot.get_all(&keys), Some(vec![Some(record(2)), Some(record(2))]));
    }
}
