//! Commits: one pipelined transaction for a batch, or for a group of batches.

mod key_order;
mod keys;
mod merge;
mod numbers;
mod refusal_reason;
mod single_batch;

use std::collections::BTreeMap;
use std::time::Duration;

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::group::{GroupEngine, Limits, lane};
use agentcfg_core::store::{Batch, CommitError, Committed, Partition, StoreError, Write};
use async_trait::async_trait;
use deadpool_postgres::Client;
use tokio::time::timeout;
use tokio_postgres::Row;

use self::merge::{Merge, Merged};
use self::refusal_reason::SnapshotState;
use self::single_batch::Compiled;
use super::error::{ErrorVerdict, describe, is_lost, rolled_back, unavailable, verdict};
use super::many_rows_sql::Existing;
use super::pipeline::{PipelineOutcome, Step, pipeline};
use super::sql::BEGIN;
use super::{Engine, flights};

/// What precedes the statements of a transaction that has begun: nothing.
const IN_TRANSACTION: &str = "";

/// How many times a transaction is sent without success when others contend with it.
const ATTEMPTS: u32 = 12;

/// How long a commit waits for those before it, of which a lock in the database may hold up all of one workspace.
const QUEUED: Duration = Duration::from_secs(5);

/// The limits of groups on a pool of this size.
pub(super) fn limits(pool_size: usize) -> Limits {
    Limits {
        group: 64,
        bytes: 1 << 20,
        lane: 1024,
        queue: 4096,
        ..flights(pool_size, QUEUED)
    }
}

#[async_trait]
impl GroupEngine for Engine {
    fn is_near(&self) -> bool {
        self.connections.is_near()
    }

    fn pause(&self, size: usize, took: Duration) -> Duration {
        // A few callers are answered sooner without.
        const SIZE: usize = 4;
        const LONGEST: Duration = Duration::from_millis(3);
        match size >= SIZE && self.is_near() && self.contention.is_found() {
            true => took.min(LONGEST),
            false => Duration::ZERO,
        }
    }

    async fn commit_group(&self, batches: Vec<Batch>) -> Vec<Result<Committed, CommitError>> {
        match <[Batch; 1]>::try_from(batches) {
            Ok([batch]) => vec![self.commit_alone(batch).await],
            Err(batches) => BatchGroup::new(self, &batches).commit().await,
        }
    }
}

impl Engine {
    /// Commits one batch in a transaction of its own.
    pub(super) async fn commit_alone(&self, batch: Batch) -> Result<Committed, CommitError> {
        if batch.writes.is_empty() {
            let state = SnapshotState::read(self, [&batch]).await?;
            return state.decide(&batch).map(|()| Committed { numbers: Vec::new() });
        }
        let steps = single_batch::compile(&self.sql, self.base, &batch)?;
        for attempt in 0..ATTEMPTS {
            match self.send(&single_batch::steps(&steps)).await? {
                Sent::Committed(rows) => return self.committed(&batch, &steps, &rows),
                Sent::Refused => {
                    // The database reports only that some condition failed. The common planner finds out
                    // which one, on a snapshot. If all hold there, the conflict has passed: retry.
                    SnapshotState::read(self, [&batch]).await?.decide(&batch)?;
                }
                Sent::Contended | Sent::Duplicate => back_off(attempt).await,
                Sent::BadValue(error) | Sent::Failed(error) => return Err(error.into()),
            }
        }
        Err(contended().into())
    }

    fn committed(&self, batch: &Batch, steps: &[Compiled<'_>], rows: &[Vec<Row>]) -> Result<Committed, CommitError> {
        let committed = Committed {
            numbers: single_batch::numbers(steps, rows, batch.writes.len())?,
        };
        self.contention.note(ranges(appended(batch, &committed)));
        Ok(committed)
    }

    /// Commits one batch in a transaction that has begun, and ends that.
    pub(super) async fn commit_in(&self, client: Client, batch: Batch) -> Result<Committed, CommitError> {
        let steps = single_batch::compile(&self.sql, self.base, &batch)?;
        match self
            .send_on(client, IN_TRANSACTION, &single_batch::steps(&steps))
            .await?
        {
            Sent::Committed(rows) => self.committed(&batch, &steps, &rows),
            // Nothing has changed. An attempt of its own finds out why, or succeeds.
            _ => self.commit_alone(batch).await,
        }
    }

    /// Sends a transaction in one round trip.
    ///
    /// # Errors
    ///
    /// When the connection failed, so that the outcome may be unknown.
    async fn send(&self, steps: &[Step<'_>]) -> Result<Sent, StoreError> {
        let client = self.connections.client().await?;
        self.send_on(client, BEGIN, steps).await
    }

    /// As [`Self::send`], over this connection.
    async fn send_on(&self, client: Client, begin: &str, steps: &[Step<'_>]) -> Result<Sent, StoreError> {
        let connections = &self.connections;
        let flight = timeout(
            connections.commit_timeout,
            pipeline(&client, connections.statements, begin, steps),
        )
        .await;
        match &flight {
            Ok(Ok(PipelineOutcome::Committed(_))) => connections.answered(),
            Ok(Ok(PipelineOutcome::Failed(error))) if error.as_db_error().is_some() => connections.answered(),
            _ => {}
        }
        let (outcome, lost) = match flight {
            Ok(Ok(PipelineOutcome::Committed(rows))) => return Ok(Sent::Committed(rows)),
            // Preparing failed: nothing of the transaction was sent. One that has begun before ends with its
            // connection.
            Ok(Err(error)) => (Err(unavailable(&error)), is_lost(&error) || begin == IN_TRANSACTION),
            Ok(Ok(PipelineOutcome::Failed(error))) => match verdict(&error) {
                ErrorVerdict::Refused => return Ok(Sent::Refused),
                ErrorVerdict::Contended => return Ok(Sent::Contended),
                ErrorVerdict::Duplicate => return Ok(Sent::Duplicate),
                ErrorVerdict::BadValue => return Ok(Sent::BadValue(unavailable(&error))),
                ErrorVerdict::Failed if is_lost(&error) => (Err(unavailable(&error)), true),
                ErrorVerdict::Failed => return Ok(Sent::Failed(unavailable(&error))),
            },
            Ok(Ok(PipelineOutcome::Unanswered(error))) if rolled_back(&error) => return Ok(Sent::Contended),
            Ok(Ok(PipelineOutcome::Unanswered(error))) => (Err(StoreError::OutcomeUnknown(describe(&error))), true),
            Err(_) => {
                let why = "the database did not answer the commit in time";
                (Err(StoreError::OutcomeUnknown(why.into())), true)
            }
        };
        if lost {
            connections.discard(client);
        }
        outcome
    }
}

/// The end of a transaction that the database answered.
enum Sent {
    Committed(Vec<Vec<Row>>),
    /// A condition did not hold. Nothing changed.
    Refused,
    /// Others contended with it. Nothing changed.
    Contended,
    /// A key that was taken for new has a row. Nothing changed.
    Duplicate,
    /// The database does not take a value. Nothing changed.
    BadValue(StoreError),
    /// The database cannot run it now. Nothing changed.
    Failed(StoreError),
}

/// A group of batches on its way. Batches whose conditions exclude each other do not fit in one transaction, so a group
/// may need several; batches that do not touch the same records, as nearly all, need one.
struct BatchGroup<'a> {
    engine: &'a Engine,
    batches: &'a [Batch],
    verdicts: Vec<Option<Result<Committed, CommitError>>>,
}

impl<'a> BatchGroup<'a> {
    fn new(engine: &'a Engine, batches: &'a [Batch]) -> Self {
        Self {
            engine,
            batches,
            verdicts: vec![None; batches.len()],
        }
    }

    async fn commit(mut self) -> Vec<Result<Committed, CommitError>> {
        let mut now: Vec<usize> = (0..self.batches.len()).collect();
        // The batches that are committed by themselves at the end.
        let mut alone = Vec::new();
        // The batches that did not fit in the last transaction, or were in one that was refused.
        let mut later = Vec::new();
        let (mut fruitless, mut refusals) = (0, 0);
        loop {
            if now.is_empty() {
                (now, later) = self.decide(later).await;
                if now.is_empty() {
                    break;
                }
            }
            if fruitless == ATTEMPTS {
                self.refuse(now.into_iter().chain(later), &contended());
                break;
            }
            if refusals > 1 {
                // The snapshots do not show why: other servers are faster, or the batches exclude each other in a way
                // that the merge does not see. One batch at a time makes progress.
                later.extend(now.split_off(1));
                later.sort_unstable();
            }
            let merge = Merge::of(self.batches, &now);
            alone.extend_from_slice(&merge.alone);
            later.extend_from_slice(&merge.later);
            if merge.merged.is_empty() {
                now.clear();
                continue;
            }
            // Keys that a batch writes for the first time are nearly always new. If that is wrong, the next attempt
            // looks.
            let new_keys = match fruitless {
                0 => Existing::Fails,
                _ => Existing::IsReplaced,
            };
            let outcome = match merge.statements(&self.engine.sql, self.engine.base, new_keys) {
                Ok(statements) => self.send(&merge, &statements).await,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(Sent::Committed(_)) => {
                    (fruitless, refusals) = (0, 0);
                    now.clear();
                }
                Ok(outcome @ (Sent::Refused | Sent::Duplicate)) => {
                    fruitless += 1;
                    // A duplicate is no refusal: the next attempt looks for rows of the new keys.
                    refusals += u32::from(matches!(outcome, Sent::Refused));
                    later.extend_from_slice(&merge.merged);
                    later.sort_unstable();
                    now.clear();
                }
                Ok(Sent::Contended) => {
                    back_off(fruitless).await;
                    fruitless += 1;
                    now = merge.merged;
                }
                // Perhaps the database does not take a value of one batch: alone it does not fail the others.
                Ok(Sent::BadValue(_)) => {
                    alone.extend(merge.merged.into_iter().chain(later));
                    alone.sort_unstable();
                    break;
                }
                Ok(Sent::Failed(error)) => {
                    self.commit_workspaces_apart(merge.merged.into_iter().chain(later).collect(), &error)
                        .await;
                    break;
                }
                Err(error) => {
                    self.refuse(merge.merged, &error);
                    // The others were not sent.
                    let unsent = StoreError::Unavailable(error.to_string());
                    self.refuse(later.into_iter().chain(alone.drain(..)), &unsent);
                    break;
                }
            }
        }
        for index in alone {
            self.verdicts[index] = Some(self.engine.commit_alone(self.batches[index].clone()).await);
        }
        let verdict = |verdict: Option<_>| verdict.unwrap_or_else(|| Err(contended().into()));
        self.verdicts.into_iter().map(verdict).collect()
    }

    /// Commits batches after a failure without effect, such as a row that stayed locked: those of each workspace apart,
    /// so that one workspace does not fail the others. A group of one workspace is refused.
    async fn commit_workspaces_apart(&mut self, batches: Vec<usize>, error: &StoreError) {
        let mut lanes: BTreeMap<Option<Partition>, Vec<usize>> = BTreeMap::new();
        for index in batches {
            lanes.entry(lane(&self.batches[index])).or_default().push(index);
        }
        if lanes.len() == 1 {
            self.refuse(lanes.into_values().flatten(), error);
            return;
        }
        for indexes in lanes.into_values() {
            let batches: Vec<Batch> = indexes.iter().map(|index| self.batches[*index].clone()).collect();
            let verdicts = Box::pin(BatchGroup::new(self.engine, &batches).commit()).await;
            for (index, verdict) in indexes.into_iter().zip(verdicts) {
                self.verdicts[index] = Some(verdict);
            }
        }
    }

    /// Sends a transaction of merged batches, and notes their verdicts if it is committed.
    async fn send(&mut self, merge: &Merge<'_>, statements: &Merged<'_>) -> Result<Sent, StoreError> {
        let sent = self.engine.send(&statements.steps).await?;
        if let Sent::Committed(rows) = &sent {
            let verdicts = merge.verdicts(self.batches, statements, rows);
            let committed = verdicts
                .iter()
                .filter_map(|(index, verdict)| Some((index, verdict.as_ref().ok()?)));
            let entries = committed.flat_map(|(index, committed)| appended(&self.batches[*index], committed));
            self.engine.contention.note(ranges(entries));
            for (index, verdict) in verdicts {
                self.verdicts[index] = Some(verdict);
            }
        }
        Ok(sent)
    }

    /// Plans batches on a snapshot. Those that fail on committed state alone get their verdicts. Returns those that can
    /// be committed together now, and those that fail only because of them.
    async fn decide(&mut self, batches: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
        let (mut now, mut later) = (Vec::new(), Vec::new());
        if batches.is_empty() {
            return (now, later);
        }
        let mut state = match SnapshotState::read(self.engine, batches.iter().map(|index| &self.batches[*index])).await
        {
            Ok(state) => state,
            Err(error) => {
                self.refuse(batches, &error);
                return (now, later);
            }
        };
        for index in batches {
            let batch = &self.batches[index];
            if state.plan(batch).is_ok() {
                now.push(index);
            } else if let Err(refusal) = state.decide(batch) {
                self.verdicts[index] = Some(Err(refusal));
            } else {
                later.push(index);
            }
        }
        (now, later)
    }

    fn refuse(&mut self, batches: impl IntoIterator<Item = usize>, error: &StoreError) {
        for index in batches {
            self.verdicts[index] = Some(Err(error.clone().into()));
        }
    }
}

/// The numbers of the entries that a batch has appended.
fn appended(batch: &Batch, committed: &Committed) -> impl Iterator<Item = (WorkspaceId, u64)> {
    let numbered = batch.writes.iter().zip(&committed.numbers);
    numbered.filter_map(|(write, number)| match write {
        Write::Append { log, .. } => Some((*log, *number)),
        _ => None,
    })
}

/// The first and the last number of the entries of each log.
fn ranges(entries: impl Iterator<Item = (WorkspaceId, u64)>) -> BTreeMap<WorkspaceId, (u64, u64)> {
    let mut ranges = BTreeMap::new();
    for (log, number) in entries {
        let (first, last) = ranges.entry(log).or_insert((number, number));
        (*first, *last) = (number.min(*first), number.max(*last));
    }
    ranges
}

/// Waits before a transaction is sent again that others contended with.
async fn back_off(attempt: u32) {
    tokio::time::sleep(Duration::from_millis(1 << attempt.min(6))).await;
}

fn contended() -> StoreError {
    StoreError::Unavailable("too many concurrent commits contend for the same records".into())
}
