//! The change feed as a stream that reconnects by itself.

use std::collections::VecDeque;
use std::time::Duration;

use agentcfg_core::model::{After, ChangeEvent, Cursor, Label, StatusEvent, WorkspaceId};
use backon::ExponentialBackoff;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::attempt_outcome::AttemptOutcome;
use crate::polls::{self, Asked, CHANGES};
use crate::reconnect::{MAX_DELAY, asked_pause, may_pass, pauses};
use crate::request::Call;
use crate::sse::{Event, EventReader};
use crate::{Client, Error};

/// How long a stream may be silent before it counts as dead. A stream has a bookmark every 15 seconds.
const SILENCE: Duration = Duration::from_secs(45);

/// What a [`ChangeStream`] returns.
///
/// ```
/// use agentcfg_client::Followed;
/// fn line(followed: &Followed) -> String {
///     match followed {
///         Followed::Change(event) => format!("{} {}", event.kind, event.target.id),
///         Followed::Bookmark(cursor) => format!("all up to {cursor}"),
///         Followed::Status(entry) => format!("{} is {}", entry.agent_id, entry.status),
///         _ => "of a later release".to_owned(),
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Followed {
    /// A change.
    Change(Box<ChangeEvent>),
    /// The position, without a change.
    Bookmark(Cursor),
    /// A live status: of each active agent at first and after each new connection, then those that changed.
    Status(Box<StatusEvent>),
}

impl Client {
    /// Follows the changes of a workspace from a position. Nothing is sent before the first [`ChangeStream::next`].
    ///
    /// ```no_run
    /// # use agentcfg_client::model::{After, WorkspaceId};
    /// # async fn example(client: agentcfg_client::Client, workspace: WorkspaceId) -> Result<(), agentcfg_client::Error> {
    /// let mut changes = client.changes(workspace, After::Now);
    /// loop {
    ///     let event = changes.next_change().await?;
    ///     println!("{}: {} {}", event.actor.id, event.kind, event.target.id);
    /// }
    /// # }
    /// ```
    pub fn changes(&self, workspace: WorkspaceId, after: impl Into<After>) -> ChangeStream {
        ChangeStream {
            client: self.clone(),
            workspace,
            after: after.into(),
            with_status: false,
            label: None,
            connection: None,
            has_connected: false,
            ready: VecDeque::new(),
            retry: None,
            pauses: pauses(),
            connect_at: None,
            heard_at: None,
            fruitless: 0,
            is_checked: true,
            poll_until: None,
            has_polled: false,
            asked: None,
        }
    }
}

/// A stream of the changes in a workspace, which reconnects and resumes by itself. See [`Client::changes`].
///
/// It returns each change once, in order, whatever happens to its connections. A temporary failure is waited out, with
/// exponential backoff and jitter. Other failures are errors of [`Self::next`]. Where the server has no room for
/// another stream, or the way to it lets none through, polls replace it.
///
/// ```no_run
/// # use agentcfg_client::model::{After, WorkspaceId};
/// # async fn example(client: agentcfg_client::Client, workspace: WorkspaceId) -> Result<(), agentcfg_client::Error> {
/// use agentcfg_client::Followed;
/// let mut changes = client.changes(workspace, After::Now).with_status();
/// while let Followed::Status(entry) = changes.next().await? {
///     println!("{} is {}", entry.display_name, entry.status);
/// }
/// # Ok(())
/// # }
/// ```
pub struct ChangeStream {
    client: Client,
    workspace: WorkspaceId,
    after: After,
    with_status: bool,
    label: Option<Label>,
    connection: Option<Connection>,
    has_connected: bool,
    ready: VecDeque<Followed>,
    /// The delay that the server asked for after an orderly end.
    retry: Option<Duration>,
    pauses: ExponentialBackoff,
    /// When to reconnect. It is stored here, so that a dropped future does not begin the delay again.
    connect_at: Option<Instant>,
    /// When the last event arrived, or the reader began to wait for one.
    heard_at: Option<Instant>,
    /// How many streams in a row have ended without an event.
    fruitless: u32,
    /// Whether what the last one of them should have brought was asked for.
    is_checked: bool,
    /// Until when polls replace streams.
    poll_until: Option<Instant>,
    /// Whether the last request was one of these polls.
    has_polled: bool,
    /// A poll that is under way. It is stored here, so that a dropped future does not begin it again.
    asked: Option<Asked>,
}

struct Connection {
    body: Incoming,
    reader: EventReader,
}

/// How the read of a connection ended.
enum Ended {
    /// The server ended the stream, or the connection broke.
    Again { is_orderly: bool },
    /// Another connection would not help.
    Final(Error),
}

impl ChangeStream {
    /// Asks for live statuses too.
    ///
    /// ```no_run
    /// # use agentcfg_client::model::{After, WorkspaceId};
    /// # fn example(client: agentcfg_client::Client, workspace: WorkspaceId) {
    /// let changes = client.changes(workspace, After::Now).with_status();
    /// # }
    /// ```
    #[must_use]
    pub fn with_status(self) -> Self {
        Self {
            with_status: true,
            ..self
        }
    }

    /// Asks also for what a label releases: an event that moves it and does nothing else has
    /// [`released`](ChangeEvent::released). Polls that replace the stream do not bring it.
    ///
    /// ```no_run
    /// # use agentcfg_client::model::{After, WorkspaceId};
    /// # async fn example(client: agentcfg_client::Client, workspace: WorkspaceId) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut changes = client.changes(workspace, After::Now).with_released("production".parse()?);
    /// for agent in changes.next_change().await?.released.into_iter().flatten() {
    ///     println!("{} is at version {}", agent.agent_id, agent.version);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_released(self, label: Label) -> Self {
        Self {
            label: Some(label),
            ..self
        }
    }

    /// The position after the last result of [`Self::next`]. A stream from there misses nothing and repeats nothing.
    ///
    /// ```no_run
    /// # use agentcfg_client::model::{After, WorkspaceId};
    /// # fn example(client: agentcfg_client::Client, workspace: WorkspaceId) {
    /// assert_eq!(client.changes(workspace, After::Start).position(), After::Start);
    /// # }
    /// ```
    pub fn position(&self) -> After {
        self.after
    }

    /// Waits for the next change, bookmark or status.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// [`Error::is_unauthorized`] when the credential has ended, [`Error::is_forbidden`] without `agents:read` in the
    /// workspace, [`Error::is_gone`] when the position is no longer one of the workspace: read the list again and go on
    /// from its cursor. Other failures that will not pass are returned too. An answer of something else than the
    /// server, such as a page of a proxy, is returned before the server has answered once, and waited out after that.
    ///
    /// ```no_run
    /// # use agentcfg_client::model::{After, WorkspaceId};
    /// # async fn example(client: agentcfg_client::Client, workspace: WorkspaceId) {
    /// let mut changes = client.changes(workspace, After::Now);
    /// let ended = loop {
    ///     if let Err(error) = changes.next().await {
    ///         break error;
    ///     }
    /// };
    /// println!("get another credential: {}", ended.is_unauthorized());
    /// # }
    /// ```
    pub async fn next(&mut self) -> Result<Followed, Error> {
        loop {
            if let Some(followed) = self.ready.pop_front() {
                match &followed {
                    Followed::Change(event) => self.after = event.cursor.into(),
                    Followed::Bookmark(cursor) => self.after = (*cursor).into(),
                    Followed::Status(_) => {}
                }
                self.heard_at = None;
                return Ok(followed);
            }
            if self.connection.is_none() {
                if self.asked.is_some() || self.is_polling() || !self.is_checked {
                    self.poll().await?;
                    continue;
                }
                self.connect().await?;
                if self.connection.is_none() {
                    continue;
                }
            }
            match self.read().await {
                Ok(()) => {}
                Err(Ended::Final(error)) => {
                    self.connection = None;
                    return Err(error);
                }
                Err(Ended::Again { is_orderly }) => {
                    self.connection = None;
                    if is_orderly {
                        self.fruitless = 0;
                    }
                    self.note_fruitless();
                    let pause = match self.retry.filter(|_| is_orderly) {
                        // The server draws the delay at random for each stream.
                        Some(retry) => retry.min(MAX_DELAY),
                        None => self.pause(),
                    };
                    self.connect_at = Some(Instant::now() + pause);
                }
            }
        }
    }

    /// Waits for the next change, and skips bookmarks and statuses.
    ///
    /// # Errors
    ///
    /// As [`Self::next`].
    ///
    /// ```no_run
    /// # use agentcfg_client::model::{After, WorkspaceId};
    /// # async fn example(client: agentcfg_client::Client, workspace: WorkspaceId) -> Result<(), agentcfg_client::Error> {
    /// let event = client.changes(workspace, After::Start).next_change().await?;
    /// assert_eq!(event.revision, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next_change(&mut self) -> Result<ChangeEvent, Error> {
        loop {
            if let Followed::Change(event) = self.next().await? {
                return Ok(*event);
            }
        }
    }

    fn pause(&mut self) -> Duration {
        self.pauses.next().unwrap_or(MAX_DELAY)
    }

    /// A stream of a server that is known, so that an answer of something else may pass.
    pub(crate) fn of_known_server(mut self) -> Self {
        self.has_connected = true;
        self
    }

    async fn wait(&mut self) {
        if let Some(at) = self.connect_at {
            sleep_until(at).await;
            self.connect_at = None;
        }
    }

    /// Takes note of a failure and of the delay after it, unless it is final.
    fn failed(&mut self, error: Error) -> Result<(), Error> {
        // A certificate that was accepted before may be temporarily invalid, so the failure is not final; nor is an
        // answer of something else than the server, such as a page of a proxy.
        let was_connected = self.has_connected && (error.is_connect() || error.is_of_another());
        if !was_connected && !may_pass(&error) {
            return Err(error);
        }
        let pause = self.pause().max(asked_pause(&error));
        self.connect_at = Some(Instant::now() + pause);
        Ok(())
    }

    /// Connects, with retries until it succeeds, the failure is final, or polls replace the stream.
    async fn connect(&mut self) -> Result<(), Error> {
        loop {
            self.wait().await;
            self.has_polled = false;
            let call = Call::get(CHANGES)
                .events()
                .query("workspace_id", self.workspace)
                .query("after", self.after)
                .query_if("status", self.with_status.then_some("true"))
                .query_if("label", self.label.as_ref());
            let error = match self.client.open(call).await {
                Ok((_, body)) => {
                    let reader = EventReader::new(self.client.max_response_bytes());
                    self.connection = Some(Connection { body, reader });
                    self.has_connected = true;
                    self.fruitless += 1;
                    self.heard_at = None;
                    return Ok(());
                }
                Err(error) => error,
            };
            if error.is_rate_limited() {
                self.poll_for_lack_of_room(&error);
                return Ok(());
            }
            // Without a connection, and after a refusal of the server itself, there was no stream.
            let was_opened = error.outcome() != AttemptOutcome::NotApplied && !error.is_connect();
            let is_fruitless = was_opened && !error.is_answer_of_service();
            self.failed(error)?;
            if is_fruitless {
                self.fruitless += 1;
                self.note_fruitless();
                return Ok(());
            }
        }
    }

    fn is_polling(&self) -> bool {
        self.poll_until.is_some_and(|until| Instant::now() < until)
    }

    /// Decides what replaces a stream that has ended without an event.
    fn note_fruitless(&mut self) {
        self.is_checked = self.fruitless == 0;
        if self.fruitless >= polls::FRUITLESS_STREAMS {
            self.poll_until = Some(Instant::now() + polls::POLL_FOR_FRUITLESS);
        }
    }

    /// Begins to poll where the server has no room for another stream.
    fn poll_for_lack_of_room(&mut self, error: &Error) {
        // Too many streams or too many requests: the poll tells, which counts as a request and not as a stream.
        self.poll_until = Some(Instant::now() + polls::POLL_FOR.max(asked_pause(error)));
        let pause = self.pause();
        self.connect_at = Some(Instant::now() + pause);
    }

    /// Asks for the changes once, in place of a stream.
    async fn poll(&mut self) -> Result<(), Error> {
        self.wait().await;
        if self.asked.is_none() {
            let is_polling = self.is_polling();
            // The first one does not wait, so that it tells at once whether the server answers.
            let waits = is_polling && self.has_polled;
            let task = polls::ask(&self.client, self.workspace, self.after, waits);
            self.asked = Some(Asked::now(is_polling, task));
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
            self.connect_at = Some(begun + polls::poll_gap(self.client.rate_limit()));
        }
        Ok(())
    }

    /// Reads a piece of the stream.
    async fn read(&mut self) -> Result<(), Ended> {
        let broken = Ended::Again { is_orderly: false };
        let Some(connection) = &mut self.connection else {
            return Err(broken);
        };
        let heard_at = *self.heard_at.get_or_insert_with(Instant::now);
        let frame = match timeout_at(heard_at + SILENCE, connection.body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_)) | None) | Err(_) => return Err(broken),
        };
        let Ok(data) = frame.into_data() else { return Ok(()) };
        let taken = connection.reader.take(&data);
        let events = taken.map_err(|_| Ended::Final(Error::of_stream("an event is longer than the client accepts")))?;
        self.retry = connection.reader.retry.or(self.retry);
        // A comment may be a proxy's: only events, and parts of a long one, show that the server is there.
        if !events.is_empty() || connection.reader.is_within_event() {
            self.heard_at = None;
        }
        for event in events {
            // The connection works, so the delays start again.
            self.pauses = pauses();
            self.fruitless = 0;
            match event.name.as_str() {
                "change" => self.ready.push_back(Followed::Change(parse(&event)?)),
                "status" => self.ready.push_back(Followed::Status(parse(&event)?)),
                "bookmark" => {
                    let cursor = event.id.as_deref().and_then(|id| id.parse().ok());
                    let cursor = cursor.ok_or_else(|| Ended::Final(Error::of_stream("a bookmark has no cursor")))?;
                    self.ready.push_back(Followed::Bookmark(cursor));
                }
                // The answer to the next connection tells whether the credential or the position is the reason. Events
                // that arrived before the end are returned first.
                "end" | "gone" => return Err(Ended::Again { is_orderly: true }),
                // An event of a later release is ignored.
                _ => {}
            }
        }
        Ok(())
    }
}

fn parse<T: DeserializeOwned>(event: &Event) -> Result<T, Ended> {
    serde_json::from_str(&event.data).map_err(|error| {
        Ended::Final(Error::of_stream(format!(
            "an event is not what agentcfg promises: {error}"
        )))
    })
}

impl std::fmt::Debug for ChangeStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeStream")
            .field("workspace", &self.workspace)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}
