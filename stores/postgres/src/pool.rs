//! The connection pool: its size, the wait for a connection, and the removal of broken connections.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use agentcfg_core::store::StoreError;
use deadpool_postgres::{
    Client, Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, Timeouts,
};
use tokio::time::{Instant, timeout};
use tokio_postgres::Row;

use super::error::{ConnectError, NO_ANSWER, describe, is_lost, no_connection, unavailable, why_no_connection};
use super::health::{Health, TimedOut};
use super::options::{CONNECT, PostgresOptions, Statements, place, target};
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
    health: Arc<Health>,
    /// How long the first connection may take.
    first_timeout: Duration,
    /// The hosts and the database, for the log.
    place: String,
    /// What may be wrong with the URL.
    doubt: Option<&'static str>,
}

/// How the connections of a pool are used, for metrics.
///
/// ```
/// use agentcfg_postgres::PoolUse;
/// assert_eq!(PoolUse::default().waiting, 0);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolUse {
    /// The connections that the pool may open.
    pub limit: usize,
    /// The connections that are open.
    pub open: usize,
    /// Connections that run a statement.
    pub used: usize,
    /// The callers that wait for a connection.
    pub waiting: usize,
}

/// Makes the database plan each prepared statement of a session once, and always as searches of the primary key.
///
/// By default it compares the costs of a plan for any parameters and of one for the parameters of this execution. It
/// knows the length of an array only in the latter, so for the short arrays of small groups that one always looks
/// cheaper, and each execution is planned again, which costs more than the execution. A plan that is kept must also be
/// good when the table has grown since, for which a search of the primary key is, and a scan of the whole table or a
/// join by hash is not.
///
/// What still needs such a scan gets an enormous cost, for which the database would compile each execution to machine
/// code first.
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
            Self::TimedOut => Err(StoreError::Unavailable(NO_ANSWER.to_owned())),
        }
    }
}

impl PostgresOptions {
    /// Checks all that a connection needs of these options, without one: the URL, the schema's name, and the file of
    /// authorities that the URL names.
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
        // Each host has the time in which a TCP connection must be made.
        let hosts = u32::try_from(target.config.get_hosts().len().max(1)).unwrap_or(u32::MAX);
        let of_host = target.config.get_connect_timeout().copied().unwrap_or(CONNECT);
        let first_timeout = of_host.max(CONNECT).saturating_mul(hosts);
        let health = Arc::new(Health::default());
        let doubt = target.doubt;
        // A part of the password may stand where the host or the database should.
        let place = match doubt {
            Some(_) => "(a URL with more than one @)".to_owned(),
            None => place(&target.config),
        };
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
        let answers = Arc::clone(&health);
        let pool = pool.post_create(Hook::sync_fn(move |_, _| {
            answers.answered();
            Ok(())
        }));
        let pool = pool.build().map_err(|error| ConnectError::Options(error.to_string()))?;
        Ok(Self {
            pool,
            statements: options.statements,
            acquire_timeout: options.acquire_timeout,
            read_timeout: options.read_timeout,
            commit_timeout: options.commit_timeout,
            trip: RoundTrip::default(),
            health,
            first_timeout,
            place,
            doubt,
        })
    }

    /// Whether the database answers within a millisecond when it is not busy.
    pub(super) fn is_near(&self) -> bool {
        self.trip.least() < Duration::from_millis(1)
    }

    /// How the connections are used now.
    pub(super) fn pool_use(&self) -> PoolUse {
        let now = self.pool.status();
        PoolUse {
            limit: now.max_size,
            open: now.size,
            used: now.size.saturating_sub(now.available),
            waiting: now.waiting,
        }
    }

    /// Takes a connection from the pool. Dropping it returns it.
    ///
    /// A connection that is being made is not given up with the caller that waits for it no longer: the first hosts of
    /// the URL may not answer, and the next caller needs one too.
    pub(super) async fn client(&self) -> Result<Client, StoreError> {
        let pool = self.pool.clone();
        let mut taken = Box::pin(async move { pool.get().await });
        if let Poll::Ready(client) = poll_fn(|cx| Poll::Ready(taken.as_mut().poll(cx))).await {
            return client.map_err(no_connection);
        }
        let begin = Instant::now();
        let taken = self
            .health
            .within(self.acquire_timeout, self.trip.least(), tokio::spawn(taken));
        match taken.await {
            Ok(Ok(Err(error @ PoolError::Timeout(_)))) => {
                self.health.timed_out(begin);
                Err(no_connection(error))
            }
            Ok(Ok(client)) => client.map_err(no_connection),
            Ok(Err(stopped)) => Err(StoreError::Unavailable(stopped.to_string())),
            Err(TimedOut) => {
                self.health.timed_out(begin);
                Err(StoreError::Unavailable(
                    "the database gave no connection in time".to_owned(),
                ))
            }
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

    /// A read, and another statement with its own time limit, both safe to run twice. Without a statement the answer is
    /// no rows.
    ///
    /// To a [near](Self::is_near) database they go in one message over one connection, the read first, which costs the
    /// least. To another they go over two connections at the same time, so that neither waits for the other.
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
        let statement = run(client, self.statements, step);
        match self.health.within(limit, self.trip.least(), statement).await {
            Ok(Ok(rows)) => {
                self.trip.measured(begin);
                self.health.answered();
                Attempt::Answered(Ok(rows))
            }
            Ok(Err(error)) if is_lost(&error) => Attempt::Lost(unavailable(&error)),
            Ok(Err(error)) => {
                self.health.answered();
                Attempt::Answered(Err(unavailable(&error)))
            }
            Err(TimedOut) => {
                self.health.timed_out(begin);
                Attempt::TimedOut
            }
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

    /// Notes that the database has answered a statement of a transaction.
    pub(super) fn answered(&self) {
        self.health.answered();
    }

    /// Retries until the database accepts a connection or the time limit `wait` is over. The first attempt is made in
    /// any case.
    pub(super) async fn connect(&self, wait: Duration) -> Result<Client, ConnectError> {
        const PAUSE: Duration = Duration::from_millis(250);
        let mut failures = Failures::default();
        let first = Timeouts {
            create: Some(self.first_timeout),
            ..self.pool.timeouts()
        };
        let mut why = match self.pool.timeout_get(&first).await {
            Ok(client) => {
                tracing::info!(database = %self.place, "connected to the database");
                return Ok(client);
            }
            Err(error) => why_no_connection(&error),
        };
        let unreachable = |why| {
            let doubt = self.doubt.map(|doubt| format!("; {doubt}"));
            ConnectError::Unreachable(format!("{}: {why}{}", self.place, doubt.unwrap_or_default()))
        };
        if wait.is_zero() {
            return Err(unreachable(why));
        }
        let attempts = async {
            loop {
                if let Some(attempts) = failures.add(&why) {
                    tracing::info!(database = %self.place, %why, attempts, "waiting for the database");
                }
                tokio::time::sleep(PAUSE).await;
                match self.pool.get().await {
                    Ok(client) => {
                        tracing::info!(database = %self.place, "connected to the database");
                        return client;
                    }
                    Err(error) => why = why_no_connection(&error),
                }
            }
        };
        let connected = timeout(wait, attempts).await;
        connected.map_err(|_| unreachable(why))
    }
}

/// The failed attempts to connect, of which equal ones are logged together.
#[derive(Debug, Default)]
struct Failures {
    last: String,
    logged: Option<Instant>,
    /// Count since the last log line.
    attempts: u32,
}

impl Failures {
    /// Adds a failed attempt. Returns how many to log with one line now, the last of them with this cause: a cause that
    /// is new at once, an equal one at most every ten seconds.
    fn add(&mut self, why: &str) -> Option<u32> {
        const EVERY: Duration = Duration::from_secs(10);
        self.attempts += 1;
        if self.last == why && self.logged.is_some_and(|logged| logged.elapsed() < EVERY) {
            return None;
        }
        why.clone_into(&mut self.last);
        self.logged = Some(Instant::now());
        Some(std::mem::take(&mut self.attempts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn equal_failures_are_logged_together() {
        let mut failures = Failures::default();
        let mut logged = Vec::new();
        for attempt in 0..100 {
            let why = if attempt < 50 { "no database" } else { "no answer" };
            logged.extend(failures.add(why).map(|attempts| (attempt, why, attempts)));
            tokio::time::advance(Duration::from_millis(250)).await;
        }
        assert_eq!(
            logged,
            [
                (0, "no database", 1),
                (40, "no database", 40),
                (50, "no answer", 10),
                (90, "no answer", 40)
            ]
        );
    }
}
