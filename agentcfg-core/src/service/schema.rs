//! Which records the service keeps, under which keys, and how they are written.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};
use crate::model::{ApiKey, Environment, LiveStatus, Provider, ProviderKeyInfo, Scope, Timestamp, WorkspaceId};
use crate::store::{Key, Kind, Partition, Record};
use crate::vault::{KeyId, Sealed};

pub(super) fn workspace(id: WorkspaceId) -> Key {
    Key::in_workspace(id, Kind::Workspace, "")
}

/// The number of active agents.
pub(super) fn active_agents(workspace: WorkspaceId) -> Key {
    Key::in_workspace(workspace, Kind::Counter, "active_agents")
}

/// The number of owners beyond the first: it may not fall below zero, so the last owner stays.
pub(super) fn further_owners(workspace: WorkspaceId) -> Key {
    Key::in_workspace(workspace, Kind::Counter, "further_owners")
}

pub(super) fn member(workspace: WorkspaceId, user_id: &str) -> Key {
    Key::in_workspace(workspace, Kind::Member, user_id)
}

pub(super) fn agent(workspace: WorkspaceId, agent_id: &str) -> Key {
    Key::in_workspace(workspace, Kind::Agent, agent_id)
}

pub(super) fn status(workspace: WorkspaceId, agent_id: &str) -> Key {
    Key::in_workspace(workspace, Kind::Status, agent_id)
}

pub(super) fn provider_key(workspace: WorkspaceId, provider: Provider) -> Key {
    Key::in_workspace(workspace, Kind::ProviderKey, provider.as_str())
}

/// The partition that lists the sealed provider keys of all workspaces, so that they can be found when
/// the master key is replaced.
pub(super) fn sealed_keys() -> Partition {
    Partition::Global("provider-keys".into())
}

pub(super) fn sealed_key(workspace: WorkspaceId, provider: Provider) -> Key {
    Key::new(sealed_keys(), Kind::SealedKey, format!("{workspace}/{provider}"))
}

/// Which master keys the store was sealed with.
pub(super) fn master_keys() -> Key {
    Key::global("store", Kind::Meta, "master_keys")
}

pub(super) fn workspace_api_key(workspace: WorkspaceId, key_id: &str) -> Key {
    Key::in_workspace(workspace, Kind::WorkspaceApiKey, key_id)
}

pub(super) fn api_key(key_id: &str) -> Key {
    Key::global(key_id, Kind::ApiKey, "")
}

pub(super) fn key_use(key_id: &str) -> Key {
    Key::global(key_id, Kind::KeyUse, "")
}

pub(super) fn memberships(user_id: &str) -> Partition {
    Partition::Global(user_id.into())
}

pub(super) fn membership(user_id: &str, workspace: WorkspaceId) -> Key {
    Key::new(memberships(user_id), Kind::Membership, workspace.to_string())
}

/// A record whose key says it all.
#[derive(Serialize, Deserialize)]
pub(super) struct Present {}

/// An API key as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredApiKey {
    pub(super) id: String,
    pub(super) workspace_id: WorkspaceId,
    pub(super) name: String,
    pub(super) environment: Environment,
    pub(super) scope: Scope,
    pub(super) rate_limit: u32,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) created_at: Timestamp,
    pub(super) revoked_at: Option<Timestamp>,
    /// An argon2id PHC string of the whole plaintext.
    pub(super) hash: String,
}

impl StoredApiKey {
    /// The record as it is listed: without the hash.
    pub(super) fn listed(self, last_used_at: Option<Timestamp>) -> ApiKey {
        ApiKey {
            id: self.id,
            workspace_id: self.workspace_id,
            name: self.name,
            environment: self.environment,
            scope: self.scope,
            rate_limit: self.rate_limit,
            expires_at: self.expires_at,
            created_at: self.created_at,
            last_used_at,
            revoked_at: self.revoked_at,
        }
    }

    /// Whether the key opens anything at this time.
    pub(super) fn is_good(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// When an API key was last used.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredUse {
    pub(super) last_used_at: Timestamp,
}

/// An agent's last report.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredStatus {
    pub(super) status: LiveStatus,
    pub(super) current_task_id: Option<String>,
    pub(super) current_task_title: Option<String>,
    pub(super) reported_at: Timestamp,
}

/// A provider key as it is stored.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredProviderKey {
    pub(super) provider: Provider,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) sealed: Sealed,
}

impl StoredProviderKey {
    /// The record as it is listed: without the key, sealed or not.
    pub(super) fn listed(&self) -> ProviderKeyInfo {
        ProviderKeyInfo {
            provider: self.provider,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// The master keys that something in the store may be sealed under, each by its check value. New
/// provider keys are sealed under the first.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredMasterKeys {
    pub(super) keys: Vec<Sealed>,
}

impl StoredMasterKeys {
    pub(super) fn sealing_key(&self) -> Option<KeyId> {
        self.keys.first().map(Sealed::key_id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.keys.iter().map(Sealed::key_id)
    }
}

/// Writes a record's value.
pub(super) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(not_written)
}

/// The error of a record that cannot be written.
pub(super) fn not_written(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Internal, "the record could not be written").because(error)
}

/// Reads a record's value.
pub(super) fn decode<T: DeserializeOwned>(key: &Key, record: &Record) -> Result<T, Error> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Internal, "stored data could not be read").because(format!("{key:?}: {error}"))
    };
    // From text, because the bytes would be checked string by string.
    let text = std::str::from_utf8(&record.value).map_err(|error| unreadable(&error))?;
    serde_json::from_str(text).map_err(|error| unreadable(&error))
}

/// Reads the number in a counter's or a log head's record; an absent one is 0.
pub(super) fn number(key: &Key, record: Option<&Record>) -> Result<u64, Error> {
    let Some(record) = record else { return Ok(0) };
    // A record of one of these kinds holds decimal digits, and this is read on every request.
    match std::str::from_utf8(&record.value).map(str::parse) {
        Ok(Ok(number)) => Ok(number),
        _ => decode(key, record),
    }
}
