//! Watches as a stream of events.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_core::stream::FusedStream;

use super::watch::Watch;
use crate::error::Error;
use crate::model::ChangeEvent;

/// The events of a [`Watch`] as a [`Stream`]; see [`Watch::into_stream`].
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// use agentcfg_core::service::WatchStream;
/// use futures_util::StreamExt;
/// let mut changes: WatchStream = service.watch(&ada, studio, After::Start).await?.into_stream();
/// assert_eq!(changes.next().await.unwrap()?.kind, Action::WorkspaceCreated);
/// # Ok(()) }) }
/// ```
#[must_use = "a stream reads nothing until it is polled"]
pub struct WatchStream(State);

/// A read, which gives the watch back with the next event.
type Reading = Pin<Box<dyn Future<Output = (Box<Watch>, Result<ChangeEvent, Error>)> + Send>>;

enum State {
    /// No read is in progress. The watch is in a box, so that its way into a future and back moves a pointer.
    Idle(Box<Watch>),
    Reading(Reading),
    /// After an error.
    Ended,
}

impl Watch {
    /// The events of this watch as a stream, for the combinators of the crates `futures` and `tokio-stream`. It needs
    /// the feature `stream`.
    ///
    /// The stream waits for further events, so it has no end but an error: that of [`Self::next`], after which it
    /// returns `None`. An app goes on with a new watch after the cursor of the last event. Statuses are not among the
    /// events.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// use futures_util::{StreamExt, TryStreamExt};
    /// let changes = service.watch(&ada, studio, After::Start).await?.into_stream();
    /// service.delete_agent(&ada, Some(studio), "writer", &Precondition::None).await?;
    /// let of_agents = changes.try_filter(|event| std::future::ready(event.target.id == "writer"));
    /// let kinds: Vec<Action> = of_agents.map_ok(|event| event.kind).take(2).try_collect().await?;
    /// assert_eq!(kinds, [Action::AgentCreated, Action::AgentDeactivated]);
    /// # Ok(()) }) }
    /// ```
    pub fn into_stream(self) -> WatchStream {
        WatchStream(State::Idle(Box::new(self)))
    }
}

impl Stream for WatchStream {
    type Item = Result<ChangeEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let state = &mut self.0;
        // An event that was read already costs no future.
        if let State::Idle(watch) = state
            && let Some(event) = watch.ready.pop_front()
        {
            return Poll::Ready(Some(event.decode()));
        }
        let mut reading = match std::mem::replace(state, State::Ended) {
            State::Idle(mut watch) => Box::pin(async move {
                let next = watch.next().await;
                (watch, next)
            }),
            State::Reading(reading) => reading,
            State::Ended => return Poll::Ready(None),
        };
        let polled = reading.as_mut().poll(cx);
        if polled.is_pending() {
            *state = State::Reading(reading);
        }
        let (watch, next) = ready!(polled);
        if next.is_ok() {
            *state = State::Idle(watch);
        }
        Poll::Ready(Some(next))
    }
}

impl FusedStream for WatchStream {
    fn is_terminated(&self) -> bool {
        matches!(self.0, State::Ended)
    }
}

impl fmt::Debug for WatchStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            State::Idle(watch) => f.debug_tuple("WatchStream").field(watch).finish(),
            State::Reading(_) => f.write_str("WatchStream(reading)"),
            State::Ended => f.write_str("WatchStream(ended)"),
        }
    }
}
