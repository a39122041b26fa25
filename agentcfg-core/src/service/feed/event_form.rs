//! The forms of an event: as a value, and as text that readers share.

use super::super::blocking::{LONG, blocking_if};
use super::super::records::{self, Encoded, StoredEntry, StoredEntryHead};
use crate::error::Error;
use crate::model::{Action, ChangeEvent, Cursor, Epoch, TargetType, change_path};
use crate::service::AgentCfg;
use crate::service::key_limits::KeyLimits;

/// A form of an event.
pub(super) trait EventForm: Clone + Send + Sync + 'static {
    /// What was done.
    fn action(&self) -> Action;

    /// Makes the event of an entry.
    fn of(cursor: Cursor, entry: &Encoded<StoredEntry>) -> Result<Self, Error>;

    /// The event as a caller with these limits sees it: with the changes of its agents alone, and not at all without
    /// any.
    fn limited_to(self, limits: &KeyLimits) -> Result<Option<Self>, Error>;

    /// A hash of the entry, by which [`Self::known`] finds its event.
    fn fingerprint(_: &AgentCfg, _: &Encoded<StoredEntryHead>) -> u64 {
        0
    }

    /// The event that another reader of this process has made of the entry with this fingerprint.
    fn known(_: &AgentCfg, _: Cursor, _fingerprint: u64) -> Option<Self> {
        None
    }

    /// Keeps the event for other readers.
    fn keep(&self, _: &AgentCfg, _: Cursor, _fingerprint: u64) {}

    /// Reads the event before this position; `None` when its entry does not exist.
    fn read(service: &AgentCfg, cursor: Cursor) -> impl Future<Output = Result<Option<Logged<Self>>, Error>> + Send {
        async move {
            let key = records::audit_entry(cursor.workspace(), cursor.revision()).encoded();
            let Some(head) = service.read(key).await? else {
                return Ok(None);
            };
            Ok(logged(service, cursor.epoch(), vec![head]).await?.pop())
        }
    }
}

/// The events of entries of one workspace that were read by their heads.
pub(super) async fn logged<E: EventForm>(
    service: &AgentCfg,
    epoch: Epoch,
    heads: Vec<Encoded<StoredEntryHead>>,
) -> Result<Vec<Logged<E>>, Error> {
    let mut events = Vec::with_capacity(heads.len());
    let mut unknown = Vec::new();
    let mut rest = Vec::new();
    for head in heads {
        let cursor = head.key().cursor(epoch)?;
        let (length, fingerprint) = (head.unpacked_bytes(), E::fingerprint(service, &head));
        let known = E::known(service, cursor, fingerprint);
        if known.is_none() {
            unknown.push((events.len(), cursor, length, fingerprint));
            rest.push(head);
        }
        events.push(known.map(|event| Logged::new(cursor, length, event)));
    }
    let rest: Vec<Encoded<StoredEntry>> = service.unpacked_as(rest).await?;
    let is_long = rest.iter().map(Encoded::bytes).sum::<usize>() >= LONG;
    let make = move || {
        let made = unknown.into_iter().zip(rest);
        let made = made.map(|(unknown, entry)| Ok((unknown, E::of(unknown.1, &entry)?)));
        made.collect::<Result<Vec<_>, Error>>()
    };
    for ((place, cursor, length, fingerprint), event) in blocking_if(is_long, make).await?? {
        event.keep(service, cursor, fingerprint);
        events[place] = Some(Logged::new(cursor, length, event));
    }
    Ok(events.into_iter().flatten().collect())
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
            released: None,
        })
    }
}
