//! Combining: requests that arrive while others are in flight form the next group.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout};

use super::lanes::{Group, Lanes, Limits, Queued};
use crate::sync::lock;

/// What a [`Combiner`] does with a group.
///
/// ```
/// use agentcfg_core::store::group::Work;
///
/// /// Reads texts by number. A real one would send one query for all.
/// struct Reads;
///
/// impl Work for Reads {
///     type Lane = u64;
///     type Request = u64;
///     type Answer = String;
///
///     async fn run(&self, group: Vec<u64>) -> Vec<String> {
///         group.iter().map(u64::to_string).collect()
///     }
/// }
/// ```
pub trait Work: Send + Sync + 'static {
    /// What may be in flight in one group at a time only.
    type Lane: Clone + Eq + Hash + Send + 'static;
    /// One caller's part of a group.
    type Request: Send + 'static;
    /// The answer to one request.
    type Answer: Send + 'static;

    /// Whether the engine answers so fast that a request should wait for the group in flight instead of starting a
    /// second one. Then at most one group is in flight that is not slow.
    fn is_near(&self) -> bool {
        false
    }

    /// How long the lanes of a group stay closed at most after its answers. Callers that repeat their request then join
    /// those that wait already in one group; without the pause the two halves would alternate. The pause ends as soon
    /// as seven eighths of both wait.
    fn pause(&self, _size: usize, _took: Duration) -> Duration {
        Duration::ZERO
    }

    /// Does the work of a group and returns one answer for each request, in their order.
    fn run(&self, group: Vec<Self::Request>) -> impl Future<Output = Vec<Self::Answer>> + Send;
}

/// Why a request has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// The request was not run; the reason, for the log.
    NotRun(&'static str),
    /// The group of the request ended without an answer: whether it was run is unknown.
    Lost,
}

/// Runs requests in groups, without any artificial delay but that of [`Work::pause`].
///
/// A request that meets no other one starts as soon as its task waits for it. Requests that arrive while their lane is
/// in flight, or while as many groups as [`Limits`] allows are, form the next group. Each group runs on a task of its
/// own, so a caller that drops its future ends no group: a request that still waits then leaves its queue, one that is
/// in flight is run to its end.
pub struct Combiner<W: Work>(Arc<CombinerShared<W>>);

struct CombinerShared<W: Work> {
    work: W,
    limits: Limits,
    lanes: Mutex<Lanes<W::Lane, Waiting<W>>>,
    /// Wakes the flight whose pause ends because enough requests wait.
    refilled: Notify,
}

struct Waiting<W: Work> {
    request: W::Request,
    answer: oneshot::Sender<Result<W::Answer, Unanswered>>,
    since: Instant,
}

impl<W: Work> fmt::Debug for Combiner<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Combiner").finish_non_exhaustive()
    }
}

impl<W: Work> Combiner<W> {
    /// Groups for this work.
    pub fn new(work: W, limits: Limits) -> Self {
        Self(Arc::new(CombinerShared {
            work,
            limits,
            lanes: Mutex::new(Lanes::new(limits)),
            refilled: Notify::new(),
        }))
    }

    /// What runs the groups.
    pub fn work(&self) -> &W {
        &self.0.work
    }

    /// Runs a request in a group of its lane. `bytes` is its part of [`Limits::bytes`].
    ///
    /// # Errors
    ///
    /// [`Unanswered`].
    pub async fn submit(&self, lane: W::Lane, bytes: u64, request: W::Request) -> Result<W::Answer, Unanswered> {
        let runtime = Handle::try_current().map_err(|_| Unanswered::NotRun("there is no tokio runtime"))?;
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting {
            request,
            answer,
            since: Instant::now(),
        };
        let pushed = lock(&self.0.lanes).push(lane, bytes, waiting);
        match pushed {
            Ok(Queued::Refilled) => self.0.refilled.notify_waiters(),
            Ok(Queued::Waits) => {}
            Err(_) => return Err(Unanswered::NotRun("too many requests wait for the storage engine")),
        }
        self.0.start(&runtime);
        answered.await.unwrap_or(Err(Unanswered::Lost))
    }

    /// Whether no request waits or is in flight.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.0.lanes).is_idle()
    }
}

impl<W: Work> CombinerShared<W> {
    /// Starts the next group, if it may start.
    fn start(self: &Arc<Self>, runtime: &Handle) {
        // The lock is released before the task starts.
        let reserved = lock(&self.lanes).reserve(|| self.work.is_near());
        if reserved {
            Flight::start(self, runtime);
        }
    }

    /// Forms the group of the reserved flight, without the requests whose callers have gone or have waited too long.
    fn form(&self) -> Option<Group<W::Lane, Waiting<W>>> {
        let now = Instant::now();
        lock(&self.lanes).form(|waiting| {
            if now - waiting.since > self.limits.queue_timeout {
                waiting.refuse("the storage engine was busy for too long");
                return None;
            }
            (!waiting.answer.is_closed()).then_some(waiting)
        })
    }
}

impl<W: Work> Waiting<W> {
    fn refuse(self, why: &'static str) {
        // The caller may have dropped its future.
        let _ = self.answer.send(Err(Unanswered::NotRun(why)));
    }
}

/// A group that is about to start or in flight. Its end starts the next one, also when its task panics or is dropped
/// with its runtime.
struct Flight<W: Work> {
    shared: Arc<CombinerShared<W>>,
    runtime: Handle,
    state: FlightState<W::Lane>,
}

enum FlightState<L> {
    /// Reserved; the group is not formed yet.
    Reserved,
    /// In flight, with the lanes that it occupies.
    InFlight { lanes: Vec<L>, slow: bool },
    /// No waiting request had a caller any more.
    Ended,
}

impl<W: Work> Flight<W> {
    fn start(shared: &Arc<CombinerShared<W>>, runtime: &Handle) {
        let mut flight = Self {
            shared: Arc::clone(shared),
            runtime: runtime.clone(),
            state: FlightState::Reserved,
        };
        let shared = Arc::clone(shared);
        runtime.spawn(async move {
            // The group is formed when this task runs, so that it has all requests of the task that reserved it. For an
            // engine that is near, also those of the tasks that are ready now.
            if shared.work.is_near() {
                tokio::task::yield_now().await;
            }
            let Some(group) = flight.form() else { return };
            let (requests, callers): (Vec<_>, Vec<_>) = group
                .into_iter()
                .map(|waiting| (waiting.request, waiting.answer))
                .unzip();
            let (begin, size) = (Instant::now(), callers.len());
            let mut run = pin!(shared.work.run(requests));
            let answers = match timeout(shared.limits.slow, run.as_mut()).await {
                Ok(answers) => answers,
                Err(_) => {
                    flight.becomes_slow();
                    run.await
                }
            };
            let pause = shared.work.pause(size, begin.elapsed());
            let mut refilled = pin!(shared.refilled.notified());
            refilled.as_mut().enable();
            // Decided before a caller can repeat its request.
            let pauses = !pause.is_zero() && lock(&shared.lanes).await_refill(size);
            // Without a pause the next group starts before the answers are read, so that the database does not wait for
            // this process.
            let flight = pauses.then_some(flight);
            for (caller, answer) in callers.into_iter().zip(answers) {
                // The caller may have dropped its future.
                let _ = caller.send(Ok(answer));
            }
            if flight.is_some() {
                let _ = timeout(pause, refilled).await;
            }
        });
    }

    /// Forms the group, and starts the next one if more requests wait.
    fn form(&mut self) -> Option<Vec<Waiting<W>>> {
        let group = self.shared.form();
        let (state, requests) = match group {
            Some(Group { lanes, requests }) => (FlightState::InFlight { lanes, slow: false }, Some(requests)),
            None => (FlightState::Ended, None),
        };
        self.state = state;
        self.shared.start(&self.runtime);
        requests
    }

    fn becomes_slow(&mut self) {
        if let FlightState::InFlight { slow, .. } = &mut self.state {
            *slow = true;
            lock(&self.shared.lanes).slowed();
            self.shared.start(&self.runtime);
        }
    }
}

impl<W: Work> Drop for Flight<W> {
    fn drop(&mut self) {
        if matches!(self.state, FlightState::Reserved) {
            // The runtime ended before the task ran.
            for waiting in self.form().unwrap_or_default() {
                waiting.refuse("the tokio runtime has ended");
            }
        }
        if let FlightState::InFlight { lanes, slow } = &self.state {
            lock(&self.shared.lanes).landed(lanes, *slow);
            self.shared.start(&self.runtime);
        }
    }
}
