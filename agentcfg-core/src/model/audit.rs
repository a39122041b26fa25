//! The audit log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::word_enum::word_enum;
use super::{Message, Timestamp, WorkspaceId};
use crate::body::record;
use crate::model::into_field::settable;
use crate::rules;

word_enum! {
    /// What kind of caller acted: an API key, a signed-in user, or an operator of the deployment.
    ActorType {
        /// An API key; the identifier is the key's.
        ApiKey = "api_key",
        /// A signed-in user; the identifier is the user's.
        User = "user",
        /// An operator of the deployment; the identifier is the user's.
        Operator = "operator",
        /// This service itself; the identifier is that of the part, such as `webhooks`.
        System = "system",
    } or Unknown
}

record! {
    /// Who acted.
    ///
    /// ```
    /// use agentcfg_core::model::{Actor, ActorType};
    /// let ada: Actor = serde_json::from_str(r#"{"type":"user","id":"ada"}"#)?;
    /// assert_eq!((ada.kind, &*ada.id), (ActorType::User, "ada"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    Actor {
        /// What kind of caller acted.
        kind "type": required ActorType,
        /// Identifier of the key or of the user.
        id: required String,
    }
    examples: [{ "type": "user", "id": "user_71" }],
}

impl Actor {
    /// The actor of a call with this API key.
    pub(crate) fn api_key(id: &str) -> Self {
        Self::of(ActorType::ApiKey, id)
    }

    /// The actor of a call by this user.
    pub(crate) fn user(id: &str) -> Self {
        Self::of(ActorType::User, id)
    }

    /// This user, who acts as an operator of the deployment.
    pub(crate) fn operator(id: &str) -> Self {
        Self::of(ActorType::Operator, id)
    }

    /// A part of this service, such as `webhooks`.
    pub(crate) fn system(part: &str) -> Self {
        Self::of(ActorType::System, part)
    }

    fn of(kind: ActorType, id: &str) -> Self {
        Self {
            kind,
            id: id.to_owned(),
        }
    }
}

word_enum! {
    /// What was done.
    Action {
        /// A workspace was created.
        WorkspaceCreated = "workspace.created",
        /// A workspace was renamed or changed its plan.
        WorkspaceUpdated = "workspace.updated",
        /// An owner took a copy of a workspace.
        WorkspaceExported = "workspace.exported",
        /// A member was added or got another role.
        MemberSet = "member.set",
        /// A member was removed.
        MemberRemoved = "member.removed",
        /// An API key was created.
        ApiKeyCreated = "api_key.created",
        /// An API key was revoked.
        ApiKeyRevoked = "api_key.revoked",
        /// An API key was replaced by a new one.
        ApiKeyRotated = "api_key.rotated",
        /// An agent was created.
        AgentCreated = "agent.created",
        /// An agent was changed.
        AgentUpdated = "agent.updated",
        /// An agent was deleted; its record is kept.
        AgentDeactivated = "agent.deactivated",
        /// A deleted agent is active again.
        AgentRestored = "agent.restored",
        /// An agent got the content of an earlier version again.
        AgentRolledBack = "agent.rolled_back",
        /// A label was made or moved.
        LabelSet = "label.set",
        /// A label was removed.
        LabelRemoved = "label.removed",
        /// A label of several agents was moved to where another one points.
        LabelPromoted = "label.promoted",
        /// A label of all agents went back to where it pointed at a revision.
        LabelRestored = "label.restored",
        /// Agents were created, changed, restored and deleted together.
        AgentsApplied = "agents.applied",
        /// A provider key was saved.
        ProviderKeySaved = "provider_key.saved",
        /// A provider key was deleted.
        ProviderKeyDeleted = "provider_key.deleted",
        /// A webhook was created.
        WebhookCreated = "webhook.created",
        /// A webhook was changed, or enabled or disabled by hand.
        WebhookUpdated = "webhook.updated",
        /// A webhook was deleted.
        WebhookDeleted = "webhook.deleted",
        /// A webhook was disabled by this service, because its receiver is gone or keeps failing.
        WebhookDisabled = "webhook.disabled",
        /// A webhook got a new secret.
        WebhookSecretRotated = "webhook.secret_rotated",
        /// The cursor of a webhook was moved back.
        WebhookReplayed = "webhook.replayed",
        /// A budget was made, or its limit or action was changed.
        BudgetSet = "budget.set",
        /// A budget was removed.
        BudgetRemoved = "budget.removed",
        /// What ended servers had taken of a budget was set to what the usage says.
        BudgetSettled = "budget.settled",
        /// 50, 80 or 100 % of a budget are spent.
        BudgetThresholdReached = "budget.threshold_reached",
    } or Unknown
}

word_enum! {
    /// What kind of thing was acted on.
    TargetType {
        /// A workspace, by its identifier.
        Workspace = "workspace",
        /// A member, by the user's identifier.
        Member = "member",
        /// An API key, by its identifier.
        ApiKey = "api_key",
        /// An agent, by its identifier in the workspace.
        Agent = "agent",
        /// A provider key, by the provider.
        ProviderKey = "provider_key",
        /// A webhook, by its identifier.
        Webhook = "webhook",
        /// A budget, by its identifier.
        Budget = "budget",
    } or Unknown
}

record! {
    /// What was acted on.
    ///
    /// ```
    /// use agentcfg_core::model::{Target, TargetType};
    /// let writer: Target = serde_json::from_str(r#"{"type":"agent","id":"writer"}"#)?;
    /// assert_eq!((writer.kind, &*writer.id), (TargetType::Agent, "writer"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    Target {
        /// What kind of thing was acted on.
        kind "type": required TargetType,
        /// Its identifier: a workspace's UUID, a user's or a key's identifier, or an agent's `agent_id`.
        id: required String,
    }
    examples: [{ "type": "agent", "id": "release-writer" }],
}

record! {
    /// One field before and after. Either side may be any JSON value.
    ///
    /// ```
    /// use agentcfg_core::model::Change;
    /// let change: Change = serde_json::from_str(r#"{"from":null,"to":"gpt-5.5"}"#)?;
    /// assert!(change.from.is_null());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    Change {
        /// Value before; null when there was none.
        from: required Value,
        /// Value after; null when there is none.
        to: required Value,
    }
    examples: [{ "from": "gpt-5.5", "to": "claude-sonnet-5-5" }],
}

/// The changed fields by name.
///
/// ```
/// use agentcfg_core::model::Changes;
/// let changes: Changes = serde_json::from_str(r#"{"model":{"from":null,"to":"gpt-5.5"}}"#)?;
/// assert_eq!(changes["model"].to, "gpt-5.5");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub type Changes = BTreeMap<String, Change>;

record! {
    /// The record of one change.
    ///
    /// ```
    /// use agentcfg_core::model::AuditEntry;
    /// fn line(entry: &AuditEntry) -> String {
    ///     format!("{} {} {} {}", entry.created_at, entry.actor.id, entry.action, entry.target.id)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    AuditEntry {
        /// Identifier of the entry.
        id: required Uuid as rules::RecordId,
        /// The workspace in which it happened.
        workspace_id: required WorkspaceId,
        /// Who acted.
        actor: required Actor,
        /// What was done.
        action: required Action,
        /// What was acted on.
        target: required Target,
        /// When it happened.
        created_at: required Timestamp,
        /// The fields that changed, by name. Credentials are never among them.
        changes: required Changes as rules::ChangesByPath,
        /// The number of the entry in its workspace, which is the workspace's revision after the change.
        revision: required u64,
        /// Why, as the request gave it.
        message: nullable Message,
        /// The `X-Request-Id` of the request; none for what this service has done by itself.
        request_id: nullable String,
    }
    examples: [{
        "id": "0192f0a4-10bc-7044-b1d7-9e2c4a6f8b10",
        "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
        "actor": { "type": "user", "id": "user_71" },
        "action": "agent.updated",
        "target": { "type": "agent", "id": "release-writer" },
        "created_at": "2026-11-20T10:05:41.007Z",
        "changes": { "model": { "from": "gpt-5.5", "to": "claude-sonnet-5-5" } },
        "revision": 118,
        "message": "Cheaper model for drafts",
        "request_id": "0192f0a4-10bb-7a08-8e17-52c0d94be3aa",
    }],
}

/// An entry of an audit log without the values: what changed, and not from what to what.
///
/// ```
/// use agentcfg_core::model::AuditSummary;
/// fn line(entry: &AuditSummary) -> String {
///     let paths: Vec<_> = entry.changes.keys().map(String::as_str).collect();
///     format!("{} {}: {}", entry.action, entry.target.id, paths.join(", "))
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditSummary {
    /// Identifier of the entry.
    pub id: Uuid,
    /// The workspace in which it happened.
    pub workspace_id: WorkspaceId,
    /// Who acted.
    pub actor: Actor,
    /// What was done.
    pub action: Action,
    /// What was acted on.
    pub target: Target,
    /// When it happened.
    pub created_at: Timestamp,
    /// The paths of the fields that changed, at most [`Self::MAX_PATHS`].
    pub changes: BTreeMap<String, ()>,
    /// How many fields changed, where `changes` has not all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<usize>,
    /// The number of the entry in its workspace, which is the workspace's revision after the change.
    pub revision: u64,
    /// Why, as the request gave it.
    pub message: Option<Message>,
    /// The `X-Request-Id` of the request; none for what this service has done by itself.
    pub request_id: Option<String>,
}

impl AuditSummary {
    /// The greatest number of paths in a summary.
    pub const MAX_PATHS: usize = 100;
}

impl From<AuditEntry> for AuditSummary {
    fn from(entry: AuditEntry) -> Self {
        let paths = entry.changes.len();
        let changes = entry.changes.into_keys().take(Self::MAX_PATHS);
        Self {
            id: entry.id,
            workspace_id: entry.workspace_id,
            actor: entry.actor,
            action: entry.action,
            target: entry.target,
            created_at: entry.created_at,
            changes: changes.map(|path| (path, ())).collect(),
            paths: (paths > Self::MAX_PATHS).then_some(paths),
            revision: entry.revision,
            message: entry.message,
            request_id: entry.request_id,
        }
    }
}

settable! {
    /// Which entries of an audit log to list, newest first. The default lists the last 100.
    ///
    /// ```
    /// use agentcfg_core::model::AuditFilter;
    /// let changes_of_agents = AuditFilter::default().action("agent.*");
    /// let next_page = changes_of_agents.before(118);
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    AuditFilter {
        /// Only entries of the actor with this identifier.
        actor: Option<String>,
        /// Only entries of this action, or of a family of actions such as `agent.*`. An unknown one selects nothing.
        action: Option<String>,
        /// Only entries whose target is of this type. An unknown one selects nothing.
        target_type: Option<String>,
        /// Only entries whose target has this identifier.
        target_id: Option<String>,
        /// Only entries from this moment on.
        since: Option<Timestamp>,
        /// Only entries before this moment.
        until: Option<Timestamp>,
        /// Only entries with a smaller revision.
        before: Option<u64>,
        /// How many of these entries to skip.
        offset: u64,
        /// The greatest number of entries, 1–1000; `None` for 100.
        limit: Option<u32>,
    }
}
