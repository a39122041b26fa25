//! A coherent cache of hot records: a hit needs no transaction and is never stale.
//!
//! Keys are hashed to stripes, and each stripe has a sequence counter as in a seqlock: odd while a
//! commit changes a key of the stripe, even otherwise. Before the writer commits, it makes the
//! counters odd and removes the changed keys from the cache. After the commit, and before it answers
//! any batch, it inserts the new records of the keys that it removed and makes the counters even.
//! Invariant: a cached record is the committed one, and a key that is cached as absent has none. A
//! reader that misses during a commit reads from the engine.
//!
//! After a miss, a reader inserts the record only if the stripe's counter is unchanged since before
//! its read, so it never inserts a record that a commit has replaced. A [`Stamp`] is the same
//! comparison made later: a validity token for a value that the caller keeps.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::super::{Marks, Record, Stamp};
use crate::sync::lock;

/// The number of stripes. Keys that share a stripe invalidate each other's stamps and block each
/// other's inserts, so more stripes mean fewer false conflicts; the counters should still fit into a
/// core's private cache.
const STRIPES: usize = 8192;

/// The initial capacity of the cache, which grows on demand.
const FIRST_ITEMS: usize = 1024;

/// The estimated memory overhead of a cached record, in bytes.
const OVERHEAD: u64 = 96;

/// The cache; see the [module's text](self).
#[derive(Debug)]
pub(super) struct RecordCache {
    records: Cache<Box<[u8]>, Option<Record>, BySize>,
    /// The sequence counters: odd while a commit changes a key of the stripe.
    stripes: Marks,
    hasher: RandomState,
    /// Makes "compare the counter and insert" exclusive with every change of a counter.
    gate: Mutex<()>,
}

/// The sequence counter of a key's stripe before a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark(u64);

/// A commit between [`RecordCache::begin`] and [`RecordCache::end`].
#[derive(Debug)]
#[must_use = "`RecordCache::end` must follow a successful commit"]
pub(super) struct Commit {
    stripes: Vec<usize>,
    /// The new records of the keys that were cached before the commit.
    publish: Vec<(Box<[u8]>, Option<Record>)>,
}

#[derive(Debug, Clone)]
struct BySize;

impl Weighter<Box<[u8]>, Option<Record>> for BySize {
    fn weight(&self, key: &Box<[u8]>, record: &Option<Record>) -> u64 {
        let value = record.as_ref().map_or(0, |record| record.value.len());
        (key.len() + value) as u64 + OVERHEAD
    }
}

impl RecordCache {
    /// Creates a cache that holds up to `bytes` bytes of records.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            records: Cache::with_weighter(FIRST_ITEMS, bytes as u64, BySize),
            stripes: Marks::new(STRIPES),
            hasher: RandomState::new(),
            gate: Mutex::new(()),
        }
    }

    /// The record under one key, or that there is none, if that is cached.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<Record>> {
        self.records.get(key)
    }

    /// The records under several keys, if all are cached and belong to one snapshot.
    pub(super) fn get_all(&self, keys: &[Vec<u8>]) -> Option<Vec<Option<Record>>> {
        let before: Vec<Mark> = keys.iter().map(|key| self.mark(key)).collect();
        let records: Option<Vec<_>> = keys.iter().map(|key| self.records.get(key.as_slice())).collect();
        // An odd counter that did not change is no proof: during one commit, some keys may still be
        // missing while the new records of others are already inserted.
        let unchanged = keys
            .iter()
            .zip(&before)
            .all(|(key, mark)| mark.0.is_multiple_of(2) && self.mark(key) == *mark);
        records.filter(|_| unchanged)
    }

    /// The sequence counter of a key's stripe. Take it before reading a record to [insert](Self::insert_if_unchanged).
    pub(super) fn mark(&self, key: &[u8]) -> Mark {
        Mark(self.stripes.0[self.stripe(key)].load(Ordering::SeqCst))
    }

    /// A validity token for a record that the caller reads from now on; `None` during a commit to the
    /// key's stripe.
    pub(super) fn stamp(&self, key: &[u8]) -> Option<Stamp> {
        let stamp = self.stripes.stamp(self.stripe(key));
        stamp.filter(|stamp| stamp.mark.is_multiple_of(2))
    }

    /// The counters that stamps are compared with.
    pub(super) fn marks(&self) -> &Marks {
        &self.stripes
    }

    /// Caches what was read from the engine after the mark was taken, unless a commit has changed a key
    /// of the stripe since.
    pub(super) fn insert_if_unchanged(&self, key: Vec<u8>, record: &Option<Record>, mark: Mark) {
        let _gate = lock(&self.gate);
        if mark.0.is_multiple_of(2) && self.mark(&key) == mark {
            self.records.insert(key.into(), record.clone());
        }
    }

    /// Removes the keys that a transaction is about to change.
    pub(super) fn begin(&self, changes: BTreeMap<Vec<u8>, Option<Record>>) -> Commit {
        let mut stripes: Vec<usize> = changes.keys().map(|key| self.stripe(key)).collect();
        stripes.sort_unstable();
        stripes.dedup();
        self.advance_counters(&stripes);
        let mut publish = Vec::new();
        for (key, record) in changes {
            let removed = self.records.remove(key.as_slice());
            publish.extend(removed.map(|(key, _)| (key, record)));
        }
        Commit { stripes, publish }
    }

    /// Inserts the new records of a committed transaction.
    pub(super) fn end(&self, commit: Commit) {
        for (key, record) in commit.publish {
            self.records.insert(key, record);
        }
        self.advance_counters(&commit.stripes);
    }

    /// Empties the cache after an engine failure. All counters stay odd until [`Self::reopen`], so
    /// that no stamp is valid meanwhile.
    pub(super) fn clear(&self) {
        let _gate = lock(&self.gate);
        for stripe in &*self.stripes.0 {
            stripe.fetch_or(1, Ordering::SeqCst);
        }
        self.records.clear();
    }

    /// Makes all counters even after the engine was reopened. No commit may be in progress.
    pub(super) fn reopen(&self) {
        let _gate = lock(&self.gate);
        self.records.clear();
        for stripe in &*self.stripes.0 {
            // The next even number: no mark from before the failure stays valid.
            let mark = stripe.load(Ordering::SeqCst);
            stripe.store(mark + 2 - mark % 2, Ordering::SeqCst);
        }
    }

    fn advance_counters(&self, stripes: &[usize]) {
        let _gate = lock(&self.gate);
        for stripe in stripes {
            self.stripes.advance(*stripe);
        }
    }

    fn stripe(&self, key: &[u8]) -> usize {
        self.hasher.hash_one(key) as usize % STRIPES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(version: u64) -> Option<Record> {
        Some(Record {
            version,
            value: format!("{version}").into_bytes().into(),
        })
    }

    fn change(key: &[u8], record: Option<Record>) -> BTreeMap<Vec<u8>, Option<Record>> {
        [(key.to_vec(), record)].into()
    }

    #[test]
    fn an_offered_record_is_cached() {
        let hot = RecordCache::new(1 << 20);
        let mark = hot.mark(b"a");
        hot.insert_if_unchanged(b"a".to_vec(), &record(1), mark);
        assert_eq!(hot.get(b"a"), Some(record(1)));
        assert_eq!(hot.get(b"b"), None);
    }

    #[test]
    fn a_commit_removes_its_keys_and_then_inserts_the_new_records() {
        let hot = RecordCache::new(1 << 20);
        hot.insert_if_unchanged(b"a".to_vec(), &record(1), hot.mark(b"a"));
        let commit = hot.begin(change(b"a", record(2)));
        assert_eq!(hot.get(b"a"), None);
        hot.end(commit);
        assert_eq!(hot.get(b"a"), Some(record(2)));
        let commit = hot.begin(change(b"a", None));
        hot.end(commit);
        assert_eq!(hot.get(b"a"), Some(None));
    }

    #[test]
    fn an_absent_record_is_cached_until_it_is_created() {
        let hot = RecordCache::new(1 << 20);
        hot.insert_if_unchanged(b"a".to_vec(), &None, hot.mark(b"a"));
        hot.insert_if_unchanged(b"b".to_vec(), &record(1), hot.mark(b"b"));
        assert_eq!(
            hot.get_all(&[b"a".to_vec(), b"b".to_vec()]),
            Some(vec![None, record(1)])
        );
        let commit = hot.begin(change(b"a", record(2)));
        assert_eq!(hot.get(b"a"), None);
        hot.end(commit);
        assert_eq!(hot.get(b"a"), Some(record(2)));
    }

    #[test]
    fn a_stamp_ends_with_the_commit_that_touches_its_key() {
        let hot = RecordCache::new(1 << 20);
        let stamp = hot.stamp(b"a").unwrap();
        let commit = hot.begin(change(b"a", record(2)));
        assert!(!hot.marks().is_current(stamp));
        assert_eq!(hot.stamp(b"a"), None);
        hot.end(commit);
        assert!(!hot.marks().is_current(stamp));
        assert!(hot.marks().is_current(hot.stamp(b"a").unwrap()));
    }

    #[test]
    fn an_offer_with_an_outdated_mark_is_ignored() {
        let hot = RecordCache::new(1 << 20);
        let before = hot.mark(b"a");
        let commit = hot.begin(change(b"a", record(2)));
        let during = hot.mark(b"a");
        hot.insert_if_unchanged(b"a".to_vec(), &record(1), before);
        hot.insert_if_unchanged(b"a".to_vec(), &record(1), during);
        assert_eq!(hot.get(b"a"), None);
        hot.end(commit);
        hot.insert_if_unchanged(b"a".to_vec(), &record(1), before);
        hot.insert_if_unchanged(b"a".to_vec(), &record(1), during);
        assert_eq!(hot.get(b"a"), None);
        hot.insert_if_unchanged(b"a".to_vec(), &record(2), hot.mark(b"a"));
        assert_eq!(hot.get(b"a"), Some(record(2)));
    }

    #[test]
    fn a_failed_commit_invalidates_all_records_stamps_and_marks() {
        let hot = RecordCache::new(1 << 20);
        hot.insert_if_unchanged(b"a".to_vec(), &record(1), hot.mark(b"a"));
        let stamp = hot.stamp(b"a").unwrap();
        assert!(hot.marks().is_current(stamp));
        let before = hot.mark(b"b");
        let _failed = hot.begin(change(b"b", record(2)));
        hot.clear();
        assert_eq!(hot.get(b"a"), None);
        assert_eq!(hot.stamp(b"a"), None);
        assert!(!hot.marks().is_current(stamp));
        hot.insert_if_unchanged(b"b".to_vec(), &record(1), hot.mark(b"b"));
        assert_eq!(hot.get(b"b"), None);
        hot.reopen();
        assert!(!hot.marks().is_current(stamp));
        hot.insert_if_unchanged(b"b".to_vec(), &record(1), before);
        assert_eq!(hot.get(b"b"), None);
        hot.insert_if_unchanged(b"b".to_vec(), &record(3), hot.mark(b"b"));
        assert_eq!(hot.get(b"b"), Some(record(3)));
    }

    #[test]
    fn several_keys_are_read_from_one_snapshot() {
        let hot = RecordCache::new(1 << 20);
        let keys = [b"a".to_vec(), b"b".to_vec()];
        hot.insert_if_unchanged(b"a".to_vec(), &record(1), hot.mark(b"a"));
        assert_eq!(hot.get_all(&keys), None);
        hot.insert_if_unchanged(b"b".to_vec(), &record(1), hot.mark(b"b"));
        assert_eq!(hot.get_all(&keys), Some(vec![record(1), record(1)]));
        // The new records are inserted, but the commit has not ended yet.
        let changes = [(b"a".to_vec(), record(2)), (b"b".to_vec(), record(2))].into();
        let mut commit = hot.begin(changes);
        for (key, record) in commit.publish.drain(..) {
            hot.records.insert(key, record);
        }
        assert_eq!(hot.get_all(&keys), None);
        hot.end(commit);
        assert_eq!(hot.get_all(&keys), Some(vec![record(2), record(2)]));
    }
}
