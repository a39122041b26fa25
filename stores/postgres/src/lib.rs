//! The store on PostgreSQL, for several servers that share one database.
//!
//! # Tables
//!
//! Each kind of record has a table whose primary key begins with the workspace, so that a distributed
//! engine can shard by workspace. The columns are the key, `version` and `value`:
//!
//! ```sql
//! SELECT agent_id, value->>'display_name' FROM agentcfg.agents WHERE value->>'is_active' = 'true';
//! ```
//!
//! Values have the type `json` and not `jsonb`, because they must read back exactly as written:
//! `jsonb` keeps numbers as decimals, so that `1e16` comes back as the integer `10000000000000000` and `-0.0`
//! as `0.0`, and it drops the order of fields. Counters and log heads are `numeric`, the only type that holds
//! their range.
//!
//! A row whose `value` is null is a tombstone of a deleted record. It keeps the version, and the next
//! record of that key continues from it, so a version is never reused. A sequence could do that too, but
//! distributed engines cache sequences and assign their numbers out of order. The first version of a key
//! is derived from the key, so that two records hardly ever share an entity tag.
//!
//! # Commits
//!
//! A commit is one transaction in one round trip: `BEGIN`, the statements and `COMMIT` are pipelined. A statement whose
//! condition does not hold fails, and aborts the transaction. Only then are the records read, to find out
//! which condition failed.
//!
//! While other processes append to the same logs, a group waits for their transactions. Then it also waits for callers
//! that repeat, as long as the last one took: fewer and larger groups queue for the same rows.
//!
//! A lone batch has one statement for each key. Batches that arrive while their workspace's last transaction is in
//! flight share the next one (group commit), with one statement for each table and form of write: additions to one
//! counter are made as one, and the entries of a log are appended together. If a condition of one of them fails, the
//! common planner decides on a snapshot which batches are refused, and the others are sent again. Batches of several
//! workspaces share a transaction only while as many as may be are in flight.
//!
//! Transactions are `READ COMMITTED` with row locks, not `SERIALIZABLE`. Each statement locks the rows that
//! it checks (shared) or writes (exclusive), so no other batch can change them before the commit: that makes
//! the batches serialisable. Transactions of several servers that contend for a hot row (a counter, the head of a log)
//! queue for its lock, where `SERIALIZABLE` would abort all but one. Locks are taken in one order, by kind of record
//! and then by key, also within a statement on many rows, which prevents deadlocks. The absence of a record is locked
//! by a row without a value. All of this is correct as well under an engine that only has `SERIALIZABLE`; its
//! serialisation failures are retried.
//!
//! A decision that loses its races [holds](Store::hold) the head of the log: a transaction locks that row, the appends
//! of all servers queue behind it, and the batch is committed in this transaction. The database ends it after seconds
//! without a statement.
//!
//! # Reads
//!
//! A read is one statement. Concurrent reads by key share statements in the same way, and so do concurrent requests
//! that are counted in the rate windows. The reads and counts of a group go to the database in one message.
//!
//! A reader of all records of a kind reads [what has changed](Store::changed_since) since its last read, by the
//! transactions that the rows are from.
//!
//! # Unknown outcomes
//!
//! If a statement failed, or there was no connection, nothing changed: [`StoreError::Unavailable`]. If the
//! connection breaks or the answer times out after the commit was sent, the outcome is
//! [unknown](StoreError::OutcomeUnknown).
//!
//! # Several servers
//!
//! Say to the service that the store is remote, and count rate windows in it, so that the servers share them:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use agentcfg_core::AgentCfg;
//! use agentcfg_core::rate_limit::SharedLimiter;
//! use agentcfg_postgres::{PostgresOptions, PostgresStore};
//! let store = Arc::new(PostgresStore::connect(&PostgresOptions::new("postgres://db/agentcfg")).await?);
//! let limiter = SharedLimiter::new(store.clone());
//! let service = AgentCfg::builder(store).rate_limiter(limiter).build();
//! # Ok(())
//! # }
//! ```

#![warn(missing_debug_implementations)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod bulk_insert;
mod changes;
mod commit;
mod contention;
mod error;
mod health;
mod hold;
mod many_rows_sql;
mod options;
mod pipeline;
mod pool;
mod queries;
mod read;
mod removal;
mod round_trip;
mod schema;
mod shared_reads;
mod sql;
mod table;
mod tls;
mod transfer;
mod windows;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::group::{GroupCommit, Limits};
use agentcfg_core::store::{
    Batch, Changes, CommitError, Committed, Hold, Key, Kind, Partition, Position, Record, Scan, Scanned, Store,
    StoreError,
};
use async_trait::async_trait;

use self::contention::Contention;
pub use self::error::ConnectError;
use self::hold::LogHolds;
pub use self::options::{PostgresOptions, Statements};
use self::pool::Connections;
pub use self::pool::PoolUse;
use self::queries::Queries;
use self::sql::Sql;

/// A store in a PostgreSQL database, which any number of processes can use at the same time.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_core::AgentCfg;
/// use agentcfg_postgres::{PostgresOptions, PostgresStore};
///
/// let options = PostgresOptions::new("postgres://agentcfg:secret@db-1,db-2/agentcfg");
/// let store = PostgresStore::connect(&options).await?;
/// let service = AgentCfg::builder(store).build();
/// # Ok(())
/// # }
/// ```
pub struct PostgresStore {
    engine: Arc<Engine>,
    commits: GroupCommit<Arc<Engine>>,
    queries: Queries,
    holds: LogHolds,
}

/// What reads and commits need.
struct Engine {
    connections: Connections,
    sql: Sql,
    /// A lower bound: every version that a new key gets is greater.
    base: u64,
    /// Whether the database can tell which rows have changed.
    tells_changes: bool,
    /// Of the logs of workspaces.
    contention: Contention<WorkspaceId>,
}

impl PostgresStore {
    /// Connects to the database, and creates the store's tables if they do not exist.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`]. Tables of another format are not changed.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use agentcfg_postgres::{PostgresOptions, PostgresStore};
    /// let url = "postgres://agentcfg:secret@db-1,db-2/agentcfg?sslmode=verify-full";
    /// let options = PostgresOptions::new(url).connect_wait(Duration::from_secs(30));
    /// let store = PostgresStore::connect(&options).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(options: &PostgresOptions) -> Result<Self, ConnectError> {
        let connections = Connections::new(options)?;
        let sql = Sql::new(&options.schema);
        let mut client = connections.connect(options.connect_wait).await?;
        let base = schema::prepare(&mut client, &sql).await?.base;
        let tells_changes = changes::is_supported(&client, &sql.schema).await?;
        drop(client);
        let engine = Arc::new(Engine {
            connections,
            sql,
            base,
            tells_changes,
            contention: Contention::default(),
        });
        let limits = commit::limits(options.pool_size);
        Ok(Self {
            commits: GroupCommit::new(Arc::clone(&engine), limits),
            queries: Queries::new(Arc::clone(&engine), options.pool_size, options.acquire_timeout),
            holds: LogHolds::new(options.pool_size),
            engine,
        })
    }

    /// How the connections of the pool are used now.
    ///
    /// ```no_run
    /// # use agentcfg_postgres::PostgresStore;
    /// # fn example(store: &PostgresStore) {
    /// let now = store.pool_use();
    /// println!("{} of {} connections are in use, {} callers wait", now.used, now.limit, now.waiting);
    /// # }
    /// ```
    pub fn pool_use(&self) -> PoolUse {
        self.engine.connections.pool_use()
    }

    /// Closes all connections. Later calls return [`StoreError::Unavailable`].
    ///
    /// ```no_run
    /// # use agentcfg_postgres::{PostgresOptions, PostgresStore};
    /// # async fn example(store: PostgresStore) -> Result<(), Box<dyn std::error::Error>> {
    /// // The app ends: write what is pending, then close.
    /// store.close();
    /// # Ok(())
    /// # }
    /// ```
    pub fn close(&self) {
        self.engine.connections.close();
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("schema", &self.engine.sql.schema)
            .finish_non_exhaustive()
    }
}

/// The limits that the groups of queries and of commits have in common. Each group in flight uses one connection, and
/// each of the two kinds at most a quarter of the pool.
///
/// With a network between, two in flight at once keep the database busy; without, [one](Connections::is_near) does.
/// More would be smaller groups, of which each costs it another statement. Slow ones wait for a lock, a disk or the
/// network, so that others may start beside them.
fn flights(pool_size: usize, queue_timeout: Duration) -> Limits {
    let most = (pool_size / 4).max(1);
    Limits {
        group: 1,
        bytes: u64::MAX,
        lane: 1,
        queue: 1,
        flights: most.min(2),
        slow: Duration::from_millis(20),
        most,
        queue_timeout,
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn inner(&self) -> Option<&dyn Store> {
        None
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn shutdown(&self) {
        self.close();
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.queries.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        read::scan(&self.engine.connections, &self.engine.sql, scan).await
    }

    async fn changed_since(
        &self,
        partition: &Partition,
        kind: Kind,
        position: Option<Position>,
    ) -> Result<Changes, StoreError> {
        changes::changed_since(&self.engine, partition, kind, position).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.holds.wait(&batch).await;
        self.commits.commit(batch).await
    }

    async fn hold(&self, log: WorkspaceId) -> Result<Option<Hold>, StoreError> {
        self.holds.hold(&self.engine, log).await
    }

    async fn commit_held(&self, hold: &Hold, batch: Batch) -> Result<Committed, CommitError> {
        hold::commit(&self.engine, hold, batch).await
    }

    async fn end_removal(&self, workspace: WorkspaceId, marker: Key) -> Result<(), StoreError> {
        removal::end(&self.engine.connections, &self.engine.sql, workspace, &marker).await
    }
}
