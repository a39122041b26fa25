//! Which failed calls are retried, and when.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::{Instant, sleep};

use crate::Error;
use crate::attempt_outcome::AttemptOutcome;

agentcfg_core::__settable! {
    /// How often and with which delays a failed call is retried.
    ///
    /// Delays double from `min_delay` to `max_delay`; each gets random jitter of up to its own length on
    /// top. The client waits out a server's `Retry-After` in full and adds one such delay, so that
    /// callers with the same `Retry-After` do not return at the same moment. A delay that does not fit
    /// into the rest of [`Timeouts::total`](crate::Timeouts::total) is not started: the call fails at once.
    ///
    /// Whether a call is retried depends on what the failure reveals about the first attempt:
    ///
    /// | failure | lists, reads, status reports | every other change |
    /// |---|---|---|
    /// | no connection, or the request was provably never sent | repeated | repeated |
    /// | 429: refused before the server processed it | repeated | repeated |
    /// | 503 of the server with `Retry-After`: nothing was changed | repeated | repeated |
    /// | the connection broke, or no response in time | repeated | never |
    /// | 502, 504, every other 503 | repeated | never |
    /// | every other status, a response that cannot be decoded, a refused certificate | never | never |
    ///
    /// A change is not retried once the server may have applied it. This includes a 503 without `Retry-After`, which
    /// can mean that the server itself does not know the outcome, and a proxy's 503:
    ///
    /// - `POST` would create a second workspace or key, or turn a success into 409.
    /// - `DELETE` would turn a success into 404, or delete a record that another caller restored in between.
    /// - `PATCH` would undo another caller's change and advance `updated_at` twice; with `If-Match` it
    ///   would turn a success into 412.
    /// - `PUT` of a member would restore a role that another caller withdrew in between, and `PUT` of a provider key
    ///   would restore a key that another caller replaced. `PUT` of a status is retried: only the last report counts, and
    ///   it expires.
    ///
    /// [`Error::may_have_been_applied`] shows whether to read the record before trying again.
    ///
    /// ```
    /// use agentcfg_client::{Client, RetryPolicy};
    /// let patient = RetryPolicy::default().max_retries(6);
    /// let client = Client::builder("https://agents.example.com").retry(patient).build()?;
    /// let once = Client::builder("https://agents.example.com").retry(RetryPolicy::NEVER).build()?;
    /// # Ok::<(), agentcfg_client::Error>(())
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    RetryPolicy {
        /// The maximum number of retries after the first attempt.
        max_retries: usize,
        /// The first delay.
        min_delay: Duration,
        /// The longest delay, without its jitter.
        max_delay: Duration,
    }
}

impl RetryPolicy {
    /// No retries.
    ///
    /// ```
    /// use agentcfg_client::RetryPolicy;
    /// assert_eq!(RetryPolicy::NEVER.max_retries, 0);
    /// ```
    pub const NEVER: Self = Self {
        max_retries: 0,
        min_delay: Duration::ZERO,
        max_delay: Duration::ZERO,
    };
}

impl Default for RetryPolicy {
    /// Three retries with delays from 100 ms to 5 s.
    fn default() -> Self {
        Self {
            max_retries: 3,
            min_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(5),
        }
    }
}

/// Whether a request is idempotent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Sending it twice has the same effect as sending it once.
    Idempotent,
    /// Sending it twice may have another effect than sending it once.
    NotIdempotent,
}

/// Runs attempts until one succeeds or fails with a final error, or until no retry or no time is
/// left. Each attempt receives the deadline of the whole call, and `before_pause` each failure that is followed by
/// another attempt.
pub(crate) async fn run<T, F>(
    policy: &RetryPolicy,
    total: Duration,
    effect: Effect,
    before_pause: impl Fn(&Error, Duration),
    mut attempt: impl FnMut(Instant) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let deadline = deadline_after(total);
    let mut pauses = ExponentialBuilder::new()
        .with_jitter()
        .with_min_delay(policy.min_delay)
        .with_max_delay(policy.max_delay)
        .with_max_times(policy.max_retries)
        .build();
    loop {
        let error = match attempt(deadline).await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let retryable = match error.outcome() {
            AttemptOutcome::NotApplied => true,
            AttemptOutcome::Unknown => effect == Effect::Idempotent,
            AttemptOutcome::Final => false,
        };
        let Some(pause) = pauses.next().filter(|_| retryable) else {
            return Err(error);
        };
        let pause = pause.saturating_add(error.retry_after().unwrap_or_default());
        if pause >= deadline.saturating_duration_since(Instant::now()) {
            return Err(error);
        }
        before_pause(&error, pause);
        sleep(pause).await;
    }
}

/// The instant after this duration; a very long one is capped, so that it cannot overflow.
pub(crate) fn deadline_after(duration: Duration) -> Instant {
    const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    Instant::now() + duration.min(NEVER)
}
