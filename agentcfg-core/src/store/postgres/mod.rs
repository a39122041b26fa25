//! The store on PostgreSQL, which several servers share.
//!
//! # Tables
//!
//! Each kind of record has a table whose primary key begins with the workspace, so that an engine
//! which spreads its data can spread it by workspace. The columns are the key, `version` and `value`:
//!
//! ```sql
//! SELECT agent_id, value->>'display_name' FROM agentcfg.agents WHERE value->>'is_active' = 'true';
//! ```
//!
//! Values have the type `json` and not `jsonb`, because they have to read back as they were written:
//! `jsonb` keeps numbers as decimals, so that `1e16` comes back as the integer `10000000000000000` and `-0.0`
//! as `0.0`, and it drops the order of fields. Counters and log heads are `numeric`, the only type that holds
//! their range.
//!
//! A row whose `value` is null stands for a record that was deleted. It keeps the version, which the next
//! record of that key goes on from: so versions never return, without a sequence, which engines that
//! spread their data have to cache and give out of order. The first version of a key depends on the key, so that the
//! tag of one record is hardly ever that of another.
//!
//! # Commits
//!
//! A commit is one transaction in one round trip: `BEGIN`, one statement for each key and `COMMIT` are sent
//! together. A statement whose condition does not hold fails, and with it the transaction. Then, and
//! only then, the records are read and [the rule that all stores share](super) says which condition it was.
//!
//! Transactions are `READ COMMITTED` with row locks, not `SERIALIZABLE`. Every row that a batch checks or
//! writes is locked by the statement that looks at it, shared where it is only checked, so no other batch
//! can change it before the end: that makes the batches serialisable, and those that meet at a hot row (a
//! counter, the head of a log) wait for their turn where `SERIALIZABLE` would make all but one start over. The
//! locks are taken in the order of the keys, so batches do not wait for each other in a circle. The absence of
//! a record is locked by a row without a value. Under an engine that only has `SERIALIZABLE`, all of this is
//! as right; its serialisation failures are repeated.
//!
//! # Doubt
//!
//! An answer to a statement that failed, or a connection that could not be had, means that nothing changed:
//! [`StoreError::Unavailable`]. When the connection breaks, or the answer is not there in time, once the commit
//! is on its way, the outcome is [unknown](StoreError::OutcomeUnknown).

mod commit;
mod error;
mod load;
mod options;
mod pool;
mod read;
mod run;
mod schema;
mod sql;
mod table;
mod tls;
mod transfer;
mod windows;

use std::fmt;

use async_trait::async_trait;

pub use self::error::ConnectError;
pub use self::options::{PostgresOptions, Statements};
use self::pool::Connections;
use self::sql::Sql;
pub use self::transfer::{TransferError, Transferred};
use super::{Batch, CommitError, Committed, Key, Record, Scan, Scanned, Stamp, Store, StoreError};

/// A store in a PostgreSQL database, for any number of processes at a time.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_core::AgentCfg;
/// use agentcfg_core::store::postgres::{PostgresOptions, PostgresStore};
///
/// let options = PostgresOptions::new("postgres://agentcfg:secret@db-1,db-2/agentcfg");
/// let store = PostgresStore::connect(&options).await?;
/// let service = AgentCfg::builder(store).build();
/// # Ok(())
/// # }
/// ```
pub struct PostgresStore {
    connections: Connections,
    sql: Sql,
    /// Every version of a fresh record is greater.
    base: u64,
}

impl PostgresStore {
    /// Connects to the database, and makes the store's tables in it where there are none.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`]. Tables of a newer format are left as they are.
    pub async fn connect(options: &PostgresOptions) -> Result<Self, ConnectError> {
        let connections = Connections::new(options)?;
        let sql = Sql::new(&options.schema);
        let mut client = connections.reach(options.wait).await?;
        let base = schema::prepare(&mut client, &sql).await?.base;
        drop(client);
        Ok(Self { connections, sql, base })
    }

    /// Closes all connections. Later calls are [`StoreError::Unavailable`].
    pub fn close(&self) {
        self.connections.close();
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("schema", &self.sql.schema)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        read::get(&self.connections, &self.sql, keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        read::scan(&self.connections, &self.sql, scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        commit::commit(&self.connections, &self.sql, self.base, batch).await
    }

    /// Other servers write to the same database, and only the database knows.
    fn stamp(&self, _: &Key) -> Option<Stamp> {
        None
    }

    fn is_current(&self, _: Stamp) -> bool {
        false
    }
}
