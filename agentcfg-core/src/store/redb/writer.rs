//! The writer thread: group commit.
//!
//! A single batch is committed at once. While its commit syncs, other batches queue up and share the
//! next transaction, so under load the cost of a sync is shared by many batches.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use redb::ReadOnlyTable;

use super::super::plan::{Plan, plan};
use super::super::{Batch, CommitError, Committed, Record, StoreError, envelope};
use super::checkpoint::{Checkpoints, now};
use super::compact;
use super::error::{Fault, catch_panic, contain_damage};
use super::options::RedbOptions;
use super::queue::{Task, Verdict};
use super::read::{ReadFault, record};
use super::recovery::Healer;
use super::schema::{META, RECORDS, SEQUENCE_NAME, read_sequence};
use super::shared_state::StoreState;

/// Serves the queue until all senders are dropped and each queued batch is answered.
pub(super) fn run(shared: &Arc<StoreState>, queue: &Receiver<Task>, options: &RedbOptions, mut healer: Healer) {
    let group_size = options.group_size.max(1);
    let mut checkpoints = Checkpoints::new(options.checkpoint_from, now());
    loop {
        let received = match checkpoints.wait(now()) {
            Some(wait) => queue.recv_timeout(wait),
            None => queue.recv().map_err(RecvTimeoutError::from),
        };
        let first = match received {
            Ok(task) => Some(task),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let mut answers = Vec::new();
        let mut batches = Vec::new();
        let mut touched = Vec::new();
        let mut suspect = false;
        let mut compaction = None;
        for task in first.into_iter().chain(queue.try_iter()).take(group_size) {
            match task {
                Task::Commit(batch, answer) => {
                    // Also without a watcher, because one may come before the commit.
                    touched.push(batch.touched());
                    batches.push(batch);
                    answers.push(answer);
                }
                Task::ReadFailed(generation) => suspect |= generation == shared.generation(),
                Task::Compact(next) => {
                    compaction = Some(next);
                    break;
                }
            }
        }
        let (verdicts, fault) = commit_or_refuse(shared, batches, &mut checkpoints);
        if fault.is_some() {
            // Before the answers, so that an immediate retry gets `Unavailable` and does not use the
            // failed engine.
            shared.freeze();
        }
        let mut committed = HashSet::new();
        for ((answer, verdict), touched) in answers.into_iter().zip(verdicts).zip(touched) {
            if verdict.is_ok() {
                committed.extend(touched);
            }
            // The caller may have dropped its future; the batch is committed all the same.
            let _ = answer.send(verdict);
        }
        // After the answers, so that many watchers delay no caller.
        shared.notifier().notify(committed);
        let mut fault = fault.or_else(|| suspect.then(|| Fault::Engine("a read failed".into())));
        if fault.is_none()
            && let Some(compaction) = compaction
        {
            fault = compact::run(shared, &healer, compaction).err();
        }
        if let Some(fault) = fault {
            tracing::error!(cause = %fault.text(), "the storage engine failed, reopening its file");
            shared.health().failed();
            healer.heal(shared, queue);
            checkpoints.engine_failed();
        }
    }
    shared.close();
}

/// Commits a group, unless it is known that its writes would fail, or would be lost because the file was removed or
/// replaced. Then nothing touches the file. Without a batch, the commit is a checkpoint or none.
fn commit_or_refuse(
    shared: &StoreState,
    batches: Vec<Batch>,
    checkpoints: &mut Checkpoints,
) -> (Vec<Verdict>, Option<Fault>) {
    let health = shared.health();
    let bytes = batches.iter().map(Batch::bytes).sum();
    if !batches.is_empty()
        && let Some(why) = health.refusal(bytes)
    {
        health.refused(batches.len() as u64);
        let refusal = || Err(StoreError::Unavailable(why.clone()).into());
        return (batches.iter().map(|_| refusal()).collect(), None);
    }
    let (file_bytes, began) = (health.file_bytes().unwrap_or(0), now());
    let has_batches = !batches.is_empty();
    let is_checkpoint = (has_batches || checkpoints.is_missing())
        && checkpoints.is_due(file_bytes, |more| health.room().has(bytes + more), began);
    let (verdicts, fault) = commit_group(shared, batches, is_checkpoint);
    let is_committed = verdicts.iter().any(Result::is_ok);
    if is_checkpoint && fault.is_none() && (is_committed || !has_batches) {
        checkpoints.made(file_bytes, began, now());
    } else if is_committed {
        checkpoints.committed(file_bytes);
    }
    match fault {
        Some(Fault::Full(_)) => health.room().failed(bytes),
        None if is_committed => health.room().committed(bytes),
        _ => {}
    }
    (verdicts, fault)
}

/// Commits the batches of a group whose checks hold. Returns one verdict for each batch, and the fault
/// after which the file must be reopened. A checkpoint is committed also without a batch.
pub(super) fn commit_group(
    shared: &StoreState,
    batches: Vec<Batch>,
    is_checkpoint: bool,
) -> (Vec<Verdict>, Option<Fault>) {
    if batches.is_empty() && !is_checkpoint {
        return (Vec::new(), None);
    }
    let count = batches.len();
    let group = WriteGroup::default();
    let fault = match catch_panic(|| group.run(shared, batches, is_checkpoint)) {
        Ok(Ok(())) => None,
        // Only the reads before the first write contain damage, so nothing was written and the engine did not fail: the
        // group is refused, and the store keeps serving.
        Ok(Err(Fault::Block(damage))) => {
            shared.health().report(damage, || "the tables of the store".into());
            group.verdicts.set(
                (0..count)
                    .map(|_| Err(Fault::Block(damage).into_store_error().into()))
                    .collect(),
            );
            None
        }
        Ok(Err(fault)) => Some(fault),
        Err(panic) => Some(Fault::Engine(panic)),
    };
    let mut verdicts = group.verdicts.take();
    if let Some(fault) = &fault {
        // The group's own writes may not be on disk, so a verdict that could depend on them is
        // void. Refusals before the first accepted batch depended on committed state alone: they stay.
        let committing = group.committing.get();
        for verdict in verdicts.iter_mut().skip_while(|verdict| verdict.is_err()) {
            *verdict = Err(match verdict {
                Ok(_) if committing => StoreError::OutcomeUnknown(fault.text()).into(),
                _ => StoreError::Unavailable(fault.text()).into(),
            });
        }
        verdicts.resize_with(count, || Err(StoreError::Unavailable(fault.text()).into()));
    }
    (verdicts, fault)
}

/// The state of one group commit, in cells so that it survives a panic of the engine.
#[derive(Default)]
struct WriteGroup {
    verdicts: Cell<Vec<Verdict>>,
    committing: Cell<bool>,
}

impl WriteGroup {
    fn run(&self, shared: &StoreState, batches: Vec<Batch>, is_checkpoint: bool) -> Result<(), Fault> {
        let base = Base::open(shared)?;
        let mut transaction = shared.begin_write()?;
        transaction.set_quick_repair(is_checkpoint);
        let is_without_batch = batches.is_empty();
        let mut dirty = false;
        let mut tracked = Vec::new();
        // The changes of this group by key. Several batches often change the same counter or log
        // head; only the last state of each record is written.
        let mut touched: BTreeMap<Vec<u8>, Option<Record>> = BTreeMap::new();
        {
            let mut records = transaction.open_table(RECORDS)?;
            let mut meta = transaction.open_table(META)?;
            let mut sequence = base.sequence;
            for batch in batches {
                let current = |key: &[u8]| match touched.get(key) {
                    Some(change) => Ok(change.clone()),
                    // The service has just read the records that a batch checks, so they are usually cached.
                    None => match shared.hot().get(key) {
                        Some(found) => Ok(found),
                        None => base.record(key).map_err(Refusal::from),
                    },
                };
                let of_batch = batch.tracked();
                let planned = plan(batch, sequence, current).and_then(|plan| {
                    base.verify_paths(plan.changes.keys().filter(|key| !touched.contains_key(*key)))?;
                    Ok(plan)
                });
                let verdict = match planned {
                    Ok(Plan {
                        changes,
                        numbers,
                        last_version,
                    }) => {
                        touched.extend(changes);
                        tracked.extend(of_batch);
                        (sequence, dirty) = (last_version, true);
                        Ok(Committed { numbers })
                    }
                    Err(Refusal::Batch(error)) => Err(error),
                    Err(Refusal::Engine(fault)) => return Err(fault),
                };
                let mut verdicts = self.verdicts.take();
                verdicts.push(verdict);
                self.verdicts.set(verdicts);
            }
            for (key, change) in &touched {
                match change {
                    Some(record) => {
                        let sealed = envelope::seal(key, record.version, &record.value);
                        records.insert(&**key, &*sealed)?;
                    }
                    None => drop(records.remove(&**key)?),
                }
            }
            if dirty {
                meta.insert(SEQUENCE_NAME, sequence)?;
            }
        }
        // An open snapshot would keep the engine from reusing the pages that this commit frees.
        drop(base);
        if !dirty && !is_without_batch {
            return Ok(transaction.abort()?);
        }
        self.committing.set(true);
        let commit = shared.hot().begin(touched);
        // After a failure the caller takes the store down, which empties the cache.
        transaction.commit()?;
        shared.trackers().note(&tracked);
        shared.hot().end(commit);
        Ok(())
    }
}

/// The committed state that a group builds on. It is read outside of the group's write transaction: an I/O error in a
/// write transaction fails the whole engine, while damage that is found here refuses one batch.
struct Base<'a> {
    shared: &'a StoreState,
    records: ReadOnlyTable<&'static [u8], &'static [u8]>,
    /// The last version that the store assigned.
    sequence: u64,
}

impl<'a> Base<'a> {
    fn open(shared: &'a StoreState) -> Result<Self, Fault> {
        let snapshot = shared.begin_read()?;
        let sequence =
            contain_damage(|| read_sequence(&snapshot))?.map_err(|error| Fault::Damage(error.to_string()))?;
        let records = contain_damage(|| snapshot.open_table(RECORDS))??;
        Ok(Self {
            shared,
            records,
            sequence,
        })
    }

    fn record(&self, key: &[u8]) -> Result<Option<Record>, ReadFault> {
        self.read(key, || record(&self.records, key))
    }

    /// Reads the pages on the path to each of these keys, which a write of the key reads as well.
    fn verify_paths<'k>(&self, keys: impl Iterator<Item = &'k Vec<u8>>) -> Result<(), Refusal> {
        for key in keys {
            self.read(key, || Ok(self.records.get(key.as_slice()).map(drop)?))?;
        }
        Ok(())
    }

    fn read<T>(&self, key: &[u8], work: impl FnOnce() -> Result<T, ReadFault>) -> Result<T, ReadFault> {
        match contain_damage(work) {
            Ok(outcome) => outcome,
            Err(Fault::Block(damage)) => {
                self.shared.health().report(damage, || envelope::describe(key));
                Err(ReadFault::Record(Fault::Block(damage).into_store_error()))
            }
            Err(fault) => Err(ReadFault::Engine(fault)),
        }
    }
}

/// Why a batch was not applied.
enum Refusal {
    /// A refusal of this batch only; the other batches of the group continue.
    Batch(CommitError),
    /// An engine failure, which aborts the whole transaction.
    Engine(Fault),
}

impl From<CommitError> for Refusal {
    fn from(error: CommitError) -> Self {
        Self::Batch(error)
    }
}

impl From<ReadFault> for Refusal {
    fn from(fault: ReadFault) -> Self {
        match fault {
            ReadFault::Record(error) => Self::Batch(error.into()),
            ReadFault::Engine(fault) => Self::Engine(fault),
        }
    }
}
