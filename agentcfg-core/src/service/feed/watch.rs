//! Watches: readers that follow the feed.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use super::page::{PageLimits, ReadEvents};
use super::recent_events::SerializedEvent;
use super::status::StatusReader;
use super::wake_ups::EntryEnd;
use crate::error::{Error, ErrorKind};
use crate::model::{After, ChangeEvent, Cursor, Label, PermissionSet, StatusEvent, Timestamp, WorkspaceId};
use crate::service::key_limits::KeyLimits;
use crate::service::shutdown::End;
use crate::service::{AgentCfg, Caller};
use crate::store::{Kind, Watcher};

/// The bounds of one read of a watch.
const READ: PageLimits = PageLimits {
    events: 64,
    bytes: 1 << 20,
    is_single_page: false,
    expects_events: true,
};

/// A reader of a workspace's changes: a position, and a waiter for commits. See [`AgentCfg::watch`].
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// let mut watch = service.watch(&ada, studio, After::Now).await?;
/// service.create_agent(&ada, NewAgent::new(studio, "editor".parse()?, "Editor")).await?;
/// assert_eq!(watch.next().await?.target.id, "editor");
/// # Ok(()) }) }
/// ```
pub struct Watch {
    service: AgentCfg,
    caller: Caller,
    workspace: WorkspaceId,
    cursor: Cursor,
    /// The most that the caller was allowed to do since the watch began.
    permissions: PermissionSet,
    /// When the credential ends, as of the last read: a rotation moves the end of a key.
    expires_at: Option<Timestamp>,
    log: Watcher,
    entry_end: EntryEnd,
    service_end: End,
    statuses: Option<StatusReader>,
    /// What the caller's key is limited to.
    limits: KeyLimits,
    /// The label that is followed.
    label: Option<Label>,
    /// Whether events were left after the last read.
    has_more: bool,
    /// Events that were read and not returned by [`Self::next`] yet.
    pub(super) ready: VecDeque<SerializedEvent>,
}

/// What a read of a [`Watch`] found. Both lists are empty when nothing has changed.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// let mut watch = service.watch(&ada, studio, After::Start).await?.with_statuses();
/// let update = watch.read().await?;
/// assert_eq!(update.statuses.len(), 1, "each active agent at first");
/// assert_eq!(update.changes.len(), 2, "a workspace and an agent were created");
/// # Ok(()) }) }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Update {
    /// The events after the position of the watch, in order. The position is after them now.
    pub changes: Vec<SerializedEvent>,
    /// The statuses that changed since the last read, in the order of the list: all of them in the first read.
    pub statuses: Vec<Arc<StatusEvent>>,
    /// Whether there were more events when these were read. [`Watch::changed`] returns at once then.
    pub has_more: bool,
}

impl AgentCfg {
    /// Follows the changes of a workspace from a position.
    ///
    /// The caller's authority is read again with each event.
    ///
    /// # Errors
    ///
    /// As [`Self::changes`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// // A list and the changes after its cursor miss nothing and repeat nothing.
    /// let list = service.list_agents(&ada, studio, &Default::default()).await?.value;
    /// let mut watch = service.watch(&ada, studio, list.cursor()).await?;
    /// service.delete_agent(&ada, Some(studio), "writer", &Precondition::None).await?;
    /// assert_eq!(watch.next().await?.kind, Action::AgentDeactivated);
    /// # Ok(()) }) }
    /// ```
    pub async fn watch(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        after: impl Into<After>,
    ) -> Result<Watch, Error> {
        let log = self.watcher(workspace, Kind::LogHead);
        let entry_end = self.entry_end(caller);
        let after = after.into();
        // Reads no event: its purpose is to check the position and the authority.
        let limits = PageLimits {
            events: 0,
            bytes: 0,
            ..READ
        };
        let read: ReadEvents<SerializedEvent> = self.read_changes(caller, workspace, after, limits).await?;
        let cursor = match after {
            After::Cursor(cursor) => cursor,
            After::Now => read.cursor,
            After::Start => Cursor::new(read.cursor.epoch(), workspace, 0),
        };
        Ok(Watch {
            service: self.clone(),
            caller: caller.clone(),
            workspace,
            cursor,
            permissions: read.permissions,
            expires_at: read.expires_at,
            log,
            entry_end,
            service_end: self.inner.lifetime.end(),
            statuses: None,
            limits: read.limits,
            label: None,
            has_more: true,
            ready: VecDeque::new(),
        })
    }
}

impl Watch {
    /// Reads the live status of agents too; see [`Update::statuses`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let mut watch = service.watch(&ada, studio, After::Now).await?.with_statuses();
    /// assert_eq!(watch.read().await?.statuses[0].agent_id, "writer");
    /// service.report_status(&ada, Some(studio), "writer", StatusReport::idle()).await?;
    /// watch.changed().await;
    /// assert_eq!(watch.read().await?.statuses[0].status, LiveStatus::Idle);
    /// # Ok(()) }) }
    /// ```
    #[must_use]
    pub fn with_statuses(mut self) -> Self {
        self.statuses = Some(StatusReader::new(&self.service, self.workspace));
        self
    }

    /// Reads also what a label releases, in the events that move it; see [`ChangeEvent::released`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] when the key is pinned to another label.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let watch = service.watch(&ada, studio, After::Now).await?;
    /// let mut watch = watch.with_released("production".parse()?)?;
    /// service.set_label(&ada, Some(studio), "writer", "production", LabelTarget::new(1)).await?;
    /// let released = watch.next().await?.released.unwrap_or_default();
    /// assert_eq!(released[0].config.display_name, "Writer");
    /// # Ok(()) }) }
    /// ```
    pub fn with_released(self, label: Label) -> Result<Self, Error> {
        self.limits.require_label(&label)?;
        Ok(Self {
            label: Some(label),
            ..self
        })
    }

    /// The position: that of the last event that was read.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let watch = service.watch(&ada, studio, After::Start).await?;
    /// assert_eq!(watch.cursor().revision(), 0);
    /// # Ok(()) }) }
    /// ```
    pub fn cursor(&self) -> Cursor {
        match self.ready.front() {
            // The position of a caller of `next` is before the events that it has not seen.
            Some(next) => Cursor::new(self.cursor.epoch(), self.workspace, next.cursor().revision() - 1),
            None => self.cursor,
        }
    }

    /// When the caller's credential expires, if it does, as of the last read. A read after that fails.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let watch = service.watch(&ada, studio, After::Now).await?;
    /// assert_eq!(watch.expires_at(), None, "a trusted user has no credential");
    /// # Ok(()) }) }
    /// ```
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }

    /// The time until the credential expires, by the clock of the service; `None` when it does not.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert!(service.watch(&ada, studio, After::Now).await?.expires_in().is_none());
    /// # Ok(()) }) }
    /// ```
    pub fn expires_in(&self) -> Option<Duration> {
        let end = self.expires_at()?.unix_millis();
        let left = end.saturating_sub(self.service.now().unix_millis());
        Some(Duration::from_millis(left.try_into().unwrap_or_default()))
    }

    /// How long ago a time was, by the clock of the service.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let mut watch = service.watch(&ada, studio, After::Start).await?;
    /// let event = watch.next().await?;
    /// println!("lag: {:?}", watch.age_of(event.created_at));
    /// # Ok(()) }) }
    /// ```
    pub fn age_of(&self, time: Timestamp) -> Duration {
        let age = self.service.now().unix_millis().saturating_sub(time.unix_millis());
        Duration::from_millis(age.try_into().unwrap_or_default())
    }

    /// Waits for the next event, and moves the position after it.
    ///
    /// Dropping the future loses no event.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let mut watch = service.watch(&ada, studio, After::Start).await?;
    /// assert_eq!(watch.next().await?.kind, Action::WorkspaceCreated);
    /// assert_eq!(watch.next().await?.kind, Action::AgentCreated);
    /// # Ok(()) }) }
    /// ```
    pub async fn next(&mut self) -> Result<ChangeEvent, Error> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return event.decode();
            }
            let read = self.read().await?;
            self.ready.extend(read.changes);
            if self.ready.is_empty() {
                self.changed().await;
            }
        }
    }

    /// Reads what there is now, without waiting, and moves the position after it. A caller that needs more calls again.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unauthorized`] and [`ErrorKind::Forbidden`] when the caller's credential has ended, or allows less
    /// than before; [`ErrorKind::Gone`] when the log no longer has the position; [`ErrorKind::Unavailable`] when
    /// storage fails, and after [`AgentCfg::shutdown`]. The position stays, so the read can be repeated.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let bob: UserId = "bob".parse()?;
    /// service.set_member(&ada, studio, &bob, Role::Viewer).await?;
    /// let caller = service.trusted_user("bob")?;
    /// let mut watch = service.watch(&caller, studio, After::Now).await?;
    /// assert!(watch.read().await?.changes.is_empty());
    /// service.remove_member(&ada, studio, &bob).await?;
    /// assert!(watch.read().await.is_err());
    /// # Ok(()) }) }
    /// ```
    pub async fn read(&mut self) -> Result<Update, Error> {
        self.service.inner.lifetime.check()?;
        let limits = PageLimits {
            expects_events: self.has_more || self.log.has_changed(),
            ..READ
        };
        // Marked before the read, so that a commit during the read wakes the watch.
        self.log.mark_seen();
        // Read before the authority, so that a status that comes after the end of the authority is not shown.
        let statuses = match &mut self.statuses {
            Some(statuses) => statuses.read(&self.service, &self.caller).await?,
            None => Vec::new(),
        };
        let after = self.cursor.into();
        let read: ReadEvents<SerializedEvent> = self
            .service
            .read_changes(&self.caller, self.workspace, after, limits)
            .await?;
        if let Some(lost) = self.permissions.iter().find(|held| !read.permissions.contains(*held)) {
            return Err(Error::new(
                ErrorKind::Forbidden,
                format!("the caller has lost the permission {lost} since the stream began"),
            ));
        }
        let mut changes = read.events;
        if let Some(label) = &self.label {
            let mut bytes = 0;
            for event in &mut changes {
                // A reader of so many old releases reads what the label releases now.
                if bytes > READ.bytes {
                    break;
                }
                *event = event.clone().following(&self.service, label).await?;
                bytes += event.json().len();
            }
        }
        if let Some(statuses) = &mut self.statuses {
            statuses.keep();
        }
        self.permissions = read.permissions;
        self.expires_at = read.expires_at;
        self.cursor = read.cursor;
        self.has_more = read.has_more;
        Ok(Update {
            changes,
            statuses,
            has_more: self.has_more,
        })
    }

    /// Waits until a read may find something: after a commit, or when a status grows old. It returns at once when the
    /// last read left something behind. It also returns when an operator has removed the user by this service, and when
    /// this service has closed the browser session of the caller, of which a read knows nothing: verify the cookie again
    /// ([`AgentCfg::authenticate_browser_session`]).
    ///
    /// Dropping the future loses no wake-up. With statuses it needs a tokio runtime with timers.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let mut watch = service.watch(&ada, studio, After::Now).await?;
    /// watch.read().await?;
    /// service.delete_agent(&ada, Some(studio), "writer", &Precondition::None).await?;
    /// watch.changed().await;
    /// assert_eq!(watch.read().await?.changes.len(), 1);
    /// # Ok(()) }) }
    /// ```
    pub async fn changed(&mut self) {
        if self.has_more {
            return;
        }
        let status = async {
            match &mut self.statuses {
                Some(statuses) => statuses.changed(&self.service).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = self.log.changed() => {}
            () = status => {}
            () = self.entry_end.ended() => {}
            () = self.service_end.reached() => {}
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("caller", &self.caller)
            .field("cursor", &self.cursor)
            .finish_non_exhaustive()
    }
}
