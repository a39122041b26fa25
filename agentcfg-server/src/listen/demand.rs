//! What a listener asks of its connections, and when.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::coop;
use tokio::time::{Instant, sleep_until};

/// What connections are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Demand {
    /// Serve requests.
    Serve,
    /// Serve requests, and wait for the next one no longer than this, because a client waits for a connection.
    Hurry(Duration),
    /// Serve requests, and end the connection as soon as its client can make another: the server is about to stop.
    Leave,
    /// Answer the requests in flight, and close.
    Close,
}

/// Waits for a demand that `demands` has not seen, and returns it. Cancel safe.
///
/// All connections share the channel, and polling it takes a shared lock. So it is polled once to register the waker;
/// other polls of the task only compare the channel's version, which takes no lock.
pub(super) async fn next(demands: &mut watch::Receiver<Demand>) -> Demand {
    let mut registered = demands.clone();
    let mut changed = pin!(registered.changed());
    let mut is_registered = false;
    let is_open = poll_fn(|cx| {
        if is_registered && !demands.has_changed().unwrap_or(true) {
            return Poll::Pending;
        }
        // Without a budget, the channel wakes the task and registers nothing.
        is_registered = coop::has_budget_remaining();
        Poll::Ready(ready!(changed.as_mut().poll(cx)).is_ok())
    })
    .await;
    match is_open {
        true => *demands.borrow_and_update(),
        // The listener is gone.
        false => Demand::Close,
    }
}

/// Resolves when connections are to close.
pub(super) async fn closing(mut demands: watch::Receiver<Demand>) {
    while next(&mut demands).await != Demand::Close {}
}

/// The time between two requests that each client is given.
const SHORTEST: Duration = Duration::from_secs(5);
/// How long a demand has to make room before a stricter one.
const STEP: Duration = Duration::from_millis(100);
/// How long the last demand holds after no client waits any more.
const CALM: Duration = Duration::from_secs(5);

/// Shortens idle timeouts while clients wait for a connection, so that the connections that are idle for longest close
/// first.
pub(super) struct ConnectionPressure {
    demand: watch::Sender<Demand>,
    idle_timeout: Duration,
    /// How long connections may be idle now, if that is less than usual.
    idle: Option<Duration>,
    is_waiting: bool,
    /// Whether [`Self::set_waiting`] has reported this pressure.
    is_told: bool,
    /// When the demand changes next.
    next: Option<Instant>,
}

impl ConnectionPressure {
    pub(super) fn new(demand: watch::Sender<Demand>, idle_timeout: Duration) -> Self {
        Self {
            demand,
            idle_timeout,
            idle: None,
            is_waiting: false,
            is_told: false,
            next: None,
        }
    }

    /// Notes whether a client waits for a connection. Tells whether it is the first one of a new pressure.
    pub(super) fn set_waiting(&mut self, is_waiting: bool) -> bool {
        if is_waiting == self.is_waiting {
            return false;
        }
        self.is_waiting = is_waiting;
        let pause = match (is_waiting, self.idle) {
            (true, None) => Duration::ZERO,
            (true, Some(_)) => STEP,
            (false, _) => CALM,
        };
        self.next = Some(Instant::now() + pause);
        is_waiting && !std::mem::replace(&mut self.is_told, true)
    }

    /// Changes the demand when it is time. Cancel safe.
    pub(super) async fn change(&mut self) {
        match self.next {
            Some(next) => sleep_until(next).await,
            None => pending().await,
        }
        self.next = None;
        if !self.is_waiting {
            if std::mem::take(&mut self.is_told) {
                tracing::info!("no client waits for a connection any more");
            }
            self.idle = None;
            self.demand.send_replace(Demand::Serve);
            return;
        }
        let idle = (self.idle.unwrap_or(self.idle_timeout) / 2).max(SHORTEST.min(self.idle_timeout));
        if self.idle != Some(idle) {
            self.idle = Some(idle);
            self.demand.send_replace(Demand::Hurry(idle));
            self.next = Some(Instant::now() + STEP);
        }
    }

    /// Asks all connections to end with their next answer.
    pub(super) fn leave(&self) {
        self.demand.send_replace(Demand::Leave);
    }

    /// Asks all connections to close.
    pub(super) fn close(&self) {
        self.demand.send_replace(Demand::Close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn demands_grow_while_a_client_waits_and_end_when_none_does() {
        let (sender, mut demand) = watch::channel(Demand::Serve);
        let mut pressure = ConnectionPressure::new(sender, Duration::from_secs(36));
        assert!(pressure.set_waiting(true));
        let mut seen = Vec::new();
        for _ in 0..3 {
            pressure.change().await;
            seen.push(*demand.borrow_and_update());
        }
        let hurry = |seconds| Demand::Hurry(Duration::from_secs(seconds));
        assert_eq!(seen, [hurry(18), hurry(9), hurry(5)]);
        pressure.change().await;
        assert!(!demand.has_changed().unwrap(), "no demand is stricter");
        let before = Instant::now();
        pressure.set_waiting(false);
        pressure.change().await;
        assert_eq!(*demand.borrow_and_update(), Demand::Serve);
        assert_eq!(before.elapsed(), CALM);
        assert!(pressure.set_waiting(true), "another pressure");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_comes_soon_after_meets_the_same_demand() {
        let (sender, demand) = watch::channel(Demand::Serve);
        let mut pressure = ConnectionPressure::new(sender, Duration::from_secs(36));
        pressure.set_waiting(true);
        pressure.change().await;
        pressure.set_waiting(false);
        assert!(!pressure.set_waiting(true), "the same pressure");
        assert_eq!(*demand.borrow(), Demand::Hurry(Duration::from_secs(18)));
        pressure.change().await;
        assert_eq!(*demand.borrow(), Demand::Hurry(Duration::from_secs(9)));
    }

    #[tokio::test]
    async fn each_demand_is_seen_once_and_a_listener_that_is_gone_closes() {
        let (sender, mut demands) = watch::channel(Demand::Serve);
        sender.send_replace(Demand::Hurry(SHORTEST));
        assert_eq!(next(&mut demands).await, Demand::Hurry(SHORTEST));
        {
            let mut later = pin!(next(&mut demands));
            assert!(poll_fn(|cx| Poll::Ready(later.as_mut().poll(cx).is_pending())).await);
            sender.send_replace(Demand::Serve);
            assert_eq!(later.await, Demand::Serve);
        }
        drop(sender);
        assert_eq!(next(&mut demands).await, Demand::Close);
    }

    #[tokio::test(start_paused = true)]
    async fn a_demand_is_seen_by_a_task_whose_budget_was_spent_when_it_began_to_wait() {
        let (sender, mut demands) = watch::channel(Demand::Serve);
        let waiting = tokio::spawn(async move {
            let mut later = pin!(next(&mut demands));
            poll_fn(|cx| {
                while coop::has_budget_remaining() {
                    let _ = pin!(coop::consume_budget()).poll(cx);
                }
                assert!(later.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            later.await
        });
        tokio::time::sleep(STEP).await;
        sender.send_replace(Demand::Close);
        let seen = tokio::time::timeout(CALM, waiting).await;
        assert_eq!(seen.expect("the task is woken").unwrap(), Demand::Close);
    }
}
