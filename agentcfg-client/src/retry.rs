//! What is repeated, and when.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::{Instant, sleep};

use crate::Error;

/// How often and after which pauses a failed call is repeated.
///
/// The pauses double from `min_delay` to `max_delay`, each with up to its own length of random time
/// on top. A `Retry-After` of the server is waited out in full, plus one such pause, so that callers
/// who were told the same do not come back as one. A pause that does not fit into what is left of
/// [`Timeouts::total`](crate::Timeouts::total) is not begun: the failure is returned at once.
///
/// What is repeated depends on what the failure says of the first attempt:
///
/// | failure | lists, reads, status reports | every other change |
/// |---|---|---|
/// | no connection, or the request was provably never sent | repeated | repeated |
/// | 429: refused before anything was looked at | repeated | repeated |
/// | the connection broke, or no answer in time | repeated | never |
/// | 502, 503, 504 | repeated | never |
/// | every other status, or an answer that cannot be read | never | never |
///
/// Why a change is not repeated once it may have been made, a 503 included, which can mean that the
/// outcome is unknown to the server itself:
///
/// - `POST` would create a second workspace or key, or turn a success into 409.
/// - `DELETE` would turn a success into 404, or delete again what somebody restored in between.
/// - `PATCH` would undo what somebody else changed in between and move `updated_at` twice; with
///   `If-Match` it would turn a success into 412.
/// - `PUT` of a member would give back a role that somebody took away in between, and `PUT` of a provider key would
///   bring back a key that somebody replaced. `PUT` of a status has no such memory: the last report counts, and it is true only for a while.
///
/// [`Error::may_have_been_applied`] tells when to look.
///
/// ```
/// use agentcfg_client::{Client, RetryPolicy};
/// let patient = RetryPolicy { max_retries: 6, ..RetryPolicy::default() };
/// let client = Client::builder("https://agents.example.com").retry(patient).build()?;
/// let once = Client::builder("https://agents.example.com").retry(RetryPolicy::NEVER).build()?;
/// # Ok::<(), agentcfg_client::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Repeats after the first attempt, at most.
    pub max_retries: usize,
    /// The first pause.
    pub min_delay: Duration,
    /// The longest pause, not counting its random part.
    pub max_delay: Duration,
}

impl RetryPolicy {
    /// Every call is one attempt.
    pub const NEVER: Self = Self {
        max_retries: 0,
        min_delay: Duration::ZERO,
        max_delay: Duration::ZERO,
    };
}

impl Default for RetryPolicy {
    /// Three repeats with pauses from 100 ms to 5 s.
    fn default() -> Self {
        Self {
            max_retries: 3,
            min_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(5),
        }
    }
}

/// What a failure says of the work that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was certainly not begun.
    Untouched,
    /// It may have been done.
    Unknown,
    /// The same again would end the same.
    Final,
}

/// Whether doing the same twice differs from doing it once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Twice is as good as once.
    Repeatable,
    /// Twice is not the same as once.
    Once,
}

/// Attempts until one succeeds, fails for good, or neither a repeat nor time is left. Each attempt
/// gets the moment by which the whole call must end.
pub(crate) async fn run<T, F>(
    policy: &RetryPolicy,
    total: Duration,
    effect: Effect,
    mut attempt: impl FnMut(Instant) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let deadline = moment_after(total);
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
        let repeatable = match error.outcome() {
            Outcome::Untouched => true,
            Outcome::Unknown => effect == Effect::Repeatable,
            Outcome::Final => false,
        };
        let Some(pause) = pauses.next().filter(|_| repeatable) else {
            return Err(error);
        };
        let pause = pause.saturating_add(error.retry_after().unwrap_or_default());
        if pause >= deadline.saturating_duration_since(Instant::now()) {
            return Err(error);
        }
        sleep(pause).await;
    }
}

/// The moment so long from now; very long is as good as never.
pub(crate) fn moment_after(duration: Duration) -> Instant {
    const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    Instant::now() + duration.min(NEVER)
}
