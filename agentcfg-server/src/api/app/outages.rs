//! Which requests that could not be served are lines of the log.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use agentcfg_core::sync::lock;
use hyper::Method;

use crate::http::errors::Failure;

/// The time between two lines.
const EVERY: Duration = Duration::from_secs(1);

/// While storage is down every request fails for the same reason: a line a second counts them all.
#[derive(Debug, Default)]
pub(super) struct Outages(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    last: Option<Instant>,
    /// The requests since then that are no line.
    left_out: u64,
}

impl Outages {
    /// Logs a failure of the server, with the cause that the answer does not show.
    pub(super) fn log(&self, failure: &Failure, method: &Method, path: &str, request_id: &str) {
        if !failure.status.is_server_error() || failure.is_meant {
            return;
        }
        let left_out = match failure.is_unavailable() {
            true => match self.next() {
                Some(left_out) => (left_out > 0).then_some(left_out),
                None => return,
            },
            false => None,
        };
        let cause = failure.cause.as_deref();
        tracing::error!(%method, path, request_id, status = failure.status.as_u16(), cause, left_out, "{}", failure.message);
    }

    /// Whether a request that failed now is a line, and how many before it are none.
    #[allow(
        clippy::disallowed_methods,
        reason = "the rate of lines in the log, no time that a rule depends on"
    )]
    fn next(&self) -> Option<u64> {
        self.next_at(Instant::now())
    }

    fn next_at(&self, now: Instant) -> Option<u64> {
        let mut lines = lock(&self.0);
        if lines
            .last
            .is_some_and(|last| now.saturating_duration_since(last) < EVERY)
        {
            lines.left_out += 1;
            return None;
        }
        lines.last = Some(now);
        Some(std::mem::take(&mut lines.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a moment to start from")]
    fn a_line_a_second_counts_those_that_are_left_out() {
        let (outages, begin) = (Outages::default(), Instant::now());
        let at = |milliseconds| outages.next_at(begin + Duration::from_millis(milliseconds));
        assert_eq!(at(0), Some(0));
        assert_eq!((at(10), at(999)), (None, None));
        assert_eq!(at(1000), Some(2));
        assert_eq!(at(1500), None);
        assert_eq!(at(9000), Some(1));
        assert_eq!(at(10_000), Some(0));
    }
}
