//! When a stream connects again after a failure.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

use crate::Error;
use crate::attempt_outcome::AttemptOutcome;

/// The delays before a stream reconnects after failures.
const MIN_DELAY: Duration = Duration::from_millis(200);
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(10);

/// The longest pause that is kept to because an answer asks for it.
const MAX_ASKED_PAUSE: Duration = Duration::from_secs(300);

/// Whether another attempt may succeed without any action of the caller.
pub(crate) fn may_pass(error: &Error) -> bool {
    error.outcome() != AttemptOutcome::Final || matches!(error.status(), Some(408 | 500..))
}

/// The pause that an answer asks for. A proxy may ask for a day.
pub(crate) fn asked_pause(error: &Error) -> Duration {
    error.retry_after().unwrap_or_default().min(MAX_ASKED_PAUSE)
}

/// The delays between attempts.
pub(crate) fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_jitter()
        .with_min_delay(MIN_DELAY)
        .with_max_delay(MAX_DELAY)
        .without_max_times()
        .build()
}
