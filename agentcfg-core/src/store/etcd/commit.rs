//! Commits: the batches of a group become one transaction, whose conditions are the revisions of all records that the
//! decision was made on.
//!
//! The first attempt does not read. It assumes that the checks hold, and that counters and heads of logs are as this process
//! last saw them. When a condition of the transaction does not hold, the cluster answers with the current records, and the
//! next attempt decides on those. So a batch is refused only on the grounds of records that were read after it came.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, sleep};

use super::super::group::{GroupEngine, Limits};
use super::super::plan::plan;
use super::super::{Batch, Check, CommitError, Committed, Key, Record, StoreError, Write};
use super::error::is_out_of_space;
use super::layout::{self, Held};
use super::outcome::{MARKER_OPS, Outcome};
use super::wire::{Compare, RangeRequest, RangeResponse, RequestOp, TxnRequest};
use super::{Cluster, read};

/// The greatest number of operations, and of bytes, that several batches in one transaction have together. One alone may have
/// as many as the cluster allows.
const JOINT_OPS: usize = 1024;
const JOINT_BYTES: usize = 1 << 20;

type Verdict = Result<Committed, CommitError>;
/// Records by their encoded keys.
type State = BTreeMap<Vec<u8>, Option<Held>>;

/// The limits of the groups.
pub(super) const LIMITS: Limits = Limits {
    group: 128,
    bytes: JOINT_BYTES as u64,
    lane: 1024,
    queue: 4096,
    flights: 8,
    patience: Duration::from_secs(5),
};

#[async_trait]
impl GroupEngine for Cluster {
    async fn commit_group(&self, batches: Vec<Batch>) -> Vec<Verdict> {
        commit_group(self, batches).await
    }
}

async fn commit_group(cluster: &Cluster, batches: Vec<Batch>) -> Vec<Verdict> {
    let deadline = Instant::now() + cluster.commit_timeout;
    let mut verdicts: Vec<Option<Verdict>> = batches.iter().map(|_| None).collect();
    let mut waiting: VecDeque<(usize, Arc<Wanted>)> = batches
        .into_iter()
        .map(|batch| Arc::new(Wanted::new(batch)))
        .enumerate()
        .collect();
    let mut known = Known::Assumed;
    let mut lost: u32 = 0;
    while !waiting.is_empty() {
        let chosen = choose(&mut waiting, cluster.max_ops, cluster.max_bytes, &mut verdicts);
        if chosen.is_empty() {
            continue;
        }
        let round = round(cluster, &chosen, known, deadline).await;
        known = Known::Assumed;
        match round {
            Round::Decided { decided, left } => {
                lost = 0;
                for (index, verdict) in decided {
                    verdicts[index] = Some(verdict);
                }
                left.into_iter().rev().for_each(|wanted| waiting.push_front(wanted));
            }
            Round::Lost(found) => {
                lost += 1;
                if Instant::now() >= deadline {
                    let why = "too many concurrent commits contend for the same records";
                    fail(&mut verdicts, &chosen, &StoreError::Unavailable(why.into()));
                } else {
                    chosen.into_iter().rev().for_each(|wanted| waiting.push_front(wanted));
                    known = found;
                    pause(lost).await;
                }
            }
            Round::Failed(error) => fail(&mut verdicts, &chosen, &error),
        }
    }
    let missing = || Err(StoreError::Unavailable("the batch was left out".into()).into());
    verdicts
        .into_iter()
        .map(|verdict| verdict.unwrap_or_else(missing))
        .collect()
}

/// Waits a moment when others contend for the same records, longer each time.
async fn pause(lost: u32) {
    if lost > 2 {
        sleep(Duration::from_millis(1 << lost.min(6))).await;
    }
}

fn fail(verdicts: &mut [Option<Verdict>], chosen: &[(usize, Arc<Wanted>)], error: &StoreError) {
    for (index, _) in chosen {
        verdicts[*index] = Some(Err(error.clone().into()));
    }
}

/// A batch, and what it reads.
struct Wanted {
    batch: Batch,
    /// The encoded keys of the checks.
    checked: BTreeSet<Vec<u8>>,
    /// The encoded keys of the counters and of the heads of logs that are written.
    numbers: BTreeSet<Vec<u8>>,
    /// The operations and the bytes of its transaction, at most.
    ops: usize,
    bytes: usize,
}

impl Wanted {
    fn new(batch: Batch) -> Self {
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

fn key_of(check: &Check) -> &Key {
    match check {
        Check::Absent(key) | Check::Version(key, _) => key,
    }
}

/// Takes batches that fit into one transaction, but at least one. One that fits into none gets its verdict.
fn choose(
    waiting: &mut VecDeque<(usize, Arc<Wanted>)>,
    max_ops: usize,
    max_bytes: usize,
    verdicts: &mut [Option<Verdict>],
) -> Vec<(usize, Arc<Wanted>)> {
    let (mut chosen, mut ops, mut bytes) = (Vec::new(), 0, 0);
    while let Some((index, wanted)) = waiting.front() {
        if wanted.ops > max_ops || wanted.bytes > max_bytes {
            let why = format!(
                "a change of {} operations and about {} bytes is larger than a transaction of the etcd cluster may be, \
                 which is {max_ops} operations and {max_bytes} bytes",
                wanted.ops, wanted.bytes
            );
            verdicts[*index] = Some(Err(StoreError::Unavailable(why).into()));
            waiting.pop_front();
            continue;
        }
        (ops, bytes) = (ops + wanted.ops, bytes + wanted.bytes);
        if !chosen.is_empty() && (ops > JOINT_OPS.min(max_ops) || bytes > JOINT_BYTES.min(max_bytes)) {
            break;
        }
        chosen.extend(waiting.pop_front());
    }
    chosen
}

/// What is known of the records that the batches read.
enum Known {
    /// Nothing but what this process saw before.
    Assumed,
    /// These were read after the batches came.
    Read(State),
}

enum Round {
    /// The verdicts of batches, and those that wait for another transaction.
    Decided {
        decided: Vec<(usize, Verdict)>,
        left: Vec<(usize, Arc<Wanted>)>,
    },
    /// Nothing was executed: decide again on this.
    Lost(Known),
    /// Nothing else is known.
    Failed(StoreError),
}

async fn round(cluster: &Cluster, chosen: &[(usize, Arc<Wanted>)], known: Known, deadline: Instant) -> Round {
    let (state, is_read) = match known {
        Known::Read(state) => (state, true),
        Known::Assumed => match assume(cluster, chosen) {
            Some(state) => (state, false),
            None => match read_all(cluster, chosen).await {
                Ok(state) => (state, true),
                Err(error) => return Round::Failed(error),
            },
        },
    };
    let joint = Joint::decide(chosen, &state);
    if !is_read && !joint.refused.is_empty() {
        return match read_all(cluster, chosen).await {
            Ok(state) => Round::Lost(Known::Read(state)),
            Err(error) => Round::Failed(error),
        };
    }
    let left: Vec<_> = chosen[joint.accepted.len() + joint.refused.len()..].to_vec();
    let refused = joint.refused.into_iter().map(|(index, error)| (index, Err(error)));
    if joint.changes.is_empty() {
        // Batches without writes are decided on a state that was read.
        if !is_read {
            return match read_all(cluster, chosen).await {
                Ok(state) => Round::Lost(Known::Read(state)),
                Err(error) => Round::Failed(error),
            };
        }
        let accepted = joint.accepted.into_iter().map(|one| (one.index, Ok(one.committed(0))));
        return Round::Decided {
            decided: accepted.chain(refused).collect(),
            left,
        };
    }
    let keys: Vec<_> = joint.relied.iter().cloned().collect();
    let txn = TxnRequest {
        compare: keys.iter().map(|key| condition(cluster, key, &state)).collect(),
        success: operations(cluster, &joint.changes),
        failure: keys
            .iter()
            .map(|key| RequestOp::range(RangeRequest::key(cluster.layout.record(key))))
            .collect(),
    };
    match cluster
        .identity
        .send(&cluster.client, &cluster.layout, txn, deadline)
        .await
    {
        Ok(Outcome::Executed(revision)) => {
            cluster.remember(joint.numbers, revision);
            let version = layout::version(cluster.base(), revision);
            let accepted = joint
                .accepted
                .into_iter()
                .map(|one| (one.index, Ok(one.committed(version))));
            Round::Decided {
                decided: accepted.chain(refused).collect(),
                left,
            }
        }
        Ok(Outcome::Refused(ranges)) => {
            // The answers have all that is needed, unless some batches were refused or wait: those rely on further records.
            let state = match joint.accepted.len() == chosen.len() {
                true => found(cluster, &keys, ranges),
                false => read_all(cluster, chosen).await,
            };
            state.map_or_else(Round::Failed, |state| Round::Lost(Known::Read(state)))
        }
        Ok(Outcome::Nothing(why)) if is_out_of_space(&why) => {
            cluster.health.note_full(&why);
            Round::Failed(StoreError::Unavailable(why))
        }
        Ok(Outcome::Nothing(why)) if Instant::now() >= deadline => Round::Failed(StoreError::Unavailable(why)),
        Ok(Outcome::Nothing(why)) => {
            tracing::debug!(why, "a transaction was not executed, sending it again");
            Round::Lost(Known::Assumed)
        }
        Err(error) => Round::Failed(error),
    }
}

/// The state in which the checks hold, and counters and heads are as this process last saw them; `None` when it has not seen
/// one of them.
fn assume(cluster: &Cluster, chosen: &[(usize, Arc<Wanted>)]) -> Option<State> {
    let mut state = State::new();
    for (_, wanted) in chosen {
        for check in &wanted.batch.checks {
            let held = match check {
                Check::Absent(_) => None,
                Check::Version(_, version) => Some(Held {
                    // The version of an imported record does not tell its revision.
                    revision: i64::try_from(version.checked_sub(cluster.base())?)
                        .ok()
                        .filter(|it| *it > 0)?,
                    record: Record {
                        version: *version,
                        value: Arc::default(),
                    },
                }),
            };
            state.insert(key_of(check).encode(), held);
        }
        for key in &wanted.numbers {
            state.insert(key.clone(), Some(cluster.numbers.get(key)?));
        }
    }
    Some(state)
}

/// Reads all records that the batches rely on.
async fn read_all(cluster: &Cluster, chosen: &[(usize, Arc<Wanted>)]) -> Result<State, StoreError> {
    let of = |(_, wanted): &(usize, Arc<Wanted>)| wanted.checked.union(&wanted.numbers).cloned().collect::<Vec<_>>();
    let keys: BTreeSet<Vec<u8>> = chosen.iter().flat_map(of).collect();
    let keys: Vec<_> = keys.into_iter().collect();
    let wanted: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let found = read::read_keys(cluster, &wanted).await?;
    Ok(keys.into_iter().zip(found).collect())
}

/// The state that the failure branch of a transaction answered.
fn found(cluster: &Cluster, keys: &[Vec<u8>], ranges: Vec<RangeResponse>) -> Result<State, StoreError> {
    if ranges.len() != keys.len() {
        return Err(StoreError::Unavailable("the cluster left answers out".into()));
    }
    let open = |(key, range): (&Vec<u8>, RangeResponse)| {
        let held = range
            .kvs
            .first()
            .map(|stored| layout::open(cluster.base(), key, stored));
        Ok((key.clone(), held.transpose()?))
    };
    keys.iter().zip(ranges).map(open).collect()
}

/// The condition that a record is still the one in the state.
fn condition(cluster: &Cluster, key: &[u8], state: &State) -> Compare {
    let held = state.get(key).and_then(Option::as_ref);
    Compare::changed_in(cluster.layout.record(key), held.map_or(0, |held| held.revision))
}

/// Writes the changes. A deletion leaves no revision behind in its record, so it is noted in a key of its own.
fn operations(cluster: &Cluster, changes: &BTreeMap<Vec<u8>, Option<Arc<[u8]>>>) -> Vec<RequestOp> {
    let change = |(key, change): (&Vec<u8>, &Option<Arc<[u8]>>)| {
        let place = cluster.layout.record(key);
        match change {
            Some(value) => RequestOp::put(place, layout::seal(key, value), 0),
            None => RequestOp::delete(place),
        }
    };
    let deletes = changes.values().any(Option::is_none);
    let deletion = deletes.then(|| RequestOp::put(cluster.layout.deleted(), Vec::new(), 0));
    changes.iter().map(change).chain(deletion).collect()
}

/// The joint effect of the batches that one transaction executes.
#[derive(Default)]
struct Joint {
    accepted: Vec<Accepted>,
    refused: Vec<(usize, CommitError)>,
    /// The value to leave under each encoded key; `None` removes it.
    changes: BTreeMap<Vec<u8>, Option<Arc<[u8]>>>,
    /// The counters and the heads of logs as the accepted batches leave them.
    numbers: BTreeMap<Vec<u8>, Record>,
    /// The records that the accepted batches were decided on.
    relied: BTreeSet<Vec<u8>>,
}

struct Accepted {
    index: usize,
    numbers: Vec<u64>,
    /// The places of the numbers that are versions, which the transaction's revision tells.
    versions: Vec<usize>,
}

impl Accepted {
    fn committed(self, version: u64) -> Committed {
        let mut numbers = self.numbers;
        self.versions.iter().for_each(|place| numbers[*place] = version);
        Committed { numbers }
    }
}

impl Joint {
    /// Decides batch after batch, up to one that needs a transaction of its own.
    fn decide(chosen: &[(usize, Arc<Wanted>)], state: &State) -> Self {
        let mut joint = Self::default();
        for (index, wanted) in chosen {
            if !joint.can_take(wanted) || !joint.decide_one(*index, wanted, state) {
                break;
            }
        }
        joint
    }

    /// Whether a batch touches the changes of the others in counters and logs alone. Two puts of one key would get the same
    /// version, because a transaction has one revision.
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
    fn decide_one(&mut self, index: usize, wanted: &Wanted, state: &State) -> bool {
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
mod tests {
    use super::*;
    use crate::model::WorkspaceId;
    use crate::store::Kind;

    fn key(item: &str) -> Key {
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

    fn append() -> Write {
        Write::Append {
            log: workspace(),
            value: b"1".to_vec(),
        }
    }

    fn chosen(batches: Vec<Vec<Write>>) -> Vec<(usize, Arc<Wanted>)> {
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
        let joint = Joint::decide(&batches, &State::new());
        let numbers: Vec<_> = joint.accepted.iter().map(|one| one.numbers.clone()).collect();
        assert_eq!(numbers, [vec![1, 1], vec![2, 2], vec![3]]);
        // Three entries, the head and the counter.
        assert_eq!(joint.changes.len(), 5);
        assert_eq!(joint.relied.len(), 2);
    }

    #[test]
    fn a_batch_whose_refusal_depends_on_the_others_waits() {
        let batches = chosen(vec![vec![add(1)], vec![add(1)], vec![append()]]);
        let joint = Joint::decide(&batches, &State::new());
        assert_eq!((joint.accepted.len(), joint.refused.len()), (1, 0));
        let batches = chosen(vec![vec![add(1)], vec![add(0)], vec![append()]]);
        let joint = Joint::decide(&batches, &State::new());
        assert_eq!((joint.accepted.len(), joint.refused.len()), (2, 1));
        assert_eq!(joint.refused[0], (1, CommitError::Limit(0)));
    }

    #[test]
    fn two_puts_of_a_key_are_never_in_one_transaction() {
        let put = |value: &[u8]| Write::Put(key("p"), value.to_vec());
        for second in [put(b"2"), Write::Delete(key("p"))] {
            let batches = chosen(vec![vec![put(b"1")], vec![second], vec![append()]]);
            let joint = Joint::decide(&batches, &State::new());
            assert_eq!((joint.accepted.len(), joint.refused.len()), (1, 0));
        }
    }

    #[test]
    fn a_batch_that_fits_into_no_transaction_is_refused_alone() {
        let large = (0..10).map(|number| Write::Delete(key(&number.to_string()))).collect();
        let mut waiting: VecDeque<_> = chosen(vec![vec![append()], large, vec![append()]]).into();
        let mut verdicts = vec![None, None, None];
        let taken = choose(&mut waiting, 10, 1 << 20, &mut verdicts);
        assert_eq!(taken.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 2]);
        assert!(matches!(
            &verdicts[1],
            Some(Err(CommitError::Store(StoreError::Unavailable(why)))) if why.contains("12 operations")
        ));
    }
}
