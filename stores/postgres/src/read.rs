//! Reads: one statement for each call, which is one round trip and one snapshot.

use std::fmt::Write as _;
use std::sync::Arc;

use agentcfg_core::store::{Direction, Key, PartitionKind, Record, Scan, Scanned, StoreError};
use tokio_postgres::Row;

use super::pipeline::{Param, Step};
use super::pool::Connections;
use super::sql::Sql;
use super::table::{Location, Table};

/// Up to this many keys, each key has its own part of the statement. More keys are passed as arrays,
/// which bounds the number of distinct prepared statements. The limit in the inner query keeps it a search for one key,
/// also in a plan that was made when the table was small.
const MAX_INLINE_KEYS: usize = 8;

/// Reads records by their keys.
pub(super) async fn get(connections: &Connections, sql: &Sql, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let lookup = Lookup::of(sql, keys)?;
    let rows = connections.rows(&lookup.step()).await?;
    lookup.found(&rows)
}

/// The statement that reads records by their keys.
pub(super) struct Lookup {
    select: Select,
    keys: usize,
}

impl Lookup {
    /// Of one request.
    pub(super) fn of(sql: &Sql, keys: &[Key]) -> Result<Self, StoreError> {
        Self::with(sql, keys, Select::keys)
    }

    /// Of several requests. The text of the statement depends only on the kinds of the keys, so that requests that
    /// happen to meet make few distinct statements.
    pub(super) fn shared(sql: &Sql, keys: &[Key]) -> Result<Self, StoreError> {
        Self::with(sql, keys, Select::key_arrays)
    }

    fn with(
        sql: &Sql,
        keys: &[Key],
        add: fn(&mut Select, &Sql, &[Key]) -> Result<(), StoreError>,
    ) -> Result<Self, StoreError> {
        let mut select = Select::default();
        add(&mut select, sql, keys)?;
        let keys = keys.len();
        Ok(Self { select, keys })
    }

    pub(super) fn step(&self) -> Step<'_> {
        self.select.step()
    }

    /// The records, in the order of the keys.
    pub(super) fn found(&self, rows: &[Row]) -> Result<Vec<Option<Record>>, StoreError> {
        let mut found = vec![None; self.keys];
        for row in rows {
            place(&mut found, row)?;
        }
        Ok(found)
    }
}

/// Runs a scan.
pub(super) async fn scan(connections: &Connections, sql: &Sql, scan: &Scan) -> Result<Scanned, StoreError> {
    let home = Location::of(&scan.partition, scan.kind)?;
    let mut select = Select::default();
    select.range(sql, &home, scan);
    select.keys(sql, &scan.with)?;
    let rows = connections.rows(&select.step()).await?;
    let mut entries = Vec::new();
    let mut with = vec![None; scan.with.len()];
    for row in &rows {
        if column::<i64>(row, 0)? < 0 {
            let item: &str = column(row, 1)?;
            entries.push((Key::new(scan.partition.clone(), scan.kind, item), record(row)?));
        } else {
            place(&mut with, row)?;
        }
    }
    // `UNION ALL` does not guarantee the order of its parts' rows.
    match scan.direction {
        Direction::Ascending => entries.sort_unstable_by(|(a, _), (b, _)| a.item().cmp(b.item())),
        Direction::Descending => entries.sort_unstable_by(|(a, _), (b, _)| b.item().cmp(a.item())),
    }
    Ok(Scanned { entries, with })
}

/// A statement under construction. Its rows are `slot, item, version, value`; the slot is the index of
/// the key, and negative for a record of the range.
#[derive(Default)]
struct Select {
    text: String,
    params: Vec<Param>,
}

impl Select {
    fn step(&self) -> Step<'_> {
        Step {
            sql: &self.text,
            params: self.params.clone(),
        }
    }

    /// Adds a parameter and returns its number.
    fn param(&mut self, param: Param) -> usize {
        self.params.push(param);
        self.params.len()
    }

    fn part(&mut self, text: std::fmt::Arguments<'_>) {
        if !self.text.is_empty() {
            self.text.push_str(" UNION ALL ");
        }
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(text);
    }

    fn range(&mut self, sql: &Sql, home: &Location, scan: &Scan) {
        let (name, s, i) = (sql.name(home.table), home.table.scope_column, home.table.item_column);
        let scope = self.param(home.scope.clone());
        let (order, than) = match scan.direction {
            Direction::Ascending => ("ASC", ">"),
            Direction::Descending => ("DESC", "<"),
        };
        let bound = match &scan.after {
            Some(item) => format!("AND r.{i} {than} ${}", self.param(Param::Text(item.to_string()))),
            None => String::new(),
        };
        let limit = match i64::try_from(scan.limit) {
            Ok(limit) => format!("LIMIT ${}", self.param(Param::Number(limit))),
            Err(_) => String::new(),
        };
        let rows = format!(
            "FROM {name} AS r WHERE r.{s} = ${scope} {bound} AND r.value IS NOT NULL ORDER BY r.{i} {order} {limit}"
        );
        let Ok(max_bytes) = i64::try_from(scan.max_bytes) else {
            self.part(format_args!(
                "SELECT * FROM (SELECT -1::int8 AS slot, r.{i} AS item, r.version, r.value::text {rows}) AS found"
            ));
            return;
        };
        let max = self.param(Param::Number(max_bytes));
        // A row is read when those before it have fewer bytes. The first comparison is of the sizes on disk, which are
        // never greater without their headers and need no read of the values; so few rows come to the second one.
        let before = format!("OVER (ORDER BY item {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)");
        self.part(format_args!(
            "SELECT slot, item, version, value FROM (\
             SELECT slot, item, version, value, sum(octet_length(value)) {before} AS bytes FROM (\
             SELECT slot, item, version, value::text AS value FROM (\
             SELECT slot, item, version, value, sum(pg_column_size(value) - 4) {before} AS stored FROM (\
             SELECT -1::int8 AS slot, r.{i} AS item, r.version, r.value {rows}\
             ) AS found) AS found WHERE coalesce(stored, 0) < ${max}\
             ) AS found) AS found WHERE coalesce(bytes, 0) < ${max}"
        ));
    }

    fn keys(&mut self, sql: &Sql, keys: &[Key]) -> Result<(), StoreError> {
        if keys.len() > MAX_INLINE_KEYS {
            return self.key_arrays(sql, keys);
        }
        for (slot, key) in keys.iter().enumerate() {
            let location = Location::of_key(key)?;
            let (name, s, i) = (
                sql.name(location.table),
                location.table.scope_column,
                location.table.item_column,
            );
            let scope = self.param(location.scope);
            let item = self.param(Param::Text(key.item().to_owned()));
            self.part(format_args!(
                "SELECT {slot}::int8, ''::text, r.version, r.value::text FROM {name} AS r \
                 WHERE r.{s} = ${scope} AND r.{i} = ${item} AND r.value IS NOT NULL"
            ));
        }
        Ok(())
    }

    fn key_arrays(&mut self, sql: &Sql, keys: &[Key]) -> Result<(), StoreError> {
        let mut groups: Vec<KeyGroup> = Vec::new();
        for (slot, key) in keys.iter().enumerate() {
            let location = Location::of_key(key)?;
            let known = groups.iter_mut().position(|group| group.table == location.table);
            let index = known.unwrap_or_else(|| {
                groups.push(KeyGroup::new(location.table));
                groups.len() - 1
            });
            groups[index].push(location.scope, key.item(), slot);
        }
        // A canonical order of the tables makes fewer distinct statements.
        groups.sort_unstable_by_key(|group| group.table.name);
        for group in groups {
            let (name, s, i) = (sql.name(group.table), group.table.scope_column, group.table.item_column);
            let scope_type = group.table.scope_type();
            let scopes = self.param(group.scopes());
            let items = self.param(Param::Texts(group.items));
            let slots = self.param(Param::Numbers(group.slots));
            self.part(format_args!(
                "SELECT k.slot, ''::text, found.version, found.value::text \
                 FROM unnest(${scopes}::{scope_type}[], ${items}::text[], ${slots}::int8[]) AS k(scope, item, slot) \
                 CROSS JOIN LATERAL (SELECT r.version, r.value FROM {name} AS r \
                 WHERE r.{s} = k.scope AND r.{i} = k.item AND r.value IS NOT NULL LIMIT 1) AS found"
            ));
        }
        Ok(())
    }
}

/// The keys of one table.
struct KeyGroup {
    table: &'static Table,
    uuids: Vec<uuid::Uuid>,
    names: Vec<String>,
    items: Vec<String>,
    slots: Vec<i64>,
}

impl KeyGroup {
    fn new(table: &'static Table) -> Self {
        Self {
            table,
            uuids: Vec::new(),
            names: Vec::new(),
            items: Vec::new(),
            slots: Vec::new(),
        }
    }

    fn push(&mut self, scope: Param, item: &str, slot: usize) {
        match scope {
            Param::Uuid(id) => self.uuids.push(id),
            Param::Text(name) => self.names.push(name),
            // `Location` makes no other scope.
            _ => return,
        }
        self.items.push(item.to_owned());
        self.slots.push(i64::try_from(slot).unwrap_or(i64::MAX));
    }

    fn scopes(&self) -> Param {
        match self.table.kind.partition_kind() {
            PartitionKind::Workspace => Param::Uuids(self.uuids.clone()),
            PartitionKind::Global => Param::Texts(self.names.clone()),
        }
    }
}

fn place(found: &mut [Option<Record>], row: &Row) -> Result<(), StoreError> {
    let slot = usize::try_from(column::<i64>(row, 0)?).ok();
    if let Some(slot) = slot.and_then(|slot| found.get_mut(slot)) {
        *slot = Some(record(row)?);
    }
    Ok(())
}

/// The record in a row: `slot, item, version, value`.
pub(super) fn record(row: &Row) -> Result<Record, StoreError> {
    let version: i64 = column(row, 2)?;
    let value: &str = column(row, 3)?;
    Ok(Record {
        version: u64::try_from(version).map_err(|_| StoreError::Corrupt(format!("a record has version {version}")))?,
        value: Arc::from(value.as_bytes()),
    })
}

/// Reads a column that must exist and have this type.
pub(super) fn column<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, StoreError> {
    row.try_get(index)
        .map_err(|error| StoreError::Corrupt(format!("column {index} of a result row: {error}")))
}
