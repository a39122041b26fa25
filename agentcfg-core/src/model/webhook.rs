//! Webhooks: where events of a workspace are sent to.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::word_enum::word_enum;
use super::{Cursor, EventTypes, Timestamp, WebhookId, WorkspaceId};
use crate::body::{body, from_text, record, serde_as_text};
use crate::rules;
use crate::validate::MAX_WEBHOOK_DESCRIPTION;

/// The greatest number of webhooks in a workspace.
///
/// ```
/// assert_eq!(agentcfg_core::model::MAX_WEBHOOKS, 20);
/// ```
pub const MAX_WEBHOOKS: u64 = 20;

word_enum! {
    /// Why this service disabled a webhook.
    DisabledReason {
        /// The receiver answered 410.
        Gone = "gone",
        /// No delivery succeeded for five days.
        Failing = "failing",
    } or Unknown
}

record! {
    /// A webhook without its secret.
    ///
    /// ```
    /// use agentcfg_core::model::{DisabledReason, Webhook};
    /// fn state(webhook: &Webhook) -> &str {
    ///     match webhook.disabled_reason {
    ///         Some(DisabledReason::Gone) => "the receiver is gone",
    ///         Some(_) => "the receiver fails",
    ///         None if webhook.enabled => "enabled",
    ///         None => "disabled by hand",
    ///     }
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    Webhook {
        /// Identifier of the webhook.
        id: required WebhookId,
        /// The workspace whose events it gets.
        workspace_id: required WorkspaceId,
        /// Where the events are sent to.
        url: required String as rules::HookUrl,
        /// Which events it gets.
        types: required EventTypes as rules::EventTypes,
        /// Note for people.
        description: nullable String as rules::Text<MAX_WEBHOOK_DESCRIPTION>,
        /// Whether each event waits until the one before it was delivered or given up.
        ordered: required bool,
        /// Whether events are sent.
        enabled: required bool,
        /// Why this service disabled the webhook; null while it is enabled, and when it was disabled by hand.
        disabled_reason: nullable DisabledReason,
        /// Position in the log up to which every event was delivered or given up.
        cursor: required Cursor,
        /// Creation time.
        created_at: required Timestamp,
        /// Time of the last change.
        updated_at: required Timestamp,
    }
    examples: [{
        "id": "0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4",
        "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
        "url": "https://hooks.example.com/agentcfg",
        "types": ["agent.*", "agents.*", "label.*"],
        "description": "Deploys prompts",
        "ordered": false,
        "enabled": true,
        "disabled_reason": null,
        "cursor": "k3j9x0ab-0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05-c118",
        "created_at": "2026-11-20T09:30:00.123Z",
        "updated_at": "2026-11-20T09:30:00.123Z",
    }],
}

body! {
    /// A webhook to create.
    ///
    /// ```
    /// use agentcfg_core::model::NewWebhook;
    /// let workspace = "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05".parse()?;
    /// NewWebhook::new(workspace, "https://hooks.example.com/agentcfg").validate()?;
    /// let invalid = NewWebhook::new(workspace, "hooks.example.com").validate().unwrap_err();
    /// assert_eq!(invalid.to_string(), "url must be an absolute https URL");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    create NewWebhook {
        /// The workspace whose events it gets.
        workspace_id: required WorkspaceId,
        /// Where the events are sent to, by `https` and port 443 unless the deployment makes an exception for the host.
        url: required String as rules::HookUrl,
        /// Which events it gets. Types other than `agent.*`, `agents.*` and `label.*` need `audit_log:read`.
        types: defaulted EventTypes as rules::EventTypes,
        /// Note for people.
        description: nullable String as rules::Text<MAX_WEBHOOK_DESCRIPTION>,
        /// Whether each event waits until the one before it was delivered or given up.
        ordered: defaulted bool,
    }
    read_only: &["id", "enabled", "disabled_reason", "cursor", "secret", "created_at", "updated_at"],
    examples: [
        {
            "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
            "url": "https://hooks.example.com/agentcfg",
        },
        {
            "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
            "url": "https://hooks.example.com/agentcfg",
            "types": ["agent.updated", "member.*"],
            "description": "Deploys prompts",
            "ordered": true,
        },
    ],
}

impl NewWebhook {
    /// A webhook for the events of agents, unordered.
    ///
    /// ```
    /// use agentcfg_core::model::NewWebhook;
    /// let workspace = "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05".parse()?;
    /// let new = NewWebhook::new(workspace, "https://hooks.example.com/").ordered(true);
    /// # Ok::<(), agentcfg_core::model::InvalidId>(())
    /// ```
    pub fn new(workspace_id: WorkspaceId, url: impl Into<String>) -> Self {
        Self {
            workspace_id,
            url: url.into(),
            types: EventTypes::default(),
            description: None,
            ordered: false,
        }
    }
}

body! {
    /// Changes to a webhook; absent fields stay.
    ///
    /// ```
    /// use agentcfg_core::model::WebhookPatch;
    /// let again = WebhookPatch::default().enabled(true);
    /// assert!(again.validate().is_ok());
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    change WebhookPatch {
        /// Where the events are sent to.
        url: required String as rules::HookUrl,
        /// Which events it gets.
        types: required EventTypes as rules::EventTypes,
        /// Note for people.
        description: nullable String as rules::Text<MAX_WEBHOOK_DESCRIPTION>,
        /// Whether each event waits until the one before it was delivered or given up.
        ordered: required bool,
        /// Whether events are sent. A webhook that is enabled again goes on from its cursor.
        enabled: required bool,
    }
    read_only: &["id", "workspace_id", "disabled_reason", "cursor", "secret", "created_at", "updated_at"],
    examples: [{ "enabled": true }, { "url": "https://hooks.example.com/v2", "description": null }],
}

/// Where a replay begins: after a cursor, or at the start of the log.
///
/// ```
/// use agentcfg_core::model::ReplayFrom;
/// assert_eq!("start".parse(), Ok(ReplayFrom::Start));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayFrom {
    /// The start of the log.
    Start,
    /// After this position.
    After(Cursor),
}

impl fmt::Display for ReplayFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("start"),
            Self::After(cursor) => cursor.fmt(f),
        }
    }
}

/// Why a text is no position to send events again from.
///
/// ```
/// use agentcfg_core::model::{InvalidReplayFrom, ReplayFrom};
/// assert_eq!("now".parse::<ReplayFrom>(), Err(InvalidReplayFrom));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a cursor that this service has given out, or start")]
pub struct InvalidReplayFrom;

from_text!(ReplayFrom);

impl FromStr for ReplayFrom {
    type Err = InvalidReplayFrom;

    fn from_str(text: &str) -> Result<Self, InvalidReplayFrom> {
        match text {
            "start" => Ok(Self::Start),
            cursor => cursor.parse().map(Self::After).map_err(|_| InvalidReplayFrom),
        }
    }
}

serde_as_text!(ReplayFrom);

body! {
    /// Moves the cursor of a webhook back, so that the events after it are sent again.
    ///
    /// ```
    /// use agentcfg_core::model::{ReplayFrom, WebhookReplay};
    /// let all = WebhookReplay::new(ReplayFrom::Start);
    /// assert!(all.validate().is_ok());
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    create WebhookReplay {
        /// A cursor, not later than the webhook's own, or `start`.
        after: required ReplayFrom,
    }
    read_only: &[],
    examples: [{ "after": "k3j9x0ab-0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05-c7" }, { "after": "start" }],
}

impl WebhookReplay {
    /// Sends the events after this place again.
    ///
    /// ```
    /// use agentcfg_core::model::{ReplayFrom, WebhookReplay};
    /// assert!(WebhookReplay::new(ReplayFrom::Start).validate().is_ok());
    /// ```
    pub fn new(after: ReplayFrom) -> Self {
        Self { after }
    }
}

record! {
    /// An attempt to deliver an event to a webhook.
    ///
    /// ```
    /// use agentcfg_core::model::WebhookDelivery;
    /// fn has_succeeded(attempt: &WebhookDelivery) -> bool {
    ///     attempt.status.is_some_and(|status| (200..300).contains(&status))
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    WebhookDelivery {
        /// The `webhook-id` that was sent, the same for each attempt at an event.
        id: required String,
        /// Type of the event.
        kind "type": required String,
        /// The event's revision; null for the event of a test.
        revision: nullable u64,
        /// Number of the attempt, from 1.
        attempt: required u32,
        /// When the attempt began.
        at: required Timestamp,
        /// Status code of the answer; null without one.
        status: nullable u16,
        /// Why the attempt failed; null when it did not.
        error: nullable String,
        /// How long the attempt took, in milliseconds.
        duration_ms: required u64,
        /// The first KiB of the answer's body; null without an answer.
        response: nullable String,
        /// When the next attempt follows; null when none does.
        next_attempt_at: nullable Timestamp,
    }
    examples: [{
        "id": "0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4.k3j9x0ab.118",
        "type": "agent.updated",
        "revision": 118,
        "attempt": 1,
        "at": "2026-11-20T10:05:41.391Z",
        "status": 503,
        "error": "the status of the answer is not 2xx",
        "duration_ms": 212,
        "response": "try later",
        "next_attempt_at": "2026-11-20T10:05:46.603Z",
    }],
}

/// A webhook with its secret, which only the creation and the rotation of the secret show.
///
/// ```
/// use agentcfg_core::model::WebhookWithSecret;
/// fn keep(created: &WebhookWithSecret) -> (String, &str) {
///     (created.webhook.id.to_string(), &created.secret)
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WebhookWithSecret {
    /// The webhook.
    #[serde(flatten)]
    pub webhook: Webhook,
    /// The secret that signs its deliveries, for a verifier of Standard Webhooks: `whsec_` and base64.
    pub secret: String,
}

/// Leaves the secret out.
impl fmt::Debug for WebhookWithSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookWithSecret")
            .field("webhook", &self.webhook)
            .field("secret", &"[redacted]")
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_actions_or_families() {
        let new = |types: &[&str]| NewWebhook {
            types: EventTypes::new(types.iter().map(|name| (*name).to_owned()).collect()),
            ..NewWebhook::new(WorkspaceId::new(uuid::Uuid::nil()), "https://example.com/")
        };
        assert!(new(&["agent.created", "label.*", "some_thing.*"]).validate().is_ok());
        for bad in [
            "*",
            ".*",
            "agent",
            "agent.",
            "agent.unknown",
            "Agent.*",
            "agent.*.*",
            "",
            "a-b.*",
            "webhook.test",
        ] {
            let message = new(&["agent.*", bad]).validate().unwrap_err().to_string();
            assert!(
                message.starts_with("types[1] must be an action of the audit log"),
                "{bad}: {message}"
            );
        }
        let message = new(&[]).validate().unwrap_err().to_string();
        assert_eq!(message, "types must have 1 to 100 types, got 0");
        assert!(new(&["agent.*"; 101]).validate().is_err());
    }

    #[test]
    fn a_body_reports_every_fault() {
        let json = br#"{"workspace_id":"x","url":"http://a b","types":[1],"ordered":1,"enabled":true,"more":1}"#;
        let message = NewWebhook::from_json(json).unwrap_err().to_string();
        for fault in [
            "workspace_id must be a UUID",
            "url must have only characters",
            "types[0] must be a string",
            "ordered must be true or false",
            "enabled is read-only",
            "more is not a known field",
        ] {
            assert!(message.contains(fault), "{fault}: {message}");
        }
        let replay = WebhookReplay::from_json(br#"{"after":7}"#).unwrap_err().to_string();
        assert_eq!(replay, "after must be a string, got a number");
    }
}
