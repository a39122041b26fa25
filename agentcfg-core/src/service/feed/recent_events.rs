//! The JSON texts of recent events, which the readers of a process share.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::RandomState;
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::event_form::{EventForm, Logged};
use super::releasing::{MAX_RELEASED_BYTES, Releasing};
use crate::error::Error;
use crate::model::{Action, Actor, ChangeEvent, Cursor, Label, Message, Target, Timestamp, WorkspaceId, event_family};
use crate::service::AgentCfg;
use crate::service::blocking::{LONG, blocking_if};
use crate::service::key_limits::KeyLimits;
use crate::service::records::{self, Encoded, StoredEntry, StoredEntryHead};
use crate::service::weighted_cache::weighted_cache;

/// The total length of the kept texts, in bytes.
const KEPT_BYTES: u64 = 32 << 20;

/// About how many texts are kept.
const KEPT: usize = 1024;

/// A [`ChangeEvent`] as JSON text. Readers of one workspace in one process share it: an event is decoded and encoded
/// once, however many streams it is sent on.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// let mut watch = service.watch(&ada, studio, After::Start).await?;
/// for event in watch.read().await?.changes {
///     println!("{} {}: {}", event.cursor(), event.kind(), event.json());
///     let decoded: ChangeEvent = event.decode()?;
///     assert_eq!(decoded.created_at, event.created_at());
/// }
/// # Ok(()) }) }
/// ```
#[derive(Clone)]
pub struct SerializedEvent {
    cursor: Cursor,
    kind: Action,
    created_at: Timestamp,
    json: Arc<str>,
    /// The same with what the moved label releases, which the readers that follow the label share.
    releasing: Releasing,
}

impl SerializedEvent {
    /// The position after this event.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let mut watch = service.watch(&ada, studio, After::Start).await?;
    /// let changes = watch.read().await?.changes;
    /// assert_eq!(changes.last().map(|event| event.cursor()), Some(watch.cursor()));
    /// # Ok(()) }) }
    /// ```
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// What was done.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let changes = service.watch(&ada, studio, After::Start).await?.read().await?.changes;
    /// assert_eq!(changes[0].kind(), Action::WorkspaceCreated);
    /// # Ok(()) }) }
    /// ```
    pub fn kind(&self) -> Action {
        self.kind
    }

    /// When it happened.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let changes = service.watch(&ada, studio, After::Start).await?.read().await?.changes;
    /// assert!(changes[0].created_at() <= changes[1].created_at());
    /// # Ok(()) }) }
    /// ```
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// The JSON text of the [`ChangeEvent`], without line breaks.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let changes = service.watch(&ada, studio, After::Start).await?.read().await?.changes;
    /// assert!(changes[1].json().contains(r#""type":"agent.created""#));
    /// # Ok(()) }) }
    /// ```
    pub fn json(&self) -> &Arc<str> {
        &self.json
    }

    /// The event.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when the text is no event of this release.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let changes = service.watch(&ada, studio, After::Start).await?.read().await?.changes;
    /// assert_eq!(changes[1].decode()?.target.id, "writer");
    /// # Ok(()) }) }
    /// ```
    pub fn decode(&self) -> Result<ChangeEvent, Error> {
        serde_json::from_str(&self.json).map_err(records::not_read)
    }

    /// Makes the text of an entry. Its changes are copied as they are stored.
    fn of(cursor: Cursor, entry: &Encoded<StoredEntry>) -> Result<Self, Error> {
        let mut entry: EntryText<'_> = serde_json::from_str(entry.text()?).map_err(records::not_read)?;
        entry.changes.append(&mut entry.rebuilding);
        let text = EventText {
            cursor,
            revision: cursor.revision(),
            id: entry.id,
            kind: entry.action,
            created_at: entry.created_at,
            actor: entry.actor,
            target: entry.target,
            message: entry.message,
            version: entry.version,
            changes: entry.changes,
        };
        Ok(Self {
            cursor,
            kind: text.kind,
            created_at: text.created_at,
            json: serde_json::to_string(&text).map_err(records::not_written)?.into(),
            releasing: Releasing::default(),
        })
    }

    /// The event as a reader that follows a label sees it.
    pub(super) async fn following(self, service: &AgentCfg, label: &Label) -> Result<Self, Error> {
        let json = self.releasing.text(service, (self.kind, &self.json), label).await?;
        Ok(match json {
            Some(json) => Self { json, ..self },
            None => self,
        })
    }
}

impl fmt::Debug for SerializedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SerializedEvent")
            .field("cursor", &self.cursor)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// The changes of an entry, of which only the names are read.
type ChangeTexts<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// The fields of a [`StoredEntry`], not decoded further than the text needs.
#[derive(Deserialize)]
struct EntryText<'a> {
    id: Uuid,
    actor: Actor,
    action: Action,
    target: Target,
    created_at: Timestamp,
    #[serde(borrow)]
    changes: ChangeTexts<'a>,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    version: Option<u64>,
    #[serde(borrow, default)]
    rebuilding: ChangeTexts<'a>,
}

/// A [`ChangeEvent`] as it is written.
#[derive(Serialize)]
struct EventText<'a> {
    cursor: Cursor,
    revision: u64,
    id: Uuid,
    #[serde(rename = "type")]
    kind: Action,
    created_at: Timestamp,
    actor: Actor,
    target: Target,
    message: Option<Message>,
    version: Option<u64>,
    changes: ChangeTexts<'a>,
}

/// The texts of the last events that were read, by workspace and revision.
pub(in crate::service) struct RecentEvents {
    texts: Cache<(WorkspaceId, u64), EventJson, ByLength>,
    hasher: RandomState,
}

/// The text of an entry, with the fingerprint of the entry.
#[derive(Clone)]
struct EventJson {
    event: SerializedEvent,
    /// The fingerprint of the entry's record. After a failover to an older replica another entry can have the same
    /// revision.
    fingerprint: u64,
}

#[derive(Clone)]
struct ByLength;

impl Weighter<(WorkspaceId, u64), EventJson> for ByLength {
    fn weight(&self, _: &(WorkspaceId, u64), text: &EventJson) -> u64 {
        let releasing = match event_family::moves_labels(text.event.kind.as_str()) {
            true => MAX_RELEASED_BYTES,
            false => 0,
        };
        (size_of::<EventJson>() + text.event.json.len() + releasing) as u64
    }
}

impl Default for RecentEvents {
    fn default() -> Self {
        Self {
            texts: weighted_cache(KEPT, KEPT_BYTES, ByLength),
            hasher: RandomState::new(),
        }
    }
}

impl EventForm for SerializedEvent {
    fn action(&self) -> Action {
        self.kind
    }

    fn of(cursor: Cursor, entry: &Encoded<StoredEntry>) -> Result<Self, Error> {
        Self::of(cursor, entry)
    }

    fn fingerprint(service: &AgentCfg, head: &Encoded<StoredEntryHead>) -> u64 {
        head.fingerprint(&service.inner.recent.hasher)
    }

    fn known(service: &AgentCfg, cursor: Cursor, fingerprint: u64) -> Option<Self> {
        let known = service
            .inner
            .recent
            .texts
            .get(&(cursor.workspace(), cursor.revision()))?;
        (known.fingerprint == fingerprint).then_some(known.event)
    }

    fn keep(&self, service: &AgentCfg, cursor: Cursor, fingerprint: u64) {
        let made = EventJson {
            event: self.clone(),
            fingerprint,
        };
        let key = (cursor.workspace(), cursor.revision());
        service.inner.recent.texts.insert(key, made);
    }

    fn limited_to(self, limits: &KeyLimits) -> Result<Option<Self>, Error> {
        let whole = self.decode()?;
        let changes = whole.changes.len();
        let Some(limited) = whole.limited_to(limits)? else {
            return Ok(None);
        };
        Ok(Some(match limited.changes.len() == changes {
            true => self,
            false => Self {
                json: serde_json::to_string(&limited).map_err(records::not_written)?.into(),
                releasing: Releasing::default(),
                ..self
            },
        }))
    }

    /// One reader reads and encodes for all concurrent ones.
    async fn read(service: &AgentCfg, cursor: Cursor) -> Result<Option<Logged<Self>>, Error> {
        let key = (cursor.workspace(), cursor.revision());
        let recent = &service.inner.recent;
        let made = recent.texts.get_or_insert_async(&key, async {
            let head = records::audit_entry::<StoredEntryHead>(key.0, key.1).encoded();
            let head = service.read(head).await.map_err(Some)?.ok_or(None)?;
            let fingerprint = Self::fingerprint(service, &head);
            let entries = service.unpacked_as(vec![head]).await.map_err(Some)?;
            let entry: Encoded<StoredEntry> = entries.into_iter().next().ok_or(None)?;
            let event = blocking_if(entry.bytes() >= LONG, move || Self::of(cursor, &entry)).await;
            let event = event.and_then(|event| event).map_err(Some)?;
            Ok(EventJson { event, fingerprint })
        });
        match made.await {
            Ok(EventJson { event, .. }) => Ok(Some(Logged::new(cursor, event.json.len(), event))),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::event_form::logged;
    use super::*;
    use crate::model::After;
    use crate::store::{Batch, Key, MemoryStore, Write};

    #[tokio::test]
    async fn a_text_is_that_of_the_event() {
        let service = AgentCfg::builder(MemoryStore::new()).build();
        let ada = service.trusted_user("ada").unwrap();
        let new = crate::model::NewWorkspace {
            name: "Studio \n \"ä\"".into(),
        };
        let workspace = service.create_workspace(&ada, new).await.unwrap().id;
        let agent = crate::model::NewAgent {
            persona_prompt: Some("first\nsecond \u{2028} \\".into()),
            parameters: serde_json::from_str(r#"{"temperature": 1.5e-7, "top_k": 18446744073709551615}"#).unwrap(),
            ..crate::model::NewAgent::new(workspace, "writer".parse().unwrap(), "Writer")
        };
        service.create_agent(&ada, agent).await.unwrap();
        let events = service.changes(&ada, workspace, After::Start, 10).await.unwrap().events;
        let mut watch = service.watch(&ada, workspace, After::Start).await.unwrap();
        let texts = watch.read().await.unwrap().changes;
        assert_eq!(texts.len(), 2);
        for (text, event) in texts.iter().zip(events) {
            assert_eq!(**text.json(), serde_json::to_string(&event).unwrap());
            assert_eq!(text.decode().unwrap(), event);
            assert_eq!(
                (text.cursor(), text.kind(), text.created_at()),
                (event.cursor, event.kind, event.created_at)
            );
        }
    }

    #[tokio::test]
    async fn readers_that_follow_share_one_text() {
        let service = AgentCfg::builder(MemoryStore::new()).build();
        let ada = service.trusted_user("ada").unwrap();
        let new = crate::model::NewWorkspace { name: "Studio".into() };
        let workspace = service.create_workspace(&ada, new).await.unwrap().id;
        let mut watches = Vec::new();
        for _ in 0..3 {
            watches.push(service.watch(&ada, workspace, After::Now).await.unwrap());
        }
        let agent = crate::model::NewAgent::new(workspace, "writer".parse().unwrap(), "Writer");
        service.create_agent(&ada, agent).await.unwrap();
        let mut texts = Vec::new();
        for watch in &mut watches {
            texts.extend(watch.read().await.unwrap().changes);
        }
        assert_eq!(texts.len(), 3);
        assert!(texts.iter().all(|text| Arc::ptr_eq(text.json(), texts[0].json())));
        // So do those that read on from further back.
        let mut late = service.watch(&ada, workspace, After::Start).await.unwrap();
        let read = late.read().await.unwrap().changes;
        assert!(Arc::ptr_eq(read[1].json(), texts[0].json()));
    }

    #[tokio::test]
    async fn another_entry_of_the_same_revision_has_a_text_of_its_own() {
        let service = AgentCfg::builder(MemoryStore::new()).build();
        let ada = service.trusted_user("ada").unwrap();
        let new = crate::model::NewWorkspace { name: "Studio".into() };
        let workspace = service.create_workspace(&ada, new).await.unwrap().id;
        let cursor = Cursor::new(service.epoch().await.unwrap(), workspace, 1);
        let text = || async {
            let key = records::audit_entry::<StoredEntryHead>(workspace, 1);
            let head = service.read(key.encoded()).await.unwrap().unwrap();
            let text = head.text().unwrap().to_owned();
            let events: Vec<Logged<SerializedEvent>> = logged(&service, cursor.epoch(), vec![head]).await.unwrap();
            (text, events.into_iter().next().unwrap().event)
        };
        let (first_text, first) = text().await;
        let other = first_text.replace("Studio", "Other");
        let batch = Batch {
            checks: Vec::new(),
            writes: vec![Write::Put(Key::log_entry(workspace, 1), other.into_bytes())],
        };
        service.store().commit(batch).await.unwrap();
        let (_, second) = text().await;
        assert!(first.json().contains("Studio") && second.json().contains("Other"));
    }
}
