//! What the service should do, as plainly as it can be said.

use std::collections::{BTreeMap, HashSet};

use agentcfg_core::ErrorKind;
use agentcfg_core::model::{
    Agent, AgentPatch, AgentStatus, LiveStatus, Plan, PlanLimits, Precondition, StatusReport, Tag, Timestamp,
};

use crate::support::unknown_tag;

/// How long a report is live.
pub const TTL_MILLIS: i64 = 120_000;

/// What a condition refers to.
#[derive(Debug, Clone, Copy)]
pub enum Condition {
    None,
    Exists,
    Current,
    Stale,
}

/// An agent's record with what belongs to it.
pub struct Held {
    pub agent: Agent,
    pub tag: Tag,
    pub report: Option<(StatusReport, Timestamp)>,
}

/// A workspace: its agents, and how many changes it has seen.
pub struct Reference {
    pub plan: Plan,
    pub agents: BTreeMap<String, Held>,
    pub revision: u64,
    /// Every tag that any record ever had.
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
            (Condition::Current, Some(held)) => Precondition::matches(held.tag),
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
    pub fn change(&self, agent_id: &str, condition: Condition) -> Result<&Held, ErrorKind> {
        let held = self.active(agent_id).ok_or(ErrorKind::NotFound)?;
        met(condition).map(|()| held)
    }

    pub fn restore(&self, agent_id: &str, condition: Condition, limits: &PlanLimits) -> Result<&Held, ErrorKind> {
        let held = self.agents.get(agent_id).ok_or(ErrorKind::NotFound)?;
        met(condition)?;
        if held.agent.is_active {
            return Err(ErrorKind::Conflict);
        }
        self.room(limits).map(|()| held)
    }

    pub fn active(&self, agent_id: &str) -> Option<&Held> {
        self.agents.get(agent_id).filter(|held| held.agent.is_active)
    }

    /// The active agents in the order of the list.
    pub fn list(&self) -> Vec<Agent> {
        let active = self
            .agents
            .values()
            .map(|held| &held.agent)
            .filter(|agent| agent.is_active);
        let mut list: Vec<Agent> = active.cloned().collect();
        list.sort_by_key(|agent| (agent.created_at, agent.id));
        list
    }

    pub fn status(&self, now: Timestamp) -> Vec<AgentStatus> {
        let entry = |agent: Agent| {
            let live = self.agents[&agent.agent_id]
                .report
                .as_ref()
                .filter(|(_, at)| now < at.plus_millis(TTL_MILLIS))
                .map_or_else(StatusReport::offline, |(report, _)| report.clone());
            AgentStatus {
                agent_id: agent.agent_id,
                display_name: agent.display_name,
                status: live.status,
                current_task_id: live.current_task_id,
                current_task_title: live.current_task_title,
            }
        };
        self.list().into_iter().map(entry).collect()
    }

    /// Takes over a record as the service gave it, with a tag that no record had before.
    pub fn hold(&mut self, agent: Agent, tag: Tag) {
        assert!(self.tags.insert(tag), "the tag {tag} was given twice");
        self.revision += 1;
        let report = self.agents.remove(&agent.agent_id).and_then(|held| held.report);
        let report = report.filter(|(report, _)| agent.is_active && report.status != LiveStatus::Offline);
        self.agents.insert(agent.agent_id.clone(), Held { agent, tag, report });
    }

    /// Deletes; the service shows the new tag to nobody.
    pub fn delete(&mut self, agent_id: &str, now: Timestamp) {
        self.revision += 1;
        if let Some(held) = self.agents.get_mut(agent_id) {
            held.agent.is_active = false;
            held.agent.updated_at = moved(held.agent.updated_at, now);
            held.report = None;
            // No condition but `*` can be met until it is shown again.
            held.tag = unknown_tag();
        }
    }

    fn room(&self, limits: &PlanLimits) -> Result<(), ErrorKind> {
        match limits.of(self.plan) {
            Some(limit) if self.list().len() >= limit as usize => Err(ErrorKind::PlanLimit),
            _ => Ok(()),
        }
    }
}

fn met(condition: Condition) -> Result<(), ErrorKind> {
    match condition {
        Condition::Stale => Err(ErrorKind::Precondition),
        Condition::None | Condition::Exists | Condition::Current => Ok(()),
    }
}

/// When a record that last changed then is changed now.
pub fn moved(last: Timestamp, now: Timestamp) -> Timestamp {
    now.max(last.plus_millis(1))
}

/// The record after an update.
pub fn patched(agent: &Agent, patch: &AgentPatch, now: Timestamp) -> Agent {
    let mut agent = agent.clone();
    agent.updated_at = moved(agent.updated_at, now);
    patch.clone().apply(&mut agent);
    agent
}
