//! Writing the history of agents: each change of an agent's record adds a version or a touch in the same commit.
//!
//! The record has the numbers of its last version and its last touch, and every change checks the record's version. So
//! numbers have no gaps, however many writers there are. Versions and touches are never written again.

use super::access::Access;
use super::records::{self, CalledAgent, Entity, EntityKey, StoredTouch, StoredVersion, Transaction};
use super::serialized::SerializedRecord;
use crate::error::{Error, ErrorKind};
use crate::model::{Agent, AgentConfig, AgentHistory, StoredAgent, Timestamp};

/// The history of a new agent.
const FIRST: AgentHistory = AgentHistory {
    versions: 1,
    touches: 0,
};

impl CalledAgent {
    /// The number of the current version; see [`StoredAgent::version`].
    pub(super) fn version(&self) -> u64 {
        self.history.unwrap_or(FIRST).versions
    }
}

impl StoredAgent {
    /// The record of a new agent.
    pub(super) fn new(agent: Agent) -> Self {
        Self {
            agent,
            history: Some(FIRST),
        }
    }

    /// The numbers of the last version and touch. A record from before versions were kept is version 1.
    pub(super) fn history(&self) -> AgentHistory {
        self.history.unwrap_or(FIRST)
    }

    /// The number of the current version.
    pub(super) fn version(&self) -> u64 {
        self.history().versions
    }

    /// The state after this one: another content is a version, and anything else a touch.
    pub(super) fn followed_by(&self, agent: Agent) -> Self {
        let mut history = self.history();
        let is_version = !agent.has_content_of(&self.agent);
        history.versions += u64::from(is_version);
        history.touches += u64::from(!is_version || agent.is_active != self.agent.is_active);
        Self {
            agent,
            history: Some(history),
        }
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

    /// Adds what the state that [follows](StoredAgent::followed_by) another one adds to the history. The texts are those of
    /// the two states. `restored_from` is the version whose content it takes.
    pub(super) fn add_change(
        &mut self,
        before: &StoredAgent,
        before_text: &SerializedRecord,
        next: &StoredAgent,
        next_text: &SerializedRecord,
        restored_from: Option<u64>,
    ) -> Result<(), Error> {
        if before.history.is_none() {
            self.add_first_version(&before.agent, before_text)?;
        }
        if next.version() > before.version() {
            self.add_version(next, next_text, restored_from)?;
        }
        if next.history().touches > before.history().touches {
            self.add_touch(next)?;
        }
        Ok(())
    }

    /// Adds the current version of an agent, from its text.
    pub(super) fn add_version(
        &mut self,
        agent: &StoredAgent,
        text: &SerializedRecord,
        restored_from: Option<u64>,
    ) -> Result<(), Error> {
        let head = StoredVersion {
            version: agent.version(),
            actor: Some(self.access.actor()),
            message: self.access.message().cloned(),
            restored_from,
            ..head(agent.agent.updated_at)
        };
        self.put_version(&agent.agent, &head, text)
    }

    /// Adds the version that an agent from before versions were kept has had until now.
    fn add_first_version(&mut self, agent: &Agent, text: &SerializedRecord) -> Result<(), Error> {
        let head = StoredVersion {
            was_active: Some(agent.is_active),
            ..head(agent.updated_at)
        };
        self.put_version(agent, &head, text)
    }

    fn put_version(&mut self, agent: &Agent, head: &StoredVersion<()>, text: &SerializedRecord) -> Result<(), Error> {
        let key = records::version::<AgentConfig>(agent.workspace_id, &agent.agent_id, head.version);
        self.put(key, version_text(head, text)?);
        Ok(())
    }

    fn add_touch(&mut self, agent: &StoredAgent) -> Result<(), Error> {
        let StoredAgent { agent, history } = agent;
        let number = history.unwrap_or(FIRST).touches;
        let touch = StoredTouch {
            revision: 0,
            created_at: agent.updated_at,
            is_active: agent.is_active,
        };
        let key = records::touch(agent.workspace_id, &agent.agent_id, number);
        let text = serde_json::to_vec(&touch).map_err(records::not_written)?;
        self.put(key, text);
        Ok(())
    }

    fn put<T: Entity>(&mut self, key: EntityKey<T>, text: Vec<u8>) {
        let transaction = std::mem::take(&mut self.transaction);
        self.transaction = transaction.put_revised(key, text);
    }
}

/// The head of a version 1 from this time, without actor and message.
fn head(created_at: Timestamp) -> StoredVersion<()> {
    StoredVersion {
        revision: 0,
        version: 1,
        created_at,
        actor: None,
        message: None,
        restored_from: None,
        was_active: None,
        config: (),
    }
}

/// The text of a version. Its content is copied from the text of the record, so that it is written once.
fn version_text(head: &StoredVersion<()>, record: &SerializedRecord) -> Result<Vec<u8>, Error> {
    let config = record
        .object_of(AgentConfig::FIELDS)
        .ok_or_else(|| Error::new(ErrorKind::Internal, "the record of an agent has other fields"))?;
    let mut text = Vec::with_capacity(256 + config.len());
    serde_json::to_writer(&mut text, head).map_err(records::not_written)?;
    text.pop();
    for part in [b",\"config\":", &config[..], b"}"] {
        text.extend_from_slice(part);
    }
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::{NewAgent, WorkspaceId};

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
        assert_eq!(first.history(), history(1, 0));
        let renamed = Agent {
            display_name: "W".into(),
            ..agent()
        };
        assert_eq!(first.followed_by(renamed.clone()).history(), history(2, 0));
        assert_eq!(first.followed_by(agent()).history(), history(1, 1));
        let deleted = Agent {
            is_active: false,
            ..agent()
        };
        assert_eq!(first.followed_by(deleted.clone()).history(), history(1, 1));
        let both = Agent {
            is_active: false,
            ..renamed
        };
        assert_eq!(first.followed_by(both).history(), history(2, 1));
        let from_before = StoredAgent {
            agent: agent(),
            history: None,
        };
        assert_eq!(from_before.followed_by(deleted).history(), history(1, 1));
    }

    #[test]
    fn a_stored_agent_reads_back_and_an_older_one_has_no_history() {
        let stored = StoredAgent::new(agent());
        let text = SerializedRecord::of(&stored).unwrap();
        assert!(text.object_of(AgentConfig::FIELDS).is_some());
        let text = text.into_text();
        assert!(text.ends_with(br#","history":{"versions":1,"touches":0}}"#));
        let read: StoredAgent = serde_json::from_slice(&text).unwrap();
        assert_eq!((read.agent, read.history), (agent(), Some(FIRST)));
        let older: StoredAgent = serde_json::from_slice(&serde_json::to_vec(&agent()).unwrap()).unwrap();
        assert_eq!((&older.agent, older.history), (&agent(), None));
        assert_eq!(
            SerializedRecord::of(&older).unwrap().into_text(),
            serde_json::to_vec(&agent()).unwrap()
        );
    }

    #[test]
    fn a_version_has_the_content_of_the_record() {
        let stored = StoredAgent::new(agent());
        let text = version_text(&head(stored.agent.updated_at), &SerializedRecord::of(&stored).unwrap()).unwrap();
        let text = crate::store::with_revision(7, &text);
        let read: StoredVersion = serde_json::from_slice(&text).unwrap();
        assert_eq!((read.revision, read.version, read.config), (7, 1, agent().config()));
    }
}
