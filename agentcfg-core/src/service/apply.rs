//! Apply: many agents brought to a wanted state in one commit, or in none.
//!
//! An attempt reads the agents of the body and of the set, decides what happens to each, and commits all of it under
//! the checks that none of these records has changed since. An attempt that lost a race decides again.

mod base_check;
mod decision;

use std::collections::HashSet;
use std::sync::Arc;

use super::access::Access;
use super::records::{self, Outcome, SetMember, Stored, Turn, WorkspacePlan};
use super::retry::Attempt;
use super::{AgentCfg, Caller, no_member};
use crate::error::{Error, ErrorKind};
use crate::model::{
    AgentId, AgentSet, AppliedAgents, ApplyAgents, Cursor, CursorError, Permission, StoredAgent, Timestamp, WorkspaceId,
};
use crate::validate::{Faults, IntoValid, Invalid};

impl AgentCfg {
    /// Brings agents to the state that the body names, all in one commit: creates, changes and restores them and, with
    /// [`ApplyAgents::prune`], deactivates those of the set that are not named.
    ///
    /// The outcome depends on the body alone: a field that is left out gets its default. With `dry_run` everything is
    /// decided and nothing is changed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for the body, and for a cursor or an element of another workspace,
    /// [`ErrorKind::Forbidden`] without `agents:configure` (a dry run needs `agents:read`), [`ErrorKind::Precondition`]
    /// when an agent has changed since [`ApplyAgents::base`], [`ErrorKind::Conflict`] for an agent of another set,
    /// [`ErrorKind::PlanLimit`] when more agents would be active than before and than the plan allows,
    /// [`ErrorKind::TooLarge`] when the store cannot hold the change in one commit, as a cluster of etcd cannot hold
    /// some megabytes; a dry run does not notice this.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let editor = AgentSpec::new("editor".parse()?, "Editor");
    /// let body = ApplyAgents::of(vec![editor]).set(Some("docs".parse()?));
    /// let applied = service.apply_agents(&ada, studio, body.clone(), false).await?;
    /// assert_eq!(applied.results[0].action, ApplyAction::Create);
    /// let again = service.apply_agents(&ada, studio, body, false).await?;
    /// assert_eq!(again.results[0].action, ApplyAction::Keep);
    /// # Ok(()) }) }
    /// ```
    pub async fn apply_agents(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        body: impl IntoValid<ApplyAgents>,
        dry_run: bool,
    ) -> Result<AppliedAgents, Error> {
        let (service, caller) = (self.clone(), caller.clone());
        let body = Arc::new(body.into_valid()?.into_inner());
        self.retry_decision(workspace, move |turn| {
            let (service, caller, body) = (service.clone(), caller.clone(), Arc::clone(&body));
            async move {
                service
                    .try_apply_agents(&caller, workspace, &body, dry_run, &turn)
                    .await
            }
        })
        .await
    }

    async fn try_apply_agents(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        body: &ApplyAgents,
        dry_run: bool,
        turn: &Turn,
    ) -> Result<Attempt<AppliedAgents>, Error> {
        let permission = Permission::AgentsConfigure.unless_dry_run(dry_run);
        let access = self.access(caller, workspace, permission).await?;
        for spec in &body.agents {
            access.limits().require_agent(&spec.agent_id)?;
        }
        of_one_workspace(body, workspace)?;
        let epoch = self.epoch().await?;
        let Some(state) = self.state_for(&access, body).await? else {
            return Ok(Attempt::Raced);
        };
        if let Some(base) = body.base {
            self.require_unchanged(base, &state, body, workspace).await?;
        }
        self.limit_personas(body, &state)?;
        in_one_set(body, &state)?;
        let limit = self.agent_limit(state.plan.value.plan);
        let at = state.time(self.now());
        let decided = self.decide_apply(body, state, at, workspace).await?;
        decided.within_plan(limit)?;
        if dry_run || decided.is_nothing() {
            let cursor = Cursor::new(epoch, workspace, decided.revision);
            let results = decided.results()?;
            return Ok(Attempt::Done(AppliedAgents { cursor, results }));
        }
        let (change, results) = decided.write(&access, at, limit).await?;
        Ok(match self.apply_in_turn(change, turn).await? {
            Outcome::Done(done) => Attempt::Done(AppliedAgents {
                cursor: Cursor::new(epoch, workspace, done.revision),
                results,
            }),
            // The number of agents has changed as well: the next attempt sees by how much.
            Outcome::Raced | Outcome::Limit => Attempt::Raced,
        })
    }

    fn limit_personas(&self, body: &ApplyAgents, state: &ApplyState) -> Result<(), Invalid> {
        let mut faults = Faults::default();
        for (i, (spec, (found, _))) in body.agents.iter().zip(&state.named).enumerate() {
            let stored = found
                .as_ref()
                .and_then(|found| found.value.agent.persona_prompt.as_deref());
            let field = format_args!("agents[{i}].persona_prompt");
            self.limit_persona(spec.persona_prompt.as_deref(), stored, &field, &mut faults);
        }
        faults.into_result()
    }

    /// Reads all records that an apply is decided on, in one snapshot; `None` when the set has changed since it was
    /// asked which they are.
    async fn state_for(&self, access: &Access, body: &ApplyAgents) -> Result<Option<ApplyState>, Error> {
        let workspace = access.workspace();
        let of_agent = |agent_id: &str| {
            (
                records::agent(workspace, agent_id),
                records::set_member(workspace, agent_id),
            )
        };
        // The name of a set is never empty, so this key names no record.
        let set_name = body.set.as_deref().unwrap_or_default();
        let first = (
            records::workspace_plan(workspace),
            records::revision(workspace),
            records::active_agents(workspace),
            records::agent_set(workspace, set_name),
        );
        // The other agents of the set matter if they may be pruned or their change refused.
        let others = match body.prune || body.base.is_some() {
            true => Some(self.read(records::agent_set(workspace, set_name)).await?),
            false => None,
        };
        let is_named: HashSet<_> = body.agents.iter().map(|spec| &spec.agent_id).collect();
        let of_set = others.iter().flatten().flat_map(|set| &set.value.agents);
        let rest: Vec<AgentId> = of_set
            .filter(|agent_id| !is_named.contains(agent_id) && access.limits().includes(agent_id))
            .cloned()
            .collect();
        let agents = body.agents.iter().map(|spec| &spec.agent_id).chain(&rest);
        let agents = agents.map(|agent_id| of_agent(agent_id)).collect();
        let ((plan, revision, active, set), mut named) = self.read::<(_, Vec<_>)>((first, agents)).await?;
        let version = |set: &Option<Stored<AgentSet>>| set.as_ref().map(|set| set.version);
        if others.is_some_and(|asked| version(&asked) != version(&set)) {
            return Ok(None);
        }
        let found = named.split_off(body.agents.len());
        Ok(Some(ApplyState {
            plan: plan.ok_or_else(no_member)?,
            revision,
            active,
            set,
            named,
            others: rest.into_iter().zip(found).collect(),
        }))
    }
}

/// An agent, and the set that it belongs to.
type AgentAndSet = (Option<Stored<StoredAgent>>, Option<Stored<SetMember>>);

/// The records that an apply is decided on.
struct ApplyState {
    plan: Stored<WorkspacePlan>,
    /// The revision of the state.
    revision: u64,
    active: u64,
    set: Option<Stored<AgentSet>>,
    /// The agents of the body, in its order.
    named: Vec<AgentAndSet>,
    /// The other agents of the set, where they were read.
    others: Vec<(AgentId, AgentAndSet)>,
}

impl ApplyState {
    /// The time of the change: now, but after the last change of each agent.
    fn time(&self, now: Timestamp) -> Timestamp {
        let named = self.named.iter().filter_map(|(agent, _)| agent.as_ref());
        let others = self.others.iter().filter_map(|(_, (agent, _))| agent.as_ref());
        let changes = named
            .chain(others)
            .map(|agent| agent.value.agent.updated_at.plus_millis(1));
        changes.fold(now, Timestamp::max)
    }
}

/// Refuses elements and a base of another workspace.
fn of_one_workspace(body: &ApplyAgents, workspace: WorkspaceId) -> Result<(), Invalid> {
    let mut faults = Faults::default();
    for (i, spec) in body.agents.iter().enumerate() {
        if spec.workspace_id.is_some_and(|id| id != workspace) {
            let field = format_args!("agents[{i}].workspace_id");
            faults.push(field, "must be the workspace of the request, or be left out");
        }
    }
    if body.base.is_some_and(|base| base.workspace() != workspace) {
        faults.push("base", CursorError::OtherWorkspace);
    }
    faults.into_result()
}

/// Refuses agents of another set.
fn in_one_set(body: &ApplyAgents, state: &ApplyState) -> Result<(), Error> {
    let Some(set) = &body.set else { return Ok(()) };
    let members = body.agents.iter().zip(&state.named);
    let mut others = members.filter_map(|(spec, (_, member))| {
        let member = member.as_ref()?;
        (member.value.set != *set).then_some((&spec.agent_id, &member.value.set))
    });
    let Some((agent_id, other)) = others.next() else {
        return Ok(());
    };
    let more = match others.count() {
        0 => String::new(),
        more => format!(", and so do {more} more to other sets"),
    };
    let message = format!("the agent {agent_id} belongs to the set {other}{more}; an agent belongs to one set at most");
    Err(Error::new(ErrorKind::Conflict, message))
}
