//! Writing the history of agents: each change of an agent's record adds a version or a touch in the same commit.
//!
//! The record has the numbers of its last version and its last touch, and every change checks the record's version. So
//! numbers have no gaps, however many writers there are. Versions and touches are never written again.

use super::access::Access;
use super::records::{
    self, AgentSummary, CalledAgent, Entity, EntityKey, PackedTexts, StoredTouch, StoredVersion, Transaction,
};
use super::serialized_record::SerializedRecord;
use crate::error::Error;
use crate::model::{Agent, AgentConfig, AgentHistory, StoredAgent};

/// The history of a new agent.
const FIRST: AgentHistory = AgentHistory {
    versions: 1,
    touches: 0,
};

impl CalledAgent {
    /// The number of the current version; see [`StoredAgent::version`].
    pub(super) fn version(&self) -> u64 {
        self.history.versions
    }
}

impl AgentSummary {
    /// The number of the current version; see [`StoredAgent::version`].
    pub(super) fn version(&self) -> u64 {
        self.history.versions
    }
}

impl StoredAgent {
    /// The record of a new agent.
    pub(super) fn new(agent: Agent) -> Self {
        Self { agent, history: FIRST }
    }

    /// The number of the current version.
    pub(super) fn version(&self) -> u64 {
        self.history.versions
    }

    /// The state after this one: another content is a version, and anything else a touch.
    pub(super) fn followed_by(&self, agent: Agent) -> Self {
        let mut history = self.history;
        let is_version = !agent.has_content_of(&self.agent);
        history.versions += u64::from(is_version);
        history.touches += u64::from(!is_version || agent.is_active != self.agent.is_active);
        Self { agent, history }
    }
}

/// Adds versions and touches to the transaction of a change.
pub(super) struct HistoryWriter<'a> {
    access: &'a Access,
    transaction: Transaction,
}

impl<'a> HistoryWriter<'a> {
    pub(super) fn new(access: &'a Access, transaction: Transaction) -> Self {
        Self { access, transaction }
    }

    /// The transaction with all that was added.
    pub(super) fn finish(self) -> Transaction {
        self.transaction
    }

    /// Adds what the state that [follows](StoredAgent::followed_by) another one adds to the history, each state with
    /// its text. `restored_from` is the version whose content the next one takes.
    pub(super) fn add_change(
        &mut self,
        (before, before_text): (&StoredAgent, &SerializedRecord),
        (next, next_text): (&StoredAgent, &SerializedRecord),
        restored_from: Option<u64>,
    ) -> Result<(), Error> {
        if next.version() > before.version() {
            self.add_version(next, Some(before_text), next_text, restored_from)?;
        }
        if next.history.touches > before.history.touches {
            self.add_touch(next)?;
        }
        Ok(())
    }

    /// Adds the current version of an agent, from its text and that of the version before.
    pub(super) fn add_version(
        &mut self,
        agent: &StoredAgent,
        before: Option<&SerializedRecord>,
        text: &SerializedRecord,
        restored_from: Option<u64>,
    ) -> Result<(), Error> {
        let head = StoredVersion {
            revision: 0,
            version: agent.version(),
            created_at: agent.agent.updated_at,
            actor: self.access.actor(),
            message: self.access.message().cloned(),
            restored_from,
            config: (),
        };
        let agent = &agent.agent;
        let key = records::version::<AgentConfig>(agent.workspace_id, &agent.agent_id, head.version);
        self.put(key, version_text(&head, before, text)?);
        Ok(())
    }

    fn add_touch(&mut self, agent: &StoredAgent) -> Result<(), Error> {
        let StoredAgent { agent, history } = agent;
        let touch = StoredTouch {
            revision: 0,
            created_at: agent.updated_at,
            is_active: agent.is_active,
        };
        let key = records::touch(agent.workspace_id, &agent.agent_id, history.touches);
        let text = serde_json::to_vec(&touch).map_err(records::not_written)?;
        self.put(key, text);
        Ok(())
    }

    fn put<T: Entity>(&mut self, key: EntityKey<T>, text: Vec<u8>) {
        let transaction = std::mem::take(&mut self.transaction);
        self.transaction = transaction.put_revised(key, text);
    }
}

/// The text of a version. Its content is copied from the text of the record, so that it is written once, but for long
/// texts that are kept as edits of those `before`.
fn version_text(
    head: &StoredVersion<()>,
    before: Option<&SerializedRecord>,
    record: &SerializedRecord,
) -> Result<Vec<u8>, Error> {
    let packed = PackedTexts::of(head.version, |name| before?.get(name), |name| record.get(name));
    let config = record.object_of(AgentConfig::FIELDS, |name| packed.has(name));
    let mut text = Vec::with_capacity(256 + config.len());
    serde_json::to_writer(&mut text, head).map_err(records::not_written)?;
    text.pop();
    for part in [b",\"config\":", &config[..], b"}"] {
        text.extend_from_slice(part);
    }
    packed.written(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::{Actor, NewAgent, Timestamp, WorkspaceId};

    fn agent() -> Agent {
        let new = NewAgent::new(WorkspaceId::new(uuid::Uuid::nil()), "writer".parse().unwrap(), "Writer");
        new.into_agent(uuid::Uuid::nil(), Timestamp::from_unix_millis(0))
    }

    fn history(versions: u64, touches: u64) -> AgentHistory {
        AgentHistory { versions, touches }
    }

    #[test]
    fn another_content_is_a_version_and_anything_else_a_touch() {
        let first = StoredAgent::new(agent());
        assert_eq!(first.history, history(1, 0));
        let renamed = Agent {
            display_name: "W".into(),
            ..agent()
        };
        assert_eq!(first.followed_by(renamed.clone()).history, history(2, 0));
        assert_eq!(first.followed_by(agent()).history, history(1, 1));
        let deleted = Agent {
            is_active: false,
            ..agent()
        };
        assert_eq!(first.followed_by(deleted.clone()).history, history(1, 1));
        let both = Agent {
            is_active: false,
            ..renamed
        };
        assert_eq!(first.followed_by(both).history, history(2, 1));
    }

    #[test]
    fn a_stored_agent_reads_back() {
        let stored = StoredAgent::new(agent());
        let text = SerializedRecord::of(&stored).unwrap();
        let text = text.into_text();
        assert!(text.ends_with(br#","history":{"versions":1,"touches":0}}"#));
        let read: StoredAgent = serde_json::from_slice(&text).unwrap();
        assert_eq!((read.agent, read.history), (agent(), FIRST));
    }

    #[test]
    fn a_version_has_the_content_of_the_record() {
        let stored = StoredAgent::new(agent());
        let head = StoredVersion {
            revision: 0,
            version: 1,
            created_at: stored.agent.updated_at,
            actor: Actor::user("ada"),
            message: None,
            restored_from: None,
            config: (),
        };
        let text = version_text(&head, None, &SerializedRecord::of(&stored).unwrap()).unwrap();
        let text = crate::store::with_revision(7, &text);
        let read: StoredVersion = serde_json::from_slice(&text).unwrap();
        assert_eq!((read.revision, read.version, read.config), (7, 1, agent().config()));
    }
}
