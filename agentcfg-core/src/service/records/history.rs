//! The records of the history of agents: versions, touches and labels.
//!
//! Versions and touches of an agent are numbered 1, 2, 3, … without gaps, and the agent's record has the last number of
//! each. So their keys are known without a scan, and a search by revision or by time is a binary search. Old versions
//! may have been [removed](super::super::retention).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::entity::{Entity, EntityKey};
use crate::error::Error;
use crate::model::{Actor, AgentConfig, AgentId, AgentLabel, Label, Message, Timestamp, WorkspaceId};
use crate::store::{Key, Kind, StoreError};

/// Separates an agent's identifier from the rest of a key. It sorts before each character of an identifier, so the
/// records of agents are in the order of the identifiers.
const SEPARATOR: char = ' ';

pub(super) fn item(agent_id: &str, number: u64) -> String {
    format!("{agent_id}{SEPARATOR}{number:020}")
}

/// The identifier of the agent and the number of its version that a key names.
pub(super) fn version_of(key: &Key) -> Option<(&str, u64)> {
    let (agent_id, number) = key.item().rsplit_once(SEPARATOR)?;
    Some((agent_id, number.parse().ok()?))
}

/// How many versions are a group: the first one is whole, and [`packed`](super::packed) ones need those before them in
/// the group.
pub(in crate::service) const VERSION_GROUP: u64 = 8;

/// The group of a version.
pub(in crate::service) fn version_group(number: u64) -> RangeInclusive<u64> {
    let first = number.saturating_sub(1) / VERSION_GROUP * VERSION_GROUP + 1;
    first..=first + VERSION_GROUP - 1
}

/// The error of a version, a touch or an entry that the history should have.
pub(in crate::service) fn missing() -> Error {
    StoreError::Corrupt("a part of the history of an agent is missing".into()).into()
}

/// The content of a version, in a type that reads it.
pub(in crate::service) trait Content: DeserializeOwned + 'static {
    /// Whether it needs the long texts of versions that are [`packed`](super::packed).
    const IS_UNPACKED: bool;
}

impl Content for AgentConfig {
    const IS_UNPACKED: bool = true;
}

impl Content for IgnoredAny {
    const IS_UNPACKED: bool = false;
}

/// A version of an agent. Readers that need no content take [`VersionHead`], which skips it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::service) struct StoredVersion<C = AgentConfig> {
    /// The workspace's revision at which the version was made. The store writes it.
    #[serde(skip_serializing)]
    pub(in crate::service) revision: u64,
    pub(in crate::service) version: u64,
    pub(in crate::service) created_at: Timestamp,
    pub(in crate::service) actor: Actor,
    pub(in crate::service) message: Option<Message>,
    pub(in crate::service) restored_from: Option<u64>,
    /// The content. It is copied from the text of the agent's record.
    #[serde(skip_serializing)]
    pub(in crate::service) config: C,
}

/// A version of an agent without its content.
pub(in crate::service) type VersionHead = StoredVersion<IgnoredAny>;

impl<C: Content> Entity for StoredVersion<C> {
    const KIND: Kind = Kind::AgentVersion;
    const IS_UNPACKED: bool = C::IS_UNPACKED;
}

/// A change of an agent's record that made no version: an update that changed no content, a deactivation or a
/// restoration.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(in crate::service) struct StoredTouch {
    /// The workspace's revision at which the change was made. The store writes it.
    #[serde(skip_serializing)]
    pub(in crate::service) revision: u64,
    pub(in crate::service) created_at: Timestamp,
    /// Whether the agent is active from then on.
    pub(in crate::service) is_active: bool,
}

impl Entity for StoredTouch {
    const KIND: Kind = Kind::AgentTouch;
}

pub(in crate::service) fn version<C: Content>(
    workspace: WorkspaceId,
    agent_id: &str,
    number: u64,
) -> EntityKey<StoredVersion<C>> {
    EntityKey::in_workspace(workspace, item(agent_id, number))
}

impl<C: Content> EntityKey<StoredVersion<C>> {
    /// The identifier of the agent that the key names.
    pub(in crate::service) fn agent_id(&self) -> &str {
        let item = self.item();
        item.split_once(SEPARATOR).map_or(item, |(agent_id, _)| agent_id)
    }

    /// The number of the version, where it is one of this agent.
    pub(in crate::service) fn number_of(&self, agent_id: &str) -> Option<u64> {
        let (of, number) = version_of(self.raw())?;
        (of == agent_id).then_some(number)
    }
}

pub(in crate::service) fn touch(workspace: WorkspaceId, agent_id: &str, number: u64) -> EntityKey<StoredTouch> {
    EntityKey::in_workspace(workspace, item(agent_id, number))
}

/// A label of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::service) struct StoredLabel {
    pub(in crate::service) version: u64,
    pub(in crate::service) updated_at: Timestamp,
    pub(in crate::service) actor: Actor,
}

impl StoredLabel {
    /// The label as the API shows it.
    pub(in crate::service) fn shown(self, agent_id: &AgentId, label: &Label) -> AgentLabel {
        AgentLabel {
            agent_id: agent_id.clone(),
            label: label.clone(),
            version: self.version,
            updated_at: self.updated_at,
            actor: self.actor,
        }
    }
}

/// All labels of an agent. They are one record, so that the check of its version guards a label and their number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::service) struct StoredLabels {
    pub(in crate::service) labels: BTreeMap<Label, StoredLabel>,
}

impl Entity for StoredLabels {
    const KIND: Kind = Kind::AgentLabels;
}

impl StoredLabels {
    /// The labels that point at a version, in their order.
    pub(in crate::service) fn of_version(&self, version: u64) -> Vec<Label> {
        let labels = self.labels.iter().filter(|(_, label)| label.version == version);
        labels.map(|(name, _)| name.clone()).collect()
    }
}

pub(in crate::service) fn labels(workspace: WorkspaceId, agent_id: &str) -> EntityKey<StoredLabels> {
    EntityKey::in_workspace(workspace, agent_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_agents_and_then_of_numbers() {
        let keys = [
            item("a", 1),
            item("a", 2),
            item("a", 10),
            item("a-b", 1),
            item("a_b", 1),
            item("ab", 1),
        ];
        assert!(keys.is_sorted());
    }
}
