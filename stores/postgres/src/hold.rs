//! Holds: a transaction that locks the head of a log, for which the appends of all servers wait.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::{Batch, CommitError, Committed, HeldLog, Hold, Holds, StoreError};
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

/// The transaction of a hold. Without its commit the connection is closed, which ends the transaction.
struct HeldHead {
    engine: Arc<Engine>,
    client: Mutex<Option<Client>>,
    _queue: HeldLog,
    _permit: OwnedSemaphorePermit,
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
        let held = HeldHead {
            engine: Arc::clone(engine),
            client: Mutex::new(Some(connections.client().await?)),
            _queue: queue,
            _permit: permit,
        };
        // One message.
        let lock = format!("{BEGIN_HOLD}; {}", engine.sql.lock_log(log));
        let Some(client) = held.take() else { return Ok(None) };
        let locked = timeout(connections.commit_timeout, client.batch_execute(&lock)).await;
        held.put_back(client);
        match locked {
            Ok(Ok(())) => Ok(Some(Hold::new(held))),
            Ok(Err(error)) => Err(unavailable(&error)),
            Err(_) => Err(StoreError::Unavailable("the database did not answer in time".into())),
        }
    }
}

/// Commits a batch in the transaction of a hold, which ends with it. A further one is a transaction of its own.
pub(super) async fn commit(engine: &Engine, hold: &Hold, batch: Batch) -> Result<Committed, CommitError> {
    let client = hold.guard::<HeldHead>().and_then(HeldHead::take);
    match client.filter(|client| !client.is_closed()) {
        Some(client) => engine.commit_in(client, batch).await,
        None => engine.commit_alone(batch).await,
    }
}

impl HeldHead {
    fn take(&self) -> Option<Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put_back(&self, client: Client) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client);
    }
}

impl Drop for HeldHead {
    fn drop(&mut self) {
        if let Some(client) = self.take() {
            self.engine.connections.close_one(client);
        }
    }
}

impl fmt::Debug for LogHolds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogHolds").finish_non_exhaustive()
    }
}
