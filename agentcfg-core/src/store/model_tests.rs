//! Model-based tests: each store gives the same answers as a plain map for random batches and scans.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::model::WorkspaceId;

/// The reference model of the contract: each batch works on a copy of all state.
#[derive(Default, Clone)]
struct Model {
    records: BTreeMap<Key, (u64, String)>,
    last_version: u64,
}

impl Model {
    fn commit(&mut self, batch: &Batch) -> Result<Vec<Option<u64>>, CommitError> {
        for (index, check) in batch.checks.iter().enumerate() {
            let holds = match check {
                Check::Absent(key) => !self.records.contains_key(key),
                Check::Version(key, version) => self.records.get(key).map(|record| record.0) == Some(*version),
            };
            if !holds {
                return Err(CommitError::Conflict(index));
            }
        }
        let mut next = self.clone();
        let mut numbers = Vec::new();
        for (index, write) in batch.writes.iter().enumerate() {
            let revision = |log| self.number(&Key::log_head(log)) + 1;
            numbers.push(next.write(write, revision).ok_or(CommitError::Limit(index))?);
        }
        *self = next;
        Ok(numbers)
    }

    /// `None` if a bound failed; `Some(None)` for a put, whose version the store chooses.
    fn write(&mut self, write: &Write, revision: impl Fn(WorkspaceId) -> u64) -> Option<Option<u64>> {
        match write {
            Write::Put(key, value) => {
                self.put(key.clone(), String::from_utf8(value.clone()).unwrap());
                Some(None)
            }
            Write::PutRevised(key, value) => {
                let Partition::Workspace(log) = key.partition() else {
                    unreachable!()
                };
                let value = with_revision(revision(*log), value);
                self.put(key.clone(), String::from_utf8(value).unwrap());
                Some(None)
            }
            Write::Delete(key) => {
                self.records.remove(key);
                Some(Some(0))
            }
            Write::Add { counter, delta, max } => {
                let sum = i128::from(self.number(counter)) + i128::from(*delta);
                let above = *delta > 0 && sum > i128::from(max.unwrap_or(u64::MAX));
                let sum = u64::try_from(sum).ok().filter(|_| !above)?;
                self.put(counter.clone(), sum.to_string());
                Some(Some(sum))
            }
            Write::Append { log, value } => {
                let number = self.number(&Key::log_head(*log)) + 1;
                self.put(Key::log_entry(*log, number), String::from_utf8(value.clone()).unwrap());
                self.put(Key::log_head(*log), number.to_string());
                Some(Some(number))
            }
        }
    }

    fn number(&self, key: &Key) -> u64 {
        self.records.get(key).map_or(0, |record| record.1.parse().unwrap())
    }

    fn put(&mut self, key: Key, value: String) {
        self.last_version += 1;
        self.records.insert(key, (self.last_version, value));
    }

    fn scan(&self, scan: &Scan) -> Vec<(Key, String)> {
        let mut found: Vec<_> = self
            .records
            .iter()
            .filter(|(key, _)| *key.partition() == scan.partition && key.kind() == scan.kind)
            .map(|(key, record)| (key.clone(), record.1.clone()))
            .collect();
        if scan.direction == Direction::Descending {
            found.reverse();
        }
        found.retain(|(key, _)| match (&scan.after, scan.direction) {
            (None, _) => true,
            (Some(after), Direction::Ascending) => *key.item() > **after,
            (Some(after), Direction::Descending) => *key.item() < **after,
        });
        let mut bytes = 0;
        let mut count = 0;
        for (_, value) in found.iter().take(scan.limit) {
            if bytes >= scan.max_bytes {
                break;
            }
            bytes += value.len();
            count += 1;
        }
        found.truncate(count);
        found
    }
}

/// A step of a test. The versions of its checks are filled in from the current records when it runs.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Commit {
        absent: Vec<Key>,
        current: Vec<Key>,
        stale: Vec<Key>,
        writes: Vec<Write>,
    },
    Scan(Scan),
}

fn workspace() -> impl Strategy<Value = WorkspaceId> {
    (1_u128..3).prop_map(|number| WorkspaceId::new(uuid::Uuid::from_u128(number)))
}

fn item() -> impl Strategy<Value = String> {
    proptest::sample::select(vec!["", "a", "ab", "b", "ä", "\u{10400}"]).prop_map(str::to_owned)
}

/// Any partition that holds records of this kind.
fn partition(kind: Kind) -> BoxedStrategy<Partition> {
    match kind.partition_kind() {
        PartitionKind::Workspace => workspace().prop_map(Partition::Workspace).boxed(),
        PartitionKind::Global => proptest::sample::select(vec!["a", "ab"])
            .prop_map(|name| Partition::Global(name.into()))
            .boxed(),
    }
}

fn key() -> impl Strategy<Value = Key> {
    let kind = proptest::sample::select(vec![Kind::Member, Kind::Agent, Kind::Membership]);
    kind.prop_flat_map(|kind| {
        (partition(kind), item()).prop_map(move |(partition, item)| Key::new(partition, kind, item))
    })
}

fn counter() -> impl Strategy<Value = Key> {
    (workspace(), item()).prop_map(|(workspace, item)| Key::in_workspace(workspace, Kind::Counter, item))
}

fn delta() -> impl Strategy<Value = i64> {
    prop_oneof![6 => -3_i64..6, 1 => Just(i64::MAX), 1 => Just(i64::MIN)]
}

fn write() -> impl Strategy<Value = Write> {
    let max = proptest::option::of(prop_oneof![0_u64..12, Just(u64::MAX)]);
    let version =
        (workspace(), item()).prop_map(|(workspace, item)| Key::in_workspace(workspace, Kind::AgentVersion, item));
    prop_oneof![
        4 => (key(), any::<u16>()).prop_map(|(key, value)| Write::Put(key, value.to_string().into_bytes())),
        2 => (version, any::<u16>())
            .prop_map(|(key, value)| Write::PutRevised(key, format!("{{\"n\":{value}}}").into_bytes())),
        2 => key().prop_map(Write::Delete),
        1 => counter().prop_map(Write::Delete),
        4 => (counter(), delta(), max).prop_map(|(counter, delta, max)| Write::Add { counter, delta, max }),
        2 => (workspace(), any::<u16>())
            .prop_map(|(log, value)| Write::Append { log, value: value.to_string().into_bytes() }),
    ]
}

/// The key that a write names; a batch names each in at most one write.
fn written_key(write: &Write) -> Key {
    match write {
        Write::Put(key, _) | Write::PutRevised(key, _) | Write::Delete(key) | Write::Add { counter: key, .. } => {
            key.clone()
        }
        Write::Append { log, .. } => Key::log_head(*log),
    }
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let few = |max| proptest::collection::vec(key(), 0..max);
    let commit = (few(2), few(3), few(2), proptest::collection::vec(write(), 0..6)).prop_map(
        |(absent, current, stale, mut writes)| {
            let mut written = BTreeSet::new();
            writes.retain(|write| written.insert(written_key(write)));
            // A record with a revision needs an entry of its workspace's log.
            writes.retain(|write| match write {
                Write::PutRevised(key, _) => {
                    let Partition::Workspace(log) = key.partition() else {
                        unreachable!()
                    };
                    written.contains(&Key::log_head(*log))
                }
                _ => true,
            });
            Step::Commit {
                absent,
                current,
                stale,
                writes,
            }
        },
    );
    let kinds = vec![
        Kind::Counter,
        Kind::LogHead,
        Kind::Member,
        Kind::Agent,
        Kind::LogEntry,
        Kind::AgentVersion,
        Kind::Membership,
    ];
    let direction = proptest::sample::select(vec![Direction::Ascending, Direction::Descending]);
    let scan = (
        proptest::sample::select(kinds).prop_flat_map(|kind| (partition(kind), Just(kind))),
        proptest::option::of(item()),
        direction,
        0_usize..6,
        prop_oneof![Just(usize::MAX), 0_usize..20],
    )
        .prop_map(|((partition, kind), after, direction, limit, max_bytes)| {
            let after = after.map(Into::into);
            Step::Scan(Scan {
                after,
                direction,
                limit,
                max_bytes,
                ..Scan::all(partition, kind)
            })
        });
    prop_oneof![4 => commit, 1 => scan]
}

/// A store under test, and the versions that it assigned to the model's records.
struct Subject {
    store: Arc<dyn Store>,
    versions: BTreeMap<Key, u64>,
}

impl Subject {
    async fn commit(&mut self, model: &Model, before: &Model, step: &Step) -> Option<Result<Committed, CommitError>> {
        let Step::Commit {
            absent,
            current,
            stale,
            writes,
        } = step
        else {
            return None;
        };
        let known = |key: &Key| before.records.contains_key(key).then(|| self.versions[key]);
        let mut checks: Vec<_> = absent.iter().cloned().map(Check::Absent).collect();
        checks.extend(
            current
                .iter()
                .filter_map(|key| Some(Check::Version(key.clone(), known(key)?))),
        );
        checks.extend(
            stale
                .iter()
                .map(|key| Check::Version(key.clone(), known(key).unwrap_or(0) + 1_000_000)),
        );
        let outcome = self
            .store
            .commit(Batch {
                checks,
                writes: writes.clone(),
            })
            .await;
        // Each written record has a greater version, each other record has the same version as before.
        let keys: Vec<_> = model.records.keys().cloned().collect();
        let found = self.store.get(&keys).await.unwrap();
        for (key, record) in keys.into_iter().zip(found) {
            let record = record.unwrap_or_else(|| panic!("{key:?} is absent"));
            assert_eq!(record.value, model.records[&key].1.as_bytes().into(), "{key:?}");
            let last = self.versions.insert(key.clone(), record.version).unwrap_or(0);
            match before.records.get(&key) == model.records.get(&key) {
                true => assert_eq!(record.version, last, "{key:?} was not written"),
                false => assert!(record.version > last, "{key:?} did not get a greater version"),
            }
        }
        Some(outcome)
    }
}

pub(crate) async fn agree(store: Arc<dyn Store>, steps: &[Step]) {
    let mut model = Model::default();
    let mut subject = Subject {
        store,
        versions: BTreeMap::new(),
    };
    for step in steps {
        match step {
            Step::Scan(scan) => {
                let found = subject.store.scan(scan).await.unwrap().entries;
                let found: Vec<_> = found
                    .into_iter()
                    .map(|(key, record)| (key, String::from_utf8(record.value.to_vec()).unwrap()))
                    .collect();
                assert_eq!(found, model.scan(scan), "{scan:?}");
            }
            Step::Commit {
                absent,
                current,
                stale,
                writes,
            } => {
                let before = model.clone();
                let version = |key: &Key| before.records.get(key).map(|record| record.0);
                let mut checks: Vec<_> = absent.iter().cloned().map(Check::Absent).collect();
                checks.extend(
                    current
                        .iter()
                        .filter_map(|key| Some(Check::Version(key.clone(), version(key)?))),
                );
                checks.extend(stale.iter().map(|key| Check::Version(key.clone(), u64::MAX)));
                let expected = model.commit(&Batch {
                    checks,
                    writes: writes.clone(),
                });
                let outcome = subject.commit(&model, &before, step).await;
                match (outcome, expected) {
                    (Some(Ok(committed)), Ok(expected)) => {
                        assert_eq!(committed.numbers.len(), expected.len());
                        for (number, expected) in committed.numbers.iter().zip(expected) {
                            assert!(expected.is_none_or(|expected| expected == *number), "{writes:?}");
                        }
                    }
                    (outcome, expected) => {
                        assert_eq!(outcome.and_then(Result::err), expected.err());
                    }
                }
            }
        }
    }
    for kind in Kind::ALL {
        let partitions: Vec<_> = match kind.partition_kind() {
            PartitionKind::Workspace => [1, 2]
                .map(|n| Partition::Workspace(WorkspaceId::new(uuid::Uuid::from_u128(n))))
                .into(),
            PartitionKind::Global => ["a", "ab"].map(|name| Partition::Global(name.into())).into(),
        };
        for partition in partitions {
            let scan = Scan::all(partition, kind);
            assert_eq!(
                subject.store.scan(&scan).await.unwrap().entries.len(),
                model.scan(&scan).len()
            );
        }
    }
}

pub fn run(store: Arc<dyn Store>, steps: &[Step]) {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(agree(store, steps));
}

proptest! {
    #[test]
    fn the_memory_store_agrees_with_the_model(steps in proptest::collection::vec(step(), 1..40)) {
        run(Arc::new(MemoryStore::new()), &steps);
    }
}
