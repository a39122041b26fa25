//! Commits: the batches of a group become one transaction, whose conditions are the revisions of all records that the
//! decision was made on.
//!
//! The first attempt does not read. It assumes that the checks hold, and that counters and heads of logs are as this
//! process last saw them. When a condition of the transaction does not hold, the cluster answers with the current
//! records, and the next attempt decides on those. So a batch is refused only on the grounds of records that were read
//! after it came.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::store::group::{GroupEngine, Limits};
use agentcfg_core::store::{Batch, Check, CommitError, Committed, Record, StoreError};
use async_trait::async_trait;
use prost::Message as _;
use tokio::time::{Instant, sleep};

use super::batch_decision::{Joint, RecordStates, Wanted, key_of};
use super::error::is_out_of_space;
use super::health::MAX_BYTES;
use super::layout::{self, Held, Layout};
use super::protocol::{Compare, RangeRequest, RangeResponse, RequestOp, TxnRequest};
use super::transaction_outcome::TransactionOutcome;
use super::{Cluster, hold, read};

/// The greatest number of operations, and of bytes, that several batches in one transaction have together. One alone
/// may have as many operations as the cluster allows, and [`MAX_BYTES`].
const JOINT_OPS: usize = 1024;
const JOINT_BYTES: usize = 1 << 20;

/// The values of a transaction are compressed if they have more bytes than this.
const COMPRESSED_FROM: usize = 2 << 20;

type Verdict = Result<Committed, CommitError>;

/// The limits of the groups.
pub(super) const LIMITS: Limits = Limits {
    group: 128,
    bytes: JOINT_BYTES as u64,
    lane: 1024,
    queue: 4096,
    flights: 8,
    slow: Duration::MAX,
    most: 8,
    queue_timeout: Duration::from_secs(5),
};

#[async_trait]
impl GroupEngine for Cluster {
    async fn commit_group(&self, batches: Vec<Batch>) -> Vec<Verdict> {
        commit_group(self, batches, Others::Wait).await
    }
}

/// Whether the holds of logs concern a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    /// The commit waits until they end.
    Wait,
    /// The commit is the one that holds its log.
    Held,
}

/// Commits a batch of a hold at once.
pub(super) async fn commit_held(cluster: &Cluster, batch: Batch) -> Verdict {
    let verdict = commit_group(cluster, vec![batch], Others::Held).await.pop();
    verdict.unwrap_or_else(|| Err(left_out().into()))
}

async fn commit_group(cluster: &Cluster, batches: Vec<Batch>, others: Others) -> Vec<Verdict> {
    let deadline = Instant::now() + cluster.commit_timeout;
    let mut verdicts: Vec<Option<Verdict>> = batches.iter().map(|_| None).collect();
    let mut waiting: VecDeque<(usize, Arc<Wanted>)> = batches
        .into_iter()
        .map(|batch| Arc::new(Wanted::new(batch)))
        .enumerate()
        .collect();
    let mut known = KnownOutcome::Assumed;
    let mut lost: u32 = 0;
    let mut compressed = Compressed::default();
    while !waiting.is_empty() {
        let chosen = choose(&mut waiting, cluster.max_ops, &mut verdicts);
        if chosen.is_empty() {
            continue;
        }
        let round = round(cluster, &chosen, known, (&mut compressed, others), deadline).await;
        known = KnownOutcome::Assumed;
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
                    // What was read is outdated by the next commit of another process, so it is used at once: a process
                    // that pauses here loses again and again against those that do not.
                    if let KnownOutcome::Assumed = found {
                        pause(lost).await;
                    }
                    known = found;
                }
            }
            Round::Failed(error) => fail(&mut verdicts, &chosen, &error),
        }
    }
    verdicts
        .into_iter()
        .map(|verdict| verdict.unwrap_or_else(|| Err(left_out().into())))
        .collect()
}

fn left_out() -> StoreError {
    StoreError::Unavailable("the batch was left out".into())
}

/// Waits a moment before a transaction that was not executed is sent again, longer each time.
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

/// Takes batches that fit into one transaction, but at least one. One with too many operations gets its verdict.
fn choose(
    waiting: &mut VecDeque<(usize, Arc<Wanted>)>,
    max_ops: usize,
    verdicts: &mut [Option<Verdict>],
) -> Vec<(usize, Arc<Wanted>)> {
    let (mut chosen, mut ops, mut bytes) = (Vec::new(), 0, 0);
    while let Some((index, wanted)) = waiting.front() {
        if wanted.ops > max_ops {
            let why = format!(
                "it has {} operations, and a transaction of the etcd cluster {max_ops} at most",
                wanted.ops
            );
            verdicts[*index] = Some(Err(StoreError::TooLarge(why).into()));
            waiting.pop_front();
            continue;
        }
        (ops, bytes) = (ops + wanted.ops, bytes + wanted.bytes);
        if !chosen.is_empty() && (ops > JOINT_OPS.min(max_ops) || bytes > JOINT_BYTES) {
            break;
        }
        chosen.extend(waiting.pop_front());
    }
    chosen
}

/// What is known of the records that the batches read.
enum KnownOutcome {
    /// Nothing but what this process saw before.
    Assumed,
    /// These were read after the batches came.
    Read(RecordStates),
}

enum Round {
    /// The verdicts of batches, and those that wait for another transaction.
    Decided {
        decided: Vec<(usize, Verdict)>,
        left: Vec<(usize, Arc<Wanted>)>,
    },
    /// Nothing was executed: decide again on this.
    Lost(KnownOutcome),
    /// Nothing else is known.
    Failed(StoreError),
}

async fn round(
    cluster: &Cluster,
    chosen: &[(usize, Arc<Wanted>)],
    known: KnownOutcome,
    (compressed, others): (&mut Compressed, Others),
    deadline: Instant,
) -> Round {
    let (state, is_read) = match known {
        KnownOutcome::Read(state) => (state, true),
        KnownOutcome::Assumed => match assume(cluster, chosen) {
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
            Ok(state) => Round::Lost(KnownOutcome::Read(state)),
            Err(error) => Round::Failed(error),
        };
    }
    let left: Vec<_> = chosen[joint.accepted.len() + joint.refused.len()..].to_vec();
    let refused = joint.refused.into_iter().map(|(index, error)| (index, Err(error)));
    if joint.changes.is_empty() {
        // Batches without writes are decided on a state that was read.
        if !is_read {
            return match read_all(cluster, chosen).await {
                Ok(state) => Round::Lost(KnownOutcome::Read(state)),
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
    let success = match operations(cluster, joint.changes, compressed).await {
        Ok(success) => success,
        Err(error) => return Round::Failed(error),
    };
    let records = keys.iter().map(|key| cluster.layout.record(key));
    // A hold changes the head of its log, so that a condition on that does not hold.
    let holds: BTreeSet<_> = chosen
        .iter()
        .flat_map(|(_, wanted)| hold::keys(cluster, &wanted.batch))
        .collect();
    let txn = TxnRequest {
        compare: keys.iter().map(|key| condition(cluster, key, &state)).collect(),
        success,
        failure: records
            .chain(holds)
            .map(|key| RequestOp::range(RangeRequest::key(key)))
            .collect(),
    };
    if let Err(error) = require_fit(&txn) {
        return Round::Failed(error);
    }
    match cluster
        .identity
        .send(&cluster.client, &cluster.layout, txn, deadline)
        .await
    {
        Ok(TransactionOutcome::Executed(revision)) => {
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
        Ok(TransactionOutcome::Refused(mut ranges)) => {
            let holds = ranges.split_off(keys.len().min(ranges.len()));
            if others == Others::Wait && holds.iter().any(|range| !range.kvs.is_empty()) {
                return match hold::wait_for(cluster, holds).await {
                    Ok(()) => Round::Lost(KnownOutcome::Assumed),
                    Err(error) => Round::Failed(error),
                };
            }
            // The answers have all that is needed, unless some batches were refused or wait: those rely on further
            // records.
            let state = match joint.accepted.len() == chosen.len() {
                true => found(cluster, &keys, ranges),
                false => read_all(cluster, chosen).await,
            };
            state.map_or_else(Round::Failed, |state| Round::Lost(KnownOutcome::Read(state)))
        }
        Ok(TransactionOutcome::Nothing(why)) if is_out_of_space(&why) => {
            cluster.health.note_full(&why);
            Round::Failed(StoreError::Unavailable(why))
        }
        Ok(TransactionOutcome::Nothing(why)) if Instant::now() >= deadline => {
            Round::Failed(StoreError::Unavailable(why))
        }
        Ok(TransactionOutcome::Nothing(why)) => {
            tracing::debug!(why, "a transaction was not executed, sending it again");
            Round::Lost(KnownOutcome::Assumed)
        }
        Err(error) => Round::Failed(error),
    }
}

/// The state in which the checks hold, and counters and heads are as this process last saw them; `None` when it has not
/// seen one of them.
fn assume(cluster: &Cluster, chosen: &[(usize, Arc<Wanted>)]) -> Option<RecordStates> {
    let mut state = RecordStates::new();
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
async fn read_all(cluster: &Cluster, chosen: &[(usize, Arc<Wanted>)]) -> Result<RecordStates, StoreError> {
    let of = |(_, wanted): &(usize, Arc<Wanted>)| wanted.checked.union(&wanted.numbers).cloned().collect::<Vec<_>>();
    let keys: BTreeSet<Vec<u8>> = chosen.iter().flat_map(of).collect();
    let keys: Vec<_> = keys.into_iter().collect();
    let wanted: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let found = read::read_keys(cluster, &wanted).await?;
    Ok(keys.into_iter().zip(found).collect())
}

/// The state that the failure branch of a transaction answered.
fn found(cluster: &Cluster, keys: &[Vec<u8>], ranges: Vec<RangeResponse>) -> Result<RecordStates, StoreError> {
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
fn condition(cluster: &Cluster, key: &[u8], state: &RecordStates) -> Compare {
    let held = state.get(key).and_then(Option::as_ref);
    Compare::changed_in(cluster.layout.record(key), held.map_or(0, |held| held.revision))
}

/// Refuses a transaction that the members could not read from their logs again.
fn require_fit(txn: &TxnRequest) -> Result<(), StoreError> {
    let length = txn.encoded_len();
    match length <= MAX_BYTES {
        true => Ok(()),
        false => Err(StoreError::TooLarge(format!(
            "it has {length} bytes after compression, and a transaction of the etcd cluster {MAX_BYTES} at most"
        ))),
    }
}

/// The value of each record to write, by its encoded key; `None` removes it.
type Values = BTreeMap<Vec<u8>, Option<Arc<[u8]>>>;

/// Values of an earlier attempt and their compressed envelopes, by encoded key. The next attempt has the same ones, but
/// for numbers and the keys of log entries.
type Compressed = BTreeMap<Vec<u8>, (Arc<[u8]>, Vec<u8>)>;

/// Writes the changes.
async fn operations(
    cluster: &Cluster,
    changes: Values,
    compressed: &mut Compressed,
) -> Result<Vec<RequestOp>, StoreError> {
    let bytes: usize = changes.values().flatten().map(|value| value.len()).sum();
    if bytes <= COMPRESSED_FROM {
        return Ok(writes(&cluster.layout, &changes, |key, value| layout::seal(key, value)));
    }
    // This takes longer than a task may keep its thread.
    let (layout, known) = (cluster.layout.clone(), std::mem::take(compressed));
    let work = move || {
        let mut done = Compressed::new();
        let writes = writes(&layout, &changes, |key, value| {
            let envelope = match known.get(key) {
                Some((before, envelope)) if before == value => envelope.clone(),
                _ => layout::compress(layout::seal(key, value)),
            };
            done.insert(key.to_vec(), (Arc::clone(value), envelope.clone()));
            envelope
        });
        (writes, done)
    };
    let (writes, done) = tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| StoreError::Unavailable("the process is shutting down".into()))?;
    *compressed = done;
    Ok(writes)
}

/// A deletion leaves no revision behind in its record, so it is noted in a key of its own.
fn writes(layout: &Layout, changes: &Values, mut seal: impl FnMut(&[u8], &Arc<[u8]>) -> Vec<u8>) -> Vec<RequestOp> {
    let change = |(key, change): (&Vec<u8>, &Option<Arc<[u8]>>)| {
        let place = layout.record(key);
        match change {
            Some(value) => RequestOp::put(place, seal(key, value), 0),
            None => RequestOp::delete(place),
        }
    };
    let deletes = changes.values().any(Option::is_none);
    let deletion = deletes.then(|| RequestOp::put(layout.deleted(), Vec::new(), 0));
    changes.iter().map(change).chain(deletion).collect()
}

#[cfg(test)]
mod tests {
    use super::super::batch_decision::tests::{append, chosen, key};
    use super::*;
    use agentcfg_core::store::Write;

    #[test]
    fn a_batch_that_fits_into_no_transaction_is_refused_alone() {
        let large = (0..10).map(|number| Write::Delete(key(&number.to_string()))).collect();
        let mut waiting: VecDeque<_> = chosen(vec![vec![append()], large, vec![append()]]).into();
        let mut verdicts = vec![None, None, None];
        let taken = choose(&mut waiting, 10, &mut verdicts);
        assert_eq!(taken.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 2]);
        assert!(matches!(
            &verdicts[1],
            Some(Err(CommitError::Store(StoreError::TooLarge(why)))) if why.contains("12 operations")
        ));
    }
}
