//! The states of one stream, from its first event to its last.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use std::vec::IntoIter;

use agentcfg_core::model::StatusEvent;
use agentcfg_core::service::{SerializedEvent, Update, Watch};
use agentcfg_core::{AgentCfg, Caller, Error, ErrorKind};
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::event_text::EventWriter;
use super::jitter::jitter;
use super::stream_limits::ObservedSlot;
use crate::api::credential::SessionCredential;
use crate::http::ByteBudget;
use crate::http::byte_budget::{HeldBytes, SMALL_ANSWER};
use crate::http::errors::Failure;

/// How often a stream has a bookmark. It also shows a proxy that the connection is alive.
const BOOKMARK_EVERY: Duration = Duration::from_secs(15);

/// What events from before a stream count as while they are read: a read has about as many bytes at most.
const LONG_READ: usize = 1 << 20;

/// The range of `retry`, in milliseconds: clients of a server that restarts do not come back all at once.
const RETRY_MILLIS: (u64, u64) = (1000, 5000);

/// The state of one stream.
pub(super) struct StreamState {
    service: AgentCfg,
    /// The user and the session token, for callers who have one.
    user: Option<(Caller, SessionCredential<'static>)>,
    watch: Watch,
    phase: Phase,
    closing: watch::Receiver<bool>,
    bookmark_at: Instant,
    ends_at: Instant,
    /// Whether the events from before the stream were sent, so that the age of the next event is the lag.
    is_live: bool,
    /// Events that were read and not written yet.
    unsent: Option<Unsent>,
    /// Text that was written and not sent yet. More is written once the connection has taken it: so the statuses of a
    /// large workspace are not in memory as text for each of its streams, and many streams that begin at once leave
    /// room for requests.
    written: VecDeque<Bytes>,
    unread: UnreadEvents,
    slot: ObservedSlot,
}

/// The long events that a stream holds until its client has read them, in the budget of unread answers.
pub(super) struct UnreadEvents {
    budget: ByteBudget,
    caller: String,
    share: Option<HeldBytes>,
}

impl UnreadEvents {
    pub(super) fn new(budget: ByteBudget, caller: String) -> Self {
        Self {
            budget,
            caller,
            share: None,
        }
    }

    /// Takes a share for events that are about to be read, of which there may be many.
    fn begin(&mut self) -> Result<(), Failure> {
        self.share = None;
        self.share = Some(self.budget.answer(self.caller.clone(), LONG_READ)?);
        Ok(())
    }

    /// Counts these events in place of those before, which were sent.
    fn count(&mut self, events: &[SerializedEvent]) -> Result<(), Failure> {
        let length = events.iter().map(|event| event.json().len()).sum();
        self.share = None;
        if length > SMALL_ANSWER {
            self.share = Some(self.budget.answer(self.caller.clone(), length)?);
        }
        Ok(())
    }
}

struct Unsent {
    statuses: IntoIter<Arc<StatusEvent>>,
    changes: IntoIter<SerializedEvent>,
    has_more: bool,
}

impl From<Update> for Unsent {
    fn from(update: Update) -> Self {
        Self {
            statuses: update.statuses.into_iter(),
            changes: update.changes.into_iter(),
            has_more: update.has_more,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    Running,
    Ended,
}

/// Why a stream goes on.
enum Wake {
    /// There may be something to read, or a deadline of the credential or of a bookmark has passed.
    Read,
    /// The stream ends for this reason, and the client may connect again.
    End(&'static str),
}

impl StreamState {
    /// A stream of what `watch` reads, until `ends_at` or until `closing` becomes true. `user` is a caller with a
    /// session, and its credential.
    pub(super) fn new(
        service: AgentCfg,
        user: Option<(Caller, SessionCredential<'static>)>,
        watch: Watch,
        closing: watch::Receiver<bool>,
        ends_at: Instant,
        unread: UnreadEvents,
        slot: ObservedSlot,
    ) -> Self {
        Self {
            service,
            user,
            watch,
            phase: Phase::New,
            closing,
            bookmark_at: Instant::now() + BOOKMARK_EVERY,
            ends_at,
            is_live: false,
            unsent: None,
            written: VecDeque::new(),
            unread,
            slot,
        }
    }

    /// The next piece of text; `None` after the last.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        if self.written.is_empty() {
            let text = match self.phase {
                Phase::New => {
                    self.phase = Phase::Running;
                    self.first()
                }
                Phase::Running => self.more().await,
                Phase::Ended => return None,
            };
            self.written = text.into_pieces();
        }
        self.written.pop_front()
    }

    fn first(&self) -> EventWriter {
        let (least, most) = RETRY_MILLIS;
        let spread = jitter(Duration::from_millis(most - least));
        let mut text = EventWriter::default();
        text.retry(least + u64::try_from(spread.as_millis()).unwrap_or_default());
        text.bookmark(self.watch.cursor());
        text
    }

    /// The next events, or the end of the stream; never an empty text.
    async fn more(&mut self) -> EventWriter {
        loop {
            let unsent = match self.unsent.take() {
                Some(unsent) => unsent,
                None => {
                    if let Wake::End(reason) = self.wait().await {
                        return self.end("end", reason);
                    }
                    if !self.is_live
                        && let Err(full) = self.unread.begin()
                    {
                        return self.end("end", &full.message);
                    }
                    let update = match self.read().await {
                        Ok(update) => update,
                        Err(error) => return self.refuse(&error),
                    };
                    if let Err(full) = self.unread.count(&update.changes) {
                        return self.end("end", &full.message);
                    }
                    update.into()
                }
            };
            match self.write(unsent) {
                Ok(text) if text.is_empty() => {}
                Ok(text) => return text,
                Err(error) => {
                    let error = Error::new(ErrorKind::Internal, "an event could not be written").because(error);
                    return self.refuse(&error);
                }
            }
        }
    }

    async fn wait(&mut self) -> Wake {
        let mut at = self.bookmark_at.min(self.ends_at);
        if let Some(left) = self.watch.expires_in() {
            at = at.min(Instant::now() + left);
        }
        tokio::select! {
            biased;
            _ = self.closing.wait_for(|closing| *closing) => Wake::End("the server is shutting down, connect again"),
            () = sleep_until(at) => match self.ends_at <= Instant::now() {
                true => Wake::End("the stream has reached its age, connect again"),
                false => Wake::Read,
            },
            () = self.watch.changed() => Wake::Read,
        }
    }

    async fn read(&mut self) -> Result<Update, Error> {
        let update = self.watch.read().await?;
        if let Some((caller, session)) = &self.user {
            // A user can sign out, and a token can end before its time where the identity provider is asked about it.
            // This comes after the read: a session that is valid now was valid when the events were committed.
            let now = session.verify(&self.service).await?;
            if now.actor() != caller.actor() {
                return Err(Error::new(ErrorKind::Unauthorized, "invalid credentials"));
            }
        }
        Ok(update)
    }

    /// Writes a piece, and keeps the rest for later.
    fn write(&mut self, mut unsent: Unsent) -> serde_json::Result<EventWriter> {
        let mut text = EventWriter::default();
        while !text.is_full() {
            if let Some(status) = unsent.statuses.next() {
                text.status(&status)?;
            } else if let Some(event) = unsent.changes.next() {
                text.change(&event);
                if self.is_live {
                    self.slot.sent(self.watch.age_of(event.created_at()));
                }
            } else {
                break;
            }
        }
        if unsent.statuses.len() + unsent.changes.len() > 0 {
            self.unsent = Some(unsent);
            return Ok(text);
        }
        self.is_live |= !unsent.has_more;
        // The cursor is after all events that were read.
        let now = Instant::now();
        if self.bookmark_at <= now {
            text.bookmark(self.watch.cursor());
            self.bookmark_at = now + BOOKMARK_EVERY;
        }
        Ok(text)
    }

    fn refuse(&mut self, error: &Error) -> EventWriter {
        if error.kind().http_status() >= 500 {
            tracing::warn!(?error, "a stream of changes ends");
        }
        let name = match error.kind() {
            ErrorKind::Gone => "gone",
            _ => "end",
        };
        self.end(name, error.message())
    }

    fn end(&mut self, name: &str, reason: &str) -> EventWriter {
        self.phase = Phase::Ended;
        let mut text = EventWriter::default();
        // A reason is a string, which JSON can express.
        let _ = text.last(name, reason);
        text
    }
}
