//! A copy of a workspace's agents that follows the change feed.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Agent, AgentId, Change, ChangeEvent, Cursor, TargetType, WorkspaceId, change_path};

/// The agents of a workspace at a cursor, deleted ones included, to which events are applied.
///
/// Make it from the list in the state `all`, because the event of a restored agent has no field that did not change.
///
/// ```
/// use agentcfg_core::model::{AgentMirror, Cursor};
/// let start: Cursor = "k3j9x0ab-018f2d7c-0000-7000-8000-000000000001-c0".parse()?;
/// let mirror = AgentMirror::new(start, Vec::new());
/// assert!(mirror.agents().is_empty());
/// # Ok::<(), agentcfg_core::model::CursorError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct AgentMirror {
    cursor: Cursor,
    agents: BTreeMap<AgentId, Agent>,
}

/// An event does not fit the agents of the mirror: read the list again.
///
/// This happens when events were left out.
///
/// ```
/// use agentcfg_core::model::MirrorGap;
/// assert_eq!(MirrorGap { revision: 7 }.to_string(), "the event of revision 7 does not fit the list, read the list again");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the event of revision {revision} does not fit the list, read the list again")]
pub struct MirrorGap {
    /// The revision of the event.
    pub revision: u64,
}

impl AgentMirror {
    /// A mirror of this list, which was read at this cursor.
    ///
    /// ```
    /// # use agentcfg_core::model::{Agent, AgentMirror, Cursor};
    /// fn mirror(cursor: Cursor, list: Vec<Agent>) -> AgentMirror {
    ///     AgentMirror::new(cursor, list)
    /// }
    /// ```
    pub fn new(cursor: Cursor, list: impl IntoIterator<Item = Agent>) -> Self {
        Self {
            cursor,
            agents: list.into_iter().map(|agent| (agent.agent_id.clone(), agent)).collect(),
        }
    }

    /// The position in the feed: the cursor of the last event that was applied.
    ///
    /// ```
    /// # use agentcfg_core::model::{AgentMirror, Cursor};
    /// # let start: Cursor = "k3j9x0ab-018f2d7c-0000-7000-8000-000000000001-c0".parse()?;
    /// assert_eq!(AgentMirror::new(start, Vec::new()).cursor(), start);
    /// # Ok::<(), agentcfg_core::model::CursorError>(())
    /// ```
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// The active agents, in the order of the list.
    ///
    /// ```
    /// # use agentcfg_core::model::AgentMirror;
    /// fn names(mirror: &AgentMirror) -> Vec<&str> {
    ///     mirror.agents().into_iter().map(|agent| agent.display_name.as_str()).collect()
    /// }
    /// ```
    pub fn agents(&self) -> Vec<&Agent> {
        let mut agents: Vec<&Agent> = self.agents.values().filter(|agent| agent.is_active).collect();
        agents.sort_unstable_by_key(|agent| (agent.created_at, agent.id));
        agents
    }

    /// An active agent.
    ///
    /// ```
    /// # use agentcfg_core::model::{AgentId, AgentMirror};
    /// fn model_of<'a>(mirror: &'a AgentMirror, agent: &AgentId) -> Option<&'a str> {
    ///     mirror.get(agent)?.model.as_deref()
    /// }
    /// ```
    pub fn get(&self, agent_id: &AgentId) -> Option<&Agent> {
        self.agents.get(agent_id).filter(|agent| agent.is_active)
    }

    /// Moves the position, as a bookmark of the feed does.
    ///
    /// ```
    /// # use agentcfg_core::model::{AgentMirror, Cursor};
    /// # let start: Cursor = "k3j9x0ab-018f2d7c-0000-7000-8000-000000000001-c0".parse()?;
    /// let mut mirror = AgentMirror::new(start, Vec::new());
    /// let later: Cursor = "k3j9x0ab-018f2d7c-0000-7000-8000-000000000001-c9".parse()?;
    /// mirror.bookmark(later);
    /// assert_eq!(mirror.cursor(), later);
    /// # Ok::<(), agentcfg_core::model::CursorError>(())
    /// ```
    pub fn bookmark(&mut self, cursor: Cursor) {
        self.cursor = cursor;
    }

    /// Applies the next event. Returns whether an agent changed.
    ///
    /// # Errors
    ///
    /// [`MirrorGap`] when the event does not fit. The mirror is as it was before.
    ///
    /// ```
    /// # use agentcfg_core::model::{AgentMirror, ChangeEvent, MirrorGap};
    /// fn follow(mirror: &mut AgentMirror, events: &[ChangeEvent]) -> Result<(), MirrorGap> {
    ///     for event in events {
    ///         mirror.apply(event)?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn apply(&mut self, event: &ChangeEvent) -> Result<bool, MirrorGap> {
        let gap = MirrorGap {
            revision: event.revision,
        };
        let mut changed = Vec::new();
        for (agent_id, changes) in changes_by_agent(event).ok_or(gap)? {
            let agent = self.changed_agent(event.cursor.workspace(), &agent_id, &changes);
            changed.push((agent_id, agent.ok_or(gap)?));
        }
        self.cursor = event.cursor;
        let is_changed = !changed.is_empty();
        self.agents.extend(changed);
        Ok(is_changed)
    }

    fn changed_agent(&self, workspace: WorkspaceId, agent_id: &AgentId, changes: &Fields<'_>) -> Option<Agent> {
        let mut record = match self.agents.get(agent_id) {
            Some(agent) => serde_json::to_value(agent).ok()?,
            None => json!({ "workspace_id": workspace, "agent_id": agent_id }),
        };
        let fields: &mut Map<String, Value> = record.as_object_mut()?;
        for (name, change) in changes {
            fields.insert((*name).to_owned(), change.to.clone());
        }
        serde_json::from_value(record).ok()
    }
}

/// The field that every change of an agent's record sets.
const MOVED: &str = "updated_at";

/// The changed fields of one agent.
type Fields<'a> = Vec<(&'a str, &'a Change)>;

/// The changed fields of each agent that an event is about; `None` when an identifier is not that of an agent.
fn changes_by_agent(event: &ChangeEvent) -> Option<BTreeMap<AgentId, Fields<'_>>> {
    let mut agents: BTreeMap<AgentId, Fields<'_>> = BTreeMap::new();
    match event.target.kind {
        // A label moves without a change of the record. Every change of a record moves `updated_at`.
        TargetType::Agent if event.changes.contains_key(MOVED) => {
            let fields = event.changes.iter().map(|(name, change)| (name.as_str(), change));
            agents.insert(event.target.id.parse().ok()?, fields.collect());
        }
        // An event of many agents has a path in place of each name.
        TargetType::Workspace => {
            for (path, change) in &event.changes {
                if change_path::is_of_agent(path) {
                    let (agent_id, name) = change_path::agent_and_name(path)?;
                    // A label is no field of an agent's record.
                    if change_path::label(name).is_some() {
                        continue;
                    }
                    agents.entry(agent_id.parse().ok()?).or_default().push((name, change));
                }
            }
        }
        _ => {}
    }
    Some(agents)
}
