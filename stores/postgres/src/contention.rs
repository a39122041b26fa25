//! Whether other processes use the same counters, such as the numbers of a workspace's log, or a rate window.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use agentcfg_core::sync::lock;

/// How many counters are followed. When there are more, all are forgotten.
const COUNTERS: usize = 4096;

/// Follows the numbers that this process takes from counters in the database: a gap between them are numbers of another
/// process.
#[derive(Debug)]
pub(super) struct Contention<K> {
    last: Mutex<HashMap<K, u64>>,
    is_found: AtomicBool,
}

impl<K> Default for Contention<K> {
    fn default() -> Self {
        Self {
            last: Mutex::default(),
            is_found: AtomicBool::new(false),
        }
    }
}

impl<K: Eq + Hash> Contention<K> {
    /// Notes what one transaction took: of each counter, the first and the last number.
    pub(super) fn note(&self, taken: impl IntoIterator<Item = (K, (u64, u64))>) {
        let mut known = lock(&self.last);
        if known.len() > COUNTERS {
            known.clear();
        }
        let mut is_found = false;
        for (counter, (first, last)) in taken {
            let before = known.insert(counter, last);
            is_found |= before.is_some_and(|before| before + 1 < first);
        }
        self.is_found.store(is_found, Ordering::Relaxed);
    }

    /// Whether another process took numbers of a counter of the last transaction since this process did.
    pub(super) fn is_found(&self) -> bool {
        self.is_found.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_before_the_numbers_of_a_transaction_is_another_process() {
        let contention = Contention::default();
        for (taken, is_found) in [
            (&[(1, (7, 8)), (2, (1, 1))][..], false),
            (&[(2, (2, 2)), (1, (9, 10))], false),
            (&[(1, (11, 11)), (2, (4, 4))], true),
            (&[(2, (5, 5))], false),
            (&[(1, (13, 14))], true),
            (&[(3, (100, 100))], false),
        ] {
            contention.note(taken.iter().copied());
            assert_eq!(contention.is_found(), is_found, "{taken:?}");
        }
    }

    #[test]
    fn the_counters_that_are_followed_are_bounded() {
        let contention = Contention::default();
        for counter in 0..3 * COUNTERS {
            contention.note([(counter, (1, 1))]);
        }
        assert!(contention.last.lock().unwrap().len() <= COUNTERS + 1);
    }
}
