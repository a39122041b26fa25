//! Whether other processes append to the same logs.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::model::WorkspaceId;

/// How many logs are followed. When there are more, all are forgotten.
const LOGS: usize = 4096;

/// Follows the numbers of the entries that this process appends: a gap before them are entries of another process.
#[derive(Debug, Default)]
pub(in super::super) struct Contention {
    last: Mutex<HashMap<WorkspaceId, u64>>,
    is_found: AtomicBool,
}

impl Contention {
    /// Notes the entries of one transaction.
    pub(super) fn committed(&self, entries: impl Iterator<Item = (WorkspaceId, u64)>) {
        let mut ranges: BTreeMap<WorkspaceId, (u64, u64)> = BTreeMap::new();
        for (log, number) in entries {
            let (first, last) = ranges.entry(log).or_insert((number, number));
            (*first, *last) = ((*first).min(number), (*last).max(number));
        }
        let mut known = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > LOGS {
            known.clear();
        }
        let mut is_found = false;
        for (log, (first, last)) in ranges {
            let before = known.insert(log, last);
            is_found |= before.is_some_and(|before| before + 1 < first);
        }
        self.is_found.store(is_found, Ordering::Relaxed);
    }

    /// Whether another process appended to a log of the last transaction since this process did.
    pub(super) fn is_found(&self) -> bool {
        self.is_found.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn log(number: u128) -> WorkspaceId {
        WorkspaceId::new(Uuid::from_u128(number))
    }

    #[test]
    fn a_gap_before_the_entries_of_a_transaction_is_another_process() {
        let contention = Contention::default();
        for (entries, is_found) in [
            (&[(1, 7), (1, 8), (2, 1)][..], false),
            (&[(2, 2), (1, 10), (1, 9)], false),
            (&[(1, 11), (2, 4)], true),
            (&[(2, 5)], false),
            (&[(1, 13), (1, 14)], true),
            (&[(3, 100)], false),
        ] {
            contention.committed(entries.iter().map(|(of, number)| (log(*of), *number)));
            assert_eq!(contention.is_found(), is_found, "{entries:?}");
        }
    }

    #[test]
    fn the_logs_that_are_followed_are_bounded() {
        let contention = Contention::default();
        for number in 0..3 * LOGS as u128 {
            contention.committed(std::iter::once((log(number), 1)));
        }
        assert!(contention.last.lock().unwrap().len() <= LOGS + 1);
    }
}
