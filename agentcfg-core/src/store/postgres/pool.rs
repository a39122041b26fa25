//! The connection pool: its size, the wait for a connection, and the removal of broken connections.

use std::time::Duration;

use deadpool_postgres::{Client, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio::time::timeout;
use tokio_postgres::Row;

use super::super::StoreError;
use super::error::{ConnectError, is_lost, no_connection, unavailable};
use super::options::{PostgresOptions, Statements, target};
use super::run::{Step, run};
use super::tls::Tls;

pub(super) struct Connections {
    pool: Pool,
    pub(super) statements: Statements,
    read_timeout: Duration,
    pub(super) commit_timeout: Duration,
}

impl Connections {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, ConnectError> {
        /// The time limit of making one connection, up to a ready session.
        const CREATE: Duration = Duration::from_secs(15);
        let target = target(options)?;
        let tls = Tls::new(target.verify, target.authorities.as_deref())?;
        // The fast method skips connections that are known to be closed, without a round trip.
        let recycling_method = RecyclingMethod::Fast;
        let manager = Manager::from_config(target.config, tls, ManagerConfig { recycling_method });
        let pool = Pool::builder(manager)
            .max_size(options.pool_size.max(1))
            .wait_timeout(Some(options.acquire_timeout))
            .create_timeout(Some(CREATE))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| ConnectError::Options(error.to_string()))?;
        Ok(Self {
            pool,
            statements: options.statements,
            read_timeout: options.read_timeout,
            commit_timeout: options.commit_timeout,
        })
    }

    /// Takes a connection from the pool. Dropping it returns it.
    pub(super) async fn client(&self) -> Result<Client, StoreError> {
        self.pool.get().await.map_err(no_connection)
    }

    /// Runs one statement that is safe to run twice.
    pub(super) async fn rows(&self, step: &Step<'_>) -> Result<Vec<Row>, StoreError> {
        self.rows_within(self.read_timeout, step).await
    }

    /// As [`Self::rows`] with another time limit. An idle connection may have broken unnoticed, so a lost
    /// connection is retried once.
    pub(super) async fn rows_within(&self, limit: Duration, step: &Step<'_>) -> Result<Vec<Row>, StoreError> {
        let mut retried = false;
        loop {
            let client = self.client().await?;
            let outcome = timeout(limit, run(&client, self.statements, step)).await;
            match outcome {
                Ok(Ok(rows)) => return Ok(rows),
                Ok(Err(error)) if is_lost(&error) => {
                    self.discard(client);
                    if retried {
                        return Err(unavailable(&error));
                    }
                    retried = true;
                }
                Ok(Err(error)) => return Err(unavailable(&error)),
                Err(_) => {
                    self.discard(client);
                    return Err(StoreError::Unavailable("the database did not answer in time".into()));
                }
            }
        }
    }

    /// Closes a connection that broke or timed out, and all idle ones, because they lead to the same server.
    pub(super) fn discard(&self, client: Client) {
        drop(Object::take(client));
        self.pool.retain(|_, _| false);
    }

    /// Closes all connections; later calls fail.
    pub(super) fn close(&self) {
        self.pool.close();
    }

    /// Retries until the database accepts a connection or the time limit `wait` is over.
    pub(super) async fn connect(&self, wait: Duration) -> Result<Client, ConnectError> {
        const PAUSE: Duration = Duration::from_millis(250);
        let attempts = async {
            loop {
                match self.pool.get().await {
                    Ok(client) => return client,
                    Err(error) => tracing::info!(%error, "the database does not answer yet"),
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        match self.pool.get().await {
            Ok(client) => Ok(client),
            Err(error) => timeout(wait, attempts)
                .await
                .map_err(|_| ConnectError::Unreachable(no_connection(error).to_string())),
        }
    }
}
