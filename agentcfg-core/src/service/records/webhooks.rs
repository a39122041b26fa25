//! The records of webhooks.

use serde::{Deserialize, Serialize};

use super::entity::{Entity, EntityKey, NumberKey};
use super::read::Entries;
use crate::model::{
    Cursor, DisabledReason, Epoch, EventTypes, Timestamp, Webhook, WebhookDelivery, WebhookId, WorkspaceId,
};
use crate::store::{Key, Kind, Partition};
use crate::vault::Sealed;
use crate::webhook::EventHead;

/// A webhook as it is stored: the part that its managers choose. The progress of its deliveries is in [`WebhookState`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::service) struct StoredWebhook {
    pub(in crate::service) id: WebhookId,
    pub(in crate::service) workspace_id: WorkspaceId,
    pub(in crate::service) url: String,
    pub(in crate::service) types: EventTypes,
    pub(in crate::service) description: Option<String>,
    pub(in crate::service) ordered: bool,
    pub(in crate::service) enabled: bool,
    pub(in crate::service) disabled_reason: Option<DisabledReason>,
    pub(in crate::service) created_at: Timestamp,
    pub(in crate::service) updated_at: Timestamp,
    /// The secrets, newest first. Older ones also sign until they expire.
    pub(in crate::service) secrets: Vec<StoredSecret>,
}

/// A secret of a webhook.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::service) struct StoredSecret {
    pub(in crate::service) sealed: Sealed,
    /// When the secret stops signing; `None` for the newest.
    pub(in crate::service) expires_at: Option<Timestamp>,
}

impl Entity for StoredWebhook {
    const KIND: Kind = Kind::Webhook;
}

pub(in crate::service) fn webhook(workspace: WorkspaceId, id: WebhookId) -> EntityKey<StoredWebhook> {
    EntityKey::in_workspace(workspace, id.to_string())
}

/// The number of webhooks in a workspace.
pub(in crate::service) fn webhooks_count(workspace: WorkspaceId) -> NumberKey {
    NumberKey::of(Key::in_workspace(workspace, Kind::Counter, "webhooks"))
}

/// The part of a webhook that the audit log shows. A patch that leaves it as it is changes nothing.
#[derive(PartialEq, Serialize)]
pub(in crate::service) struct AuditedWebhook<'a> {
    id: WebhookId,
    workspace_id: WorkspaceId,
    url: &'a str,
    types: &'a EventTypes,
    description: Option<&'a str>,
    ordered: bool,
    enabled: bool,
    disabled_reason: Option<DisabledReason>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl StoredWebhook {
    /// The webhook as the API lists it: without its secrets, and with its position.
    pub(in crate::service) fn listed(self, epoch: Epoch, state: &WebhookState) -> Webhook {
        Webhook {
            id: self.id,
            workspace_id: self.workspace_id,
            url: self.url,
            types: self.types,
            description: self.description,
            ordered: self.ordered,
            enabled: self.enabled,
            disabled_reason: self.disabled_reason,
            cursor: Cursor::new(epoch, self.workspace_id, state.confirmed()),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }

    /// The webhook as the audit log shows it: without its secrets, sealed or not.
    pub(in crate::service) fn audited(&self) -> AuditedWebhook<'_> {
        // Each field is named, so that a new one is either shown or left out on purpose.
        let Self {
            id,
            workspace_id,
            url,
            types,
            description,
            ordered,
            enabled,
            disabled_reason,
            created_at,
            updated_at,
            secrets: _,
        } = self;
        AuditedWebhook {
            id: *id,
            workspace_id: *workspace_id,
            url,
            types,
            description: description.as_deref(),
            ordered: *ordered,
            enabled: *enabled,
            disabled_reason: *disabled_reason,
            created_at: *created_at,
            updated_at: *updated_at,
        }
    }
}

/// The progress of a webhook's deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::service) struct WebhookState {
    /// The revision of the webhook's creation.
    pub(in crate::service) created: u64,
    /// The last revision that was read. Each event up to it was delivered or given up, or is pending.
    pub(in crate::service) position: u64,
    /// The last revision up to `position` whose event is of the webhook's types.
    pub(in crate::service) previous: Previous,
    /// The events up to `position` that are neither delivered nor given up.
    pub(in crate::service) pending: Vec<Pending>,
    /// Since when every attempt has failed.
    pub(in crate::service) failing_since: Option<Timestamp>,
    /// Whether the receiver took long for its last answer.
    pub(in crate::service) is_slow: bool,
    /// How many attempts were recorded.
    pub(in crate::service) recorded: u64,
    /// The lease of the process that sends now.
    pub(in crate::service) lease: Option<Box<str>>,
}

/// The last event before a position that the webhook gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::service) enum Previous {
    /// Unknown, because the position or the types were changed: it must be searched.
    Unknown,
    /// No such event since the creation of the webhook.
    None,
    /// The event of this revision.
    Revision(u64),
}

impl Previous {
    pub(in crate::service) fn revision(self) -> Option<u64> {
        match self {
            Self::Revision(revision) => Some(revision),
            Self::Unknown | Self::None => None,
        }
    }
}

/// An event that is neither delivered nor given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::service) struct Pending {
    pub(in crate::service) revision: u64,
    /// The `previous_revision` of its message.
    pub(in crate::service) previous: Option<u64>,
    /// The number of failed attempts.
    pub(in crate::service) attempts: u32,
    /// When the next attempt is due.
    pub(in crate::service) next_at: Timestamp,
}

impl Entity for WebhookState {
    const KIND: Kind = Kind::WebhookState;
}

pub(in crate::service) fn webhook_state(workspace: WorkspaceId, id: WebhookId) -> EntityKey<WebhookState> {
    EntityKey::in_workspace(workspace, id.to_string())
}

/// The key of the state that belongs to a webhook.
pub(in crate::service) fn state_of_webhook(
    workspace: WorkspaceId,
    webhook: &EntityKey<StoredWebhook>,
) -> EntityKey<WebhookState> {
    EntityKey::in_workspace(workspace, webhook.item())
}

impl WebhookState {
    /// The revision up to which every event was delivered or given up.
    pub(in crate::service) fn confirmed(&self) -> u64 {
        let first = self.pending.iter().map(|pending| pending.revision - 1).min();
        first.unwrap_or(self.position).min(self.position)
    }

    /// Whether the receiver fails, or took long for its last answer.
    pub(in crate::service) fn is_late(&self) -> bool {
        self.failing_since.is_some() || self.is_slow
    }

    /// When the first pending event is due.
    pub(in crate::service) fn next_at(&self) -> Option<Timestamp> {
        self.pending.iter().map(|pending| pending.next_at).min()
    }
}

/// Links a webhook to its workspace, and says whether there is anything to send. All of these are in one partition, so
/// that a sender finds them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::service) struct WebhookPlace {
    pub(in crate::service) workspace_id: WorkspaceId,
    pub(in crate::service) enabled: bool,
}

impl Entity for WebhookPlace {
    const KIND: Kind = Kind::WebhookPlace;
}

const PLACES: &str = "webhooks";

pub(in crate::service) fn webhook_place(id: WebhookId) -> EntityKey<WebhookPlace> {
    EntityKey::global(PLACES, id.to_string())
}

/// The links of all webhooks.
pub(in crate::service) fn webhook_places() -> Entries<WebhookPlace> {
    Entries::of(Partition::Global(PLACES.into()))
}

impl EntityKey<WebhookPlace> {
    /// The webhook, from the key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when it names none.
    pub(in crate::service) fn webhook(&self) -> Result<WebhookId, crate::Error> {
        self.item().parse().map_err(|error| self.unreadable(error))
    }
}

impl Entity for WebhookDelivery {
    const KIND: Kind = Kind::WebhookDelivery;
}

/// The key of an attempt to deliver an event, by its number.
pub(in crate::service) fn webhook_attempt(
    workspace: WorkspaceId,
    webhook: WebhookId,
    number: u64,
) -> EntityKey<WebhookDelivery> {
    EntityKey::in_workspace(workspace, format!("{webhook}/a{number:020}"))
}

/// The key of a test delivery, by a UUID that grows with time. Tests have no numbers, because they run beside the
/// sender.
pub(in crate::service) fn webhook_test(
    workspace: WorkspaceId,
    webhook: WebhookId,
    test: uuid::Uuid,
) -> EntityKey<WebhookDelivery> {
    EntityKey::in_workspace(workspace, format!("{webhook}/t{test}"))
}

/// The deliveries of a webhook: its tests, the last one first, and then its attempts in the same order. Records of
/// other webhooks follow; [`EntityKey::is_test_of`] and [`EntityKey::is_attempt_of`] tell them apart.
pub(in crate::service) fn webhook_deliveries(workspace: WorkspaceId, webhook: WebhookId) -> Entries<WebhookDelivery> {
    let behind = EntityKey::in_workspace(workspace, format!("{webhook}/u"));
    Entries::in_workspace(workspace).after(&behind).descending()
}

impl EntityKey<WebhookDelivery> {
    /// Whether the key is that of an attempt to deliver an event to this webhook.
    pub(in crate::service) fn is_attempt_of(&self, webhook: WebhookId) -> bool {
        self.item().starts_with(&format!("{webhook}/a"))
    }

    /// Whether the key is that of a test of this webhook.
    pub(in crate::service) fn is_test_of(&self, webhook: WebhookId) -> bool {
        self.item().starts_with(&format!("{webhook}/t"))
    }
}

impl Entity for EventHead {
    const KIND: Kind = Kind::LogEntry;
}
