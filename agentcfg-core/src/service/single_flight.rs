//! Work that concurrent callers share (single-flight): one caller does it, and the others wait for its result.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Mutex, MutexGuard};

/// How many failures of other callers a waiting caller sees before it gives up. Where each failure is a timeout, one
/// attempt after the other would take too long.
const MAX_FAILURES: u64 = 2;

/// A value that one caller at a time updates, for itself and for all that wait meanwhile.
#[derive(Debug, Default)]
pub(super) struct SingleFlight<T> {
    /// How many attempts have begun.
    begun: AtomicU64,
    failures: AtomicU64,
    state: Mutex<State<T>>,
}

#[derive(Debug, Default)]
struct State<T> {
    value: T,
    /// The number of the last attempt that has succeeded.
    succeeded: u64,
}

/// The right to do the work. When it is dropped, also by a cancelled caller, the next waiter gets it.
pub(super) struct Leader<'a, T> {
    flight: &'a SingleFlight<T>,
    state: MutexGuard<'a, State<T>>,
    /// The number of failures when this caller began to wait.
    failures: u64,
}

impl<T> SingleFlight<T> {
    /// Starts with this value, which no attempt has made.
    pub(super) fn new(value: T) -> Self {
        Self {
            begun: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            state: Mutex::new(State { value, succeeded: 0 }),
        }
    }

    /// The number of the last attempt that has begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }

    /// Waits until this caller may do the work.
    pub(super) async fn lead(&self) -> Leader<'_, T> {
        let failures = self.failures.load(Ordering::SeqCst);
        let state = self.state.lock().await;
        Leader {
            flight: self,
            state,
            failures,
        }
    }
}

impl<T> Leader<'_, T> {
    /// Whether an attempt after this one has succeeded. With the number that [`SingleFlight::begun`] returned when a
    /// caller arrived, this tells whether the value is new enough for it.
    pub(super) fn is_newer_than(&self, attempt: u64) -> bool {
        self.state.succeeded > attempt
    }

    /// Whether so many other callers have failed while this one waited that it should fail too.
    pub(super) fn is_failing(&self) -> bool {
        self.flight.failures.load(Ordering::SeqCst) - self.failures >= MAX_FAILURES
    }

    /// Begins an attempt, and returns its number for [`Self::end`]. An attempt that never ends, because its caller was
    /// cancelled, counts as failed.
    pub(super) fn begin(&mut self) -> u64 {
        self.flight.begun.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Ends an attempt, with its result.
    pub(super) fn end(&mut self, attempt: u64, has_succeeded: bool) {
        if has_succeeded {
            self.state.succeeded = attempt;
        } else {
            self.flight.failures.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl<T> Deref for Leader<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.state.value
    }
}

impl<T> DerefMut for Leader<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.state.value
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::task::{JoinHandle, yield_now};

    use super::*;

    /// Starts a caller that adds one to the value unless it is new enough, or fails. Returns whether it did the work
    /// itself.
    fn caller(flight: &Arc<SingleFlight<u32>>, fails: bool) -> JoinHandle<Result<bool, &'static str>> {
        let flight = Arc::clone(flight);
        tokio::spawn(async move {
            let begun = flight.begun();
            let mut lead = flight.lead().await;
            if lead.is_newer_than(begun) {
                return Ok(false);
            }
            if lead.is_failing() {
                return Err("others failed");
            }
            let attempt = lead.begin();
            yield_now().await;
            *lead += u32::from(!fails);
            lead.end(attempt, !fails);
            if fails { Err("failed") } else { Ok(true) }
        })
    }

    async fn outcomes(callers: Vec<JoinHandle<Result<bool, &'static str>>>) -> Vec<Result<bool, &'static str>> {
        let mut outcomes = Vec::new();
        for caller in callers {
            outcomes.push(caller.await.unwrap());
        }
        outcomes
    }

    #[tokio::test]
    async fn callers_that_come_before_an_attempt_share_it_and_later_ones_do_not() {
        let flight = Arc::new(SingleFlight::new(0));
        let busy = flight.lead().await;
        let early: Vec<_> = (0..3).map(|_| caller(&flight, false)).collect();
        yield_now().await;
        drop(busy);
        assert_eq!(outcomes(early).await, [Ok(true), Ok(false), Ok(false)]);
        assert_eq!(outcomes(vec![caller(&flight, false)]).await, [Ok(true)]);
        assert_eq!(*flight.lead().await, 2);
    }

    #[tokio::test]
    async fn a_failure_is_that_of_its_caller_until_there_are_too_many() {
        let flight = Arc::new(SingleFlight::new(0));
        let busy = flight.lead().await;
        let callers = [true, true, false]
            .map(|fails| caller(&flight, fails))
            .into_iter()
            .collect();
        yield_now().await;
        drop(busy);
        assert_eq!(
            outcomes(callers).await,
            [Err("failed"), Err("failed"), Err("others failed")]
        );
        assert_eq!(
            outcomes(vec![caller(&flight, false)]).await,
            [Ok(true)],
            "it came later"
        );
    }

    #[tokio::test]
    async fn the_next_caller_takes_over_from_one_that_was_cancelled() {
        let flight = Arc::new(SingleFlight::new(0));
        let first = caller(&flight, false);
        yield_now().await;
        let second = caller(&flight, false);
        first.abort();
        assert_eq!(outcomes(vec![second]).await, [Ok(true)]);
        assert_eq!(*flight.lead().await, 1);
    }
}
