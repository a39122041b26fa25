//! Polls for changes, where no stream brings them.

use std::time::Duration;

use agentcfg_core::model::{ChangeEvent, Cursor};
use tokio::task::{JoinHandle, spawn};
use tokio::time::Instant;

use super::{CHANGES, ChangeStream, Followed, asked_pause, pauses};
use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Error, RateLimit, RetryPolicy};

/// How long a poll waits for an event, at most half of the time for an attempt. A poll does not count as a stream.
const POLL_WAIT: Duration = Duration::from_secs(25);
/// How long polls replace a stream that was refused because of too many.
const POLL_FOR: Duration = Duration::from_secs(60);
/// After how many streams without an event the way to the server counts as one that lets none through.
const FRUITLESS_STREAMS: u32 = 3;
/// How long polls replace a stream then.
const POLL_FOR_FRUITLESS: Duration = Duration::from_secs(300);
/// The shortest and the longest time from one poll to the next.
const POLL_MIN_GAP: Duration = Duration::from_secs(2);
const POLL_MAX_GAP: Duration = Duration::from_secs(60);
/// The most events that a poll asks for.
const POLL_LIMIT: u32 = 1000;

impl ChangeStream {
    pub(super) fn is_polling(&self) -> bool {
        self.poll_until.is_some_and(|until| Instant::now() < until)
    }

    /// Decides what replaces a stream that has ended without an event.
    pub(super) fn note_fruitless(&mut self) {
        self.is_checked = self.fruitless == 0;
        if self.fruitless >= FRUITLESS_STREAMS {
            self.poll_until = Some(Instant::now() + POLL_FOR_FRUITLESS);
        }
    }

    /// Begins to poll where the server has no room for another stream.
    pub(super) fn poll_for_lack_of_room(&mut self, error: &Error) {
        // Too many streams or too many requests: the poll tells, which counts as a request and not as a stream.
        self.poll_until = Some(Instant::now() + POLL_FOR.max(asked_pause(error)));
        let pause = self.pause();
        self.connect_at = Some(Instant::now() + pause);
    }

    /// Asks for the changes once, in place of a stream.
    pub(super) async fn poll(&mut self) -> Result<(), Error> {
        self.wait().await;
        if self.asked.is_none() {
            self.asked = Some(self.ask());
        }
        let Some(asked) = &mut self.asked else { return Ok(()) };
        let page = (&mut asked.task).await;
        let (is_polling, begun) = (asked.is_polling, asked.begun);
        self.asked = None;
        // It is not cancelled while it is waited for, unless the runtime ends.
        let page = page.unwrap_or_else(|error| Err(Error::of_stream(format!("the poll was not finished: {error}"))));
        let (events, cursor) = match page {
            Ok(page) => page,
            Err(error) => return self.failed(error),
        };
        self.has_connected = true;
        self.is_checked = true;
        self.has_polled = is_polling;
        self.pauses = pauses();
        let changes = events.into_iter().map(|event| Followed::Change(Box::new(event)));
        self.ready.extend(changes);
        self.ready.push_back(Followed::Bookmark(cursor));
        if is_polling {
            self.connect_at = Some(begun + poll_gap(self.client.rate_limit()));
        }
        Ok(())
    }

    /// Begins a poll.
    fn ask(&self) -> Asked {
        let is_polling = self.is_polling();
        // The first one does not wait, so that it tells at once whether the server answers.
        let wait = match is_polling && self.has_polled {
            true => POLL_WAIT.min(self.client.timeouts().attempt / 2).as_secs(),
            false => 0,
        };
        let call = Call::get(CHANGES)
            .query("workspace_id", self.workspace)
            .query("after", self.after)
            .query("limit", POLL_LIMIT)
            .query_if("wait", (wait > 0).then_some(wait));
        let client = self.client.clone();
        let read = |answer: &ApiResponse| Ok((answer.json::<Vec<ChangeEvent>>()?, answer.cursor()?));
        Asked {
            is_polling,
            begun: Instant::now(),
            task: spawn(async move { client.send_with(&RetryPolicy::NEVER, call, read).await }),
        }
    }
}

/// A poll that is under way.
pub(super) struct Asked {
    /// Whether it is one of those that replace a stream for a while.
    is_polling: bool,
    begun: Instant,
    task: JoinHandle<Result<(Vec<ChangeEvent>, Cursor), Error>>,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The time from one poll to the next: polls use half of what the rate limit has left in a minute at most.
fn poll_gap(limit: Option<RateLimit>) -> Duration {
    let Some(limit) = limit else { return POLL_MIN_GAP };
    (POLL_MAX_GAP / (limit.remaining / 2).max(1)).clamp(POLL_MIN_GAP, POLL_MAX_GAP)
}
