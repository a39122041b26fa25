//! The round trip to the database, estimated by its quickest answers.

use std::sync::Mutex;
use std::time::Duration;

use agentcfg_core::sync::lock;
use tokio::time::Instant;

/// How long a quick answer counts, at least. Under load all answers are slow, which tells nothing about the network.
const WINDOW: Duration = Duration::from_secs(60);

/// The least time of an answer in this window and in the last one: a running minimum, as congestion control estimates a
/// round trip.
#[derive(Debug, Default)]
pub(super) struct RoundTrip(Mutex<Option<Least>>);

#[derive(Debug, Clone, Copy)]
struct Least {
    since: Instant,
    now: Duration,
    before: Duration,
}

impl RoundTrip {
    /// Notes the time of an answer whose statement was sent then.
    pub(super) fn measured(&self, begin: Instant) {
        let end = Instant::now();
        let time = end - begin;
        let mut least = lock(&self.0);
        let (since, now, before) = match *least {
            Some(least) if end - least.since < WINDOW => (least.since, least.now.min(time), least.before),
            Some(least) => (end, time, least.now),
            None => (end, time, time),
        };
        *least = Some(Least { since, now, before });
    }

    /// The estimate; without an answer yet, the longest time.
    pub(super) fn least(&self) -> Duration {
        lock(&self.0).map_or(Duration::MAX, |least| least.now.min(least.before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answer(trip: &RoundTrip, millis: u64) {
        let begin = Instant::now();
        tokio::time::advance(Duration::from_millis(millis)).await;
        trip.measured(begin);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_answers_hide_a_quick_one_only_after_a_window() {
        let trip = RoundTrip::default();
        assert_eq!(trip.least(), Duration::MAX);
        answer(&trip, 3).await;
        assert_eq!(trip.least(), Duration::from_millis(3));
        answer(&trip, 1).await;
        for _ in 0..12 {
            answer(&trip, 5000).await;
            assert_eq!(trip.least(), Duration::from_millis(1));
        }
        for _ in 0..24 {
            answer(&trip, 5000).await;
        }
        assert_eq!(trip.least(), Duration::from_millis(5000));
        answer(&trip, 2).await;
        assert_eq!(trip.least(), Duration::from_millis(2));
    }
}
