//! The writer thread: group commit.
//!
//! A single batch is committed at once. While its commit syncs, other batches queue up and share the
//! next transaction, so under load the cost of a sync is shared by many batches.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use redb::ReadableTable;
use tokio::sync::oneshot;

use super::super::plan::{Plan, plan};
use super::super::{Batch, CommitError, Committed, Record, StoreError, envelope};
use super::error::{Fault, catch_panic};
use super::heal::Healer;
use super::read::{ReadFault, record};
use super::schema::{META, RECORDS, SEQUENCE_NAME};
use super::state::{Shared, Status};

/// The result of one batch.
pub(super) type Verdict = Result<Committed, CommitError>;

/// Work for the writer.
#[derive(Debug)]
pub(super) enum Task {
    /// A batch, and the channel for its result.
    Commit(Batch, oneshot::Sender<Verdict>),
    /// A read found that the engine of this generation of the database has failed.
    ReadFailed(u64),
}

/// Serves the queue until all senders are dropped and each queued batch is answered.
pub(super) fn run(shared: &Arc<Shared>, queue: &Receiver<Task>, group_size: usize, mut healer: Healer) {
    while let Ok(first) = queue.recv() {
        let mut answers = Vec::new();
        let mut batches = Vec::new();
        let mut touched = Vec::new();
        let mut suspect = false;
        for task in std::iter::once(first).chain(queue.try_iter()).take(group_size) {
            match task {
                Task::Commit(batch, answer) => {
                    // Also without a watcher, because one may come before the commit.
                    touched.push(batch.touched());
                    batches.push(batch);
                    answers.push(answer);
                }
                Task::ReadFailed(generation) => suspect |= generation == shared.generation(),
            }
        }
        let (verdicts, fault) = commit_group(shared, batches);
        if fault.is_some() {
            // Before the answers, so that an immediate retry gets `Unavailable` and does not use the
            // failed engine.
            shared.stop_serving(Status::Recovering);
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
        if let Some(fault) = fault.or_else(|| suspect.then(|| Fault::Engine("a read failed".into()))) {
            tracing::error!(cause = fault.text(), "the storage engine failed, reopening its file");
            healer.heal(shared, queue);
        }
    }
    shared.stop_serving(Status::Closed);
}

/// Commits the batches of a group whose checks hold. Returns one verdict for each batch, and the fault
/// after which the file must be reopened.
pub(super) fn commit_group(shared: &Shared, batches: Vec<Batch>) -> (Vec<Verdict>, Option<Fault>) {
    if batches.is_empty() {
        return (Vec::new(), None);
    }
    let count = batches.len();
    let group = Group::default();
    let fault = match catch_panic(|| group.run(shared, batches)) {
        Ok(Ok(())) => None,
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
                Ok(_) if committing => StoreError::OutcomeUnknown(fault.text().to_owned()).into(),
                _ => StoreError::Unavailable(fault.text().to_owned()).into(),
            });
        }
        verdicts.resize_with(count, || Err(StoreError::Unavailable(fault.text().to_owned()).into()));
    }
    (verdicts, fault)
}

/// The state of one group commit, in cells so that it survives a panic of the engine.
#[derive(Default)]
struct Group {
    verdicts: Cell<Vec<Verdict>>,
    committing: Cell<bool>,
}

impl Group {
    fn run(&self, shared: &Shared, batches: Vec<Batch>) -> Result<(), Fault> {
        let transaction = shared.begin_write()?;
        let mut dirty = false;
        // The changes of this group by key. Several batches often change the same counter or log
        // head; only the last state of each record is written.
        let mut touched: BTreeMap<Vec<u8>, Option<Record>> = BTreeMap::new();
        {
            let mut records = transaction.open_table(RECORDS)?;
            let mut meta = transaction.open_table(META)?;
            let found = meta.get(SEQUENCE_NAME)?.map(|found| found.value());
            let mut sequence = found.ok_or_else(|| Fault::Damage("the version sequence is missing".into()))?;
            for batch in batches {
                let current = |key: &[u8]| match touched.get(key) {
                    Some(change) => Ok(change.clone()),
                    // The service has just read the records that a batch checks, so they are usually cached.
                    None => match shared.hot().get(key) {
                        Some(record) => Ok(Some(record)),
                        None => record(&records, key).map_err(Refusal::from),
                    },
                };
                let verdict = match plan(batch, sequence, current) {
                    Ok(Plan {
                        changes,
                        numbers,
                        last_version,
                    }) => {
                        touched.extend(changes);
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
        if !dirty {
            return Ok(transaction.abort()?);
        }
        self.committing.set(true);
        let commit = shared.hot().begin(touched);
        // After a failure the caller takes the store down, which empties the cache.
        transaction.commit()?;
        shared.hot().end(commit);
        Ok(())
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
