//! The connection pool: its size, the wait for a connection, and the removal of broken connections.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use agentcfg_core::store::StoreError;
use deadpool_postgres::{Client, Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio::time::{Instant, timeout};
use tokio_postgres::Row;

use super::error::{ConnectError, describe, is_lost, no_connection, unavailable};
use super::options::{PostgresOptions, Statements, target};
use super::pipeline::{Step, run};
use super::round_trip::RoundTrip;
use super::tls::Tls;

pub(super) struct Connections {
    pool: Pool,
    pub(super) statements: Statements,
    acquire_timeout: Duration,
    read_timeout: Duration,
    pub(super) commit_timeout: Duration,
    trip: RoundTrip,
}

/// Makes the database plan each prepared statement of a session once, and always as searches of the primary key.
///
/// By default it compares the costs of a plan for any parameters and of one for the parameters of this execution. It knows the
/// length of an array only in the latter, so for the short arrays of small groups that one always looks cheaper, and each
/// execution is planned again, which costs more than the execution. A plan that is kept must also be good when
/// the table has grown since, for which a search of the primary key is, and a scan of the whole table or a join by hash is not.
///
/// What still needs such a scan gets an enormous cost, for which the database would compile each execution to machine code first.
async fn plan_once(client: &tokio_postgres::Client) -> Result<(), tokio_postgres::Error> {
    const SETTINGS: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
                            SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off";
    match client.batch_execute(SETTINGS).await {
        // A database that speaks the protocol of PostgreSQL may lack a setting. Its statements work without.
        Err(error) if error.as_db_error().is_some() => {
            tracing::debug!(
                error = describe(&error),
                "the database does not plan prepared statements once"
            );
            Ok(())
        }
        outcome => outcome,
    }
}

/// How a statement ended.
enum Attempt {
    Answered(Result<Vec<Row>, StoreError>),
    /// The connection broke.
    Lost(StoreError),
    TimedOut,
}

impl Attempt {
    fn into_rows(self) -> Result<Vec<Row>, StoreError> {
        match self {
            Self::Answered(answer) => answer,
            Self::Lost(error) => Err(error),
            Self::TimedOut => Err(StoreError::Unavailable("the database did not answer in time".into())),
        }
    }
}

impl PostgresOptions {
    /// Checks all that a connection needs of these options, without one: the URL, the schema's name, and the file of authorities
    /// that the URL names.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Options`].
    ///
    /// ```
    /// use agentcfg_postgres::PostgresOptions;
    /// assert!(PostgresOptions::new("postgres://agentcfg@db/agentcfg").check().is_ok());
    /// assert!(PostgresOptions::new("postgres://db/agentcfg?sslmode=sometimes").check().is_err());
    /// ```
    pub fn check(&self) -> Result<(), ConnectError> {
        Connections::new(self).map(drop)
    }
}

impl Connections {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, ConnectError> {
        /// The time limit of making one connection, up to a ready session.
        const CREATE: Duration = Duration::from_secs(15);
        let target = target(options)?;
        let tls = Tls::new(&target)?;
        // The fast method skips connections that are known to be closed, without a round trip.
        let recycling_method = RecyclingMethod::Fast;
        let manager = Manager::from_config(target.config, tls, ManagerConfig { recycling_method });
        let mut pool = Pool::builder(manager)
            .max_size(options.pool_size.max(1))
            .wait_timeout(Some(options.acquire_timeout))
            .create_timeout(Some(CREATE))
            .runtime(Runtime::Tokio1);
        if options.statements == Statements::Prepared {
            pool = pool.post_create(Hook::async_fn(|client, _| {
                Box::pin(async move { plan_once(client).await.map_err(HookError::Backend) })
            }));
        }
        let pool = pool.build().map_err(|error| ConnectError::Options(error.to_string()))?;
        Ok(Self {
            pool,
            statements: options.statements,
            acquire_timeout: options.acquire_timeout,
            read_timeout: options.read_timeout,
            commit_timeout: options.commit_timeout,
            trip: RoundTrip::default(),
        })
    }

    /// Whether the database answers within a millisecond when it is not busy.
    pub(super) fn is_near(&self) -> bool {
        self.trip.least() < Duration::from_millis(1)
    }

    /// Takes a connection from the pool. Dropping it returns it.
    ///
    /// A connection that is being made is not given up with the caller that waits for it no longer: the first hosts of the URL may
    /// not answer, and the next caller needs one too.
    pub(super) async fn client(&self) -> Result<Client, StoreError> {
        let pool = self.pool.clone();
        let mut taken = Box::pin(async move { pool.get().await });
        if let Poll::Ready(client) = poll_fn(|cx| Poll::Ready(taken.as_mut().poll(cx))).await {
            return client.map_err(no_connection);
        }
        match timeout(self.acquire_timeout, tokio::spawn(taken)).await {
            Ok(Ok(client)) => client.map_err(no_connection),
            Ok(Err(stopped)) => Err(StoreError::Unavailable(stopped.to_string())),
            Err(_) => Err(StoreError::Unavailable(
                "the database gave no connection in time".to_owned(),
            )),
        }
    }

    /// Runs one statement that is safe to run twice.
    pub(super) async fn rows(&self, step: &Step<'_>) -> Result<Vec<Row>, StoreError> {
        self.rows_within(self.read_timeout, step).await
    }

    /// As [`Self::rows`] with another time limit. An idle connection may have broken unnoticed, so a lost
    /// connection is retried once.
    pub(super) async fn rows_within(&self, limit: Duration, step: &Step<'_>) -> Result<Vec<Row>, StoreError> {
        let client = self.client().await?;
        let outcome = self.attempt(&client, limit, step).await;
        self.put_back(client, &[&outcome]);
        match outcome {
            Attempt::Lost(_) => {
                let client = self.client().await?;
                let outcome = self.attempt(&client, limit, step).await;
                self.put_back(client, &[&outcome]);
                outcome.into_rows()
            }
            _ => outcome.into_rows(),
        }
    }

    /// A read, and another statement with its own time limit, both safe to run twice. Without a statement the answer is no rows.
    ///
    /// To a [near](Self::is_near) database they go in one message over one connection, the read first, which costs the least.
    /// To another they go over two connections at the same time, so that neither waits for the other.
    pub(super) async fn read_and(
        &self,
        read: Option<Step<'_>>,
        other: Option<(Duration, Step<'_>)>,
    ) -> (Result<Vec<Row>, StoreError>, Result<Vec<Row>, StoreError>) {
        let (read, limit, other) = match (read, other) {
            (Some(read), Some((limit, other))) => (read, limit, other),
            (Some(read), None) => return (self.rows(&read).await, Ok(Vec::new())),
            (None, Some((limit, other))) => return (Ok(Vec::new()), self.rows_within(limit, &other).await),
            (None, None) => return (Ok(Vec::new()), Ok(Vec::new())),
        };
        if !self.is_near() {
            return tokio::join!(self.rows(&read), self.rows_within(limit, &other));
        }
        let client = match self.client().await {
            Ok(client) => client,
            Err(error) => return (Err(error.clone()), Err(error)),
        };
        let (found, done) = tokio::join!(
            self.attempt(&client, self.read_timeout, &read),
            self.attempt(&client, limit, &other)
        );
        self.put_back(client, &[&found, &done]);
        let found = match found {
            Attempt::Lost(_) => self.rows(&read).await,
            found => found.into_rows(),
        };
        let done = match done {
            Attempt::Lost(_) => self.rows_within(limit, &other).await,
            done => done.into_rows(),
        };
        (found, done)
    }

    async fn attempt(&self, client: &Client, limit: Duration, step: &Step<'_>) -> Attempt {
        let begin = Instant::now();
        match timeout(limit, run(client, self.statements, step)).await {
            Ok(Ok(rows)) => {
                self.trip.measured(begin);
                Attempt::Answered(Ok(rows))
            }
            Ok(Err(error)) if is_lost(&error) => Attempt::Lost(unavailable(&error)),
            Ok(Err(error)) => Attempt::Answered(Err(unavailable(&error))),
            Err(_) => Attempt::TimedOut,
        }
    }

    /// Returns a connection to the pool, unless it broke or has not answered.
    fn put_back(&self, client: Client, attempts: &[&Attempt]) {
        if attempts.iter().any(|attempt| !matches!(attempt, Attempt::Answered(_))) {
            self.discard(client);
        }
    }

    /// Closes a connection whose transaction is to end.
    pub(super) fn close_one(&self, client: Client) {
        drop(Object::take(client));
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
