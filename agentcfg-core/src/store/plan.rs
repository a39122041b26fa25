//! The effect of a batch on the current state: one rule for every engine that can read its own
//! uncommitted writes.
//!
//! Nothing is written here. A batch that fails has therefore changed nothing, and an engine applies
//! [`Plan::changes`] only once all checks and bounds have held.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::{Batch, Check, CommitError, Key, Record, Scan, StoreError, Write, envelope};

/// The outcome of a batch whose checks and bounds hold.
#[derive(Debug)]
pub(super) struct Plan {
    /// The state to leave under each encoded key; `None` removes it.
    pub changes: BTreeMap<Vec<u8>, Option<Record>>,
    /// The numbers for [`Committed`](super::Committed).
    pub numbers: Vec<u64>,
    /// The last version that the store has assigned.
    pub last_version: u64,
}

/// Checks a batch on the state that `read` returns, and computes its outcome.
pub(super) fn plan<E: From<CommitError>>(
    batch: Batch,
    last_version: u64,
    read: impl Fn(&[u8]) -> Result<Option<Record>, E>,
) -> Result<Plan, E> {
    for (index, check) in batch.checks.iter().enumerate() {
        let holds = match check {
            Check::Absent(key) => read(&key.encode())?.is_none(),
            Check::Version(key, version) => read(&key.encode())?.is_some_and(|found| found.version == *version),
        };
        if !holds {
            return Err(CommitError::Conflict(index).into());
        }
    }
    let mut planner = Planner {
        read,
        changes: BTreeMap::new(),
        last_version,
    };
    let mut numbers = Vec::with_capacity(batch.writes.len());
    for (index, write) in batch.writes.into_iter().enumerate() {
        numbers.push(planner.write(index, write)?);
    }
    Ok(Plan {
        changes: planner.changes,
        numbers,
        last_version: planner.last_version,
    })
}

/// The range of encoded keys of a scan.
pub(super) fn scan_range(scan: &Scan) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let first = Key::new(scan.partition.clone(), scan.kind, "").encode();
    let mut end = first.clone();
    // The kind's number is the last byte before the item, so the next number is behind each item.
    if let Some(kind) = end.last_mut() {
        *kind += 1;
    }
    let after = scan.after.as_ref().map(|item| [&first[..], item.as_bytes()].concat());
    match (scan.direction, after) {
        (_, None) => (Bound::Included(first), Bound::Excluded(end)),
        (super::Direction::Ascending, Some(after)) => (Bound::Excluded(after), Bound::Excluded(end)),
        (super::Direction::Descending, Some(after)) => (Bound::Included(first), Bound::Excluded(after)),
    }
}

/// Decodes a key that a scan found.
pub(super) fn decode_key(bytes: &[u8]) -> Result<Key, StoreError> {
    Key::decode(bytes).ok_or_else(|| StoreError::Corrupt(format!("{} is no key", envelope::describe(bytes))))
}

/// Reads the value of a counter or a log head.
pub(super) fn number(key: &[u8], record: &Record) -> Result<u64, StoreError> {
    std::str::from_utf8(&record.value)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| StoreError::Corrupt(format!("record {} holds no number", envelope::describe(key))))
}

struct Planner<R> {
    read: R,
    changes: BTreeMap<Vec<u8>, Option<Record>>,
    last_version: u64,
}

impl<R> Planner<R> {
    fn write<E>(&mut self, index: usize, write: Write) -> Result<u64, E>
    where
        E: From<CommitError>,
        R: Fn(&[u8]) -> Result<Option<Record>, E>,
    {
        match write {
            Write::Put(key, value) => Ok(self.put(key.encode(), value)),
            Write::Delete(key) => {
                self.changes.insert(key.encode(), None);
                Ok(0)
            }
            Write::Add { counter, delta, max } => {
                let key = counter.encode();
                let sum = self
                    .current(&key)?
                    .checked_add_signed(delta)
                    .filter(|sum| delta <= 0 || max.is_none_or(|max| *sum <= max))
                    .ok_or(CommitError::Limit(index))?;
                self.put(key, sum.to_string().into_bytes());
                Ok(sum)
            }
            Write::Append { log, value } => {
                let head = Key::log_head(log).encode();
                let number = self.current(&head)?.checked_add(1).ok_or(CommitError::Limit(index))?;
                self.put(Key::log_entry(log, number).encode(), value);
                self.put(head, number.to_string().into_bytes());
                Ok(number)
            }
        }
    }

    /// The number under a key after the earlier writes of this batch.
    fn current<E>(&self, key: &[u8]) -> Result<u64, E>
    where
        E: From<CommitError>,
        R: Fn(&[u8]) -> Result<Option<Record>, E>,
    {
        let parse = |record: &Record| number(key, record).map_err(|error| CommitError::Store(error).into());
        match self.changes.get(key) {
            Some(Some(record)) => parse(record),
            Some(None) => Ok(0),
            None => (self.read)(key)?.as_ref().map_or(Ok(0), parse),
        }
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> u64 {
        self.last_version += 1;
        self.changes.insert(
            key,
            Some(Record {
                version: self.last_version,
                value: Arc::from(value),
            }),
        );
        self.last_version
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Kind;
    use super::*;
    use crate::model::WorkspaceId;

    fn key(item: &str) -> Key {
        Key::global("p", Kind::Counter, item)
    }

    fn add(delta: i64, max: u64) -> Write {
        Write::Add {
            counter: key("c"),
            delta,
            max: Some(max),
        }
    }

    /// Plans on a state in which every counter is 3.
    fn on_three(writes: Vec<Write>) -> Result<Plan, CommitError> {
        let three = Record {
            version: 1,
            value: b"3".as_slice().into(),
        };
        plan(
            Batch {
                checks: Vec::new(),
                writes,
            },
            10,
            |_| Ok(Some(three.clone())),
        )
    }

    #[test]
    fn writes_see_the_ones_before_them() {
        assert_eq!(on_three(vec![add(1, 5), add(1, 5)]).unwrap().numbers, [4, 5]);
        assert_eq!(on_three(vec![add(2, 5), add(1, 5)]).unwrap_err(), CommitError::Limit(1));
        assert_eq!(
            on_three(vec![add(-3, 5), add(-1, 5)]).unwrap_err(),
            CommitError::Limit(1)
        );
        assert_eq!(
            on_three(vec![Write::Delete(key("c")), add(1, 5)]).unwrap().numbers,
            [0, 1]
        );
        assert_eq!(
            on_three(vec![Write::Put(key("c"), b"9".to_vec()), add(-9, 5)])
                .unwrap()
                .numbers,
            [11, 0]
        );
        let log = WorkspaceId::new(uuid::Uuid::nil());
        let append = Write::Append {
            log,
            value: b"1".to_vec(),
        };
        let planned = on_three(vec![append.clone(), append]).unwrap();
        assert_eq!(planned.numbers, [4, 5]);
        assert_eq!(planned.changes.len(), 3, "two entries and one head");
        assert_eq!(planned.last_version, 14);
    }

    #[test]
    fn a_counter_that_is_no_number_is_damage() {
        let bad = Record {
            version: 1,
            value: b"\"3\"".as_slice().into(),
        };
        let batch = Batch {
            checks: Vec::new(),
            writes: vec![add(1, 5)],
        };
        let outcome = plan::<CommitError>(batch, 0, |_| Ok(Some(bad.clone())));
        assert!(matches!(outcome, Err(CommitError::Store(StoreError::Corrupt(_)))));
    }
}
