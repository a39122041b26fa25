//! A store of your own on a database: SQLite, in one file.
//!
//! A row is a record under the bytes of its key, which sort as keys do. Each call is one transaction on a thread for
//! blocking work. [`plan`] decides a batch by the rules of the contract, so that the engine only reads and writes rows.
//!
//! ```text
//! cargo test -p agentcfg-example-sqlite
//! ```

use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use agentcfg_core::store::plan::{decode_key, plan, scan_range};
use agentcfg_core::store::{Batch, CommitError, Committed, Direction, Key, Record, Scan, Scanned, Store, StoreError};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

/// The row that has the last version, which goes on although records are deleted. No key has these bytes.
const LAST_VERSION: &[u8] = b"";

/// A store in a SQLite file.
///
/// ```
/// use agentcfg_core::AgentCfg;
/// use agentcfg_example_sqlite::SqliteStore;
/// # let folder = tempfile::tempdir()?;
/// let service = AgentCfg::builder(SqliteStore::open(&folder.path().join("agents.sqlite"))?).build();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SqliteStore {
    /// `None` once the store is closed.
    connection: Arc<Mutex<Option<Connection>>>,
}

impl SqliteStore {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    ///
    /// When the file cannot be used.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// let store = agentcfg_example_sqlite::SqliteStore::open(&folder.path().join("agents.sqlite"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let open = || {
            let connection = Connection::open(path)?;
            // A commit is on disk when it is answered: guarantee 3.
            connection.execute_batch(
                "PRAGMA journal_mode = WAL;
                 PRAGMA synchronous = FULL;
                 CREATE TABLE IF NOT EXISTS records
                     (key BLOB PRIMARY KEY, version INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID;",
            )?;
            Ok(connection)
        };
        Ok(Self {
            connection: Arc::new(Mutex::new(Some(open().map_err(unavailable)?))),
        })
    }

    /// Runs a transaction on a thread for blocking work. Dropping the future does not stop it.
    async fn run<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let connection = Arc::clone(&self.connection);
        let task = tokio::task::spawn_blocking(move || {
            // A panic within a transaction has rolled it back.
            match &mut *connection.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(connection) => work(connection),
                None => Err(StoreError::Unavailable("the store is closed".into()).into()),
            }
        });
        let failed = |error| StoreError::OutcomeUnknown(format!("the database thread ended: {error}"));
        task.await.map_err(failed)?
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn inner(&self) -> Option<&dyn Store> {
        None
    }

    /// It waits for the transaction that runs. Those that have not begun are refused, and so change nothing.
    async fn shutdown(&self) {
        let connection = Arc::clone(&self.connection);
        let close = move || drop(connection.lock().unwrap_or_else(PoisonError::into_inner).take());
        // It fails with the runtime, which drops the connection.
        let _ = tokio::task::spawn_blocking(close).await;
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        let keys: Vec<_> = keys.iter().map(Key::encode).collect();
        self.run(move |connection| {
            let snapshot = connection.transaction().map_err(unavailable)?;
            keys.iter().map(|key| read(&snapshot, key)).collect()
        })
        .await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        let scan = scan.clone();
        self.run(move |connection| {
            let snapshot = connection.transaction().map_err(unavailable)?;
            let (first, end) = scan_range(&scan);
            let (from, after) = match &first {
                Bound::Excluded(key) => (key, true),
                Bound::Included(key) => (key, false),
                Bound::Unbounded => return Err(StoreError::Misuse("a scan has a first key".into())),
            };
            let Bound::Excluded(end) = end else {
                return Err(StoreError::Misuse("a scan ends before a key".into()));
            };
            let order = match scan.direction {
                Direction::Ascending => "ASC",
                Direction::Descending => "DESC",
            };
            let comparison = if after { ">" } else { ">=" };
            let sql = format!(
                "SELECT version, value, key FROM records WHERE key {comparison} ?1 AND key < ?2 ORDER BY key {order}"
            );
            let mut statement = snapshot.prepare_cached(&sql).map_err(unavailable)?;
            let rows = statement
                .query_map(params![from, end], |row| Ok((row.get::<_, Vec<u8>>(2)?, record(row)?)))
                .map_err(unavailable)?;
            // It reads no more rows than the scan may return.
            let entries = scan.take(rows.map(|row| {
                let (key, record) = row.map_err(unavailable)?;
                Ok::<_, StoreError>((decode_key(&key)?, record))
            }))?;
            let with = scan
                .with
                .iter()
                .map(|key| read(&snapshot, &key.encode()))
                .collect::<Result<_, _>>()?;
            Ok(Scanned { entries, with })
        })
        .await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.run(move |connection| {
            // It takes the lock of writers at once, so that no other commit comes between the reads and the writes.
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(unavailable)?;
            let last = read(&transaction, LAST_VERSION)?.map_or(0, |record| record.version);
            let planned = plan(batch, last, |key| Ok::<_, CommitError>(read(&transaction, key)?))?;
            for (key, change) in &planned.changes {
                match change {
                    Some(record) => put(&transaction, key, record.version, &record.value)?,
                    None => {
                        let delete = "DELETE FROM records WHERE key = ?1";
                        transaction.execute(delete, [key]).map_err(unavailable)?;
                    }
                }
            }
            put(&transaction, LAST_VERSION, planned.last_version, b"")?;
            // Only here can the outcome be unknown: guarantee 4.
            let unknown = |error: rusqlite::Error| StoreError::OutcomeUnknown(error.to_string());
            transaction.commit().map_err(unknown)?;
            Ok(Committed {
                numbers: planned.numbers,
            })
        })
        .await
    }
}

fn read(transaction: &Transaction<'_>, key: &[u8]) -> Result<Option<Record>, StoreError> {
    let mut statement = transaction
        .prepare_cached("SELECT version, value FROM records WHERE key = ?1")
        .map_err(unavailable)?;
    statement.query_row([key], record).optional().map_err(unavailable)
}

fn put(transaction: &Transaction<'_>, key: &[u8], version: u64, value: &[u8]) -> Result<(), StoreError> {
    let version = i64::try_from(version).map_err(|_| StoreError::Misuse("the versions are used up".into()))?;
    transaction
        .prepare_cached("INSERT OR REPLACE INTO records (key, version, value) VALUES (?1, ?2, ?3)")
        .and_then(|mut statement| statement.execute(params![key, version, value]))
        .map_err(unavailable)?;
    Ok(())
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let version: i64 = row.get(0)?;
    let value: Vec<u8> = row.get(1)?;
    Ok(Record {
        version: version.unsigned_abs(),
        value: value.into(),
    })
}

/// A transaction that was not committed has changed nothing.
fn unavailable(error: rusqlite::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn open(folder: &TempDir) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&folder.path().join("store.sqlite")).unwrap())
    }

    async fn make() -> (Arc<dyn Store>, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (open(&folder), folder)
    }

    async fn reopen(store: Arc<dyn Store>, folder: &TempDir) -> Arc<dyn Store> {
        store.shutdown().await;
        open(folder)
    }

    agentcfg_core::conformance_tests!(make, reopen: reopen);
}
