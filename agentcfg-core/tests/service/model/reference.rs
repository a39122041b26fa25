//! The reference model: the rules of the service over plain collections.

use std::collections::{BTreeMap, HashSet};

use agentcfg_core::ErrorKind;
use agentcfg_core::model::{
    Agent, AgentPatch, AgentStatus, LiveStatus, Plan, PlanLimits, Precondition, StatusReport, Tag, Timestamp,
};

use crate::support::unknown_tag;

/// How long a status report is live.
pub const TTL_MILLIS: i64 = 120_000;

/// The version that a condition names.
#[derive(Debug, Clone, Copy)]
pub enum Condition {
    None,
    Exists,
    Current,
    Stale,
}

/// An agent's record with its current tag and live status.
pub struct AgentState {
    pub agent: Agent,
    pub tag: Tag,
    pub report: Option<(StatusReport, Timestamp)>,
}

/// A workspace: its agents, and the number of its changes.
pub struct Reference {
    pub plan: Plan,
    pub agents: BTreeMap<String, AgentState>,
    pub revision: u64,
    /// Every tag that any record has ever had.
    tags: HashSet<Tag>,
}

impl Reference {
    /// A new workspace; its creation is the first change.
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            agents: BTreeMap::new(),
            revision: 1,
            tags: HashSet::new(),
        }
    }

    /// The condition to send for an agent.
    pub fn condition(&self, agent_id: &str, condition: Condition) -> Precondition {
        match (condition, self.agents.get(agent_id)) {
            (Condition::None, _) => Precondition::None,
            (Condition::Exists, _) => Precondition::Exists,
            (Condition::Current, Some(state)) => Precondition::matches(state.tag),
            (Condition::Current | Condition::Stale, _) => Precondition::matches(unknown_tag()),
        }
    }

    pub fn create(&self, agent_id: &str, limits: &PlanLimits) -> Result<(), ErrorKind> {
        if self.agents.contains_key(agent_id) {
            return Err(ErrorKind::Conflict);
        }
        self.room(limits)
    }

    /// Whether an active agent can be changed under this condition.
    pub fn change(&self, agent_id: &str, condition: Condition) -> Result<&AgentState, ErrorKind> {
        let state = self.active(agent_id).ok_or(ErrorKind::NotFound)?;
        check_condition(condition).map(|()| state)
    }

    pub fn restore(&self, agent_id: &str, condition: Condition, limits: &PlanLimits) -> Result<&AgentState, ErrorKind> {
        let state = self.agents.get(agent_id).ok_or(ErrorKind::NotFound)?;
        check_condition(condition)?;
        if state.agent.is_active {
            return Err(ErrorKind::Conflict);
        }
        self.room(limits).map(|()| state)
    }

    pub fn active(&self, agent_id: &str) -> Option<&AgentState> {
        self.agents.get(agent_id).filter(|state| state.agent.is_active)
    }

    /// The active agents in the order of the list.
    pub fn list(&self) -> Vec<Agent> {
        let active = self
            .agents
            .values()
            .map(|state| &state.agent)
            .filter(|agent| agent.is_active);
        let mut list: Vec<Agent> = active.cloned().collect();
        list.sort_by_key(|agent| (agent.created_at, agent.id));
        list
    }

    pub fn status(&self, now: Timestamp) -> Vec<AgentStatus> {
        let entry = |agent: Agent| {
            let live = self.agents[agent.agent_id.as_str()]
                .report
                .as_ref()
                .filter(|(_, at)| now < at.plus_millis(TTL_MILLIS))
                .map_or_else(StatusReport::offline, |(report, _)| report.clone());
            let entry = serde_json::json!({
                "agent_id": agent.agent_id,
                "display_name": agent.display_name,
                "status": live.status,
                "current_task_id": live.current_task_id,
                "current_task_title": live.current_task_title,
            });
            serde_json::from_value(entry).unwrap()
        };
        self.list().into_iter().map(entry).collect()
    }

    /// Stores a record as the service returned it, with a tag that no record had before.
    pub fn store(&mut self, agent: Agent, tag: Tag) {
        assert!(self.tags.insert(tag), "the tag {tag} was given twice");
        self.revision += 1;
        let report = self
            .agents
            .remove(agent.agent_id.as_str())
            .and_then(|state| state.report);
        let report = report.filter(|(report, _)| agent.is_active && report.status != LiveStatus::Offline);
        self.agents
            .insert(agent.agent_id.to_string(), AgentState { agent, tag, report });
    }

    /// Deletes an agent. No response shows the new tag.
    pub fn delete(&mut self, agent_id: &str, now: Timestamp) {
        self.revision += 1;
        if let Some(state) = self.agents.get_mut(agent_id) {
            state.agent.is_active = false;
            state.agent.updated_at = next_updated_at(state.agent.updated_at, now);
            state.report = None;
            // Only `*` can match until a response shows a tag again.
            state.tag = unknown_tag();
        }
    }

    fn room(&self, limits: &PlanLimits) -> Result<(), ErrorKind> {
        match limits.of(self.plan) {
            Some(limit) if self.list().len() >= limit as usize => Err(ErrorKind::PlanLimit),
            _ => Ok(()),
        }
    }
}

fn check_condition(condition: Condition) -> Result<(), ErrorKind> {
    match condition {
        Condition::Stale => Err(ErrorKind::Precondition),
        Condition::None | Condition::Exists | Condition::Current => Ok(()),
    }
}

/// The new `updated_at` of a record: the clock, but always later than before.
pub fn next_updated_at(last: Timestamp, now: Timestamp) -> Timestamp {
    now.max(last.plus_millis(1))
}

/// The record after an update.
pub fn patched(agent: &Agent, patch: &AgentPatch, now: Timestamp) -> Agent {
    let mut agent = agent.clone();
    agent.updated_at = next_updated_at(agent.updated_at, now);
    patch.clone().apply(&mut agent);
    agent
}
