//! Export and import of a whole store as one stream, to migrate it from one engine to another.

use std::collections::VecDeque;
use std::io::{self, BufReader, BufWriter, Read, Write};

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::{
    BUILD_FIELD, BuildField, Digesting, Key, Partition, PartitionKind, StreamReader, StreamWriter, TransferError,
    Transferred, envelope,
};
use tokio_postgres::{IsolationLevel, Portal, Row, Transaction};

use super::bulk_insert::Loader;
use super::error::failed;
use super::read::column;
use super::table::{Location, TABLES, Table};
use super::{PostgresStore, Sql};

impl PostgresStore {
    /// Fails while servers are connected: sessions with the application name `agentcfg`.
    ///
    /// # Errors
    ///
    /// [`TransferError::InUse`].
    ///
    /// ```no_run
    /// # use agentcfg_postgres::{PostgresOptions, PostgresStore};
    /// # async fn example(store: PostgresStore) -> Result<(), Box<dyn std::error::Error>> {
    /// store.require_unused().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn require_unused(&self) -> Result<(), TransferError> {
        let client = self.engine.connections.client().await?;
        let query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                     AND application_name = 'agentcfg' AND pid <> pg_backend_pid()";
        // An engine without this view cannot be checked.
        let Ok(rows) = client.query_typed(query, &[]).await else {
            return Ok(());
        };
        match rows.first().map(|row| column::<i64>(row, 0)) {
            Some(Ok(others)) if others > 0 => Err(TransferError::InUse(others)),
            _ => Ok(()),
        }
    }

    /// Writes a consistent snapshot of all records in the backup format of the embedded store.
    ///
    /// # Errors
    ///
    /// See [`TransferError`].
    ///
    /// ```no_run
    /// # use agentcfg_postgres::{PostgresOptions, PostgresStore};
    /// # async fn example(store: PostgresStore) -> Result<(), Box<dyn std::error::Error>> {
    /// let exported = store.export(std::fs::File::create("agentcfg.backup")?).await?;
    /// println!("{} records", exported.records);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn export(&self, out: impl Write) -> Result<Transferred, TransferError> {
        let mut client = self.engine.connections.client().await?;
        let transaction = client
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true)
            .start()
            .await
            .map_err(failed)?;
        let written = write_all(&transaction, &self.engine.sql, &BUILD_FIELD, out).await?;
        transaction.commit().await.map_err(failed)?;
        Ok(written)
    }

    /// Imports a backup of the embedded store, or an [export](Self::export), into an empty database. The
    /// import is atomic, and is verified by reading all records back before the commit.
    ///
    /// Stores that connect from now on continue versions and log numbers after those of the stream.
    ///
    /// # Errors
    ///
    /// See [`TransferError`].
    ///
    /// ```no_run
    /// # use agentcfg_postgres::{PostgresOptions, PostgresStore};
    /// # async fn example(store: PostgresStore) -> Result<(), Box<dyn std::error::Error>> {
    /// let imported = store.import(std::fs::File::open("agentcfg.backup")?).await?;
    /// println!("{} records", imported.records);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn import(&self, input: impl Read) -> Result<Transferred, TransferError> {
        let mut client = self.engine.connections.client().await?;
        let transaction = client
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .start()
            .await
            .map_err(failed)?;
        for table in TABLES {
            let lock = format!("LOCK TABLE {} IN EXCLUSIVE MODE", self.engine.sql.name(table));
            transaction.batch_execute(&lock).await.map_err(failed)?;
        }
        let there = write_all(&transaction, &self.engine.sql, &BUILD_FIELD, io::sink()).await?;
        if there.records > 0 {
            return Err(TransferError::NotEmpty(there.records));
        }
        self.forget_epoch(&transaction).await?;
        let mut input = Digesting::new(input);
        let (build, sequence) = read_all(&transaction, &self.engine.sql, &mut input).await?;
        let base = format!(
            "UPDATE {}.store SET base_version = GREATEST(base_version, {sequence})",
            self.engine.sql.schema
        );
        transaction.batch_execute(&base).await.map_err(failed)?;
        let arrived = write_all(&transaction, &self.engine.sql, &build, io::sink()).await?;
        if arrived.digest != input.digest() {
            return Err(TransferError::VerificationFailed);
        }
        transaction.commit().await.map_err(failed)?;
        Ok(arrived)
    }
}

impl PostgresStore {
    /// Removes the epoch of a database that held nothing else. What arrives in it begins another one.
    async fn forget_epoch(&self, transaction: &Transaction<'_>) -> Result<(), TransferError> {
        let (key, place) = (Key::epoch(), Location::of_key(&Key::epoch())?);
        let delete = &self.engine.sql.on(place.table).delete;
        transaction
            .execute(delete, &[place.scope.value(), &key.item()])
            .await
            .map_err(failed)?;
        Ok(())
    }
}

/// Reads a stream; returns the build that made it, and its version sequence.
async fn read_all(
    transaction: &Transaction<'_>,
    sql: &Sql,
    input: impl Read,
) -> Result<(BuildField, i64), TransferError> {
    let mut stream = StreamReader::begin(BufReader::new(input))?;
    let sequence = i64::try_from(stream.sequence)
        .map_err(|_| TransferError::Damaged("its version sequence is too large for the database".into()))?;
    let mut loader = Loader::default();
    while let Some((key, sealed)) = stream.next()? {
        let record = envelope::open(&key, &sealed)?;
        let key = Key::decode(&key)
            .ok_or_else(|| TransferError::Damaged(format!("{} is no key", envelope::describe(&key))))?;
        loader.add(&key, &record)?;
        if loader.is_full() {
            loader.flush(transaction, sql).await?;
        }
    }
    loader.flush(transaction, sql).await?;
    Ok((stream.build, sequence))
}

async fn write_all(
    transaction: &Transaction<'_>,
    sql: &Sql,
    build: &BuildField,
    out: impl Write,
) -> Result<Transferred, TransferError> {
    let mut digesting = Digesting::new(out);
    let sequence = sequence(transaction, sql).await?;
    let mut stream = StreamWriter::begin_as(BufWriter::new(&mut digesting), sequence, build)?;
    let mut sources = Vec::new();
    for table in TABLES {
        sources.push(Source::open(transaction, sql, table).await?);
    }
    // A merge: each source is in key order, so the smallest of the first keys comes next.
    loop {
        for source in &mut sources {
            source.fill(transaction).await?;
        }
        let next = sources
            .iter_mut()
            .filter(|source| !source.rows.is_empty())
            .min_by(|a, b| a.rows[0].0.cmp(&b.rows[0].0));
        let Some((key, sealed)) = next.and_then(|source| source.rows.pop_front()) else {
            break;
        };
        stream.record(&key, &sealed)?;
    }
    let records = stream.end()?;
    Ok(Transferred {
        records,
        sequence,
        digest: digesting.digest(),
    })
}

/// The greatest version that any record has or had.
async fn sequence(transaction: &Transaction<'_>, sql: &Sql) -> Result<u64, TransferError> {
    let mut query = format!("SELECT max(v) FROM (SELECT base_version AS v FROM {}.store", sql.schema);
    for table in TABLES {
        query.push_str(&format!(" UNION ALL SELECT max(version) FROM {}", sql.name(table)));
    }
    query.push_str(") AS versions");
    let rows = transaction.query_typed(&query, &[]).await.map_err(failed)?;
    let greatest: i64 = rows.first().map_or(Ok(0), |row| column(row, 0))?;
    Ok(greatest.unsigned_abs())
}

/// The records of one table in key order.
struct Source {
    table: &'static Table,
    portal: Option<Portal>,
    rows: VecDeque<(Vec<u8>, Vec<u8>)>,
}

impl Source {
    async fn open(transaction: &Transaction<'_>, sql: &Sql, table: &'static Table) -> Result<Self, TransferError> {
        let (s, i) = (table.scope_column, table.item_column);
        let query = format!(
            "SELECT {s}, {i}, version, value::text FROM {} WHERE value IS NOT NULL ORDER BY {s}, {i}",
            sql.name(table)
        );
        let statement = transaction.prepare(&query).await.map_err(failed)?;
        Ok(Self {
            table,
            portal: Some(transaction.bind(&statement, &[]).await.map_err(failed)?),
            rows: VecDeque::new(),
        })
    }

    async fn fill(&mut self, transaction: &Transaction<'_>) -> Result<(), TransferError> {
        const AT_ONCE: i32 = 500;
        let Some(portal) = self.portal.as_ref().filter(|_| self.rows.is_empty()) else {
            return Ok(());
        };
        let rows = transaction.query_portal(portal, AT_ONCE).await.map_err(failed)?;
        if rows.is_empty() {
            self.portal = None;
        }
        for row in &rows {
            let entry = self.entry(row)?;
            self.rows.push_back(entry);
        }
        Ok(())
    }

    fn entry(&self, row: &Row) -> Result<(Vec<u8>, Vec<u8>), TransferError> {
        let kind = self.table.kind;
        let partition = match kind.partition_kind() {
            PartitionKind::Workspace => Partition::Workspace(WorkspaceId::new(column(row, 0)?)),
            PartitionKind::Global => Partition::Global(column::<&str>(row, 0)?.into()),
        };
        let key = Key::new(partition, kind, column::<&str>(row, 1)?).encode();
        let version: i64 = column(row, 2)?;
        let value: &str = column(row, 3)?;
        let sealed = envelope::seal(&key, version.unsigned_abs(), value.as_bytes());
        Ok((key, sealed))
    }
}
