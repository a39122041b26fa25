//! Commits: one pipelined transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::timeout;
use tokio_postgres::Row;

use super::super::plan::{plan, written_twice};
use super::super::{Batch, Check, CommitError, Committed, Key, Record, StoreError, Write};
use super::error::{Verdict, is_lost, rolled_back, unavailable, verdict};
use super::options::describe;
use super::pool::Connections;
use super::read;
use super::run::{Param, PipelineOutcome, Step, pipeline};
use super::sql::{BEGIN, MAX, Sql};
use super::table::Place;

/// How many times a transaction is sent when others contend with it.
const ATTEMPTS: u32 = 12;

/// Checks and writes a batch. Every version that a new key gets is greater than `base`.
pub(super) async fn commit(
    connections: &Connections,
    sql: &Sql,
    base: u64,
    batch: Batch,
) -> Result<Committed, CommitError> {
    if batch.writes.is_empty() {
        let state = State::read(connections, sql, &batch).await?;
        return state.decide(batch).map(|()| Committed { numbers: Vec::new() });
    }
    let steps = compile(sql, base, &batch)?;
    for attempt in 0..ATTEMPTS {
        match send(connections, &steps).await? {
            Sent::Committed(rows) => {
                return Ok(Committed {
                    numbers: numbers(&steps, &rows, batch.writes.len())?,
                });
            }
            Sent::Refused => {
                // The database reports only that some condition failed. The common planner finds out
                // which one, on a snapshot. If all hold there, the conflict has passed: retry.
                State::read(connections, sql, &batch).await?.decide(batch.clone())?;
            }
            Sent::Contended => tokio::time::sleep(Duration::from_millis(1 << attempt.min(6))).await,
        }
    }
    Err(StoreError::Unavailable("too many concurrent commits contend for the same records".into()).into())
}

/// A step, and the index of the write whose number it returns.
struct Compiled<'a> {
    step: Step<'a>,
    write: Option<usize>,
}

enum Sent {
    Committed(Vec<Vec<Row>>),
    Refused,
    Contended,
}

async fn send(connections: &Connections, compiled: &[Compiled<'_>]) -> Result<Sent, CommitError> {
    let steps: Vec<Step<'_>> = compiled.iter().map(|compiled| compiled.step.clone()).collect();
    let client = connections.client().await?;
    let flight = timeout(
        connections.commit_timeout,
        pipeline(&client, connections.statements, BEGIN, &steps),
    )
    .await;
    let (outcome, lost) = match flight {
        Ok(Ok(PipelineOutcome::Committed(rows))) => return Ok(Sent::Committed(rows)),
        // Preparing failed: nothing of the transaction was sent.
        Ok(Err(error)) => (Err(unavailable(&error)), is_lost(&error)),
        Ok(Ok(PipelineOutcome::Failed(error))) => match verdict(&error) {
            Verdict::Refused => return Ok(Sent::Refused),
            Verdict::Contended => return Ok(Sent::Contended),
            Verdict::Failed => (Err(unavailable(&error)), is_lost(&error)),
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
    outcome.map_err(CommitError::Store)
}

/// Compiles a batch into steps.
///
/// The steps are sorted by key, so that all transactions lock rows in the same order. A check and a write of one key
/// become one step. Of two different checks of one key at least one fails, so it does not matter which is merged: the
/// other precedes the write.
///
/// A record with a revision is behind the head of its log in that order, so its step reads the number that the append has
/// assigned.
fn compile<'a>(sql: &'a Sql, base: u64, batch: &Batch) -> Result<Vec<Compiled<'a>>, CommitError> {
    batch.check_revised()?;
    let mut checks: BTreeMap<&Key, &Check> = BTreeMap::new();
    let mut apart = Vec::new();
    for check in &batch.checks {
        apart.extend(checks.insert(key_of(check), check).filter(|other| *other != check));
    }
    let mut written = BTreeSet::new();
    let mut writes = Vec::new();
    for (index, write) in batch.writes.iter().enumerate() {
        let key = written_key(write);
        let check = match write {
            Write::Put(key, _) | Write::Delete(key) => checks.remove(key),
            Write::PutRevised(..) | Write::Add { .. } | Write::Append { .. } => None,
        };
        let compiled = match (write, check) {
            // If the check holds, there is nothing to delete.
            (Write::Delete(_), Some(absent @ Check::Absent(_))) => without_write(check_step(sql, base, absent)?),
            _ => Compiled {
                step: write_step(sql, base, write, check)?,
                write: Some(index),
            },
        };
        if !written.insert(key.clone()) {
            return Err(written_twice(&format_args!("{key:?}")).into());
        }
        writes.push((key, compiled));
    }
    let mut steps = Vec::with_capacity(apart.len() + checks.len() + writes.len());
    for check in apart.into_iter().chain(checks.into_values()) {
        steps.push((key_of(check).clone(), without_write(check_step(sql, base, check)?)));
    }
    steps.append(&mut writes);
    steps.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(steps.into_iter().map(|(_, compiled)| compiled).collect())
}

fn without_write(step: Step<'_>) -> Compiled<'_> {
    Compiled { step, write: None }
}

fn key_of(check: &Check) -> &Key {
    match check {
        Check::Absent(key) | Check::Version(key, _) => key,
    }
}

/// The key whose row a write locks first.
fn written_key(write: &Write) -> Key {
    match write {
        Write::Put(key, _) | Write::PutRevised(key, _) | Write::Delete(key) => key.clone(),
        Write::Add { counter, .. } => counter.clone(),
        Write::Append { log, .. } => Key::log_head(*log),
    }
}

fn check_step<'a>(sql: &'a Sql, base: u64, check: &Check) -> Result<Step<'a>, CommitError> {
    let place = Place::of_key(key_of(check))?;
    let statements = sql.on(place.table);
    let (sql, number) = match check {
        Check::Absent(key) => (&statements.check_absent, version(first_version(base, key) - 1)?),
        Check::Version(_, wanted) => (&statements.check_version, wanted_version(*wanted)),
    };
    let params = vec![place.scope, Param::Text(key_of(check).item().to_owned()), number];
    Ok(Step { sql, params })
}

fn write_step<'a>(sql: &'a Sql, base: u64, write: &Write, check: Option<&Check>) -> Result<Step<'a>, CommitError> {
    let locked = written_key(write);
    let first = version(first_version(base, &locked))?;
    let place = Place::of_key(&locked)?;
    let statements = sql.on(place.table);
    let key = |key: &Key| vec![place.scope.clone(), Param::Text(key.item().to_owned())];
    let (sql, params) = match (write, check) {
        (Write::Put(k, value), check) => {
            let (sql, number) = match check {
                None => (&statements.put, first),
                Some(Check::Absent(_)) => (&statements.put_absent, first),
                Some(Check::Version(_, wanted)) => (&statements.put_version, wanted_version(*wanted)),
            };
            (sql, [key(k), vec![number, text(value)?]].concat())
        }
        (Write::PutRevised(k, value), _) => {
            let params = [key(k), vec![first, text(value)?]].concat();
            (&statements.put_revised, params)
        }
        (Write::Delete(k), Some(Check::Version(_, wanted))) => {
            let params = [key(k), vec![wanted_version(*wanted)]].concat();
            (&statements.delete_version, params)
        }
        (Write::Delete(k), _) => (&statements.delete, key(k)),
        (Write::Add { counter, delta, max }, _) => {
            let bound = match max {
                Some(max) if *delta > 0 => *max,
                _ => MAX,
            };
            let numbers = vec![Param::Text(delta.to_string()), Param::Text(bound.to_string())];
            // An absent counter counts as 0, so only an addend within the bounds may create it.
            if u64::try_from(*delta).is_ok_and(|first| first <= bound) {
                (&statements.add, [key(counter), vec![first], numbers].concat())
            } else {
                (&statements.add_present, [key(counter), numbers].concat())
            }
        }
        (Write::Append { value, .. }, _) => (&sql.append, vec![place.scope.clone(), first, text(value)?]),
    };
    Ok(Step { sql, params })
}

/// The first version of a key.
///
/// It is derived from the key, so that versions of different records differ: a client that compares one
/// record's entity tag with another record gets a mismatch.
fn first_version(base: u64, key: &Key) -> u64 {
    let mut bytes = [0; 8];
    bytes[3..].copy_from_slice(&Sha256::digest(key.encode())[..5]);
    base + 1 + u64::from_be_bytes(bytes)
}

fn version(version: u64) -> Result<Param, CommitError> {
    i64::try_from(version)
        .map(Param::Number)
        .map_err(|_| StoreError::Corrupt("the versions of the store are exhausted".into()).into())
}

/// The version that a check requires. A version beyond the column's range becomes -1, which no record has.
fn wanted_version(version: u64) -> Param {
    Param::Number(i64::try_from(version).unwrap_or(-1))
}

fn text(value: &[u8]) -> Result<Param, CommitError> {
    String::from_utf8(value.to_vec())
        .map(Param::Text)
        .map_err(|_| StoreError::Corrupt("a value is not UTF-8 text".into()).into())
}

/// The number of each write, in the order of the writes.
fn numbers(steps: &[Compiled<'_>], rows: &[Vec<Row>], writes: usize) -> Result<Vec<u64>, CommitError> {
    let mut numbers = vec![0; writes];
    for (compiled, rows) in steps.iter().zip(rows) {
        if let (Some(index), Some(row)) = (compiled.write, rows.first()) {
            let text: &str = read::column(row, 0)?;
            numbers[index] = text
                .parse()
                .map_err(|_| StoreError::OutcomeUnknown(format!("a write returned {text:?} instead of a number")))?;
        }
    }
    Ok(numbers)
}

/// The records that a batch checks or writes, in one snapshot.
struct State(BTreeMap<Vec<u8>, Option<Record>>);

impl State {
    async fn read(connections: &Connections, sql: &Sql, batch: &Batch) -> Result<Self, StoreError> {
        let keys: BTreeSet<Key> = batch
            .checks
            .iter()
            .map(|check| key_of(check).clone())
            .chain(batch.writes.iter().map(written_key))
            .collect();
        let keys: Vec<Key> = keys.into_iter().collect();
        let records = read::get(connections, sql, &keys).await?;
        Ok(Self(keys.iter().map(Key::encode).zip(records).collect()))
    }

    /// Plans the batch on this snapshot: its error is the reason of a refusal.
    fn decide(&self, batch: Batch) -> Result<(), CommitError> {
        let read = |key: &[u8]| Ok::<_, CommitError>(self.0.get(key).cloned().flatten());
        plan(batch, 0, read).map(drop)
    }
}
