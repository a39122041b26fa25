//! The statements of one batch: one for each key, so that a lone batch costs the database no more than it must.

use std::collections::{BTreeMap, BTreeSet};

use agentcfg_core::store::{Batch, Check, CommitError, Key, StoreError, Write};
use tokio_postgres::Row;

use super::super::pipeline::{Param, Step};
use super::super::read;
use super::super::sql::{MAX, Sql};
use super::super::table::Location;
use super::key_order::{first_version, order};

/// A step, and the index of the write whose number it returns.
pub(super) struct Compiled<'a> {
    step: Step<'a>,
    write: Option<usize>,
}

/// The steps alone.
pub(super) fn steps<'a>(compiled: &[Compiled<'a>]) -> Vec<Step<'a>> {
    compiled.iter().map(|compiled| compiled.step.clone()).collect()
}

/// Compiles a batch into steps.
///
/// The steps are in the order of their keys, in which all transactions lock rows. A check and a write of one key
/// become one step. Of two different checks of one key at least one fails, so it does not matter which is merged: the
/// other precedes the write.
///
/// A record with a revision is behind the head of its log in that order, so its step reads the number that the append
/// has assigned.
pub(super) fn compile<'a>(sql: &'a Sql, base: u64, batch: &Batch) -> Result<Vec<Compiled<'a>>, CommitError> {
    batch.check_revised()?;
    let mut checks: BTreeMap<&Key, &Check> = BTreeMap::new();
    let mut apart = Vec::new();
    for check in &batch.checks {
        apart.extend(checks.insert(check.key(), check).filter(|other| *other != check));
    }
    let mut written = BTreeSet::new();
    let mut writes = Vec::new();
    for (index, write) in batch.writes.iter().enumerate() {
        let key = write.key();
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
            return Err(StoreError::Misuse(format!("a batch writes {key:?} twice")).into());
        }
        writes.push((key, compiled));
    }
    let mut steps = Vec::with_capacity(apart.len() + checks.len() + writes.len());
    for check in apart.into_iter().chain(checks.into_values()) {
        let mut step = check_step(sql, base, check)?;
        if let (Check::Version(key, _), true) = (check, written.contains(check.key())) {
            step.sql = &sql.on(Location::of_key(key)?.table).lock_version;
        }
        steps.push((check.key().clone(), without_write(step)));
    }
    steps.append(&mut writes);
    steps.sort_by_cached_key(|(key, _)| order(key));
    Ok(steps.into_iter().map(|(_, compiled)| compiled).collect())
}

fn without_write(step: Step<'_>) -> Compiled<'_> {
    Compiled { step, write: None }
}

fn check_step<'a>(sql: &'a Sql, base: u64, check: &Check) -> Result<Step<'a>, CommitError> {
    let location = Location::of_key(check.key())?;
    let statements = sql.on(location.table);
    let (sql, number) = match check {
        Check::Absent(key) => (&statements.check_absent, version(first_version(base, key) - 1)?),
        Check::Version(_, wanted) => (&statements.check_version, wanted_version(*wanted)),
    };
    let params = vec![location.scope, Param::Text(check.key().item().to_owned()), number];
    Ok(Step { sql, params })
}

fn write_step<'a>(sql: &'a Sql, base: u64, write: &Write, check: Option<&Check>) -> Result<Step<'a>, CommitError> {
    let locked = write.key();
    let first = version(first_version(base, &locked))?;
    let location = Location::of_key(&locked)?;
    let statements = sql.on(location.table);
    let key = |key: &Key| vec![location.scope.clone(), Param::Text(key.item().to_owned())];
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
        (Write::Append { value, .. }, _) => (&sql.append, vec![location.scope.clone(), first, text(value)?]),
    };
    Ok(Step { sql, params })
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
pub(super) fn numbers(steps: &[Compiled<'_>], rows: &[Vec<Row>], writes: usize) -> Result<Vec<u64>, CommitError> {
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
