//! Pages of the log after a cursor.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use super::super::access::Access;
use super::super::blocking::LONG;
use super::super::chunked_reads;
use super::super::entry::{CallerKind, unauthorized};
use super::super::key_limits::KeyLimits;
use super::super::records::{self, Entries, StoredEntryHead};
use super::super::{AgentCfg, Caller, groups};
use super::event_form::{EventForm, Logged, logged};
use super::recent_events::SerializedEvent;
use crate::error::{Error, ErrorKind};
use crate::model::{
    After, ChangeEvent, Cursor, CursorError, Permission, PermissionSet, Timestamp, UserId, WorkspaceId,
};
use crate::store::Kind;
use crate::validate::Invalid;

/// The length in bytes at which a page ends. A page of one event may be longer.
const PAGE_BYTES: usize = 8 << 20;

/// How many bytes an event adds to the text of its entry at most: its cursor, its revision and the names of its fields.
const ADDED_BYTES: usize = 256;

/// Events of a workspace in the order of their revisions.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// let page = service.changes(&ada, studio, After::Start, 100).await?;
/// assert_eq!(page.events.last().map(|event| event.cursor), Some(page.cursor));
/// # Ok(()) }) }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChangePage<E = ChangeEvent> {
    /// The events that the caller may see.
    pub events: Vec<E>,
    /// The position to read on from. It also moves over events that the caller may not see.
    pub cursor: Cursor,
    /// Whether there were more events when the page was read.
    pub has_more: bool,
}

/// Events, and the caller's authority when the last of them were read.
pub(super) struct ReadEvents<E> {
    /// As in [`ChangePage`].
    pub(super) events: Vec<E>,
    /// As in [`ChangePage`].
    pub(super) cursor: Cursor,
    /// As in [`ChangePage`].
    pub(super) has_more: bool,
    pub(super) permissions: PermissionSet,
    /// When the caller's credential ends, as its record says now.
    pub(super) expires_at: Option<Timestamp>,
    /// What the caller's key is limited to.
    pub(super) limits: KeyLimits,
}

/// How long a page may be.
#[derive(Clone, Copy)]
pub(super) struct PageLimits {
    pub(super) events: usize,
    pub(super) bytes: usize,
    /// A single page takes a permit for long answers. A stream takes none: it counts its own bytes, and one that is not
    /// polled must not block others.
    pub(super) is_single_page: bool,
    /// Whether events are likely. If not, a store behind a network is first asked for the head of the log alone.
    pub(super) expects_events: bool,
}

impl AgentCfg {
    /// The changes of a workspace after a position, at most `limit` of them, in the order of their revisions.
    ///
    /// Callers without `audit_log:read` see the events of agents and labels alone. A page also ends after 8 MiB, with
    /// at least one event. The cursor of a list of agents is the position at which the list was read.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `agents:read` in the workspace, [`ErrorKind::Invalid`] for a cursor of another
    /// workspace, [`ErrorKind::Gone`] for one of another epoch, of a revision that does not exist, or from
    /// before the first entry of the log: read the list again.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let start = service.list_agents(&ada, studio, &Default::default()).await?.value.cursor();
    /// service.delete_agent(&ada, Some(studio), "writer", &Precondition::None).await?;
    /// let page = service.changes(&ada, studio, start, 100).await?;
    /// assert_eq!(page.events[0].kind, Action::AgentDeactivated);
    /// assert!(service.changes(&ada, studio, page.cursor, 100).await?.events.is_empty());
    /// # Ok(()) }) }
    /// ```
    pub async fn changes(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        after: impl Into<After>,
        limit: usize,
    ) -> Result<ChangePage, Error> {
        self.page(caller, workspace, after.into(), limit).await
    }

    /// As [`Self::changes`], each event as the text that its readers share. It has what the log has, also the order of
    /// members.
    ///
    /// # Errors
    ///
    /// As [`Self::changes`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let page = service.serialized_changes(&ada, studio, After::Start, 100).await?;
    /// assert!(page.events[1].json().contains("agent.created"));
    /// # Ok(()) }) }
    /// ```
    pub async fn serialized_changes(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        after: impl Into<After>,
        limit: usize,
    ) -> Result<ChangePage<SerializedEvent>, Error> {
        self.page(caller, workspace, after.into(), limit).await
    }

    async fn page<E: EventForm>(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        after: After,
        limit: usize,
    ) -> Result<ChangePage<E>, Error> {
        let limits = PageLimits {
            events: limit.max(1),
            bytes: PAGE_BYTES,
            is_single_page: true,
            expects_events: true,
        };
        let read = self.read_changes(caller, workspace, after, limits).await?;
        Ok(ChangePage {
            events: read.events,
            cursor: read.cursor,
            has_more: read.has_more,
        })
    }

    /// As [`Self::changes`]; a page without events waits so long for one that the caller may see.
    ///
    /// # Errors
    ///
    /// As [`Self::changes`], also when the caller's authority ends during the wait.
    ///
    /// # Panics
    ///
    /// When it waits outside of a Tokio runtime with time enabled.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let wait = std::time::Duration::from_secs(20);
    /// let page = service.changes_within(&ada, studio, After::Start, 1, wait).await?;
    /// assert_eq!(page.events.len(), 1, "there was one already");
    /// # Ok(()) }) }
    /// ```
    pub async fn changes_within(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        after: impl Into<After>,
        limit: usize,
        wait: Duration,
    ) -> Result<ChangePage, Error> {
        self.page_within(caller, workspace, after.into(), limit, wait).await
    }

    /// As [`Self::changes_within`], in the form of [`Self::serialized_changes`].
    ///
    /// # Errors
    ///
    /// As [`Self::changes_within`].
    ///
    /// # Panics
    ///
    /// As [`Self::changes_within`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let wait = std::time::Duration::from_secs(20);
    /// let page = service.serialized_changes_within(&ada, studio, After::Start, 1, wait).await?;
    /// assert_eq!(page.events.len(), 1, "there was one already");
    /// # Ok(()) }) }
    /// ```
    pub async fn serialized_changes_within(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        after: impl Into<After>,
        limit: usize,
        wait: Duration,
    ) -> Result<ChangePage<SerializedEvent>, Error> {
        self.page_within(caller, workspace, after.into(), limit, wait).await
    }

    async fn page_within<E: EventForm>(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        mut after: After,
        limit: usize,
        wait: Duration,
    ) -> Result<ChangePage<E>, Error> {
        let mut log = self.watcher(workspace, Kind::LogHead);
        let mut timer: Option<Pin<Box<Sleep>>> = None;
        loop {
            log.mark_seen();
            let page = self.page(caller, workspace, after, limit).await?;
            if !page.events.is_empty() || wait.is_zero() {
                return Ok(page);
            }
            after = page.cursor.into();
            let timer = timer.get_or_insert_with(|| Box::pin(sleep(wait)));
            tokio::select! {
                () = log.changed() => {}
                () = timer => return Ok(page),
            }
        }
    }

    pub(super) async fn read_changes<E: EventForm>(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        after: After,
        limits: PageLimits,
    ) -> Result<ReadEvents<E>, Error> {
        let epoch = self.epoch().await?;
        // Nothing is after the greatest number, so a read from there finds the head of the log alone.
        let mut revision = match after {
            After::Cursor(cursor) => cursor.revision(),
            After::Now => u64::MAX,
            After::Start => 0,
        };
        let mut events = Vec::new();
        let mut bytes = 0;
        // One record more than the page holds shows whether another page follows.
        let mut count = limits.events.saturating_add(1).min(chunked_reads::RECORDS);
        let mut is_first = true;
        let mut begun = None;
        loop {
            let next = match after {
                After::Cursor(_) if is_first && !self.store().is_shared() => {
                    self.read_next::<E>(caller, Cursor::new(epoch, workspace, revision))
                        .await?
                }
                After::Cursor(_) if is_first && !limits.expects_events => {
                    self.read_none(caller, workspace, revision).await?
                }
                _ => None,
            };
            let part = match next {
                Some(part) => part,
                None => {
                    if begun.is_none() && limits.is_single_page {
                        begun = Some(self.begin_answer(caller).await?);
                    }
                    let after = Cursor::new(epoch, workspace, revision);
                    self.read_part(caller, after, count).await?
                }
            };
            if is_first {
                revision = match after {
                    After::Cursor(cursor) => cursor.revision_in(workspace, epoch, part.head).map_err(refused)?,
                    After::Now => part.head,
                    After::Start => 0,
                };
                is_first = false;
            }
            let next = part.events.first().map(|event| event.revision);
            if next.map_or(revision < part.head && !part.has_more, |next| next != revision + 1) {
                let first = self.first_entry(workspace).await?;
                return Err(self.entries_are_removed("the position", first));
            }
            // Events that the caller may not see do not count.
            count = chunked_reads::RECORDS;
            let sees_all = part.access.permissions().contains(Permission::AuditLogRead);
            let agents = part.access.limits();
            let mut is_full = false;
            for logged in part.events {
                let length = logged.length + ADDED_BYTES;
                let shown: Option<E> = match agents.agents() {
                    _ if !(sees_all || logged.concerns_agents) => None,
                    None => Some(logged.event),
                    Some(_) => logged.event.limited_to(agents)?,
                };
                if let Some(event) = shown {
                    if events.len() == limits.events || (!events.is_empty() && bytes + length > limits.bytes) {
                        is_full = true;
                        break;
                    }
                    bytes += length;
                    events.push(event);
                }
                revision = logged.revision;
            }
            if is_full || !part.has_more {
                return Ok(ReadEvents {
                    events,
                    cursor: Cursor::new(epoch, workspace, revision),
                    has_more: is_full,
                    permissions: part.access.permissions(),
                    expires_at: part.access.key_expires_at().or_else(|| caller.valid_until()),
                    limits: part.access.limits().clone(),
                });
            }
        }
    }

    /// The part of the log after a revision if it is one entry or none, which is what a reader who follows the log
    /// finds. An embedded store has both records in its cache, so many readers of one workspace cost no scan each.
    ///
    /// The reads need no common snapshot: an entry never changes. The authority is read last: a caller who has it then
    /// had it when the entry was committed, or got it since.
    async fn read_next<E: EventForm>(&self, caller: &Caller, after: Cursor) -> Result<Option<LogPart<E>>, Error> {
        let (epoch, workspace, after) = (after.epoch(), after.workspace(), after.revision());
        if after == u64::MAX {
            return Ok(None);
        }
        let head = self.read(records::revision(workspace)).await?;
        let events = match head {
            head if head <= after => Vec::new(),
            head if head == after + 1 => match E::read(self, Cursor::new(epoch, workspace, head)).await? {
                Some(event) => vec![event],
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        self.require_session(caller)?;
        let access = self.access(caller, workspace, Permission::AgentsRead).await?;
        Ok(Some(LogPart {
            events,
            has_more: false,
            head,
            access,
        }))
    }

    /// The part of the log after a revision if there is none, on a store where each read is a round trip. Readers at
    /// the same moment share reads by key, as they do not share scans.
    async fn read_none<E: EventForm>(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        after: u64,
    ) -> Result<Option<LogPart<E>>, Error> {
        self.require_session(caller)?;
        let head = records::revision(workspace);
        let (head, access) = match &caller.kind {
            CallerKind::ApiKey(key) => {
                let query = (head, records::api_key(key.id.as_str()).encoded());
                let (head, record) = self.read(query).await?;
                (head, self.access_by_record(key, record)?.in_workspace(workspace)?)
            }
            CallerKind::User { user_id, session } => {
                let (user, memberships) = groups::rights(workspace, user_id, &session.groups);
                let ((head, user), memberships) = self.read(((head, user), memberships)).await?;
                (head, self.reader(user_id, workspace, (user, memberships)).await?)
            }
        };
        access.require(Permission::AgentsRead)?;
        Ok((head <= after).then_some(LogPart {
            events: Vec::new(),
            has_more: false,
            head,
            access,
        }))
    }

    /// The access of a user by the records that a read has found. Where a group lets the user in, a record of the user
    /// is made, which an operator's removal needs.
    async fn reader(
        &self,
        user_id: &UserId,
        workspace: WorkspaceId,
        (user, memberships): groups::FoundRights,
    ) -> Result<Access, Error> {
        let is_unknown = user.is_none();
        let access = self.access_by_rights(user_id, workspace, (user, memberships))?;
        if is_unknown && access.is_by_group() {
            self.note_user(user_id).await;
        }
        Ok(access)
    }

    /// Requires that the session of a user has not expired.
    fn require_session(&self, caller: &Caller) -> Result<(), Error> {
        match &caller.kind {
            CallerKind::User { session, .. } if session.valid_until.is_some_and(|end| end <= self.now()) => {
                Err(unauthorized())
            }
            _ => Ok(()),
        }
    }

    /// Reads a part of the log, the head of the log and the caller's authority in one snapshot.
    async fn read_part<E: EventForm>(&self, caller: &Caller, after: Cursor, count: usize) -> Result<LogPart<E>, Error> {
        self.require_session(caller)?;
        let (epoch, workspace) = (after.epoch(), after.workspace());
        let after = records::audit_entry(workspace, after.revision());
        let entries = Entries::<StoredEntryHead>::in_workspace(workspace)
            .after(&after)
            .bounded(count, chunked_reads::BYTES);
        let head = records::revision(workspace);
        let (found, head, access) = match &caller.kind {
            CallerKind::ApiKey(key) => {
                let query = (head, records::api_key(key.id.as_str()).encoded());
                let (found, (head, record)) = self.scan_with(entries, query).await?;
                let access = self.access_by_record(key, record)?.in_workspace(workspace)?;
                (found, head, access)
            }
            CallerKind::User { user_id, session } => {
                let (user, memberships) = groups::rights(workspace, user_id, &session.groups);
                let (found, ((head, user), memberships)) = self.scan_with(entries, ((head, user), memberships)).await?;
                let access = self.reader(user_id, workspace, (user, memberships)).await?;
                (found, head, access)
            }
        };
        access.require(Permission::AgentsRead)?;
        let found = found.into_cut();
        let has_more = found.has_more();
        let is_long = found.bytes() >= LONG;
        let service = self.clone();
        let events = async move { logged(&service, epoch, found.into_iter().collect()).await };
        // Long parts wait for each other, so that a reader finds what another one has just decoded.
        let events = self.long_read_if(is_long, workspace, events).await?;
        Ok(LogPart {
            events,
            has_more,
            head,
            access,
        })
    }
}

/// A part of the log, in one snapshot with the head and the authority.
struct LogPart<E> {
    events: Vec<Logged<E>>,
    /// Whether the log goes on after it.
    has_more: bool,
    head: u64,
    access: Access,
}

/// The error of a cursor that is no position in the log.
fn refused(error: CursorError) -> Error {
    match error {
        CursorError::NoCursor | CursorError::OtherWorkspace => Invalid::new("after", error).into(),
        CursorError::OtherEpoch | CursorError::Future => Error::new(
            ErrorKind::Gone,
            format!("the position {error}: read the list again and go on from its Change-Cursor"),
        ),
    }
}
