//! Apply: many agents brought to a wanted state in one commit, or in none.
//!
//! An attempt reads the agents of the body and of the set, decides what happens to each, and commits all of it under the
//! checks that none of these records has changed since. An attempt that lost a race decides again.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::access::Access;
use super::agent_change::AgentChange;
use super::agents::over_limit;
use super::change::{Attempt, Change};
use super::pieces::Pieces;
use super::records::{self, Entity, Entries, Outcome, SetMember, Stored, WorkspacePlan};
use super::{AgentCfg, Caller, diff, no_member};
use crate::error::{Error, ErrorKind};
use crate::model::{
    Action, Agent, AgentId, AgentSet, AgentSpec, AppliedAgent, AppliedAgents, ApplyAction, ApplyAgents, Cursor,
    CursorError, Permission, SetName, StoredAgent, Target, TargetType, Timestamp, WorkspaceId,
};
use crate::store::Kind;
use crate::validate::{Faults, IntoValid, Invalid};

/// After how many agents other tasks get a turn.
const TURN: usize = 32;

/// The greatest number of identifiers in a message.
const SHOWN: usize = 10;

impl AgentCfg {
    /// Brings agents to the state that the body names, all in one commit: creates, changes and restores them and, with
    /// [`ApplyAgents::prune`], deactivates those of the set that are not named. (Decisions, chapter 19.)
    ///
    /// The outcome depends on the body alone: a field that is left out gets its default. With `dry_run` everything is decided
    /// and nothing is changed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for the body, and for a cursor or an element of another workspace, [`ErrorKind::Forbidden`]
    /// without `agents:configure`, [`ErrorKind::Precondition`] when an agent has changed since [`ApplyAgents::base`],
    /// [`ErrorKind::Conflict`] for an agent of another set, [`ErrorKind::PlanLimit`] when more agents would be active than
    /// before and than the plan allows.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let editor = AgentSpec::new("editor".parse()?, "Editor");
    /// let body = ApplyAgents { set: Some("docs".parse()?), ..ApplyAgents::of(vec![editor]) };
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
        let body = body.into_valid()?.into_inner();
        self.settle(|| self.try_apply_agents(caller, workspace, &body, dry_run))
            .await
    }

    async fn try_apply_agents(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        body: &ApplyAgents,
        dry_run: bool,
    ) -> Result<Attempt<AppliedAgents>, Error> {
        let access = self.access(caller, workspace, Permission::AgentsConfigure).await?;
        of_one_workspace(body, workspace)?;
        let epoch = self.epoch().await?;
        let state = self.state_for(&access, body).await?;
        if let Some(base) = body.base {
            self.require_unchanged(base, &state, body, workspace).await?;
        }
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
        Ok(match self.apply(change).await? {
            Outcome::Done(done) => Attempt::Done(AppliedAgents {
                cursor: Cursor::new(epoch, workspace, done.revision),
                results,
            }),
            // The number of agents has changed as well: the next attempt sees by how much.
            Outcome::Raced | Outcome::Limit => Attempt::Raced,
        })
    }

    /// Reads all records that an apply is decided on.
    async fn state_for(&self, access: &Access, body: &ApplyAgents) -> Result<State, Error> {
        let workspace = access.workspace();
        let of_agent = |agent_id: &str| {
            (
                records::agent(workspace, agent_id),
                records::set_member(workspace, agent_id),
            )
        };
        // No set has an empty name.
        let set_name = body.set.as_deref().unwrap_or_default();
        let first = (
            records::workspace_plan(workspace),
            records::revision(workspace),
            records::active_agents(workspace),
            records::agent_set(workspace, set_name),
        );
        let named = body.agents.iter().map(|spec| of_agent(&spec.agent_id)).collect();
        let ((plan, revision, active, set), named) = self.read::<(_, Vec<_>)>((first, named)).await?;
        let plan = plan.ok_or_else(no_member)?;
        // The other agents of the set matter if they may be pruned or their change refused. The commit checks that the set is
        // still the one whose agents these are.
        let is_named: HashSet<_> = body.agents.iter().map(|spec| &spec.agent_id).collect();
        let others = set.iter().flat_map(|set| &set.value.agents);
        let others: Vec<AgentId> = others
            .filter(|agent_id| !is_named.contains(agent_id))
            .cloned()
            .collect();
        let (last_revision, rest) = match body.prune || body.base.is_some() {
            true => {
                let rest = others.iter().map(|agent_id| of_agent(agent_id)).collect::<Vec<_>>();
                self.read((records::revision(workspace), rest)).await?
            }
            false => (revision, Vec::new()),
        };
        Ok(State {
            plan,
            revision,
            last_revision,
            active,
            set,
            named,
            others: others
                .into_iter()
                .zip(rest)
                .map(|(id, (agent, member))| (id, agent, member))
                .collect(),
        })
    }

    /// Refuses the change when one of its agents has changed since the base.
    async fn require_unchanged(
        &self,
        base: Cursor,
        state: &State,
        body: &ApplyAgents,
        workspace: WorkspaceId,
    ) -> Result<(), Error> {
        let last = state.last_revision;
        let since = match base.revision_in(workspace, self.epoch().await?, last) {
            Ok(revision) => revision,
            Err(error @ CursorError::OtherWorkspace) => return Err(Invalid::new("base", error).into()),
            Err(error) => return Err(Error::new(ErrorKind::Precondition, format!("base {error}"))),
        };
        let agents = body.agents.iter().map(|spec| &*spec.agent_id);
        let agents: HashSet<&str> = agents.chain(state.others.iter().map(|(id, ..)| &**id)).collect();
        let changed = self.changed_agents(workspace, since, last, &agents).await?;
        if changed.is_empty() {
            return Ok(());
        }
        let mut message = format!("since base {} of these agents have changed: ", changed.len());
        message += &changed
            .iter()
            .take(SHOWN)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        if changed.len() > SHOWN {
            message += " and others";
        }
        Err(Error::new(ErrorKind::Precondition, message))
    }

    /// Which of these agents the log changes after one entry and up to another.
    async fn changed_agents(
        &self,
        workspace: WorkspaceId,
        mut since: u64,
        last: u64,
        agents: &HashSet<&str>,
    ) -> Result<BTreeSet<String>, Error> {
        let (mut changed, mut pieces) = (BTreeSet::new(), Pieces::default());
        while since < last {
            let after = records::audit_entry(workspace, since);
            let entries = Entries::<LogSubject>::in_workspace(workspace).after(&after);
            let found = self.scan(entries.limit(pieces.limit())).await?;
            if found.is_empty() {
                return Err(Error::new(ErrorKind::Internal, "the log ends before its last entry"));
            }
            pieces.note(found.len(), found.bytes());
            for entry in found {
                since += 1;
                let of_entry = entry.value()?.agents();
                changed.extend(of_entry.into_iter().filter(|agent_id| agents.contains(&**agent_id)));
            }
        }
        Ok(changed)
    }

    /// Decides what happens to each agent.
    async fn decide_apply(
        &self,
        body: &ApplyAgents,
        state: State,
        at: Timestamp,
        workspace: WorkspaceId,
    ) -> Result<Decided, Error> {
        let mut decided = Decided {
            plan: state.plan,
            revision: state.revision,
            active: state.active,
            set: state.set,
            set_name: body.set.clone(),
            agents: Vec::with_capacity(body.agents.len()),
            joined: Vec::new(),
            left: Vec::new(),
        };
        for (i, (spec, (found, member))) in body.agents.iter().zip(state.named).enumerate() {
            if i % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
            if decided.set_name.is_some() && member.is_none() {
                decided.joined.push(spec.agent_id.clone());
            }
            decided.agents.push(match found {
                None => {
                    let agent = spec.to_agent(workspace, (self.new_id(at)?, at, at));
                    OneDecided::Change(ApplyAction::Create, AgentChange::new(None, agent))
                }
                Some(found) => wanted(spec, found, at)?,
            });
        }
        if body.prune {
            for (agent_id, found, member) in state.others {
                if let Some(found) = found.filter(|found| found.value.agent.is_active) {
                    let agent = Agent {
                        is_active: false,
                        updated_at: at,
                        ..found.value.agent.clone()
                    };
                    let change = AgentChange::new(Some(found), agent);
                    decided.agents.push(OneDecided::Change(ApplyAction::Deactivate, change));
                }
                decided.left.push((agent_id, member));
            }
        }
        Ok(decided)
    }
}

/// The records that an apply is decided on.
struct State {
    plan: Stored<WorkspacePlan>,
    /// The revision of the first read, and so a state that is not later than any record here.
    revision: u64,
    /// The revision of the last read, which no record here is later than, but for those that the commit refuses.
    last_revision: u64,
    active: u64,
    set: Option<Stored<AgentSet>>,
    /// The agents of the body, in its order.
    named: Vec<(Option<Stored<StoredAgent>>, Option<Stored<SetMember>>)>,
    /// The other agents of the set, where they were read.
    others: Vec<(AgentId, Option<Stored<StoredAgent>>, Option<Stored<SetMember>>)>,
}

impl State {
    /// The time of the change: now, but after the last change of each agent.
    fn time(&self, now: Timestamp) -> Timestamp {
        let named = self.named.iter().filter_map(|(agent, _)| agent.as_ref());
        let others = self.others.iter().filter_map(|(_, agent, _)| agent.as_ref());
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
fn in_one_set(body: &ApplyAgents, state: &State) -> Result<(), Error> {
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

/// What happens to one agent.
enum OneDecided {
    Change(ApplyAction, AgentChange),
    Keep(Stored<StoredAgent>),
}

/// Decides how an agent that exists comes to its wanted state.
fn wanted(spec: &AgentSpec, found: Stored<StoredAgent>, at: Timestamp) -> Result<OneDecided, Error> {
    let before = &found.value.agent;
    let same_time = (before.id, before.created_at, before.updated_at);
    let agent = spec.to_agent(before.workspace_id, same_time);
    if !before.is_active {
        let agent = Agent {
            updated_at: at,
            ..agent
        };
        return Ok(OneDecided::Change(
            ApplyAction::Restore,
            AgentChange::new(Some(found), agent),
        ));
    }
    if agent.has_content_of(before) {
        return Ok(OneDecided::Keep(found));
    }
    let agent = Agent {
        updated_at: at,
        ..agent
    };
    Ok(OneDecided::Change(
        ApplyAction::Update,
        AgentChange::new(Some(found), agent),
    ))
}

/// An apply that is decided.
struct Decided {
    plan: Stored<WorkspacePlan>,
    revision: u64,
    active: u64,
    set: Option<Stored<AgentSet>>,
    set_name: Option<SetName>,
    /// The agents of the body in its order, and then the pruned ones that were active.
    agents: Vec<OneDecided>,
    /// The agents that the set gets.
    joined: Vec<AgentId>,
    /// The agents that the set loses, each with the record that says so.
    left: Vec<(AgentId, Option<Stored<SetMember>>)>,
}

impl Decided {
    /// How many more agents are active after the change.
    fn growth(&self) -> i64 {
        let changes = self.agents.iter().map(|agent| match agent {
            OneDecided::Change(_, change) => change.growth(),
            OneDecided::Keep(_) => 0,
        });
        changes.sum()
    }

    fn within_plan(&self, limit: Option<u32>) -> Result<(), Error> {
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
    fn is_nothing(&self) -> bool {
        let keeps = |agent: &OneDecided| matches!(agent, OneDecided::Keep(_));
        self.joined.is_empty() && self.left.is_empty() && self.agents.iter().all(keeps)
    }

    /// What happens to each agent, without a commit.
    fn results(&self) -> Result<Vec<AppliedAgent>, Error> {
        let results = self.agents.iter().map(|agent| match agent {
            OneDecided::Change(action, change) => applied(*action, change.after(), &change.changes()?),
            OneDecided::Keep(found) => applied(ApplyAction::Keep, &found.value, b"{}"),
        });
        results.collect()
    }

    /// The change with all of its checks and writes, and what happens to each agent.
    async fn write<'a>(
        self,
        access: &'a Access,
        at: Timestamp,
        limit: Option<u32>,
    ) -> Result<(Change<'a>, Vec<AppliedAgent>), Error> {
        let (workspace, growth) = (access.workspace(), self.growth());
        let id = workspace.to_string();
        let mut change = Change::new(access, at, Action::AgentsApplied, TargetType::Workspace, id);
        if growth > 0 {
            change = change.check(self.plan.unchanged());
        }
        if growth != 0 {
            let max = limit.map(u64::from).filter(|_| growth > 0);
            change = change.add(records::active_agents(workspace), growth, max);
        }
        change = write_set(change, workspace, self.set_name, self.set, self.joined, self.left)?;
        let mut results = Vec::with_capacity(self.agents.len());
        let (mut told, mut rebuilt) = (diff::OfAgents::default(), diff::OfAgents::default());
        for (i, agent) in self.agents.into_iter().enumerate() {
            if i % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
            match agent {
                OneDecided::Change(action, decided) => {
                    let (with, changes, rebuilding) = change.one_agent(&decided)?;
                    change = with;
                    let agent_id = &decided.after().agent.agent_id;
                    told.add(agent_id, &changes)?;
                    rebuilt.add(agent_id, &rebuilding)?;
                    results.push(applied(action, decided.after(), &changes)?);
                }
                OneDecided::Keep(found) => {
                    results.push(applied(ApplyAction::Keep, &found.value, b"{}")?);
                    change = change.check(found.unchanged());
                }
            }
        }
        Ok((change.tell_text(told.into_text(), rebuilt.into_text()), results))
    }
}

/// Writes who belongs to a set from now on. An apply of a set checks the set's record in any case, so that two of one set
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
        change = change
            .check(member.absent())
            .put(member, &SetMember { set: name.clone() })?;
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
        changes: serde_json::from_slice(changes).map_err(records::not_written)?,
    })
}

/// The part of a log entry that says what it is about.
#[derive(Deserialize)]
pub(super) struct LogSubject {
    action: Action,
    target: Target,
    changes: HashMap<String, IgnoredAny>,
}

impl Entity for LogSubject {
    const KIND: Kind = Kind::LogEntry;
}

impl LogSubject {
    /// The agents that the entry changes. A label points at an agent and does not change it.
    fn agents(self) -> BTreeSet<String> {
        match (self.action, self.target.kind) {
            (Action::AgentsApplied, _) => {
                let paths = self.changes.keys().filter_map(|path| diff::agent_field(path));
                paths.map(|(agent_id, _)| agent_id.to_owned()).collect()
            }
            (action, TargetType::Agent) if action.as_str().starts_with("agent.") => [self.target.id].into(),
            _ => BTreeSet::new(),
        }
    }
}
