//! The change of one agent: its action, its checks and its writes, for a mutation of one agent and of many.

use super::diff;
use super::records::{self, Stored, Transaction};
use super::written::Written;
use crate::error::Error;
use crate::model::{Action, Agent};

/// A change of one agent that is decided: the record that was found, and the one that takes its place.
pub(super) struct AgentChange {
    found: Option<Stored<Agent>>,
    after: Agent,
}

impl AgentChange {
    /// A change from the state that was found, or the creation of the agent.
    pub(super) fn new(found: Option<Stored<Agent>>, after: Agent) -> Self {
        Self { found, after }
    }

    /// The agent as the change leaves it.
    pub(super) fn after(&self) -> &Agent {
        &self.after
    }

    /// The agent as the change leaves it.
    pub(super) fn into_after(self) -> Agent {
        self.after
    }

    /// The action for the audit log.
    pub(super) fn action(&self) -> Action {
        match (self.found.is_some(), self.growth()) {
            (false, _) => Action::AgentCreated,
            (true, 1) => Action::AgentRestored,
            (true, -1) => Action::AgentDeactivated,
            (true, _) => Action::AgentUpdated,
        }
    }

    /// How many more agents are active after the change: 1, 0 or -1.
    pub(super) fn growth(&self) -> i64 {
        let before = self.found.as_ref().is_some_and(|found| found.value.is_active);
        i64::from(self.after.is_active) - i64::from(before)
    }

    /// The fields that differ, as they are in an audit entry.
    pub(super) fn changes(&self) -> Result<Vec<u8>, Error> {
        let before = self.found.as_ref().map(|found| &found.value);
        diff::changes(
            before.map(Written::of).transpose()?.as_ref(),
            Some(&Written::of(&self.after)?),
        )
    }

    /// Adds all checks and writes of the change to a transaction, but for the number of active agents, which is written
    /// once for all changes of a commit. The result is the transaction and the fields that differ, as they are in an
    /// audit entry.
    pub(super) fn write(&self, transaction: Transaction) -> Result<(Transaction, Vec<u8>), Error> {
        let key = records::agent(self.after.workspace_id, &self.after.agent_id);
        let before = self.found.as_ref().map(|found| Written::of(&found.value)).transpose()?;
        let after = Written::of(&self.after)?;
        let changes = diff::changes(before.as_ref(), Some(&after))?;
        let mut transaction = transaction
            .check(key.unchanged(self.found.as_ref()))
            .put_subject(key, after.into_text());
        if !self.after.is_active {
            let status = records::status(self.after.workspace_id, &self.after.agent_id);
            transaction = transaction.delete(status);
        }
        Ok((transaction, changes))
    }
}
