//! Every kind of record that the service keeps: its type, its [`Kind`] and its keys.
//!
//! A new kind is a type, a line that names its [`Kind`], and a function for each key that callers name.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::entity::{Entity, EntityKey, NamedByWorkspace, NumberKey};
use crate::error::Error;
use crate::model::{
    Action, Actor, AgentHistory, AgentId, AgentSet, ApiKey, ApiKeyId, AuditEntry, Changes, Cursor, Definition,
    Environment, Epoch, Label, LiveStatus, Member, Message, Permission, Plan, Provider, ProviderKeyInfo, Scope,
    SetName, StoredAgent, Target, Timestamp, Workspace, WorkspaceId,
};
use crate::store::{ACTIVE_AGENTS, Key, Kind, Partition};
use crate::vault::{KeyId, Sealed};

impl Entity for Workspace {
    const KIND: Kind = Kind::Workspace;
}

pub(in crate::service) fn workspace(id: WorkspaceId) -> EntityKey<Workspace> {
    EntityKey::in_workspace(id, "")
}

/// The part of a workspace's record that decides its limits. Every creation of an agent reads it.
#[derive(Deserialize)]
pub(in crate::service) struct WorkspacePlan {
    pub(in crate::service) plan: Plan,
}

impl Entity for WorkspacePlan {
    const KIND: Kind = Kind::Workspace;
}

pub(in crate::service) fn workspace_plan(id: WorkspaceId) -> EntityKey<WorkspacePlan> {
    EntityKey::in_workspace(id, "")
}

/// The number of active agents.
pub(in crate::service) fn active_agents(workspace: WorkspaceId) -> NumberKey {
    NumberKey::of(Key::in_workspace(workspace, Kind::Counter, ACTIVE_AGENTS))
}

/// The number of owners beyond the first. A counter cannot fall below zero, so the last owner stays.
pub(in crate::service) fn further_owners(workspace: WorkspaceId) -> NumberKey {
    NumberKey::of(Key::in_workspace(workspace, Kind::Counter, "further_owners"))
}

/// The number of the last entry in a workspace's log, which is the workspace's revision.
pub(in crate::service) fn revision(workspace: WorkspaceId) -> NumberKey {
    NumberKey::of(Key::log_head(workspace))
}

/// The part of an audit entry that decides whether a filter selects it.
#[derive(Deserialize)]
pub(in crate::service) struct StoredEntryHead {
    pub(in crate::service) actor: Actor,
    /// The action as a word, so that a filter can find one that this release does not know.
    pub(in crate::service) action: String,
    pub(in crate::service) target: StoredTarget,
    pub(in crate::service) created_at: Timestamp,
}

/// The target of an audit entry as it is stored.
#[derive(Deserialize)]
pub(in crate::service) struct StoredTarget {
    #[serde(rename = "type")]
    pub(in crate::service) kind: String,
    pub(in crate::service) id: String,
}

impl Entity for StoredEntryHead {
    const KIND: Kind = Kind::LogEntry;
}

/// An entry of a workspace's log as it is stored: its number is in its key.
#[derive(Deserialize)]
pub(in crate::service) struct StoredEntry {
    pub(in crate::service) id: Uuid,
    pub(in crate::service) workspace_id: WorkspaceId,
    pub(in crate::service) actor: Actor,
    pub(in crate::service) action: Action,
    pub(in crate::service) target: Target,
    pub(in crate::service) created_at: Timestamp,
    pub(in crate::service) changes: Changes,
    pub(in crate::service) message: Option<Message>,
    pub(in crate::service) request_id: Option<String>,
    /// The version of the agent that the change made or is about, if the entry names it. Only the change feed shows it.
    pub(in crate::service) version: Option<u64>,
    /// The identifier and the times of an agent, where they changed. Only the change feed shows them.
    #[serde(default)]
    pub(in crate::service) rebuilding: Changes,
}

impl Entity for StoredEntry {
    const KIND: Kind = Kind::LogEntry;
    const IS_UNPACKED: bool = true;
}

impl StoredEntry {
    /// The entry as the audit log shows it.
    pub(in crate::service) fn shown(self, revision: u64) -> AuditEntry {
        AuditEntry {
            id: self.id,
            workspace_id: self.workspace_id,
            actor: self.actor,
            action: self.action,
            target: self.target,
            created_at: self.created_at,
            changes: self.changes,
            revision,
            message: self.message,
            request_id: self.request_id,
        }
    }
}

/// An entry of a workspace's log, by its number.
pub(in crate::service) fn audit_entry<T: Entity>(workspace: WorkspaceId, number: u64) -> EntityKey<T> {
    const { assert!(matches!(T::KIND, Kind::LogEntry)) };
    EntityKey::of(Key::log_entry(workspace, number))
}

impl<T: Entity> EntityKey<T> {
    /// The number of the log entry, from its key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when it names none.
    pub(in crate::service) fn entry_number(&self) -> Result<u64, Error> {
        self.item().parse().map_err(|error| self.unreadable(error))
    }

    /// The position after the log entry, from its key.
    ///
    /// # Errors
    ///
    /// As [`Self::entry_number`].
    pub(in crate::service) fn cursor(&self, epoch: Epoch) -> Result<Cursor, Error> {
        let number = self.entry_number()?;
        let workspace = self
            .raw()
            .workspace()
            .ok_or_else(|| self.unreadable("it names no workspace"))?;
        Ok(Cursor::new(epoch, workspace, number))
    }
}

impl Entity for Member {
    const KIND: Kind = Kind::Member;
}

pub(in crate::service) fn member(workspace: WorkspaceId, user_id: &str) -> EntityKey<Member> {
    EntityKey::in_workspace(workspace, user_id)
}

/// A user's membership in a workspace, in the user's own partition.
#[derive(Serialize, Deserialize)]
pub(in crate::service) struct Membership {}

impl Entity for Membership {
    const KIND: Kind = Kind::Membership;
}

impl NamedByWorkspace for Membership {}

pub(in crate::service) fn membership(user_id: &str, workspace: WorkspaceId) -> EntityKey<Membership> {
    EntityKey::new(memberships(user_id), workspace.to_string())
}

/// The partition of a user's memberships.
pub(in crate::service) fn memberships(user_id: &str) -> Partition {
    Partition::Global(user_id.into())
}

impl Entity for StoredAgent {
    const KIND: Kind = Kind::Agent;
}

pub(in crate::service) fn agent(workspace: WorkspaceId, agent_id: &str) -> EntityKey<StoredAgent> {
    EntityKey::in_workspace(workspace, agent_id)
}

/// The part of a [`StoredAgent`] that a model call needs.
#[derive(Deserialize)]
pub(in crate::service) struct CalledAgent {
    pub(in crate::service) is_active: bool,
    pub(in crate::service) display_name: String,
    pub(in crate::service) model: Option<String>,
    pub(in crate::service) persona_prompt: Option<String>,
    pub(in crate::service) definition: Option<Definition>,
    pub(in crate::service) history: AgentHistory,
}

impl Entity for CalledAgent {
    const KIND: Kind = Kind::Agent;
}

pub(in crate::service) fn called_agent(workspace: WorkspaceId, agent_id: &str) -> EntityKey<CalledAgent> {
    EntityKey::in_workspace(workspace, agent_id)
}

/// The fields of a [`StoredAgent`] that say whether an agent is active and order it in lists.
#[derive(Deserialize)]
pub(in crate::service) struct AgentSummary {
    pub(in crate::service) id: Uuid,
    pub(in crate::service) created_at: Timestamp,
    pub(in crate::service) is_active: bool,
    pub(in crate::service) history: AgentHistory,
}

impl Entity for AgentSummary {
    const KIND: Kind = Kind::Agent;
}

pub(in crate::service) fn agent_place(workspace: WorkspaceId, agent_id: &str) -> EntityKey<AgentSummary> {
    EntityKey::in_workspace(workspace, agent_id)
}

/// An API key as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::service) struct StoredApiKey {
    pub(in crate::service) id: ApiKeyId,
    pub(in crate::service) workspace_id: WorkspaceId,
    pub(in crate::service) name: String,
    pub(in crate::service) environment: Environment,
    pub(in crate::service) scope: Scope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) permissions: Option<Vec<Permission>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) agents: Option<Vec<AgentId>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) label: Option<Label>,
    pub(in crate::service) rate_limit: u32,
    pub(in crate::service) expires_at: Option<Timestamp>,
    pub(in crate::service) created_at: Timestamp,
    pub(in crate::service) revoked_at: Option<Timestamp>,
    /// The key that replaced it, if it was rotated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) replaced_by: Option<ApiKeyId>,
    /// An argon2id PHC string of the whole plaintext.
    pub(in crate::service) hash: String,
}

impl Entity for StoredApiKey {
    const KIND: Kind = Kind::ApiKey;
}

pub(in crate::service) fn api_key(key_id: &str) -> EntityKey<StoredApiKey> {
    EntityKey::global(key_id, "")
}

impl StoredApiKey {
    /// The key as the API lists it: without the hash.
    pub(in crate::service) fn listed(self, last_used_at: Option<Timestamp>) -> ApiKey {
        ApiKey {
            id: self.id,
            workspace_id: self.workspace_id,
            name: self.name,
            environment: self.environment,
            scope: self.scope,
            permissions: self.permissions,
            agents: self.agents,
            label: self.label,
            rate_limit: self.rate_limit,
            expires_at: self.expires_at,
            created_at: self.created_at,
            last_used_at,
            revoked_at: self.revoked_at,
        }
    }

    /// Whether the key is valid at this time: neither revoked nor expired.
    pub(in crate::service) fn is_valid_at(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// Links an API key to its workspace.
#[derive(Serialize, Deserialize)]
pub(in crate::service) struct WorkspaceApiKey {}

impl Entity for WorkspaceApiKey {
    const KIND: Kind = Kind::WorkspaceApiKey;
}

pub(in crate::service) fn workspace_api_key(workspace: WorkspaceId, key_id: &str) -> EntityKey<WorkspaceApiKey> {
    EntityKey::in_workspace(workspace, key_id)
}

/// When an API key was last used.
#[derive(Serialize, Deserialize)]
pub(in crate::service) struct StoredUse {
    pub(in crate::service) last_used_at: Timestamp,
}

impl Entity for StoredUse {
    const KIND: Kind = Kind::KeyUse;
}

pub(in crate::service) fn key_use(key_id: &str) -> EntityKey<StoredUse> {
    EntityKey::global(key_id, "")
}

/// An agent's last report.
#[derive(Serialize, Deserialize)]
pub(in crate::service) struct StoredStatus {
    pub(in crate::service) status: LiveStatus,
    pub(in crate::service) current_task_id: Option<String>,
    pub(in crate::service) current_task_title: Option<String>,
    pub(in crate::service) reported_at: Timestamp,
}

impl Entity for StoredStatus {
    const KIND: Kind = Kind::Status;
}

pub(in crate::service) fn status(workspace: WorkspaceId, agent_id: &str) -> EntityKey<StoredStatus> {
    EntityKey::in_workspace(workspace, agent_id)
}

/// A provider key as it is stored.
#[derive(Serialize, Deserialize)]
pub(in crate::service) struct StoredProviderKey {
    pub(in crate::service) provider: Provider,
    pub(in crate::service) created_at: Timestamp,
    pub(in crate::service) updated_at: Timestamp,
    pub(in crate::service) sealed: Sealed,
    pub(in crate::service) fingerprint: String,
}

impl Entity for StoredProviderKey {
    const KIND: Kind = Kind::ProviderKey;
}

pub(in crate::service) fn provider_key(workspace: WorkspaceId, provider: Provider) -> EntityKey<StoredProviderKey> {
    EntityKey::in_workspace(workspace, provider.as_str())
}

impl StoredProviderKey {
    /// The provider key as the API lists it: without the key itself.
    pub(in crate::service) fn listed(&self) -> ProviderKeyInfo {
        ProviderKeyInfo {
            provider: self.provider,
            created_at: self.created_at,
            updated_at: self.updated_at,
            fingerprint: self.fingerprint.clone(),
        }
    }
}

/// Links a sealed provider key to its workspace. All of these are in one partition, so that a rotation of the master
/// key finds them.
#[derive(Serialize, Deserialize)]
pub(in crate::service) struct SealedKey {}

impl Entity for SealedKey {
    const KIND: Kind = Kind::SealedKey;
}

pub(in crate::service) fn sealed_key(workspace: WorkspaceId, provider: Provider) -> EntityKey<SealedKey> {
    EntityKey::new(sealed_keys(), format!("{workspace}/{provider}"))
}

/// The partition of the [`SealedKey`] records of all workspaces.
pub(in crate::service) fn sealed_keys() -> Partition {
    Partition::Global("provider-keys".into())
}

impl EntityKey<SealedKey> {
    /// The workspace and the provider, from the key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when it names none.
    pub(in crate::service) fn place(&self) -> Result<(WorkspaceId, Provider), Error> {
        let unreadable = || self.unreadable("it names no workspace and provider");
        let (workspace, provider) = self.item().split_once('/').ok_or_else(unreadable)?;
        Ok((
            workspace.parse().map_err(|_| unreadable())?,
            provider.parse().map_err(|_| unreadable())?,
        ))
    }
}

impl Entity for AgentSet {
    const KIND: Kind = Kind::Set;
}

pub(in crate::service) fn agent_set(workspace: WorkspaceId, set: &str) -> EntityKey<AgentSet> {
    EntityKey::in_workspace(workspace, set)
}

/// The set that an agent belongs to.
#[derive(Serialize, Deserialize)]
pub(in crate::service) struct SetMember {
    pub(in crate::service) set: SetName,
    /// The revision at which the agent has joined the set, which the store writes.
    #[serde(default, skip_serializing)]
    pub(in crate::service) revision: u64,
}

impl Entity for SetMember {
    const KIND: Kind = Kind::SetMember;
}

pub(in crate::service) fn set_member(workspace: WorkspaceId, agent_id: &str) -> EntityKey<SetMember> {
    EntityKey::in_workspace(workspace, agent_id)
}

/// A deleted workspace whose records are still being removed.
#[derive(Serialize, Deserialize)]
pub(in crate::service) struct StoredRemoval {
    /// The name that the workspace had.
    pub(in crate::service) name: String,
    pub(in crate::service) deleted_at: Timestamp,
}

impl Entity for StoredRemoval {
    const KIND: Kind = Kind::Removal;
}

impl NamedByWorkspace for StoredRemoval {}

pub(in crate::service) fn removal(workspace: WorkspaceId) -> EntityKey<StoredRemoval> {
    EntityKey::new(removals(), workspace.to_string())
}

/// The partition of the [`StoredRemoval`] records of all workspaces.
pub(in crate::service) fn removals() -> Partition {
    Partition::Global("removals".into())
}

/// The master keys that something in the store may be sealed under, each by its check value. New
/// provider keys are sealed under the first.
#[derive(Serialize, Deserialize)]
pub(in crate::service) struct StoredMasterKeys {
    pub(in crate::service) keys: Vec<Sealed>,
}

impl Entity for StoredMasterKeys {
    const KIND: Kind = Kind::Meta;
}

pub(in crate::service) fn master_keys() -> EntityKey<StoredMasterKeys> {
    EntityKey::global("store", "master_keys")
}

impl StoredMasterKeys {
    pub(in crate::service) fn sealing_key(&self) -> Option<KeyId> {
        self.keys.first().map(Sealed::key_id)
    }

    pub(in crate::service) fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.keys.iter().map(Sealed::key_id)
    }
}

/// The record of the store's epoch.
#[derive(Serialize, Deserialize)]
pub(in crate::service) struct StoredEpoch {
    pub(in crate::service) epoch: Epoch,
}

impl Entity for StoredEpoch {
    const KIND: Kind = Kind::Meta;
}

pub(in crate::service) fn epoch() -> EntityKey<StoredEpoch> {
    EntityKey::of(Key::epoch())
}
