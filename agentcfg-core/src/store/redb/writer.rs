//! The writer: one thread that turns whatever waits into one transaction.
//!
//! A lone batch is committed at once. While its commit syncs, others queue up and share the next
//! one, so the cost of a sync spreads over as many batches as there are at that moment.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use redb::ReadableTable;
use tokio::sync::oneshot;

use super::super::plan::{Plan, plan};
use super::super::{Batch, CommitError, Committed, Record, StoreError, envelope};
use super::error::{Fault, shielded};
use super::heal::Healer;
use super::read::{ReadFault, record};
use super::schema::{META, RECORDS, SEQUENCE_NAME};
use super::state::{Shared, Status};

/// The answer to one batch.
pub(super) type Verdict = Result<Committed, CommitError>;

/// Work for the writer.
#[derive(Debug)]
pub(super) enum Task {
    /// A batch, and where its answer goes.
    Commit(Batch, oneshot::Sender<Verdict>),
    /// A read met a failed engine in this generation of the database.
    Suspect(u64),
}

/// Serves the queue until each sender is gone and all that waits is answered.
pub(super) fn run(shared: &Arc<Shared>, queue: &Receiver<Task>, group_size: usize, mut healer: Healer) {
    while let Ok(first) = queue.recv() {
        let mut answers = Vec::new();
        let mut batches = Vec::new();
        let mut suspect = false;
        for task in std::iter::once(first).chain(queue.try_iter()).take(group_size) {
            match task {
                Task::Commit(batch, answer) => {
                    batches.push(batch);
                    answers.push(answer);
                }
                Task::Suspect(generation) => suspect |= generation == shared.generation(),
            }
        }
        let (verdicts, fault) = commit_group(shared, batches);
        if fault.is_some() {
            // Before the answers: who retries at once meets "unavailable" and not a broken engine.
            shared.take_down(Status::Healing);
        }
        for (answer, verdict) in answers.into_iter().zip(verdicts) {
            // Nobody may be waiting any more; the batch counts all the same.
            let _ = answer.send(verdict);
        }
        if let Some(fault) = fault.or_else(|| suspect.then(|| Fault::Engine("a read failed".into()))) {
            tracing::error!(cause = fault.text(), "the store failed, its file is opened anew");
            healer.heal(shared, queue);
        }
    }
    shared.take_down(Status::Closed);
}

/// Commits what can be committed of a group; one verdict for each batch, and the fault that calls
/// for a new opening.
pub(super) fn commit_group(shared: &Shared, batches: Vec<Batch>) -> (Vec<Verdict>, Option<Fault>) {
    if batches.is_empty() {
        return (Vec::new(), None);
    }
    let count = batches.len();
    let group = Group::default();
    let fault = match shielded(|| group.run(shared, batches)) {
        Ok(Ok(())) => None,
        Ok(Err(fault)) => Some(fault),
        Err(panic) => Some(Fault::Engine(panic)),
    };
    let mut verdicts = group.verdicts.take();
    if let Some(fault) = &fault {
        // What the group saw of its own writes may not have happened. A refusal that stood on
        // nothing but committed state stays.
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

/// One transaction in the making. Its state is in cells, so that it survives a panic of the engine.
#[derive(Default)]
struct Group {
    verdicts: Cell<Vec<Verdict>>,
    committing: Cell<bool>,
}

impl Group {
    fn run(&self, shared: &Shared, batches: Vec<Batch>) -> Result<(), Fault> {
        let transaction = shared.begin_write()?;
        let mut dirty = false;
        // What the batches of this group change, in the order of the keys. Many add to the same counter or log, and only the
        // last state of each record is written.
        let mut touched: BTreeMap<Vec<u8>, Option<Record>> = BTreeMap::new();
        {
            let mut records = transaction.open_table(RECORDS)?;
            let mut meta = transaction.open_table(META)?;
            let found = meta.get(SEQUENCE_NAME)?.map(|found| found.value());
            let mut sequence = found.ok_or_else(|| Fault::Damage("the version sequence is missing".into()))?;
            for batch in batches {
                let current = |key: &[u8]| match touched.get(key) {
                    Some(change) => Ok(change.clone()),
                    // What a batch checks was read a moment ago by whoever made it, so that it is in memory as a rule.
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
        // After a failure the store is taken down, and what is in memory with it.
        transaction.commit()?;
        shared.hot().end(commit);
        Ok(())
    }
}

/// Why a batch is not applied.
enum Refusal {
    /// The batch's own matter; the others go on.
    Batch(CommitError),
    /// The engine's; the whole transaction ends.
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
