//! Whether the database answers, and how long to wait for it.
//!
//! A request often needs several operations, one after another. If each of them waited for its whole time limit while
//! the database is frozen, the request would wait for the sum of the limits. So the limit counts from the first
//! operation that got no answer: the operations after it get what is left of the limit, or a short minimum, until the
//! database answers again.

use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use agentcfg_core::sync::lock;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// How long a database is suspected after an operation that had no answer. Then another one has its whole time again,
/// since a new connection to a database that is well may take longer than a short wait.
const STALE: Duration = Duration::from_secs(10);

/// How long an operation waits at least while the database is suspected to be silent.
const SHORT: Duration = Duration::from_millis(150);

/// How many round trips a new connection takes, with TLS and the proof of a password.
const TRIPS: u32 = 8;

#[derive(Debug, Default)]
pub(super) struct Health {
    last_answer: Mutex<Option<Instant>>,
    /// Since when the database is silent: the begin of the first operation that has ended without an answer, while none
    /// has come since.
    silent_since: watch::Sender<Option<Instant>>,
}

/// The time limit of an operation is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimedOut;

impl Health {
    /// Notes that the database has answered, be it with an error.
    pub(super) fn answered(&self) {
        let mut last = lock(&self.last_answer);
        *last = Some(Instant::now());
        self.silent_since.send_if_modified(|since| since.take().is_some());
    }

    /// Notes that an operation which began then has ended without an answer. A slow statement alone proves nothing: the
    /// database is suspected only if it has not answered another one either in this time.
    pub(super) fn timed_out(&self, begin: Instant) {
        let last = lock(&self.last_answer);
        if last.is_none_or(|answer| answer < begin) {
            self.silent_since.send_if_modified(|since| {
                let is_earlier = since.is_none_or(|since| begin < since || since.elapsed() >= STALE);
                if is_earlier {
                    *since = Some(begin);
                }
                is_earlier
            });
        }
    }

    /// Runs an operation with this time limit. While the database is suspected to be frozen, the limit is shorter, also
    /// for operations that are waiting already; as soon as it answers another operation, they have their full limit
    /// again.
    ///
    /// `round_trip` is the shortest round trip that was measured. The short limit is at least a few of them, for
    /// databases that are far away.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        round_trip: Duration,
        operation: impl Future<Output = T>,
    ) -> Result<T, TimedOut> {
        // Without an answer yet the round trip is the longest duration.
        let short = match round_trip {
            Duration::MAX => SHORT,
            trip => SHORT.max(trip.saturating_mul(TRIPS)),
        };
        let mut silent_since = self.silent_since.subscribe();
        let whole = Instant::now() + limit;
        let end_of = |since: Option<Instant>| match since {
            Some(since) if since.elapsed() < STALE => whole.min((since + limit).max(Instant::now() + short)),
            _ => whole,
        };
        let mut end = end_of(*silent_since.borrow_and_update());
        let mut operation = pin!(operation);
        loop {
            tokio::select! {
                biased;
                outcome = &mut operation => return Ok(outcome),
                Ok(()) = silent_since.changed() => end = end_of(*silent_since.borrow_and_update()),
                () = sleep_until(end) => return Err(TimedOut),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    const LIMIT: Duration = Duration::from_millis(1600);
    const NEAR: Duration = Duration::from_micros(200);

    /// How long an operation without an answer waits.
    async fn wait(health: &Health, round_trip: Duration) -> Duration {
        let begin = Instant::now();
        let outcome = health.within(LIMIT, round_trip, pending::<()>()).await;
        assert_eq!(outcome, Err(TimedOut));
        health.timed_out(begin);
        begin.elapsed()
    }

    /// An operation has waited its whole time.
    async fn silence(health: &Health) {
        let begin = Instant::now();
        tokio::time::advance(LIMIT).await;
        health.timed_out(begin);
    }

    /// Some time without an operation.
    async fn pause() {
        tokio::time::advance(Duration::from_millis(10)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_suspicion_is_tried_with_the_whole_time() {
        let health = Health::default();
        health.answered();
        pause().await;
        silence(&health).await;
        tokio::time::advance(STALE).await;
        assert!(wait(&health, NEAR).await >= LIMIT);
        assert!(wait(&health, NEAR).await < SHORT + Duration::from_millis(5));
    }

    #[tokio::test(start_paused = true)]
    async fn after_one_operation_without_an_answer_the_others_wait_a_short_time() {
        let health = Health::default();
        health.answered();
        pause().await;
        let request = Instant::now();
        assert!(wait(&health, NEAR).await >= LIMIT);
        for _ in 0..2 {
            assert!(wait(&health, NEAR).await < SHORT + Duration::from_millis(5));
        }
        assert!(request.elapsed() < Duration::from_secs(2), "{:?}", request.elapsed());
        pause().await;
        health.answered();
        pause().await;
        assert!(wait(&health, NEAR).await >= LIMIT, "an answer ends the suspicion");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_statement_beside_others_that_are_answered_proves_nothing() {
        let health = Health::default();
        let begin = Instant::now();
        pause().await;
        health.answered();
        pause().await;
        health.timed_out(begin);
        assert!(wait(&health, NEAR).await >= LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn operations_that_wait_already_end_with_the_first_one() {
        let health = Health::default();
        let (first, second) = tokio::join!(wait(&health, NEAR), async {
            tokio::time::sleep(LIMIT / 2).await;
            wait(&health, NEAR).await
        });
        assert!(first + Duration::from_millis(1) >= LIMIT, "{first:?}");
        assert!(second <= LIMIT / 2 + SHORT + Duration::from_millis(5), "{second:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_passed_of_the_silence_counts() {
        let health = Health::default();
        let begin = Instant::now();
        // The count of a request has less time than a read after it.
        let count = health.within(Duration::from_secs(1), NEAR, pending::<()>()).await;
        assert_eq!(count, Err(TimedOut));
        health.timed_out(begin);
        wait(&health, NEAR).await;
        assert!(begin.elapsed() >= LIMIT && begin.elapsed() < LIMIT + Duration::from_millis(5));
    }

    #[tokio::test(start_paused = true)]
    async fn an_operation_gets_its_whole_time_again_when_the_database_answers() {
        let health = Health::default();
        silence(&health).await;
        let begin = Instant::now();
        let operation = async {
            tokio::time::sleep(Duration::from_millis(1000)).await;
            7
        };
        let (outcome, ()) = tokio::join!(health.within(LIMIT, NEAR, operation), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            health.answered();
        });
        assert_eq!(outcome, Ok(7));
        assert!(begin.elapsed() >= Duration::from_millis(1000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_distant_database_has_the_time_to_make_a_connection() {
        let health = Health::default();
        silence(&health).await;
        let waited = wait(&health, Duration::from_millis(80)).await;
        assert!(waited >= Duration::from_millis(600), "{waited:?}");
        assert!(wait(&health, Duration::MAX).await < LIMIT / 2, "of an unknown distance");
    }
}
