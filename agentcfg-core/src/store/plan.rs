//! The effect of a batch on the current state: one rule for every engine that decides batches on records that it has
//! read. And the range of a scan, for one whose records are sorted by the bytes of [`Key::encode`].
//!
//! Nothing is written here. A batch that fails has therefore changed nothing, and an engine applies
//! [`Plan::changes`] only once all checks and bounds have held.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::Arc;

use super::{Batch, Check, CommitError, Key, Partition, Record, Scan, StoreError, Write, envelope, with_revision};

/// The outcome of a batch whose checks and bounds hold; see [`plan`].
#[derive(Debug)]
pub struct Plan {
    /// The state to leave under each encoded key; `None` removes it.
    pub changes: BTreeMap<Vec<u8>, Option<Record>>,
    /// The numbers for [`Committed`](super::Committed).
    pub numbers: Vec<u64>,
    /// The last version that the store has assigned.
    pub last_version: u64,
}

/// Checks a batch on the state that `read` returns, and computes its outcome. `read` gets encoded keys; `last_version`
/// is the last version that the store has assigned.
///
/// # Errors
///
/// As [`Store::commit`](super::Store::commit), and what `read` fails with.
///
/// ```
/// use agentcfg_core::store::plan::plan;
/// use agentcfg_core::store::{Batch, Check, CommitError, Key, Kind, Write};
/// let name = Key::global("store", Kind::Meta, "name");
/// let batch = Batch {
///     checks: vec![Check::Absent(name.clone())],
///     writes: vec![Write::Put(name.clone(), b"\"north\"".to_vec())],
/// };
/// let outcome = plan(batch, 41, |_key| Ok::<_, CommitError>(None))?;
/// assert_eq!((outcome.numbers, outcome.last_version), (vec![42], 42));
/// assert!(outcome.changes[&name.encode()].is_some());
/// # Ok::<(), CommitError>(())
/// ```
pub fn plan<E: From<CommitError>>(
    batch: Batch,
    last_version: u64,
    read: impl Fn(&[u8]) -> Result<Option<Record>, E>,
) -> Result<Plan, E> {
    batch.check_revised().map_err(CommitError::Store)?;
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
///
/// ```
/// use agentcfg_core::store::plan::scan_range;
/// use agentcfg_core::store::{Key, Kind, Partition, Scan};
/// use std::ops::RangeBounds;
/// let range = scan_range(&Scan::all(Partition::Global("store".into()), Kind::Meta));
/// assert!(range.contains(&Key::global("store", Kind::Meta, "name").encode()));
/// ```
pub fn scan_range(scan: &Scan) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
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
///
/// # Errors
///
/// [`StoreError::Corrupt`] when the bytes are no key.
///
/// ```
/// use agentcfg_core::store::plan::decode_key;
/// assert!(decode_key(b"no key").is_err());
/// ```
pub fn decode_key(bytes: &[u8]) -> Result<Key, StoreError> {
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
            Write::Put(key, value) => self.put(key.encode(), value),
            Write::PutRevised(key, value) => {
                let revision = match key.partition() {
                    Partition::Workspace(log) => self.next_number(index, &Key::log_head(*log).encode())?,
                    // `Batch::check_revised` refuses it.
                    Partition::Global(_) => 0,
                };
                self.put(key.encode(), with_revision(revision, &value))
            }
            Write::Delete(key) => {
                self.change(key.encode(), None)?;
                Ok(0)
            }
            Write::Add { counter, delta, max } => {
                let key = counter.encode();
                let sum = self
                    .number(&key)?
                    .checked_add_signed(delta)
                    .filter(|sum| delta <= 0 || max.is_none_or(|max| *sum <= max))
                    .ok_or(CommitError::Limit(index))?;
                self.put::<E>(key, sum.to_string().into_bytes())?;
                Ok(sum)
            }
            Write::Append { log, value } => {
                let head = Key::log_head(log).encode();
                let number = self.next_number(index, &head)?;
                self.put::<E>(Key::log_entry(log, number).encode(), value)?;
                self.put::<E>(head, number.to_string().into_bytes())?;
                Ok(number)
            }
        }
    }

    /// The number under a key before the batch; 0 when there is none.
    fn number<E>(&self, key: &[u8]) -> Result<u64, E>
    where
        E: From<CommitError>,
        R: Fn(&[u8]) -> Result<Option<Record>, E>,
    {
        let found = (self.read)(key)?;
        let parse = |record| number(key, record).map_err(|error| CommitError::Store(error).into());
        found.as_ref().map_or(Ok(0), parse)
    }

    /// The number of the entry that this batch appends to the log with this head.
    fn next_number<E>(&self, index: usize, head: &[u8]) -> Result<u64, E>
    where
        E: From<CommitError>,
        R: Fn(&[u8]) -> Result<Option<Record>, E>,
    {
        let next = self.number(head)?.checked_add(1);
        Ok(next.ok_or(CommitError::Limit(index))?)
    }

    fn put<E: From<CommitError>>(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<u64, E> {
        self.last_version += 1;
        let record = Record {
            version: self.last_version,
            value: Arc::from(value),
        };
        self.change(key, Some(record))?;
        Ok(self.last_version)
    }

    fn change(&mut self, key: Vec<u8>, change: Option<Record>) -> Result<(), CommitError> {
        match self.changes.entry(key) {
            Entry::Vacant(place) => {
                place.insert(change);
                Ok(())
            }
            Entry::Occupied(place) => {
                let twice = format!("a batch writes {} twice", envelope::describe(place.key()));
                Err(StoreError::Misuse(twice).into())
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Kind;
    use super::*;
    use crate::model::WorkspaceId;

    fn key(item: &str) -> Key {
        Key::in_workspace(WorkspaceId::new(uuid::Uuid::nil()), Kind::Counter, item)
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
    fn each_write_is_planned_on_the_state_before_the_batch() {
        let log = WorkspaceId::new(uuid::Uuid::from_u128(2));
        let append = Write::Append {
            log,
            value: b"1".to_vec(),
        };
        let put = Write::Put(key("p"), b"9".to_vec());
        let planned = on_three(vec![put, add(1, 5), append, Write::Delete(key("d"))]).unwrap();
        assert_eq!(planned.numbers, [11, 4, 4, 0]);
        assert_eq!(planned.changes.len(), 5, "an append writes an entry and the head");
        assert_eq!(planned.last_version, 14);
        assert_eq!(on_three(vec![add(3, 5)]).unwrap_err(), CommitError::Limit(0));
        assert_eq!(on_three(vec![add(-4, 5)]).unwrap_err(), CommitError::Limit(0));
    }

    #[test]
    fn a_key_in_two_writes_is_refused() {
        let log = WorkspaceId::new(uuid::Uuid::nil());
        let append = Write::Append {
            log,
            value: b"1".to_vec(),
        };
        let put = Write::Put(key("c"), b"9".to_vec());
        let head = Write::Delete(Key::log_head(log));
        for (first, second) in [
            (put.clone(), put.clone()),
            (put.clone(), Write::Delete(key("c"))),
            (Write::Delete(key("c")), add(1, 5)),
            (add(1, 5), add(1, 5)),
            (append.clone(), append.clone()),
            (head, append),
        ] {
            let refused = on_three(vec![first, Write::Delete(key("between")), second]).unwrap_err();
            assert!(
                matches!(&refused, CommitError::Store(StoreError::Misuse(text)) if text.ends_with("twice")),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_record_gets_the_revision_of_its_batch() {
        let log = WorkspaceId::new(uuid::Uuid::nil());
        let version = Key::in_workspace(log, Kind::AgentVersion, "a 1");
        let revised = Write::PutRevised(version.clone(), b"{\"n\":1}".to_vec());
        let append = |log| Write::Append {
            log,
            value: b"1".to_vec(),
        };
        for writes in [vec![revised.clone(), append(log)], vec![append(log), revised.clone()]] {
            let planned = on_three(writes).unwrap();
            let record = planned.changes[&version.encode()].as_ref().unwrap();
            assert_eq!(&*record.value, b"{\"revision\":4,\"n\":1}");
        }
        let other = WorkspaceId::new(uuid::Uuid::from_u128(2));
        let counter = Write::PutRevised(key("c"), b"{\"n\":1}".to_vec());
        let no_object = Write::PutRevised(version, b"{}".to_vec());
        for writes in [
            vec![revised.clone()],
            vec![revised, append(other)],
            vec![counter, append(log)],
            vec![no_object, append(log)],
        ] {
            let refused = on_three(writes).unwrap_err();
            assert!(
                matches!(refused, CommitError::Store(StoreError::Misuse(_))),
                "{refused}"
            );
        }
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
