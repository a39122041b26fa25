//! The times of retries, on Tokio's paused clock.

use std::cell::RefCell;
use std::time::Duration;

use hyper::HeaderMap;
use tokio::time::{Instant, sleep};

use crate::error::ResponseFacts;
use crate::retry::{self, Effect};
use crate::{Error, RetryPolicy};

const TOTAL: Duration = Duration::from_secs(45);

fn status(status: u16, retry_after: Option<u64>) -> Error {
    let facts = ResponseFacts {
        status: Some(status),
        retry_after: retry_after.map(Duration::from_secs),
        ..ResponseFacts::default()
    };
    Error::refused(status, facts, "no")
}

/// Fails every attempt with the same error; returns the time of each attempt since the start, the error and
/// the total time.
async fn attempts(policy: RetryPolicy, effect: Effect, error: impl Fn() -> Error) -> (Vec<Duration>, Error, Duration) {
    let start = Instant::now();
    let mut moments: Vec<Duration> = Vec::new();
    let pauses = RefCell::new(Vec::new());
    let failed = retry::run(
        &policy,
        TOTAL,
        effect,
        |_, pause| pauses.borrow_mut().push(pause),
        |deadline| {
            assert_eq!(deadline, start + TOTAL);
            moments.push(start.elapsed());
            let error = error();
            async { Err::<HeaderMap, _>(error) }
        },
    )
    .await
    .unwrap_err();
    // Each pause was announced before it began. The timer rounds up to the next millisecond.
    let waited: Vec<_> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waited.len(), pauses.borrow().len());
    for (waited, announced) in waited.iter().zip(pauses.into_inner()) {
        assert!(*waited >= announced && *waited <= announced + Duration::from_millis(1));
    }
    (moments, failed, start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn delays_double_and_jitter_stays_below_the_delay() {
    let (moments, error, _) = attempts(RetryPolicy::default(), Effect::NotIdempotent, || status(429, None)).await;
    assert!(error.is_rate_limited());
    let pauses: Vec<_> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses.len(), 3);
    for (pause, least) in pauses.into_iter().zip([100, 200, 400]) {
        let least = Duration::from_millis(least);
        // The timer rounds up to the next millisecond.
        assert!(
            pause >= least && pause <= least * 2 + Duration::from_millis(1),
            "{pause:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_waited_out() {
    let (moments, ..) = attempts(RetryPolicy::default(), Effect::NotIdempotent, || status(429, Some(7))).await;
    assert_eq!(moments.len(), 4);
    for pair in moments.windows(2) {
        let pause = pair[1] - pair[0];
        assert!(
            pause >= Duration::from_secs(7) && pause < Duration::from_secs(8),
            "{pause:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_beyond_the_total_timeout_is_not_started() {
    let (moments, error, took) =
        attempts(RetryPolicy::default(), Effect::NotIdempotent, || status(429, Some(45))).await;
    assert_eq!((moments.len(), took), (1, Duration::ZERO));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(45)));
    let (moments, _, took) = attempts(RetryPolicy::default(), Effect::Idempotent, || status(503, Some(20))).await;
    assert_eq!(moments.len(), 3);
    assert!(took < TOTAL);
}

#[tokio::test(start_paused = true)]
async fn only_idempotent_requests_are_retried_after_an_unknown_outcome() {
    for (effect, expected) in [(Effect::NotIdempotent, 1), (Effect::Idempotent, 4)] {
        for unknown in [502, 503, 504] {
            let (moments, ..) = attempts(RetryPolicy::default(), effect, || status(unknown, None)).await;
            assert_eq!(moments.len(), expected, "{effect:?} {unknown}");
        }
        let (moments, ..) = attempts(RetryPolicy::default(), effect, Error::timed_out).await;
        assert_eq!(moments.len(), expected, "{effect:?}");
        for last in [400, 401, 404, 409, 412, 422, 500, 501, 307] {
            let (moments, ..) = attempts(RetryPolicy::default(), effect, || status(last, Some(1))).await;
            assert_eq!(moments.len(), 1, "{effect:?} {last}");
        }
        let (moments, ..) = attempts(RetryPolicy::NEVER, effect, || status(429, Some(0))).await;
        assert_eq!(moments.len(), 1, "{effect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn very_long_timeouts_do_not_overflow() {
    let policy = RetryPolicy::default();
    let done = retry::run(
        &policy,
        Duration::MAX,
        Effect::NotIdempotent,
        |_, _| {},
        |_| async {
            sleep(Duration::from_secs(1)).await;
            Ok::<_, Error>(7)
        },
    );
    assert_eq!(done.await.unwrap(), 7);
    let (moments, ..) = attempts(RetryPolicy::default(), Effect::NotIdempotent, || {
        status(429, Some(u64::MAX))
    })
    .await;
    assert_eq!(moments.len(), 1);
}
