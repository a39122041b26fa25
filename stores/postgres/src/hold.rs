//! Holds: a transaction that locks the head of a log, for which the appends of all servers wait.

use std::fmt;
use std::sync::{Arc, Mutex};

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::{Batch, CommitError, Committed, HeldLog, Hold, Holds, StoreError};
use agentcfg_core::sync::lock;
use deadpool_postgres::Client;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::Engine;
use super::error::unavailable;
use super::sql::BEGIN_HOLD;

/// The holds of this server.
pub(super) struct LogHolds {
    queues: Holds,
    /// Each takes a connection, and its reads need another one.
    permits: Option<Arc<Semaphore>>,
}

/// A hold of this server.
struct HeldHead {
    transaction: Mutex<Option<OpenTransaction>>,
    _queue: HeldLog,
    _permit: OwnedSemaphorePermit,
}

/// A connection with a transaction that has begun. Dropping it closes the connection, which ends the transaction.
struct OpenTransaction {
    engine: Arc<Engine>,
    client: Option<Client>,
}

impl LogHolds {
    /// A pool with fewer than four connections has none for holds.
    pub(super) fn new(pool_size: usize) -> Self {
        let most = pool_size / 4;
        Self {
            queues: Holds::default(),
            permits: (most > 0).then(|| Arc::new(Semaphore::new(most))),
        }
    }

    /// Waits until no log that the batch appends to is held by this server. Its append waits for other servers.
    pub(super) async fn wait(&self, batch: &Batch) {
        self.queues.wait(batch).await;
    }

    /// Holds a log.
    pub(super) async fn hold(&self, engine: &Arc<Engine>, log: WorkspaceId) -> Result<Option<Hold>, StoreError> {
        let Some(permits) = &self.permits else {
            return Ok(None);
        };
        let queue = self.queues.take(log).await;
        let closed = |error| StoreError::Unavailable(format!("holds have ended: {error}"));
        let permit = Arc::clone(permits).acquire_owned().await.map_err(closed)?;
        let connections = &engine.connections;
        let client = connections.client().await?;
        // One message.
        let lock = format!("{BEGIN_HOLD}; {}", engine.sql.lock_log(log));
        let transaction = OpenTransaction::of(engine, client);
        match timeout(connections.commit_timeout, transaction.run(&lock)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(unavailable(&error)),
            Err(_) => return Err(StoreError::Unavailable("the database did not answer in time".into())),
        }
        Ok(Some(Hold::new(HeldHead {
            transaction: Mutex::new(Some(transaction)),
            _queue: queue,
            _permit: permit,
        })))
    }
}

/// Commits a batch in the transaction of a hold, which ends with it. A further one is a transaction of its own.
pub(super) async fn commit(engine: &Engine, hold: &Hold, batch: Batch) -> Result<Committed, CommitError> {
    let transaction = hold.guard::<HeldHead>().and_then(|held| {
        let mut transaction = lock(&held.transaction);
        transaction.take()?.into_client()
    });
    match transaction {
        Some(client) => engine.commit_in(client, batch).await,
        None => engine.commit_alone(batch).await,
    }
}

impl OpenTransaction {
    fn of(engine: &Arc<Engine>, client: Client) -> Self {
        Self {
            engine: Arc::clone(engine),
            client: Some(client),
        }
    }

    async fn run(&self, statements: &str) -> Result<(), tokio_postgres::Error> {
        match &self.client {
            Some(client) => client.batch_execute(statements).await,
            None => Ok(()),
        }
    }

    /// The connection, unless the database has closed it.
    fn into_client(mut self) -> Option<Client> {
        self.client.take().filter(|client| !client.is_closed())
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.engine.connections.close_one(client);
        }
    }
}

impl fmt::Debug for LogHolds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogHolds").finish_non_exhaustive()
    }
}
