//! Agent configurations: read one, create, update, delete, restore. Their list is in [`lists`](super::lists).

use std::fmt;

use super::access::Access;
use super::agent_change::AgentChange;
use super::change::Change;
use super::records::{self, CalledAgent, EntityKey, Lookup, Outcome, Stored, WorkspacePlan};
use super::retry::{Attempt, Rounds};
use super::{AgentCfg, Caller, not_found};
use crate::error::{Error, ErrorKind};
use crate::model::{
    Agent, AgentId, AgentPatch, IdRef, NewAgent, Permission, Plan, Precondition, StoredAgent, Success, Tag, TargetType,
    VersionedAgent, WorkspaceId,
};
use crate::rules::Persona;
use crate::store::Check;
use crate::validate::{Faults, IntoValid, Invalid};

impl AgentCfg {
    /// Reads one active agent with the tag of its record.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `agents:read` in the workspace, [`ErrorKind::NotFound`] for an unknown or
    /// deleted agent.
    ///
    /// ```
    /// use agentcfg_core::model::{NewAgent, NewWorkspace};
    /// use agentcfg_core::{AgentCfg, ErrorKind, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let ada = service.trusted_user("ada")?;
    /// let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
    /// let created = service.create_agent(&ada, NewAgent::new(studio.id, "writer".parse()?, "Writer")).await?;
    /// assert_eq!(service.get_agent(&ada, studio.id, &created.value.agent_id).await?, created);
    /// let unknown = service.get_agent(&ada, studio.id, "editor").await.unwrap_err();
    /// assert_eq!(unknown.kind(), ErrorKind::NotFound);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn get_agent(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        agent_id: impl Into<IdRef<'_, AgentId>>,
    ) -> Result<VersionedAgent, Error> {
        let agent_id = agent_id.into();
        let access = self.access(caller, workspace, Permission::AgentsRead).await?;
        let found = self.active_agent(&access, agent_id).await?;
        let tag = Tag::record(self.epoch().await?, found.version);
        Ok(versioned(found.value, tag))
    }

    /// Creates an agent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a field out of its bounds, [`ErrorKind::Forbidden`] without
    /// `agents:configure`, [`ErrorKind::Conflict`] when the identifier is taken, by a deleted agent
    /// too, [`ErrorKind::PlanLimit`] when the plan allows no more active agents.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let new = NewAgent::new(studio, "reviewer".parse()?, "Reviewer").model("gpt-5.5");
    /// let reviewer = service.create_agent(&ada, new).await?;
    /// assert!(reviewer.value.is_active);
    /// # Ok(()) }) }
    /// ```
    pub async fn create_agent(&self, caller: &Caller, new: impl IntoValid<NewAgent>) -> Result<VersionedAgent, Error> {
        let new = new.into_valid()?.into_inner();
        let mut faults = Faults::default();
        self.limit_persona(new.persona_prompt.as_deref(), None, &"persona_prompt", &mut faults);
        faults.into_result()?;
        let now = self.now();
        let mut agent = new.into_agent(self.new_id(now)?, now);
        let mut rounds = Rounds::default();
        loop {
            let attempt = self.try_create_agent(caller, &mut agent, rounds.is_first());
            if let Attempt::Done(created) = attempt.await? {
                return Ok(created);
            }
            rounds.lost().await?;
        }
    }

    /// The first attempt assumes that there is no such agent, as is nearly always so, and saves the read. The commit
    /// checks the assumption.
    async fn try_create_agent(
        &self,
        caller: &Caller,
        agent: &mut Agent,
        is_first: bool,
    ) -> Result<Attempt<VersionedAgent>, Error> {
        let access = self
            .access(caller, agent.workspace_id, Permission::AgentsConfigure)
            .await?;
        access.limits().require_agent(&agent.agent_id)?;
        let key = records::agent(access.workspace(), &agent.agent_id);
        let (plan, existing) = match is_first {
            true => (self.plan_of(&access).await?, None),
            false => self.plan_and(&access, key).await?,
        };
        if let Some(existing) = existing {
            let hint = if existing.value.agent.is_active {
                ""
            } else {
                "; it is deactivated and can be restored"
            };
            let message = format!(
                "an agent with agent_id {:?} already exists in this workspace{hint}",
                agent.agent_id
            );
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        if !is_first {
            // The list is ordered by times and identifiers, so an attempt that lost a race takes new ones.
            let now = self.now();
            (agent.id, agent.created_at, agent.updated_at) = (self.new_id(now)?, now, now);
        }
        self.commit_agent(&access, AgentChange::new(None, agent.clone()), Some(plan))
            .await
    }

    /// Changes the named fields of an agent.
    ///
    /// `workspace` may be left out where the caller has just one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a field out of its bounds or an identity that is not the agent's,
    /// [`ErrorKind::Forbidden`] without `agents:configure`, [`ErrorKind::NotFound`] for an unknown
    /// or deleted agent, [`ErrorKind::Precondition`] when the condition is not met.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let patch = AgentPatch::default().role("author");
    /// let writer = service.update_agent(&ada, Some(studio), "writer", patch, &Precondition::None).await?;
    /// assert_eq!(writer.value.role.as_deref(), Some("author"));
    /// // From now on only if nothing else has changed the agent:
    /// let patch = AgentPatch::default().role(Patch::Null);
    /// service.update_agent(&ada, Some(studio), "writer", patch, &Precondition::matches(writer.tag)).await?;
    /// # Ok(()) }) }
    /// ```
    pub async fn update_agent(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        patch: impl IntoValid<AgentPatch>,
        condition: &Precondition,
    ) -> Result<VersionedAgent, Error> {
        let (agent_id, patch) = (agent_id.into(), patch.into_valid()?);
        self.retry_lost_races(|| self.try_update_agent(caller, workspace, agent_id, &patch, condition))
            .await
    }

    /// Refuses a persona that is longer than the deployment allows, unless it is the one that the agent has.
    pub(super) fn limit_persona(
        &self,
        persona: Option<&str>,
        stored: Option<&str>,
        field: &dyn fmt::Display,
        faults: &mut Faults,
    ) {
        if let Some(persona) = persona
            && let Some(fault) = Persona::fault(persona, self.settings().max_persona_prompt)
            && stored != Some(persona)
        {
            faults.push(field, fault);
        }
    }

    async fn try_update_agent(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: IdRef<'_, AgentId>,
        patch: &AgentPatch,
        condition: &Precondition,
    ) -> Result<Attempt<VersionedAgent>, Error> {
        let access = self
            .access_default(caller, workspace, Permission::AgentsConfigure)
            .await?;
        let found = self.active_agent(&access, agent_id).await?;
        same_identity(patch, &found.value.agent)?;
        let mut agent = found.value.agent.clone();
        patch.clone().apply(&mut agent);
        let mut faults = Faults::default();
        let stored = found.value.agent.persona_prompt.as_deref();
        self.limit_persona(agent.persona_prompt.as_deref(), stored, &"persona_prompt", &mut faults);
        faults.into_result()?;
        self.require(&access, condition, &found).await?;
        agent.updated_at = self.after(agent.updated_at);
        self.commit_agent(&access, AgentChange::new(Some(found), agent), None)
            .await
    }

    /// Deletes an agent: the record is kept, not active, and its identifier stays taken.
    ///
    /// # Errors
    ///
    /// As [`Self::update_agent`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.delete_agent(&ada, Some(studio), "writer", &Precondition::None).await?;
    /// assert!(service.list_agents(&ada, studio, &Default::default()).await?.value.is_empty());
    /// # Ok(()) }) }
    /// ```
    pub async fn delete_agent(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        condition: &Precondition,
    ) -> Result<Success, Error> {
        let agent_id = agent_id.into();
        self.retry_lost_races(|| async {
            let access = self
                .access_default(caller, workspace, Permission::AgentsConfigure)
                .await?;
            let found = self.active_agent(&access, agent_id).await?;
            self.require(&access, condition, &found).await?;
            let agent = Agent {
                is_active: false,
                updated_at: self.after(found.value.agent.updated_at),
                ..found.value.agent.clone()
            };
            let attempt = self.commit_agent(&access, AgentChange::new(Some(found), agent), None);
            Ok(match attempt.await? {
                Attempt::Done(_) => Attempt::Done(Success::OK),
                Attempt::Raced => Attempt::Raced,
            })
        })
        .await
    }

    /// Makes a deleted agent active again.
    ///
    /// # Errors
    ///
    /// As [`Self::update_agent`]; [`ErrorKind::Conflict`] when the agent is active,
    /// [`ErrorKind::PlanLimit`] when the plan allows no more active agents.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.delete_agent(&ada, Some(studio), "writer", &Precondition::None).await?;
    /// let writer = service.restore_agent(&ada, Some(studio), "writer", &Precondition::None).await?;
    /// assert!(writer.value.is_active);
    /// # Ok(()) }) }
    /// ```
    pub async fn restore_agent(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        condition: &Precondition,
    ) -> Result<VersionedAgent, Error> {
        let agent_id = agent_id.into();
        self.retry_lost_races(|| self.try_restore_agent(caller, workspace, agent_id, condition))
            .await
    }

    async fn try_restore_agent(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: IdRef<'_, AgentId>,
        condition: &Precondition,
    ) -> Result<Attempt<VersionedAgent>, Error> {
        let access = self
            .access_default(caller, workspace, Permission::AgentsConfigure)
            .await?;
        let key = agent_key(&access, agent_id)?;
        let (plan, found) = self.plan_and(&access, key).await?;
        let found = found.ok_or_else(|| not_found("agent", agent_id.as_str()))?;
        self.require(&access, condition, &found).await?;
        if found.value.agent.is_active {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("the agent {agent_id:?} is already active"),
            ));
        }
        let agent = Agent {
            is_active: true,
            updated_at: self.after(found.value.agent.updated_at),
            ..found.value.agent.clone()
        };
        self.commit_agent(&access, AgentChange::new(Some(found), agent), Some(plan))
            .await
    }

    /// Commits the change of one agent with its audit entry. A change that makes one more agent active takes the plan,
    /// which limits their number.
    pub(super) async fn commit_agent(
        &self,
        access: &Access,
        decided: AgentChange,
        plan: Option<Stored<WorkspacePlan>>,
    ) -> Result<Attempt<VersionedAgent>, Error> {
        let after = &decided.after().agent;
        let (at, id) = (after.updated_at, after.agent_id.clone());
        let mut change = Change::new(access, at, decided.action(), TargetType::Agent, id).agent(&decided)?;
        let limit = plan.as_ref().and_then(|plan| self.agent_limit(plan.value.plan));
        if let Some(plan) = &plan {
            change = change.check(plan.unchanged());
        }
        if decided.growth() != 0 {
            let counter = records::active_agents(access.workspace());
            change = change.add(counter, decided.growth(), limit.map(u64::from));
        }
        let epoch = self.epoch().await?;
        Ok(match (self.apply(change).await?, plan) {
            (Outcome::Done(done), _) => {
                let tag = Tag::record(epoch, done.version);
                Attempt::Done(versioned(decided.into_after(), tag))
            }
            (Outcome::Raced, _) => Attempt::Raced,
            (Outcome::Limit, Some(plan)) => return Err(over_limit(plan.value.plan, limit)),
            (Outcome::Limit, None) => {
                return Err(Error::new(ErrorKind::Internal, "the number of active agents is wrong"));
            }
        })
    }

    /// The workspace's plan. When its record was read together with the credential, this reads nothing.
    async fn plan_of(&self, access: &Access) -> Result<Stored<WorkspacePlan>, Error> {
        let key = records::workspace_plan(access.workspace());
        let found = match access.take_plan() {
            Some(plan) => Some(plan.decode()?),
            None => self.read(key).await?,
        };
        found.ok_or_else(super::no_member)
    }

    /// The workspace's plan, and an agent, in one read.
    async fn plan_and(
        &self,
        access: &Access,
        agent: EntityKey<StoredAgent>,
    ) -> Result<(Stored<WorkspacePlan>, Option<Stored<StoredAgent>>), Error> {
        let (plan, agent) = self.read((records::workspace_plan(access.workspace()), agent)).await?;
        Ok((plan.ok_or_else(super::no_member)?, agent))
    }

    /// Checks a precondition against the version that was read.
    pub(super) async fn require(
        &self,
        access: &Access,
        condition: &Precondition,
        found: &Stored<StoredAgent>,
    ) -> Result<(), Error> {
        let current = Tag::record(self.epoch().await?, found.version);
        if condition.is_met_by(current) {
            return Ok(());
        }
        let may_read = access.permissions().contains(Permission::AgentsRead);
        Err(Error::stale(may_read.then_some(current)))
    }

    pub(super) async fn active_agent(
        &self,
        access: &Access,
        agent_id: IdRef<'_, AgentId>,
    ) -> Result<Stored<StoredAgent>, Error> {
        let found = self.read(agent_key(access, agent_id)?).await?;
        active(found, agent_id)
    }

    /// An active agent with three other records, in one read.
    pub(super) async fn active_agent_and<A: Lookup, B: Lookup, C: Lookup>(
        &self,
        access: &Access,
        agent_id: IdRef<'_, AgentId>,
        (a, b, c): (A, B, C),
    ) -> Result<(StoredAgent, (A::Found, B::Found, C::Found)), Error> {
        let (found, a, b, c) = self.read((agent_key(access, agent_id)?, a, b, c)).await?;
        Ok((active(found, agent_id)?.value, (a, b, c)))
    }

    /// The parts of an active agent that a model call needs, with three other records, in one read.
    pub(super) async fn called_agent_and<A: Lookup, B: Lookup, C: Lookup>(
        &self,
        access: &Access,
        agent_id: IdRef<'_, AgentId>,
        (a, b, c): (A, B, C),
    ) -> Result<(CalledAgent, (A::Found, B::Found, C::Found)), Error> {
        check_named(access, agent_id)?;
        let key = records::called_agent(access.workspace(), agent_id.as_str());
        let (found, a, b, c) = self.read((key, a, b, c)).await?;
        let agent = found.map(|found| found.value).filter(|agent| agent.is_active);
        Ok((agent.ok_or_else(|| not_found("agent", agent_id.as_str()))?, (a, b, c)))
    }

    /// An active agent with the check that its record stays as it is.
    pub(super) async fn active_agent_checked(
        &self,
        access: &Access,
        agent_id: IdRef<'_, AgentId>,
    ) -> Result<(Agent, Check), Error> {
        let found = self.active_agent(access, agent_id).await?;
        let unchanged = found.unchanged();
        Ok((found.value.agent, unchanged))
    }
}

/// An agent with its tag and version, as methods return it.
pub(super) fn versioned(stored: StoredAgent, tag: Tag) -> VersionedAgent {
    VersionedAgent {
        version: stored.version(),
        value: stored.agent,
        tag,
    }
}

/// The refusal of more active agents than the plan allows.
pub(super) fn over_limit(plan: Plan, limit: Option<u32>) -> Error {
    let limit = limit.unwrap_or_default();
    let message = format!(
        "the plan {plan} of this workspace allows {limit} active agents, and all of them exist; an operator of this service \
         can change the plan"
    );
    Error::new(ErrorKind::PlanLimit, message)
}

/// An agent that is there and not deleted.
pub(super) fn active(
    found: Option<Stored<StoredAgent>>,
    agent_id: IdRef<'_, AgentId>,
) -> Result<Stored<StoredAgent>, Error> {
    found
        .filter(|found| found.value.agent.is_active)
        .ok_or_else(|| not_found("agent", agent_id.as_str()))
}

/// The key of an agent. An identifier that breaks the rules is answered as not found.
pub(super) fn agent_key(access: &Access, agent_id: IdRef<'_, AgentId>) -> Result<EntityKey<StoredAgent>, Error> {
    check_named(access, agent_id)?;
    Ok(records::agent(access.workspace(), agent_id.as_str()))
}

/// Refuses an identifier that no agent can have.
fn check_named(access: &Access, agent_id: IdRef<'_, AgentId>) -> Result<(), Error> {
    access.limits().require_agent(agent_id.as_str())?;
    match agent_id.is_possible() {
        true => Ok(()),
        false => Err(not_found("agent", agent_id.as_str())),
    }
}

/// The identity in a patch may only repeat what is stored.
fn same_identity(patch: &AgentPatch, agent: &Agent) -> Result<(), Error> {
    let mut faults = Faults::default();
    if patch.workspace_id.is_some_and(|id| id != agent.workspace_id) {
        faults.push("workspace_id", "cannot be changed after creation");
    }
    if patch.agent_id.as_ref().is_some_and(|id| agent.agent_id != **id) {
        faults.push("agent_id", "cannot be changed after creation");
    }
    faults.into_result().map_err(|invalid: Invalid| invalid.into())
}
