//! Mutations: one commit each, with the audit entry inside.

use serde::Serialize;
use uuid::Uuid;

use super::access::Access;
use super::agent_change::AgentChange;
use super::changes_of_agents::ChangesOfAgents;
use super::moment::OneMoment;
use super::records::{self, Entity, EntityKey, NumberKey, Outcome, PackedPaths, Stored, Transaction, Turn};
use super::serialized_record::SerializedRecord;
use super::{AgentCfg, diff};
use crate::error::Error;
use crate::model::{Action, Actor, AgentId, Changes, Message, Target, TargetType, Timestamp, WorkspaceId};
use crate::store::Check;
use crate::webhook::AppliedRow;

/// A mutation in preparation: its checks, its writes and its audit entry.
pub(super) struct Change<'a> {
    pub(super) access: &'a Access,
    pub(super) at: Timestamp,
    action: Action,
    target: Target,
    /// Which fields changed, as JSON.
    changes: Vec<u8>,
    /// Which identifiers and times of an agent changed, as JSON, for the change feed.
    rebuilding: Option<Vec<u8>>,
    /// The version of an agent that the change made or is about.
    version: Option<u64>,
    /// The agents that an apply changed, for webhooks.
    applied: Vec<AppliedRow>,
    /// Which of the changes leave their values to versions.
    packed: PackedPaths,
    /// The agents that the change leaves deactivated, without a live status.
    deactivated: Vec<AgentId>,
    transaction: Transaction,
}

/// An [`AuditEntry`](crate::model::AuditEntry) without its changes.
#[derive(Serialize)]
struct EntryHead<'a> {
    id: Uuid,
    workspace_id: WorkspaceId,
    actor: Actor,
    action: Action,
    target: Target,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    applied: Vec<AppliedRow>,
}

impl<'a> Change<'a> {
    pub(super) fn new(
        access: &'a Access,
        at: Timestamp,
        action: Action,
        kind: TargetType,
        id: impl Into<String>,
    ) -> Self {
        let target = Target { kind, id: id.into() };
        Self {
            access,
            at,
            action,
            target,
            changes: b"{}".to_vec(),
            rebuilding: None,
            version: None,
            applied: Vec::new(),
            packed: PackedPaths::default(),
            deactivated: Vec::new(),
            transaction: access.transaction(),
        }
    }

    /// Adds a condition of the commit.
    pub(super) fn check(mut self, check: Check) -> Self {
        self.transaction = self.transaction.check(check);
        self
    }

    /// Takes the state that the change is decided on. The commit is refused once that has changed.
    pub(super) fn decided_on<T>(mut self, moment: OneMoment<T>) -> (Self, T) {
        let (state, checks) = moment.into_parts();
        self.transaction = self.transaction.check_all(checks);
        (self, state)
    }

    /// Writes a further record, besides the subject of the change.
    pub(super) fn put<T: Entity + Serialize>(mut self, key: EntityKey<T>, value: &T) -> Result<Self, Error> {
        self.transaction = self.transaction.put(key, value)?;
        Ok(self)
    }

    /// Applies a function to the transaction, by which another part of the service adds its own checks and writes.
    pub(super) fn extended(
        mut self,
        extend: impl FnOnce(Transaction) -> Result<Transaction, Error>,
    ) -> Result<Self, Error> {
        self.transaction = extend(self.transaction)?;
        Ok(self)
    }

    /// Removes a record, if there is one.
    pub(super) fn delete<T: Entity>(mut self, key: EntityKey<T>) -> Self {
        self.transaction = self.transaction.delete(key);
        self
    }

    /// Adds to a counter, within `max` when `delta` is positive, and never below zero.
    pub(super) fn add(mut self, counter: NumberKey, delta: i64, max: Option<u64>) -> Self {
        self.transaction = self.transaction.add(counter, delta, max);
        self
    }

    /// Creates the subject of the change, under the check that it does not exist. The audit entry lists all of its
    /// fields.
    pub(super) fn create<T: Entity + Serialize>(self, key: EntityKey<T>, value: &T) -> Result<Self, Error> {
        let check = key.absent();
        self.check(check).write(key, None, value)
    }

    /// Replaces the subject of the change, under the check that its version is the one that was read. The audit entry
    /// lists the fields that differ.
    pub(super) fn replace<T: Entity + Serialize>(self, found: Stored<T>, value: &T) -> Result<Self, Error> {
        let check = found.unchanged();
        let before = SerializedRecord::of(&found.value)?;
        self.check(check).write(found.key, Some(&before), value)
    }

    /// Makes an agent the subject of the change. The audit entry lists the fields that differ.
    pub(super) fn agent(mut self, decided: &AgentChange) -> Result<Self, Error> {
        let written = decided.write(self.access, self.transaction)?;
        self.transaction = written.transaction;
        self.changes = match written.version {
            Some(version) => self.packed.without_values(written.changes, version)?,
            None => written.changes,
        };
        self.rebuilding = Some(written.rebuilding);
        self.deactivated.extend(decided.deactivated());
        Ok(self.about_version(decided.after().version()))
    }

    /// Names the version of an agent that the change made or is about, for the change feed.
    pub(super) fn about_version(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }

    /// Adds the change of one agent of several to the transaction, and its changed fields to those of the others, which
    /// [`Self::audit_of_agents`] takes. Returns them.
    pub(super) fn one_agent(
        mut self,
        decided: &AgentChange,
        of_agents: &mut ChangesOfAgents,
    ) -> Result<(Self, Vec<u8>), Error> {
        let mut written = decided.write(self.access, std::mem::take(&mut self.transaction))?;
        self.transaction = std::mem::take(&mut written.transaction);
        of_agents.add(&decided.after().agent.agent_id, &written)?;
        self.deactivated.extend(decided.deactivated());
        Ok((self, written.changes))
    }

    /// Names the agents that an apply changed.
    pub(super) fn about_applied(mut self, applied: Vec<AppliedRow>) -> Self {
        self.applied = applied;
        self
    }

    /// Lists the changes of several agents in the audit entry.
    pub(super) fn audit_of_agents(mut self, changed: ChangesOfAgents) -> Self {
        let (changes, rebuilding, packed) = changed.into_texts();
        (self.changes, self.rebuilding, self.packed) = (changes, Some(rebuilding), packed);
        self
    }

    /// Calls [`Self::replace`] if a record was found, else [`Self::create`].
    pub(super) fn save<T: Entity + Serialize>(
        self,
        key: EntityKey<T>,
        found: Option<Stored<T>>,
        value: &T,
    ) -> Result<Self, Error> {
        match found {
            Some(found) => self.replace(found, value),
            None => self.create(key, value),
        }
    }

    /// Removes the subject of the change, under the check that its version is the one that was read. The audit entry
    /// lists its fields.
    pub(super) fn remove<T: Entity + Serialize>(self, found: Stored<T>) -> Result<Self, Error> {
        let change = self.audit_diff(Some(&found.value), None)?.check(found.unchanged());
        Ok(change.delete(found.key))
    }

    /// Lists these changes in the audit entry, each a name with the values before and after.
    pub(super) fn audit_changes(mut self, changes: &Changes) -> Result<Self, Error> {
        self.changes = serde_json::to_vec(changes).map_err(records::not_written)?;
        Ok(self)
    }

    fn write<T: Entity + Serialize>(
        mut self,
        key: EntityKey<T>,
        before: Option<&SerializedRecord>,
        value: &T,
    ) -> Result<Self, Error> {
        let after = SerializedRecord::of(value)?;
        self.changes = diff::changes(before, Some(&after))?;
        self.transaction = self.transaction.put_subject(key, after.into_text());
        Ok(self)
    }

    /// Lists the fields in which two states differ in the audit entry.
    pub(super) fn audit_diff<T: Serialize>(mut self, from: Option<&T>, to: Option<&T>) -> Result<Self, Error> {
        let (from, to) = (
            from.map(SerializedRecord::of).transpose()?,
            to.map(SerializedRecord::of).transpose()?,
        );
        self.changes = diff::changes(from.as_ref(), to.as_ref())?;
        Ok(self)
    }
}

/// An audit entry as it is stored.
fn entry(head: &EntryHead<'_>, rebuilding: Option<&[u8]>, changes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut text = Vec::with_capacity(512 + changes.len());
    serde_json::to_writer(&mut text, head).map_err(records::not_written)?;
    // The changes are JSON already, and become its last fields.
    text.pop();
    if let Some(rebuilding) = rebuilding {
        text.extend_from_slice(b",\"rebuilding\":");
        text.extend_from_slice(rebuilding);
    }
    for part in [b",\"changes\":", changes, b"}"] {
        text.extend_from_slice(part);
    }
    Ok(text)
}

impl AgentCfg {
    /// Commits a mutation together with its audit entry.
    pub(super) async fn apply(&self, change: Change<'_>) -> Result<Outcome, Error> {
        self.apply_in_turn(change, &Turn::default()).await
    }

    /// As [`Self::apply`], before those who wait for this turn.
    pub(super) async fn apply_in_turn(&self, change: Change<'_>, turn: &Turn) -> Result<Outcome, Error> {
        let workspace_id = change.access.workspace();
        let head = EntryHead {
            id: self.new_id(change.at)?,
            workspace_id,
            actor: change.access.actor(),
            action: change.action,
            target: change.target,
            created_at: change.at,
            message: change.access.message().cloned(),
            request_id: change.access.request_id(),
            version: change.version,
            applied: change.applied,
        };
        let entry = change
            .packed
            .written(entry(&head, change.rebuilding.as_deref(), &change.changes)?)?;
        let transaction = change.transaction.append(workspace_id, entry);
        let outcome = self.commit_in_turn(transaction, turn).await?;
        if let Outcome::Done(_) = outcome {
            self.note_removed_reports(workspace_id, &change.deactivated, change.at);
        }
        Ok(outcome)
    }
}
