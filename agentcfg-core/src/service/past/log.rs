//! The states of agents before versions were kept, from the audit log.
//!
//! The log has each change with the values before it. So a state is found backwards: from the state that the first release
//! with versions found, each later change is undone. The log is read in pieces, and only down to the last change that matters.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind};
use crate::model::{Action, Agent, AgentConfig, AsOf, TargetType, WorkspaceId};
use crate::service::AgentCfg;
use crate::service::blocking::{LONG, blocking, blocking_if};
use crate::service::pieces::Pieces;
use crate::service::records::{self, Entries, Scanned, StoredEntry, StoredEntryHead};

/// An agent as it was, with the number of its version if that state is one.
pub(in crate::service) struct PastAgent {
    pub(in crate::service) agent: Agent,
    pub(in crate::service) version: Option<u64>,
}

/// The states of agents, on their way back to a moment.
struct Rewind {
    as_of: AsOf,
    /// The agents that have not arrived at it yet.
    going: HashMap<String, AgentRewind>,
    past: Vec<PastAgent>,
}

/// The state of one agent on its way back.
struct AgentRewind {
    state: Map<String, Value>,
    /// Whether a change was undone. The change before it then gives the time of the state.
    is_undone: bool,
}

impl AgentCfg {
    /// The states of agents at a moment before the first record of their history. Agents that did not exist are left out.
    pub(super) async fn before_versions(
        &self,
        workspace: WorkspaceId,
        as_of: AsOf,
        agents: Vec<Agent>,
    ) -> Result<Vec<PastAgent>, Error> {
        let last = self.last_without_versions(workspace).await?;
        if let AsOf::Revision(revision) = as_of
            && revision >= last
        {
            return Ok(agents.into_iter().map(PastAgent::first_version).collect());
        }
        let begin = async move { blocking(move || Rewind::from(as_of, agents)).await? };
        let mut rewind = self.long_read(workspace, begin).await?;
        let after = records::audit_entry::<StoredEntryHead>(workspace, last + 1);
        let mut pieces = Pieces::of(Entries::in_workspace(workspace).after(&after).descending());
        while !rewind.going.is_empty() {
            let service = self.clone();
            let piece = async move {
                let Some(piece) = pieces.next(&service).await? else {
                    return Ok((rewind, None));
                };
                let rewind = blocking_if(piece.bytes() >= LONG, move || rewind.over(piece)).await??;
                Ok((rewind, Some(pieces)))
            };
            let (further, rest) = self.long_read(workspace, piece).await?;
            rewind = further;
            let Some(rest) = rest else { break };
            pieces = rest;
        }
        let end = async move { blocking(move || rewind.end()).await? };
        self.long_read(workspace, end).await
    }

    /// Whether the first version of an agent, in data from before versions were kept, was its content at a revision.
    pub(in crate::service) async fn was_first_version(
        &self,
        workspace: WorkspaceId,
        agent: Agent,
        revision: u64,
    ) -> Result<bool, Error> {
        let past = self
            .before_versions(workspace, AsOf::Revision(revision), vec![agent])
            .await?;
        Ok(past.iter().any(|past| past.version.is_some()))
    }

    /// The number of the last entry that a release without versions wrote; 0 if there is none. The entries of releases with
    /// versions follow it, so a binary search finds it.
    async fn last_without_versions(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        let last = self.read(records::revision(workspace)).await?;
        self.last_entry_where(workspace, last, |entry| !entry.has_message).await
    }
}

impl Rewind {
    fn from(as_of: AsOf, agents: Vec<Agent>) -> Result<Self, Error> {
        let mut going = HashMap::with_capacity(agents.len());
        for agent in agents {
            let agent_id = agent.agent_id.to_string();
            let Ok(Value::Object(state)) = serde_json::to_value(&agent) else {
                return Err(Error::new(ErrorKind::Internal, "an agent is not an object"));
            };
            let is_undone = false;
            going.insert(agent_id, AgentRewind { state, is_undone });
        }
        let past = Vec::with_capacity(going.len());
        Ok(Self { as_of, going, past })
    }

    /// Undoes the entries of a piece.
    fn over(mut self, piece: Scanned<StoredEntryHead>) -> Result<Self, Error> {
        let Self { as_of, going, past } = &mut self;
        for entry in piece {
            let number = entry.key().entry_number()?;
            if matches!(as_of, AsOf::Revision(revision) if number <= *revision) {
                // These have not changed since the moment.
                for (_, going) in going.extract_if(|_, going| !going.is_undone) {
                    past.push(PastAgent::first_version(going.agent()?));
                }
            }
            let head = entry.value()?;
            if head.target.kind != TargetType::Agent.as_str() || !going.contains_key(&head.target.id) {
                continue;
            }
            if as_of.includes(number, head.created_at) {
                if let Some(mut found) = going.remove(&head.target.id) {
                    found
                        .state
                        .insert("updated_at".into(), head.created_at.to_string().into());
                    past.push(found.past()?);
                }
            } else if head.action == Action::AgentCreated.as_str() {
                going.remove(&head.target.id);
            } else if let Some(going) = going.get_mut(&head.target.id) {
                going.undo(entry.value_as::<StoredEntry>()?);
            }
        }
        Ok(self)
    }

    /// The states at the moment.
    fn end(self) -> Result<Vec<PastAgent>, Error> {
        let Self { going, mut past, .. } = self;
        for (_, going) in going {
            past.push(going.past()?);
        }
        Ok(past)
    }
}

impl PastAgent {
    fn first_version(agent: Agent) -> Self {
        Self {
            agent,
            version: Some(1),
        }
    }
}

impl AgentRewind {
    /// Undoes a change.
    fn undo(&mut self, entry: StoredEntry) {
        self.is_undone = true;
        for (field, change) in entry.changes {
            if field == "is_active" || AgentConfig::FIELDS.contains(&&*field) {
                self.state.insert(field, change.from);
            }
        }
    }

    fn agent(self) -> Result<Agent, Error> {
        serde_json::from_value(Value::Object(self.state)).map_err(|error| {
            Error::new(ErrorKind::Internal, "the log tells of an agent that cannot be read").because(error)
        })
    }

    fn past(self) -> Result<PastAgent, Error> {
        let version = (!self.is_undone).then_some(1);
        Ok(PastAgent {
            agent: self.agent()?,
            version,
        })
    }
}
