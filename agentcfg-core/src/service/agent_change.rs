//! The change of one agent: its action, its checks and its writes, for a mutation of one agent and of many.

use super::access::Access;
use super::records::{self, Stored, Transaction};
use super::serialized_record::SerializedRecord;
use super::{diff, history};
use crate::error::Error;
use crate::model::{Action, Agent, AgentId, StoredAgent};
use crate::store::Check;

/// A decided change of one agent: the record that was found, and its replacement.
pub(super) struct AgentChange {
    found: Option<Stored<StoredAgent>>,
    after: StoredAgent,
    restored_from: Option<u64>,
    /// That another record which it was decided on has not changed.
    given: Option<Check>,
}

/// What the change of an agent writes.
pub(super) struct AgentWrites {
    /// The transaction with all checks and writes.
    pub(super) transaction: Transaction,
    /// The fields that differ, as they are in an audit entry.
    pub(super) changes: Vec<u8>,
    /// The identifiers and times that differ, for the change feed.
    pub(super) rebuilding: Vec<u8>,
    /// The version that the change makes.
    pub(super) version: Option<u64>,
}

impl AgentChange {
    /// A change of the agent that was found, or the creation of one.
    pub(super) fn new(found: Option<Stored<StoredAgent>>, after: Agent) -> Self {
        let after = match &found {
            Some(found) => found.value.followed_by(after),
            None => StoredAgent::new(after),
        };
        Self {
            found,
            after,
            restored_from: None,
            given: None,
        }
    }

    /// Notes that the change restores the content of this version.
    pub(super) fn restored_from(mut self, version: u64) -> Self {
        self.restored_from = Some(version);
        self
    }

    /// Notes a check of another record that the change was decided on.
    pub(super) fn given(mut self, check: Option<Check>) -> Self {
        self.given = check;
        self
    }

    /// The agent as the change leaves it.
    pub(super) fn after(&self) -> &StoredAgent {
        &self.after
    }

    /// The agent as the change leaves it.
    pub(super) fn into_after(self) -> StoredAgent {
        self.after
    }

    /// The action for the audit log.
    pub(super) fn action(&self) -> Action {
        match (self.found.is_some(), self.growth(), self.restored_from) {
            (false, ..) => Action::AgentCreated,
            (true, 1, _) => Action::AgentRestored,
            (true, -1, _) => Action::AgentDeactivated,
            (true, _, Some(_)) => Action::AgentRolledBack,
            (true, _, None) => Action::AgentUpdated,
        }
    }

    /// How many more agents are active after the change: 1, 0 or -1.
    pub(super) fn growth(&self) -> i64 {
        let before = self.found.as_ref().is_some_and(|found| found.value.agent.is_active);
        i64::from(self.after.agent.is_active) - i64::from(before)
    }

    /// The agent, if the change leaves it deactivated.
    pub(super) fn deactivated(&self) -> Option<AgentId> {
        let agent = &self.after.agent;
        (!agent.is_active).then(|| agent.agent_id.clone())
    }

    /// The version that the change makes, if it changes the content.
    fn made_version(&self) -> Option<u64> {
        let before = self.found.as_ref().map_or(0, |found| found.value.version());
        Some(self.after.version()).filter(|version| *version > before)
    }

    /// The fields that differ, as they are in an audit entry.
    pub(super) fn changes(&self) -> Result<Vec<u8>, Error> {
        let before = self.found.as_ref().map(|found| &found.value);
        diff::changes(
            before.map(SerializedRecord::of).transpose()?.as_ref(),
            Some(&SerializedRecord::of(&self.after)?),
        )
    }

    /// Adds all checks and writes of the change to a transaction, but for the number of active agents, which is written
    /// once for all changes of a commit.
    pub(super) fn write(&self, access: &Access, transaction: Transaction) -> Result<AgentWrites, Error> {
        let agent = &self.after.agent;
        let key = records::agent(agent.workspace_id, &agent.agent_id);
        let before = self
            .found
            .as_ref()
            .map(|found| SerializedRecord::of(&found.value))
            .transpose()?;
        let after = SerializedRecord::of(&self.after)?;
        let changes = diff::changes(before.as_ref(), Some(&after))?;
        let rebuilding = diff::rebuilding(before.as_ref(), Some(&after))?;

        let transaction = transaction
            .check(key.unchanged(self.found.as_ref()))
            .check_all(self.given.clone());
        let mut history = history::HistoryWriter::new(access, transaction);
        match (&self.found, &before) {
            (Some(found), Some(before)) => {
                history.add_change((&found.value, before), (&self.after, &after), self.restored_from)?;
            }
            _ => history.add_version(&self.after, None, &after, None)?,
        }
        let mut transaction = history.finish().put_subject(key, after.into_text());
        if !agent.is_active {
            let status = records::status(agent.workspace_id, &agent.agent_id);
            transaction = transaction.delete(status);
        }
        Ok(AgentWrites {
            transaction,
            changes,
            rebuilding,
            version: self.made_version(),
        })
    }
}
