//! The opening of a stream: its slot, and the time of its end.

use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::service::Watch;
use agentcfg_core::{AgentCfg, Caller};
use tokio::time::Instant;

use super::event_stream::EventStream;
use super::jitter::jitter;
use super::stream_limits::{ObservedSlot, Streams};
use super::stream_state::{StreamState, UnreadEvents};
use crate::api::credential::SessionCredential;
use crate::api::observer::Observer;
use crate::http::byte_budget::holder;
use crate::http::errors::Failure;
use crate::http::{ByteBudget, Disconnect};

/// The lifetime of a stream, give or take [`AGE_SPREAD`]: connections move to other servers over time, and not all at
/// once.
const AGE: Duration = Duration::from_secs(600);
const AGE_SPREAD: Duration = Duration::from_secs(120);

/// How long a client has to read the end of its stream.
const GRACE: Duration = Duration::from_secs(30);

/// What a stream needs besides its watch.
pub struct Opening<'a> {
    /// The core.
    pub service: &'a AgentCfg,
    /// The authenticated caller.
    pub caller: &'a Caller,
    /// The credential of the caller's session, which is verified again; none for an API key, whose record is read again
    /// by the core.
    pub session: Option<SessionCredential<'a>>,
    /// The open streams.
    pub streams: &'a Streams,
    /// The budget of unread answers.
    pub answers: &'a ByteBudget,
    /// Observes each event.
    pub observer: Option<&'a Arc<dyn Observer>>,
    /// Signals that the client has closed the connection.
    pub disconnect: &'a Disconnect,
}

impl Opening<'_> {
    /// Opens a stream of what a watch reads.
    ///
    /// # Errors
    ///
    /// 429 when there are too many streams.
    pub fn open(self, watch: Watch) -> Result<EventStream, Failure> {
        let caller = holder(self.caller);
        let slot = self.streams.enter(&caller)?;
        let ends_at = Instant::now() + AGE - AGE_SPREAD + jitter(2 * AGE_SPREAD);
        self.disconnect.end_by((ends_at + GRACE).into());
        let state = StreamState::new(
            self.service.clone(),
            self.session.map(|session| (self.caller.clone(), session.into_owned())),
            watch,
            self.streams.closing(),
            ends_at,
            UnreadEvents::new(self.answers.clone(), caller),
            ObservedSlot::new(slot, self.observer.cloned()),
        );
        Ok(EventStream::new(state, self.disconnect.clone()))
    }
}
