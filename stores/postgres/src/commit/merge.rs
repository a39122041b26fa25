//! The statements of several batches as one transaction.
//!
//! Batches share a statement for each table and form of write. Their additions to one counter become one addition, and
//! their entries of one log are appended together. Each batch that is merged is known to hold its conditions on the
//! state before the transaction, so a batch that touches a record which another one writes does not fit in the same
//! transaction.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use agentcfg_core::store::{Batch, Check, CommitError, Committed, Key, Kind, Partition, StoreError, Write};
use tokio_postgres::Row as Answer;

use super::super::many_rows_sql::Existing;
use super::super::pipeline::{Param, Step};
use super::super::sql::Sql;
use super::super::table::{Location, Table};
use super::key_order::{Order, first_version, order};
use super::keys::Keys;
use super::numbers::{Addend, Decoder, Range, Source};

/// What a transaction does with one key.
#[derive(Debug, Clone)]
enum Row<'a> {
    /// Any number of batches require this version.
    Checked(u64),
    /// Any number of batches require that there is no record.
    Absent,
    Deleted(Requires),
    Put(Source, &'a str, Requires),
    PutRevised(Source, &'a str),
    Added(Vec<Addend>),
    Appended(Vec<(Source, &'a str)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requires {
    Nothing,
    Absence,
    Version(u64),
}

impl Requires {
    fn of(check: Option<&Check>) -> Self {
        match check {
            None => Self::Nothing,
            Some(Check::Absent(_)) => Self::Absence,
            Some(Check::Version(_, version)) => Self::Version(*version),
        }
    }
}

/// A key with its place in the order of a transaction, and what one batch does with it.
struct Keyed<'a> {
    order: Order,
    key: Key,
    row: Row<'a>,
}

/// The rows of a batch in their order; `None` for a batch that can share no transaction. Those are rare forms, and
/// whatever breaks the rules for callers.
fn rows(index: usize, batch: &Batch) -> Option<Vec<Keyed<'_>>> {
    batch.check_revised().ok()?;
    let mut checks: BTreeMap<&Key, &Check> = BTreeMap::new();
    for check in &batch.checks {
        if checks.insert(check.key(), check).is_some_and(|other| other != check) {
            return None;
        }
    }
    let mut rows = Vec::with_capacity(checks.len() + batch.writes.len());
    let mut push = |key: Key, row| -> Option<()> {
        Table::of(key.partition(), key.kind()).ok()?;
        let order = order(&key);
        rows.push(Keyed { order, key, row });
        Some(())
    };
    for (at, write) in batch.writes.iter().enumerate() {
        let source = (index, at);
        let key = write.key();
        let check = checks.remove(&key);
        let row = match (write, check) {
            (Write::Put(_, value), check) => Row::Put(source, std::str::from_utf8(value).ok()?, Requires::of(check)),
            // If the check holds, there is nothing to delete.
            (Write::Delete(_), Some(Check::Absent(_))) => Row::Absent,
            (Write::Delete(_), check) => Row::Deleted(Requires::of(check)),
            (Write::PutRevised(_, value), None) => Row::PutRevised(source, std::str::from_utf8(value).ok()?),
            (Write::Add { delta, max, .. }, None) if Table::of(key.partition(), key.kind()).ok()?.numeric => {
                let (delta, max) = (*delta, *max);
                Row::Added(vec![Addend { source, delta, max }])
            }
            (Write::Append { value, .. }, None) => Row::Appended(vec![(source, std::str::from_utf8(value).ok()?)]),
            _ => return None,
        };
        push(key, row)?;
    }
    for (key, check) in checks {
        let row = match check {
            Check::Version(_, version) => Row::Checked(*version),
            Check::Absent(_) => Row::Absent,
        };
        push(key.clone(), row)?;
    }
    rows.sort_unstable_by(|one, two| one.order.cmp(&two.order));
    let are_distinct = rows.windows(2).all(|pair| pair[0].order != pair[1].order);
    are_distinct.then_some(rows)
}

/// Batches of a group in one transaction.
#[derive(Debug, Default)]
pub(super) struct Merge<'a> {
    rows: BTreeMap<Order, (Key, Row<'a>)>,
    /// The batches in this transaction.
    pub(super) merged: Vec<usize>,
    /// The batches that touch a record which another one writes.
    pub(super) later: Vec<usize>,
    /// The batches that can share no transaction.
    pub(super) alone: Vec<usize>,
}

/// The statements of a transaction, and how the answer of each is read.
#[derive(Default)]
pub(super) struct Merged<'a> {
    pub(super) steps: Vec<Step<'a>>,
    decoders: Vec<Decoder>,
}

impl<'a> Merged<'a> {
    fn push(&mut self, sql: &'a str, params: Vec<Param>, decoder: Decoder) {
        self.steps.push(Step { sql, params });
        self.decoders.push(decoder);
    }
}

impl<'a> Merge<'a> {
    /// Merges those of the batches that are named, in this order, as far as they fit together.
    pub(super) fn of(batches: &'a [Batch], named: &[usize]) -> Self {
        let mut merge = Self::default();
        // The keys of batches that are put off. What comes after them and touches one is put off as well.
        let mut held: BTreeSet<Order> = BTreeSet::new();
        for index in named.iter().copied() {
            let Some(rows) = rows(index, &batches[index]) else {
                merge.alone.push(index);
                continue;
            };
            let fits = |keyed: &Keyed<'_>| {
                let there = merge.rows.get(&keyed.order);
                !held.contains(&keyed.order) && there.is_none_or(|(_, there)| there.shares_with(&keyed.row))
            };
            if rows.iter().all(fits) {
                for Keyed { order, key, row } in rows {
                    match merge.rows.entry(order) {
                        Entry::Vacant(place) => drop(place.insert((key, row))),
                        Entry::Occupied(mut place) => place.get_mut().1.join(row),
                    }
                }
                merge.merged.push(index);
            } else {
                let written = rows.into_iter().filter(|keyed| !keyed.row.shares_with(&keyed.row));
                held.extend(written.map(|keyed| keyed.order));
                merge.later.push(index);
            }
        }
        merge
    }

    /// The statements, in the order of the keys: a run of keys with the same table and form shares one. `new_keys` says
    /// what they do when a key has a row that must have no record, or that is an entry of a log or a record with a
    /// revision.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] when the versions are exhausted.
    pub(super) fn statements<'s>(&self, sql: &'s Sql, base: u64, new_keys: Existing) -> Result<Merged<'s>, StoreError> {
        let mut statements = Merged::default();
        let mut run: Vec<(&Key, &Row<'_>)> = Vec::new();
        for (key, row) in self.rows.values() {
            if run
                .first()
                .is_some_and(|(first, form)| first.kind() != key.kind() || form.form() != row.form())
            {
                self.run(sql, (base, new_keys), &run, &mut statements)?;
                run.clear();
            }
            run.push((key, row));
        }
        self.run(sql, (base, new_keys), &run, &mut statements)?;
        Ok(statements)
    }

    fn run<'s>(
        &self,
        sql: &'s Sql,
        (base, new_keys): (u64, Existing),
        rows: &[(&Key, &Row<'_>)],
        statements: &mut Merged<'s>,
    ) -> Result<(), StoreError> {
        let Some((first, row)) = rows.first() else {
            return Ok(());
        };
        let table = Table::of(first.partition(), first.kind())?;
        let many = &sql.on(table).many;
        let keys = Keys::of(table, rows.iter().map(|(key, _)| *key))?;
        let first_versions = || {
            let versions = rows.iter().map(|(key, _)| number(first_version(base, key)));
            versions.collect::<Result<Vec<i64>, _>>().map(Param::Numbers)
        };
        let versions = || {
            // A version beyond the column's range becomes -1, which no record has.
            let versions = rows.iter().map(|(_, row)| i64::try_from(row.required()).unwrap_or(-1));
            Param::Numbers(versions.collect())
        };
        let values = || {
            let text = |row: &Row<'_>| match row {
                Row::Put(_, value, _) | Row::PutRevised(_, value) => (*value).to_owned(),
                _ => String::new(),
            };
            Param::Texts(rows.iter().map(|(_, row)| text(row)).collect())
        };
        let sources = || {
            let source = |row: &Row<'_>| match row {
                Row::Put(source, ..) | Row::PutRevised(source, _) => Some(*source),
                _ => None,
            };
            let named = rows.iter().zip(keys.names());
            Decoder::Numbers(
                named
                    .filter_map(|((_, row), name)| Some((name, source(row)?)))
                    .collect(),
            )
        };
        let mut push = |sql: &'s str, more: Vec<Param>, decoder: Decoder| {
            let mut params = vec![keys.scopes.clone(), Param::Texts(keys.items.clone())];
            params.extend(more);
            statements.push(sql, params, decoder);
        };
        match row {
            Row::Checked(_) => push(&many.check_version, vec![versions()], Decoder::Nothing),
            Row::Absent | Row::Deleted(_) => {
                for (key, row) in rows {
                    single(sql, base, (key, row), statements)?;
                }
            }
            Row::Put(_, _, Requires::Absence) => {
                let put = match new_keys {
                    Existing::Fails if !is_made_again(first.kind()) => &many.insert,
                    Existing::Fails | Existing::IsReplaced => &many.put_absent,
                };
                push(put, vec![first_versions()?, values()], sources());
            }
            Row::Put(_, _, requires) => {
                if let Requires::Version(_) = requires {
                    push(&many.lock_version, vec![versions()], Decoder::Nothing);
                }
                push(&many.put, vec![first_versions()?, values()], sources());
            }
            Row::PutRevised(..) => {
                let backs = Param::Numbers(rows.iter().map(|(key, row)| self.entries_after(key, row)).collect());
                let put = match new_keys {
                    Existing::Fails => &many.insert_revised,
                    Existing::IsReplaced => &many.put_revised,
                };
                let (workspaces, places) = keys.workspaces();
                push(
                    put,
                    vec![first_versions()?, values(), backs, workspaces, places],
                    sources(),
                );
            }
            Row::Added(addends) if Range::of(addends).sum < 0 => {
                for (key, row) in rows {
                    subtract(sql, key, row.addends(), statements)?;
                }
            }
            Row::Added(_) => {
                let ranges: Vec<Range> = rows.iter().map(|(_, row)| Range::of(row.addends())).collect();
                let texts =
                    |of: fn(&Range) -> i128| Param::Texts(ranges.iter().map(|range| of(range).to_string()).collect());
                let params = vec![
                    first_versions()?,
                    texts(|range| range.sum),
                    texts(|range| range.least),
                    texts(|range| range.greatest),
                ];
                let addends = rows.iter().zip(keys.names());
                let sums = addends.map(|((_, row), name)| (name, row.addends().to_vec())).collect();
                push(&many.add, params, Decoder::Sums(sums));
            }
            Row::Appended(_) => append(sql, (base, new_keys), rows, statements)?,
        }
        Ok(())
    }

    /// How many entries of the log of this record's workspace follow that of its batch.
    fn entries_after(&self, key: &Key, row: &Row<'_>) -> i64 {
        let (Partition::Workspace(log), Row::PutRevised((batch, _), _)) = (key.partition(), row) else {
            return 0;
        };
        let head = self.rows.get(&order(&Key::log_head(*log)));
        let entries = head.map_or(&[][..], |(_, row)| row.entries());
        entries.iter().rev().take_while(|((of, _), _)| of != batch).count() as i64
    }

    /// The verdicts of the merged batches after the commit.
    pub(super) fn verdicts(
        &self,
        batches: &[Batch],
        statements: &Merged<'_>,
        answers: &[Vec<Answer>],
    ) -> Vec<(usize, Result<Committed, CommitError>)> {
        let before = |write: &Write| matches!(write, Write::Delete(_)).then_some(0);
        let mut numbers: HashMap<usize, Vec<Option<u64>>> = self
            .merged
            .iter()
            .map(|index| (*index, batches[*index].writes.iter().map(before).collect()))
            .collect();
        for (decoder, answer) in statements.decoders.iter().zip(answers) {
            // A number that cannot be read is missing below.
            let decoded = answer
                .first()
                .and_then(|row| decoder.decode(row).ok())
                .unwrap_or_default();
            for ((batch, write), number) in decoded {
                if let Some(place) = numbers.get_mut(&batch).and_then(|numbers| numbers.get_mut(write)) {
                    *place = Some(number);
                }
            }
        }
        let verdict = |numbers: Vec<Option<u64>>| match numbers.into_iter().collect() {
            Some(numbers) => Ok(Committed { numbers }),
            None => Err(StoreError::OutcomeUnknown("the database returned no number for a write".into()).into()),
        };
        numbers
            .into_iter()
            .map(|(index, numbers)| (index, verdict(numbers)))
            .collect()
    }
}

impl<'a> Row<'a> {
    /// Rows with equal forms share a statement.
    fn form(&self) -> u8 {
        match self {
            Self::Checked(_) => 0,
            Self::Put(_, _, Requires::Nothing) => 1,
            Self::Put(_, _, Requires::Absence) => 2,
            Self::Put(_, _, Requires::Version(_)) => 3,
            Self::PutRevised(..) => 4,
            Self::Added(addends) if Range::of(addends).sum < 0 => 8,
            Self::Added(_) => 5,
            Self::Appended(_) => 6,
            Self::Absent | Self::Deleted(_) => 7,
        }
    }

    /// Whether the same transaction can do both with one key, for two batches.
    fn shares_with(&self, other: &Row<'_>) -> bool {
        match (self, other) {
            (Self::Checked(one), Row::Checked(two)) => one == two,
            (Self::Absent, Row::Absent) => true,
            (Self::Added(_), Row::Added(_)) | (Self::Appended(_), Row::Appended(_)) => true,
            _ => false,
        }
    }

    /// Joins a row that [shares](Self::shares_with) a key with this one.
    fn join(&mut self, other: Row<'a>) {
        match (self, other) {
            (Self::Added(addends), Row::Added(more)) => addends.extend(more),
            (Self::Appended(entries), Row::Appended(more)) => entries.extend(more),
            _ => {}
        }
    }

    /// The version that the record must have.
    fn required(&self) -> u64 {
        match self {
            Self::Checked(version) | Self::Put(_, _, Requires::Version(version)) => *version,
            _ => u64::MAX,
        }
    }

    fn addends(&self) -> &[Addend] {
        match self {
            Self::Added(addends) => addends,
            _ => &[],
        }
    }

    fn entries(&self) -> &[(Source, &'a str)] {
        match self {
            Self::Appended(entries) => entries,
            _ => &[],
        }
    }
}

/// The statement of additions that lower a counter.
fn subtract<'s>(sql: &'s Sql, key: &Key, addends: &[Addend], statements: &mut Merged<'s>) -> Result<(), StoreError> {
    let location = Location::of_key(key)?;
    let (range, item) = (Range::of(addends), key.item().to_owned());
    let numbers = [range.sum, range.least, range.greatest].map(|number| Param::Text(number.to_string()));
    let mut params = vec![location.scope.clone(), Param::Text(item.clone())];
    params.extend(numbers);
    let decoder = Decoder::Sums(HashMap::from([((location.scope, item), addends.to_vec())]));
    statements.push(&sql.on(location.table).many.subtract, params, decoder);
    Ok(())
}

/// The statement of a form that has none for many rows.
fn single<'s>(
    sql: &'s Sql,
    base: u64,
    (key, row): (&Key, &Row<'_>),
    statements: &mut Merged<'s>,
) -> Result<(), StoreError> {
    let location = Location::of_key(key)?;
    let on = sql.on(location.table);
    let (sql, version) = match row {
        Row::Absent => (&on.check_absent, Some(number(first_version(base, key) - 1)?)),
        Row::Deleted(Requires::Version(version)) => (&on.delete_version, Some(i64::try_from(*version).unwrap_or(-1))),
        _ => (&on.delete, None),
    };
    let mut params = vec![location.scope, Param::Text(key.item().to_owned())];
    params.extend(version.map(Param::Number));
    statements.push(sql, params, Decoder::Nothing);
    Ok(())
}

fn append<'s>(
    sql: &'s Sql,
    (base, new_keys): (u64, Existing),
    rows: &[(&Key, &Row<'_>)],
    statements: &mut Merged<'s>,
) -> Result<(), StoreError> {
    let (mut logs, mut first_versions, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut of, mut places, mut backs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut versions, mut values) = (Vec::new(), Vec::new());
    let mut heads = HashMap::new();
    for (key, row) in rows {
        let Param::Uuid(log) = Location::of_key(key)?.scope else {
            return Err(StoreError::Misuse(format!("{key:?} is the head of no log")));
        };
        let (first, entries) = (number(first_version(base, key))?, row.entries());
        logs.push(log);
        first_versions.push(first);
        counts.push(entries.len() as i64);
        for (back, (_, value)) in (0..entries.len() as i64).rev().zip(entries) {
            of.push(log);
            places.push(logs.len() as i64);
            backs.push(back);
            versions.push(first);
            values.push((*value).to_owned());
        }
        heads.insert(Param::Uuid(log), entries.iter().map(|(source, _)| *source).collect());
    }
    let params = vec![
        Param::Uuids(logs),
        Param::Numbers(first_versions),
        Param::Numbers(counts),
        Param::Uuids(of),
        Param::Numbers(places),
        Param::Numbers(backs),
        Param::Numbers(versions),
        Param::Texts(values),
    ];
    let append = match new_keys {
        Existing::Fails => &sql.append_new,
        Existing::IsReplaced => &sql.append_many,
    };
    statements.push(append, params, Decoder::Heads(heads));
    Ok(())
}

fn number(version: u64) -> Result<i64, StoreError> {
    i64::try_from(version).map_err(|_| StoreError::Corrupt("the versions of the store are exhausted".into()))
}

/// Whether records of a kind are often deleted and made again under the same key. A deleted key keeps its row, so a
/// plain insertion would fail the transaction.
fn is_made_again(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::AgentLabels
            | Kind::Set
            | Kind::SetMember
            | Kind::Member
            | Kind::Membership
            | Kind::ProviderKey
            | Kind::SealedKey
    )
}
