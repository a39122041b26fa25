//! The audit log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::named::named;
use super::{Timestamp, WorkspaceId};

named! {
    /// What kind of caller did something.
    ActorType {
        /// An API key; the identifier is the key's.
        ApiKey = "api_key",
        /// A signed-in user; the identifier is the user's.
        User = "user",
        /// An operator of the deployment; the identifier is the user's.
        Operator = "operator",
    }
}

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// What kind of caller.
    #[serde(rename = "type")]
    pub kind: ActorType,
    /// Which one.
    pub id: String,
}

named! {
    /// What was done.
    Action {
        /// A workspace was created.
        WorkspaceCreated = "workspace.created",
        /// A workspace was renamed or changed its plan.
        WorkspaceUpdated = "workspace.updated",
        /// A member was added or got another role.
        MemberSet = "member.set",
        /// A member was removed.
        MemberRemoved = "member.removed",
        /// An API key was created.
        ApiKeyCreated = "api_key.created",
        /// An API key was revoked.
        ApiKeyRevoked = "api_key.revoked",
        /// An agent was created.
        AgentCreated = "agent.created",
        /// An agent was changed.
        AgentUpdated = "agent.updated",
        /// An agent was deleted; its record is kept.
        AgentDeactivated = "agent.deactivated",
        /// A deleted agent is active again.
        AgentRestored = "agent.restored",
        /// A provider key was saved.
        ProviderKeySaved = "provider_key.saved",
        /// A provider key was deleted.
        ProviderKeyDeleted = "provider_key.deleted",
    }
}

named! {
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
    }
}

/// What was acted on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// What kind of thing.
    #[serde(rename = "type")]
    pub kind: TargetType,
    /// Which one.
    pub id: String,
}

/// A field's value before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Before; `null` when there was none.
    pub from: Value,
    /// After; `null` when there is none.
    pub to: Value,
}

/// The changed fields by name.
pub type Changes = BTreeMap<String, Change>;

/// One entry of a workspace's audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The entry's identifier.
    pub id: Uuid,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// Who.
    pub actor: Actor,
    /// What was done.
    pub action: Action,
    /// To what.
    pub target: Target,
    /// When.
    pub created_at: Timestamp,
    /// Which fields changed; secrets never appear.
    pub changes: Changes,
}
