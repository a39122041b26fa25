//! A decided apply: the outcome for each agent, and the commit of all.

use std::collections::BTreeSet;

use super::ApplyState;
use crate::error::{Error, ErrorKind};
use crate::model::{
    Action, Agent, AgentId, AgentSet, AgentSpec, AppliedAgent, ApplyAction, ApplyAgents, SetName, StoredAgent,
    TargetType, Timestamp, WorkspaceId,
};
use crate::service::AgentCfg;
use crate::service::access::Access;
use crate::service::agent_change::AgentChange;
use crate::service::agents::over_limit;
use crate::service::change::Change;
use crate::service::changes_of_agents::ChangesOfAgents;
use crate::service::records::{self, SetMember, Stored, WorkspacePlan};
use crate::store::Check;
use crate::webhook::AppliedRow;

/// After how many agents the task yields to others.
const YIELD_AFTER: usize = 32;

impl AgentCfg {
    /// Decides the outcome for each agent.
    pub(super) async fn decide_apply(
        &self,
        body: &ApplyAgents,
        state: ApplyState,
        at: Timestamp,
        workspace: WorkspaceId,
    ) -> Result<ApplyDecision, Error> {
        let mut decided = ApplyDecision {
            plan: state.plan,
            revision: state.revision,
            active: state.active,
            set: state.set,
            set_name: body.set.clone(),
            agents: Vec::with_capacity(body.agents.len()),
            untouched: Vec::new(),
            joined: Vec::new(),
            left: Vec::new(),
        };
        for (i, (spec, (found, member))) in body.agents.iter().zip(state.named).enumerate() {
            if i % YIELD_AFTER == YIELD_AFTER - 1 {
                tokio::task::yield_now().await;
            }
            if decided.set_name.is_some() && member.is_none() {
                decided.joined.push(spec.agent_id.clone());
            }
            decided.agents.push(match found {
                None => {
                    let agent = spec.to_agent(workspace, (self.new_id(at)?, at, at));
                    AgentDecision::Change(ApplyAction::Create, Box::new(AgentChange::new(None, agent)))
                }
                Some(found) => wanted(spec, found, at)?,
            });
        }
        for (agent_id, (found, member)) in state.others {
            match found {
                Some(found) if body.prune && found.value.agent.is_active => {
                    let agent = Agent {
                        is_active: false,
                        updated_at: at,
                        ..found.value.agent.clone()
                    };
                    let change = Box::new(AgentChange::new(Some(found), agent));
                    decided
                        .agents
                        .push(AgentDecision::Change(ApplyAction::Deactivate, change));
                }
                found => decided.untouched.extend(found.map(|found| found.unchanged())),
            }
            if body.prune {
                decided.left.push((agent_id, member));
            }
        }
        Ok(decided)
    }
}

/// The decided outcome for one agent.
enum AgentDecision {
    Change(ApplyAction, Box<AgentChange>),
    Keep(Box<Stored<StoredAgent>>),
}

/// Decides how an existing agent gets to its wanted state.
fn wanted(spec: &AgentSpec, found: Stored<StoredAgent>, at: Timestamp) -> Result<AgentDecision, Error> {
    let before = &found.value.agent;
    let same_time = (before.id, before.created_at, before.updated_at);
    let mut agent = spec.to_agent(before.workspace_id, same_time);
    if agent.definition == before.definition {
        // The order of its keys stays as it is stored.
        agent.definition.clone_from(&before.definition);
    }
    if !before.is_active {
        let agent = Agent {
            updated_at: at,
            ..agent
        };
        return Ok(AgentDecision::Change(
            ApplyAction::Restore,
            Box::new(AgentChange::new(Some(found), agent)),
        ));
    }
    if agent.has_content_of(before) {
        return Ok(AgentDecision::Keep(Box::new(found)));
    }
    let agent = Agent {
        updated_at: at,
        ..agent
    };
    Ok(AgentDecision::Change(
        ApplyAction::Update,
        Box::new(AgentChange::new(Some(found), agent)),
    ))
}

/// A decided apply.
pub(super) struct ApplyDecision {
    plan: Stored<WorkspacePlan>,
    pub(super) revision: u64,
    active: u64,
    set: Option<Stored<AgentSet>>,
    set_name: Option<SetName>,
    /// The agents of the body in its order, and then the pruned ones that were active.
    agents: Vec<AgentDecision>,
    /// That the other agents of the set are as they were read: not active, or not changed since the base.
    untouched: Vec<Check>,
    /// The agents that join the set.
    joined: Vec<AgentId>,
    /// The agents that leave the set, each with the record of its membership.
    left: Vec<(AgentId, Option<Stored<SetMember>>)>,
}

impl ApplyDecision {
    /// How many more agents are active after the change.
    fn growth(&self) -> i64 {
        let changes = self.agents.iter().map(|agent| match agent {
            AgentDecision::Change(_, change) => change.growth(),
            AgentDecision::Keep(_) => 0,
        });
        changes.sum()
    }

    pub(super) fn within_plan(&self, limit: Option<u32>) -> Result<(), Error> {
        let growth = self.growth();
        let outcome = self.active.saturating_add_signed(growth);
        match limit {
            Some(limit) if growth > 0 && outcome > u64::from(limit) => {
                let plan = self.plan.value.plan;
                Err(match growth {
                    1 => over_limit(plan, Some(limit)),
                    _ => Error::new(
                        ErrorKind::PlanLimit,
                        format!(
                            "the plan {plan} of this workspace allows {limit} active agents, and there would be {outcome}; an \
                             operator of this service can change the plan"
                        ),
                    ),
                })
            }
            _ => Ok(()),
        }
    }

    /// Whether no agent and no membership changes.
    pub(super) fn is_nothing(&self) -> bool {
        let keeps = |agent: &AgentDecision| matches!(agent, AgentDecision::Keep(_));
        self.joined.is_empty() && self.left.is_empty() && self.agents.iter().all(keeps)
    }

    /// The outcome for each agent, as it would be after a commit.
    pub(super) fn results(&self) -> Result<Vec<AppliedAgent>, Error> {
        let results = self.agents.iter().map(|agent| match agent {
            AgentDecision::Change(action, change) => applied(*action, change.after(), &change.changes()?),
            AgentDecision::Keep(found) => applied(ApplyAction::Keep, &found.value, b"{}"),
        });
        results.collect()
    }

    /// The change with all checks and writes, and the outcome for each agent.
    pub(super) async fn write<'a>(
        self,
        access: &'a Access,
        at: Timestamp,
        limit: Option<u32>,
    ) -> Result<(Change<'a>, Vec<AppliedAgent>), Error> {
        let (workspace, growth) = (access.workspace(), self.growth());
        let id = workspace.to_string();
        let change = Change::new(access, at, Action::AgentsApplied, TargetType::Workspace, id);
        let mut change = self.untouched.iter().cloned().fold(change, Change::check);
        if growth > 0 {
            change = change.check(self.plan.unchanged());
        }
        if growth != 0 {
            let max = limit.map(u64::from).filter(|_| growth > 0);
            change = change.add(records::active_agents(workspace), growth, max);
        }
        change = write_set(change, workspace, self.set_name, self.set, self.joined, self.left)?;
        let mut results = Vec::with_capacity(self.agents.len());
        let mut changed = ChangesOfAgents::default();
        for (i, agent) in self.agents.into_iter().enumerate() {
            if i % YIELD_AFTER == YIELD_AFTER - 1 {
                tokio::task::yield_now().await;
            }
            match agent {
                AgentDecision::Change(action, decided) => {
                    let (with, changes) = change.one_agent(&decided, &mut changed)?;
                    change = with;
                    results.push(applied(action, decided.after(), &changes)?);
                }
                AgentDecision::Keep(found) => {
                    results.push(applied(ApplyAction::Keep, &found.value, b"{}")?);
                    change = change.check(found.unchanged());
                }
            }
        }
        let done = results.iter().filter(|applied| applied.action != ApplyAction::Keep);
        let done = done.map(|applied| AppliedRow {
            agent_id: applied.agent_id.to_string(),
            action: applied.action.to_string(),
            version: applied.version,
        });
        change = change.about_applied(done.collect());
        Ok((change.audit_of_agents(changed), results))
    }
}

/// Writes the members of a set. An apply of a set checks the set's record in any case, so that two of one set
/// never interleave.
fn write_set<'a>(
    mut change: Change<'a>,
    workspace: WorkspaceId,
    name: Option<SetName>,
    found: Option<Stored<AgentSet>>,
    joined: Vec<AgentId>,
    left: Vec<(AgentId, Option<Stored<SetMember>>)>,
) -> Result<Change<'a>, Error> {
    let Some(name) = name else { return Ok(change) };
    let key = records::agent_set(workspace, &name);
    change = change.check(key.unchanged(found.as_ref()));
    if joined.is_empty() && left.is_empty() {
        return Ok(change);
    }
    let mut agents: BTreeSet<AgentId> = found.map(|found| found.value.agents).into_iter().flatten().collect();
    for agent_id in &joined {
        let member = records::set_member(workspace, agent_id);
        let joined = SetMember {
            set: name.clone(),
            revision: 0,
        };
        let text = serde_json::to_vec(&joined).map_err(records::not_written)?;
        change = change
            .check(member.absent())
            .extended(|transaction| Ok(transaction.put_revised(member, text)))?;
    }
    for (agent_id, member) in &left {
        agents.remove(agent_id);
        if let Some(member) = member {
            change = change.check(member.unchanged()).delete(member.key.clone());
        }
    }
    agents.extend(joined);
    if agents.is_empty() {
        return Ok(change.delete(key));
    }
    let agents = agents.into_iter().collect();
    change.put(key, &AgentSet { set: name, agents })
}

fn applied(action: ApplyAction, stored: &StoredAgent, changes: &[u8]) -> Result<AppliedAgent, Error> {
    Ok(AppliedAgent {
        agent_id: stored.agent.agent_id.clone(),
        action,
        version: stored.version(),
        changes: serde_json::from_slice(changes).map_err(records::not_read)?,
    })
}
