//! Polls for changes, where no stream brings them.

use std::time::Duration;

use agentcfg_core::model::{After, ChangeEvent, Cursor, WorkspaceId};
use tokio::task::{JoinHandle, spawn};
use tokio::time::Instant;

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error, RateLimit, RetryPolicy};

pub(super) const CHANGES: &str = "/api/changes";

/// How long a poll waits for an event, at most half of the time for an attempt. A poll does not count as a stream.
const POLL_WAIT: Duration = Duration::from_secs(25);
/// How long polls replace a stream that was refused because of too many.
pub(super) const POLL_FOR: Duration = Duration::from_secs(60);
/// After how many streams without an event the way to the server counts as one that lets none through.
pub(super) const FRUITLESS_STREAMS: u32 = 3;
/// How long polls replace a stream then.
pub(super) const POLL_FOR_FRUITLESS: Duration = Duration::from_secs(300);
/// The shortest and the longest time from one poll to the next.
const POLL_MIN_GAP: Duration = Duration::from_secs(2);
const POLL_MAX_GAP: Duration = Duration::from_secs(60);
/// The most events that a poll asks for.
const POLL_LIMIT: u32 = 1000;

/// The events of a poll, and the position after them.
type Page = Result<(Vec<ChangeEvent>, Cursor), Error>;

/// Asks for the changes once. A poll that waits is answered with the next event, or after a while without one.
pub(super) fn ask(client: &Client, workspace: WorkspaceId, after: After, waits: bool) -> JoinHandle<Page> {
    let wait = POLL_WAIT.min(client.timeouts().attempt / 2).as_secs();
    let call = Call::get(CHANGES)
        .query("workspace_id", workspace)
        .query("after", after)
        .query("limit", POLL_LIMIT)
        .query_if("wait", (waits && wait > 0).then_some(wait));
    let client = client.clone();
    let read = |answer: &ApiResponse| Ok((answer.json::<Vec<ChangeEvent>>()?, answer.cursor()?));
    spawn(async move { client.send_with(&RetryPolicy::NEVER, call, read).await })
}

/// A poll that is under way.
pub(super) struct Asked {
    /// Whether it is one of those that replace a stream for a while.
    pub(super) is_polling: bool,
    pub(super) begun: Instant,
    pub(super) task: JoinHandle<Page>,
}

impl Asked {
    /// A poll that begins now.
    pub(super) fn now(is_polling: bool, task: JoinHandle<Page>) -> Self {
        Self {
            is_polling,
            begun: Instant::now(),
            task,
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The time from one poll to the next: polls use half of what the rate limit has left in a minute at most.
pub(super) fn poll_gap(limit: Option<RateLimit>) -> Duration {
    let Some(limit) = limit else { return POLL_MIN_GAP };
    (POLL_MAX_GAP / (limit.remaining / 2).max(1)).clamp(POLL_MIN_GAP, POLL_MAX_GAP)
}
