//! The forms of an event: as a value, and as text that readers share.

use super::super::blocking::{LONG, blocking_if};
use super::super::records::{self, Encoded, StoredEntry};
use crate::error::Error;
use crate::model::{Action, ChangeEvent, Cursor, TargetType, change_path};
use crate::service::AgentCfg;
use crate::service::key_limits::KeyLimits;

/// A form of an event.
pub(super) trait EventForm: Clone + Send + Sync + 'static {
    /// What was done.
    fn action(&self) -> Action;

    /// Makes the event of an entry.
    fn of(cursor: Cursor, entry: &Encoded<StoredEntry>) -> Result<Self, Error>;

    /// The event as a caller with these limits sees it: with the changes of its agents alone, and not at all without any.
    fn limited_to(self, limits: &KeyLimits) -> Result<Option<Self>, Error>;

    /// As [`Self::of`], or the event that another reader of this process has made of the same entry.
    fn shared(_: &AgentCfg, cursor: Cursor, entry: &Encoded<StoredEntry>) -> Result<Self, Error> {
        Self::of(cursor, entry)
    }

    /// Reads the event before this position; `None` when its entry does not exist.
    fn read(service: &AgentCfg, cursor: Cursor) -> impl Future<Output = Result<Option<Logged<Self>>, Error>> + Send {
        async move {
            let key = records::audit_entry(cursor.workspace(), cursor.revision()).encoded();
            let Some(entry) = service.read(key).await? else {
                return Ok(None);
            };
            let length = entry.bytes();
            let event = blocking_if(length >= LONG, move || Self::of(cursor, &entry)).await??;
            Ok(Some(Logged::new(cursor, length, event)))
        }
    }
}

/// An event, with the facts about its entry that a page needs.
pub(super) struct Logged<E> {
    pub(super) revision: u64,
    /// The length of the entry's text, in bytes.
    pub(super) length: usize,
    /// Whether readers without `audit_log:read` see it.
    pub(super) concerns_agents: bool,
    pub(super) event: E,
}

impl<E: EventForm> Logged<E> {
    pub(super) fn new(cursor: Cursor, length: usize, event: E) -> Self {
        Self {
            revision: cursor.revision(),
            length,
            concerns_agents: ChangeEvent::concerns_agents(event.action()),
            event,
        }
    }
}

impl EventForm for ChangeEvent {
    fn limited_to(mut self, limits: &KeyLimits) -> Result<Option<Self>, Error> {
        if self.target.kind == TargetType::Agent {
            return Ok(limits.includes(&self.target.id).then_some(self));
        }
        let target = &self.target;
        self.changes.retain(|path, _| {
            change_path::subject(target, path).is_some_and(|(agent_id, _)| limits.includes(agent_id))
        });
        Ok((!self.changes.is_empty()).then_some(self))
    }

    fn action(&self) -> Action {
        self.kind
    }

    fn of(cursor: Cursor, entry: &Encoded<StoredEntry>) -> Result<Self, Error> {
        let logged = entry.value()?;
        let mut changes = logged.changes;
        changes.extend(logged.rebuilding);
        Ok(Self {
            cursor,
            revision: cursor.revision(),
            id: logged.id,
            kind: logged.action,
            created_at: logged.created_at,
            actor: logged.actor,
            target: logged.target,
            message: logged.message,
            version: logged.version,
            changes,
        })
    }
}
