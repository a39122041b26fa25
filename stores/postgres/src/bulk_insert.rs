//! Bulk inserts into empty tables.

use agentcfg_core::store::{Key, PartitionKind, Record, StoreError, TransferError};
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::error::failed;
use super::pipeline::Param;
use super::sql::Sql;
use super::table::{Location, Table};

/// The number of bytes after which the collected records are inserted.
const FLUSH_BYTES: usize = 1 << 20;

/// Collects records by table, for one insert into each.
#[derive(Default)]
pub(super) struct Loader {
    tables: Vec<Rows>,
    bytes: usize,
}

struct Rows {
    table: &'static Table,
    uuids: Vec<Uuid>,
    names: Vec<String>,
    items: Vec<String>,
    versions: Vec<i64>,
    values: Vec<String>,
}

impl Loader {
    pub(super) fn add(&mut self, key: &Key, record: &Record) -> Result<(), TransferError> {
        let damaged = |why: &str| TransferError::Damaged(format!("record {key:?} {why}"));
        let location = Location::of_key(key)?;
        let version = i64::try_from(record.version).map_err(|_| damaged("has a version that is too large"))?;
        let value = std::str::from_utf8(&record.value).map_err(|_| damaged("is not UTF-8 text"))?;
        let index = match self.tables.iter().position(|rows| rows.table == location.table) {
            Some(index) => index,
            None => {
                self.tables.push(Rows::new(location.table));
                self.tables.len() - 1
            }
        };
        let rows = &mut self.tables[index];
        match location.scope {
            Param::Uuid(id) => rows.uuids.push(id),
            Param::Text(name) => rows.names.push(name),
            other => return Err(damaged(&format!("has no place: {other:?}"))),
        }
        rows.items.push(key.item().to_owned());
        rows.versions.push(version);
        rows.values.push(value.to_owned());
        // The estimated overhead of a row.
        self.bytes += value.len() + 200;
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= FLUSH_BYTES
    }

    pub(super) async fn flush(&mut self, transaction: &Transaction<'_>, sql: &Sql) -> Result<(), TransferError> {
        self.bytes = 0;
        for rows in std::mem::take(&mut self.tables) {
            rows.insert(transaction, sql).await?;
        }
        Ok(())
    }
}

impl Rows {
    fn new(table: &'static Table) -> Self {
        Self {
            table,
            uuids: Vec::new(),
            names: Vec::new(),
            items: Vec::new(),
            versions: Vec::new(),
            values: Vec::new(),
        }
    }

    async fn insert(self, transaction: &Transaction<'_>, sql: &Sql) -> Result<(), TransferError> {
        let table = self.table;
        let scope_type = table.scope_type();
        let scopes: &(dyn ToSql + Sync) = match table.kind.partition_kind() {
            PartitionKind::Workspace => &self.uuids,
            PartitionKind::Global => &self.names,
        };
        let value_type = if table.numeric { "numeric" } else { "json" };
        let statement = format!(
            "INSERT INTO {name} ({s}, {i}, version, value) SELECT k.s, k.i, k.version, k.value::{value_type} \
             FROM unnest($1::{scope_type}[], $2::text[], $3::int8[], $4::text[]) AS k(s, i, version, value)",
            name = sql.name(table),
            s = table.scope_column,
            i = table.item_column,
        );
        let statement = transaction.prepare(&statement).await.map_err(failed)?;
        let inserted = transaction
            .execute(&statement, &[scopes, &self.items, &self.versions, &self.values])
            .await
            .map_err(failed)?;
        if inserted != self.items.len() as u64 {
            let what = format!("{inserted} of {} records were written", self.items.len());
            return Err(StoreError::Unavailable(what).into());
        }
        Ok(())
    }
}
