//! The decision on several batches that become one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agentcfg_core::store::plan::plan;
use agentcfg_core::store::{Batch, Check, CommitError, Committed, Key, Record, Write};

use super::layout::Held;
use super::transaction_outcome::MARKER_OPS;

/// Records by their encoded keys.
pub(super) type RecordStates = BTreeMap<Vec<u8>, Option<Held>>;

/// A batch, and what it reads.
pub(super) struct Wanted {
    pub(super) batch: Batch,
    /// The encoded keys of the checks.
    pub(super) checked: BTreeSet<Vec<u8>>,
    /// The encoded keys of the counters and of the heads of logs that are written.
    pub(super) numbers: BTreeSet<Vec<u8>>,
    /// The operations and the bytes of its transaction, at most.
    pub(super) ops: usize,
    pub(super) bytes: usize,
}

impl Wanted {
    pub(super) fn new(batch: Batch) -> Self {
        let checked: BTreeSet<_> = batch.checks.iter().map(|check| key_of(check).encode()).collect();
        let number = |write: &Write| match write {
            Write::Add { counter, .. } => Some(counter.encode()),
            Write::Append { log, .. } => Some(Key::log_head(*log).encode()),
            _ => None,
        };
        let numbers: BTreeSet<_> = batch.writes.iter().filter_map(number).collect();
        // The bytes that a key and its operation have besides the value.
        const EACH: usize = 400;
        let value = |write: &Write| match write {
            Write::Put(_, value) | Write::PutRevised(_, value) | Write::Append { value, .. } => value.len(),
            Write::Delete(_) | Write::Add { .. } => 0,
        };
        let appends = batch
            .writes
            .iter()
            .filter(|write| matches!(write, Write::Append { .. }));
        let writes = batch.writes.len() + appends.count();
        let reads = checked.union(&numbers).count();
        Self {
            // One more notes a deletion.
            ops: writes.max(reads) + MARKER_OPS + 1,
            bytes: batch.writes.iter().map(value).sum::<usize>() + EACH * (writes + 2 * reads),
            batch,
            checked,
            numbers,
        }
    }
}

pub(super) fn key_of(check: &Check) -> &Key {
    match check {
        Check::Absent(key) | Check::Version(key, _) => key,
    }
}

/// The joint effect of the batches that one transaction executes.
#[derive(Default)]
pub(super) struct Joint {
    pub(super) accepted: Vec<Accepted>,
    pub(super) refused: Vec<(usize, CommitError)>,
    /// The value to leave under each encoded key; `None` removes it.
    pub(super) changes: BTreeMap<Vec<u8>, Option<Arc<[u8]>>>,
    /// The counters and the heads of logs as the accepted batches leave them.
    pub(super) numbers: BTreeMap<Vec<u8>, Record>,
    /// The records that the accepted batches were decided on.
    pub(super) relied: BTreeSet<Vec<u8>>,
}

pub(super) struct Accepted {
    pub(super) index: usize,
    numbers: Vec<u64>,
    /// The places of the numbers that are versions, which the transaction's revision tells.
    versions: Vec<usize>,
}

impl Accepted {
    pub(super) fn committed(self, version: u64) -> Committed {
        let mut numbers = self.numbers;
        self.versions.iter().for_each(|place| numbers[*place] = version);
        Committed { numbers }
    }
}

impl Joint {
    /// Decides batch after batch, up to one that needs a transaction of its own.
    pub(super) fn decide(chosen: &[(usize, Arc<Wanted>)], state: &RecordStates) -> Self {
        let mut joint = Self::default();
        for (index, wanted) in chosen {
            if !joint.can_take(wanted) || !joint.decide_one(*index, wanted, state) {
                break;
            }
        }
        joint
    }

    /// Whether a batch touches the changes of the others in counters and logs alone. Two puts of one key would get the
    /// same version, because a transaction has one revision.
    fn can_take(&self, wanted: &Wanted) -> bool {
        let is_plain = |key: &Vec<u8>| self.changes.contains_key(key) && !self.numbers.contains_key(key);
        let writes_plainly = |write: &Write| match write {
            Write::Put(key, _) | Write::PutRevised(key, _) | Write::Delete(key) => {
                self.changes.contains_key(&key.encode())
            }
            Write::Add { .. } | Write::Append { .. } => false,
        };
        !wanted.checked.iter().any(|key| self.changes.contains_key(key))
            && !wanted.numbers.iter().any(is_plain)
            && !wanted.batch.writes.iter().any(writes_plainly)
    }

    /// Decides a batch; false when its verdict depends on the outcome of the others.
    fn decide_one(&mut self, index: usize, wanted: &Wanted, state: &RecordStates) -> bool {
        let before = |key: &[u8]| {
            let held = state.get(key).and_then(Option::as_ref);
            Ok::<_, CommitError>(held.map(|held| held.record.clone()))
        };
        let now = |key: &[u8]| match self.numbers.get(key) {
            Some(record) => Ok(Some(record.clone())),
            None => before(key),
        };
        match plan(wanted.batch.clone(), 0, now) {
            Err(refused) => {
                let alone = match self.changes.is_empty() {
                    true => Some(refused),
                    false => plan(wanted.batch.clone(), 0, before).err(),
                };
                let is_final = alone.is_some();
                self.refused.extend(alone.map(|error| (index, error)));
                is_final
            }
            Ok(planned) => {
                let is_version = |(_, write): &(usize, &Write)| matches!(write, Write::Put(..) | Write::PutRevised(..));
                let versions = wanted.batch.writes.iter().enumerate().filter(is_version);
                self.accepted.push(Accepted {
                    index,
                    numbers: planned.numbers,
                    versions: versions.map(|(place, _)| place).collect(),
                });
                self.relied.extend(wanted.checked.union(&wanted.numbers).cloned());
                for (key, change) in planned.changes {
                    if let Some(record) = change.as_ref().filter(|_| wanted.numbers.contains(&key)) {
                        self.numbers.insert(key.clone(), record.clone());
                    }
                    self.changes.insert(key, change.map(|record| record.value));
                }
                true
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use agentcfg_core::model::WorkspaceId;
    use agentcfg_core::store::Kind;

    pub(crate) fn key(item: &str) -> Key {
        Key::in_workspace(workspace(), Kind::Counter, item)
    }

    fn workspace() -> WorkspaceId {
        WorkspaceId::new(uuid::Uuid::nil())
    }

    fn add(max: u64) -> Write {
        Write::Add {
            counter: key("c"),
            delta: 1,
            max: Some(max),
        }
    }

    pub(crate) fn append() -> Write {
        Write::Append {
            log: workspace(),
            value: b"1".to_vec(),
        }
    }

    pub(crate) fn chosen(batches: Vec<Vec<Write>>) -> Vec<(usize, Arc<Wanted>)> {
        let wanted = |writes| {
            Arc::new(Wanted::new(Batch {
                checks: Vec::new(),
                writes,
            }))
        };
        batches.into_iter().map(wanted).enumerate().collect()
    }

    #[test]
    fn batches_that_share_counters_and_logs_become_one_transaction() {
        let batches = chosen(vec![vec![add(2), append()], vec![append(), add(2)], vec![append()]]);
        let joint = Joint::decide(&batches, &RecordStates::new());
        let numbers: Vec<_> = joint.accepted.iter().map(|one| one.numbers.clone()).collect();
        assert_eq!(numbers, [vec![1, 1], vec![2, 2], vec![3]]);
        // Three entries, the head and the counter.
        assert_eq!(joint.changes.len(), 5);
        assert_eq!(joint.relied.len(), 2);
    }

    #[test]
    fn a_batch_whose_refusal_depends_on_the_others_waits() {
        let batches = chosen(vec![vec![add(1)], vec![add(1)], vec![append()]]);
        let joint = Joint::decide(&batches, &RecordStates::new());
        assert_eq!((joint.accepted.len(), joint.refused.len()), (1, 0));
        let batches = chosen(vec![vec![add(1)], vec![add(0)], vec![append()]]);
        let joint = Joint::decide(&batches, &RecordStates::new());
        assert_eq!((joint.accepted.len(), joint.refused.len()), (2, 1));
        assert_eq!(joint.refused[0], (1, CommitError::Limit(0)));
    }

    #[test]
    fn two_puts_of_a_key_are_never_in_one_transaction() {
        let put = |value: &[u8]| Write::Put(key("p"), value.to_vec());
        for second in [put(b"2"), Write::Delete(key("p"))] {
            let batches = chosen(vec![vec![put(b"1")], vec![second], vec![append()]]);
            let joint = Joint::decide(&batches, &RecordStates::new());
            assert_eq!((joint.accepted.len(), joint.refused.len()), (1, 0));
        }
    }
}
