//! Agent configurations: create, list, change, delete, restore.

use super::access::Access;
use super::change::{Applied, Attempt, Change, Rounds};
use super::lists::Writer;
use super::{AgentCfg, AgentList, Caller, not_found, schema};
use crate::error::{Error, ErrorKind};
use crate::model::{
    Action, Agent, AgentPatch, NewAgent, Permission, Plan, Precondition, Success, Tag, Tagged, TargetType, Timestamp,
    WorkspaceId,
};
use crate::store::{Check, Key, Record, Write};
use crate::validate::{self, IntoValid, Invalid};

/// Which agents to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentFilter {
    /// Only this one.
    pub agent_id: Option<String>,
    /// Skip so many.
    pub offset: usize,
    /// At most so many; `None` for all.
    pub limit: Option<usize>,
}

/// A workspace's plan, and the version of the record that says so.
struct CurrentPlan {
    plan: Plan,
    version: u64,
}

/// An agent's record as it was found.
struct Found {
    key: Key,
    version: u64,
    agent: Agent,
}

impl Found {
    fn tag(&self) -> Tag {
        Tag::record(self.version)
    }
}

impl AgentCfg {
    /// Lists the active agents of a workspace in the order of their creation.
    ///
    /// With [`AgentFilter::agent_id`] the tag is that agent's own. (Interface specification, *List
    /// agents*.)
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `agents:read` in the workspace.
    pub async fn list_agents(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        filter: &AgentFilter,
    ) -> Result<Tagged<AgentList>, Error> {
        let access = self.access(caller, workspace, Permission::AgentsRead).await?;
        let limit = filter.limit.unwrap_or(usize::MAX);
        if let Some(agent_id) = &filter.agent_id {
            return self.list_one(&access, agent_id, filter.offset, limit).await;
        }
        let list = self.agent_list(&access).await?;
        let tag = Tag::list(list.revision());
        Ok(Tagged {
            value: list.page(filter.offset, limit),
            tag,
        })
    }

    async fn list_one(
        &self,
        access: &Access,
        agent_id: &str,
        offset: usize,
        limit: usize,
    ) -> Result<Tagged<AgentList>, Error> {
        let head = Key::log_head(access.workspace());
        let mut keys = vec![head.clone()];
        keys.extend(validate::is_agent_id(agent_id).then(|| schema::agent(access.workspace(), agent_id)));
        let records = self.store().get(&keys).await?;
        let revision = schema::number(&head, records[0].as_ref())?;
        let found = keys.pop().zip(records.get(1).cloned().flatten());
        let found = found
            .map(|(key, record)| read(key, &record))
            .transpose()?
            .filter(|found| found.agent.is_active);
        let mut list = Writer::new(0);
        let mut tag = Tag::list(revision);
        if let Some(found) = found {
            tag = found.tag();
            list.push(found.agent)?;
        }
        Ok(Tagged {
            value: list.finish(revision, None).page(offset, limit),
            tag,
        })
    }

    /// Creates an agent. (Interface specification, *Create agent*.)
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a field out of its bounds, [`ErrorKind::Forbidden`] without
    /// `agents:configure`, [`ErrorKind::Conflict`] when the identifier is taken, by a deleted agent
    /// too, [`ErrorKind::PlanLimit`] when the plan allows no more active agents.
    pub async fn create_agent(&self, caller: &Caller, new: impl IntoValid<NewAgent>) -> Result<Tagged<Agent>, Error> {
        let new = new.into_valid()?.into_inner();
        let now = self.now();
        let mut agent = new.into_agent(self.new_id(now)?, now);
        let mut rounds = Rounds::default();
        loop {
            let attempt = self.try_create_agent(caller, &mut agent, rounds.is_first());
            if let Attempt::Done(tag) = attempt.await? {
                return Ok(Tagged { value: agent, tag });
            }
            rounds.lost().await?;
        }
    }

    /// The first attempt takes it that there is no such agent, as is nearly always so. The commit checks that, and looking
    /// for what is not there would cost a read of the engine.
    async fn try_create_agent(
        &self,
        caller: &Caller,
        agent: &mut Agent,
        is_first: bool,
    ) -> Result<Attempt<Tag>, Error> {
        let access = self
            .access(caller, agent.workspace_id, Permission::AgentsConfigure)
            .await?;
        let key = schema::agent(access.workspace(), &agent.agent_id);
        let (plan, existing) = match is_first {
            true => (self.plan_of(&access).await?, None),
            false => self.plan_and(&access, &key).await?,
        };
        if let Some(existing) = existing {
            let existing = read(key, &existing)?;
            let hint = if existing.agent.is_active {
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
            // The order of creation is that of the identifiers and times, so that who lost a race takes new ones.
            let now = self.now();
            (agent.id, agent.created_at, agent.updated_at) = (self.new_id(now)?, now, now);
        }
        let change = Change::new(
            &access,
            agent.created_at,
            Action::AgentCreated,
            TargetType::Agent,
            agent.agent_id.clone(),
        )
        .check(Check::Absent(key.clone()))
        .replace(key, None, agent)?;
        self.apply_within_plan(&access, plan, change).await
    }

    /// Changes the named fields of an agent. (Interface specification, *Update agent*.)
    ///
    /// `workspace` may be left out where the caller has just one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a field out of its bounds or an identity that is not the agent's,
    /// [`ErrorKind::Forbidden`] without `agents:configure`, [`ErrorKind::NotFound`] for an unknown
    /// or deleted agent, [`ErrorKind::Precondition`] when the condition is not met.
    pub async fn update_agent(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: &str,
        patch: impl IntoValid<AgentPatch>,
        condition: &Precondition,
    ) -> Result<Tagged<Agent>, Error> {
        let patch = patch.into_valid()?;
        self.settle(|| self.try_update_agent(caller, workspace, agent_id, &patch, condition))
            .await
    }

    async fn try_update_agent(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: &str,
        patch: &AgentPatch,
        condition: &Precondition,
    ) -> Result<Attempt<Tagged<Agent>>, Error> {
        let access = self
            .access_default(caller, workspace, Permission::AgentsConfigure)
            .await?;
        let found = self.active_agent(&access, agent_id).await?;
        same_identity(patch, &found.agent)?;
        met(condition, &found)?;
        let mut agent = found.agent.clone();
        patch.clone().apply(&mut agent);
        self.rewrite(&access, Action::AgentUpdated, found, agent, |change| change)
            .await
    }

    /// Deletes an agent: the record is kept, not active, and its identifier stays taken.
    /// (Interface specification, *Delete agent*.)
    ///
    /// # Errors
    ///
    /// As [`Self::update_agent`].
    pub async fn delete_agent(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: &str,
        condition: &Precondition,
    ) -> Result<Success, Error> {
        self.settle(|| async {
            let access = self
                .access_default(caller, workspace, Permission::AgentsConfigure)
                .await?;
            let found = self.active_agent(&access, agent_id).await?;
            met(condition, &found)?;
            let agent = Agent {
                is_active: false,
                ..found.agent.clone()
            };
            let workspace = access.workspace();
            let attempt = self.rewrite(&access, Action::AgentDeactivated, found, agent, |change| {
                change
                    .write(Write::Add {
                        counter: schema::active_agents(workspace),
                        delta: -1,
                        max: None,
                    })
                    .write(Write::Delete(schema::status(workspace, agent_id)))
            });
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
    pub async fn restore_agent(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: &str,
        condition: &Precondition,
    ) -> Result<Tagged<Agent>, Error> {
        self.settle(|| self.try_restore_agent(caller, workspace, agent_id, condition))
            .await
    }

    async fn try_restore_agent(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: &str,
        condition: &Precondition,
    ) -> Result<Attempt<Tagged<Agent>>, Error> {
        let access = self
            .access_default(caller, workspace, Permission::AgentsConfigure)
            .await?;
        let key = agent_key(&access, agent_id)?;
        let (plan, record) = self.plan_and(&access, &key).await?;
        let found = read(key, &record.ok_or_else(|| not_found("agent", agent_id))?)?;
        met(condition, &found)?;
        if found.agent.is_active {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("the agent {agent_id:?} is already active"),
            ));
        }
        let now = self.after(found.agent.updated_at);
        let agent = Agent {
            is_active: true,
            updated_at: now,
            ..found.agent.clone()
        };
        let change = Change::new(&access, now, Action::AgentRestored, TargetType::Agent, agent_id)
            .check(Check::Version(found.key.clone(), found.version))
            .replace(found.key, Some(&found.agent), &agent)?;
        Ok(match self.apply_within_plan(&access, plan, change).await? {
            Attempt::Done(tag) => Attempt::Done(Tagged { value: agent, tag }),
            Attempt::Raced => Attempt::Raced,
        })
    }

    /// Commits a change that makes one more agent active, if the plan allows it. The change's first
    /// write is the agent's record.
    async fn apply_within_plan(
        &self,
        access: &Access,
        CurrentPlan { plan, version }: CurrentPlan,
        change: Change<'_>,
    ) -> Result<Attempt<Tag>, Error> {
        let limit = self.agent_limit(plan);
        let change = change
            .check(Check::Version(schema::workspace(access.workspace()), version))
            .write(Write::Add {
                counter: schema::active_agents(access.workspace()),
                delta: 1,
                max: limit.map(u64::from),
            });
        Ok(match self.apply(change).await? {
            Applied::Done(numbers) => Attempt::Done(Tag::record(numbers[0])),
            Applied::Raced => Attempt::Raced,
            Applied::Limit => {
                let limit = limit.unwrap_or_default();
                let message = format!("the plan {plan} allows {limit} active agents, and they exist already");
                return Err(Error::new(ErrorKind::PlanLimit, message));
            }
        })
    }

    /// Commits a new state of an agent's record in place of the one that was found.
    async fn rewrite(
        &self,
        access: &Access,
        action: Action,
        found: Found,
        mut agent: Agent,
        more: impl FnOnce(Change<'_>) -> Change<'_>,
    ) -> Result<Attempt<Tagged<Agent>>, Error> {
        let now = self.after(found.agent.updated_at);
        agent.updated_at = now;
        let change = Change::new(access, now, action, TargetType::Agent, agent.agent_id.clone())
            .check(Check::Version(found.key.clone(), found.version))
            .replace(found.key, Some(&found.agent), &agent)?;
        Ok(match self.apply(more(change)).await? {
            Applied::Done(numbers) => Attempt::Done(Tagged {
                value: agent,
                tag: Tag::record(numbers[0]),
            }),
            Applied::Raced => Attempt::Raced,
            Applied::Limit => {
                return Err(Error::new(ErrorKind::Internal, "the number of active agents is wrong"));
            }
        })
    }

    /// The time of a change: now, but always after the last one.
    fn after(&self, last: Timestamp) -> Timestamp {
        self.now().max(last.plus_millis(1))
    }

    /// The workspace's plan; without any read when its record was read ahead.
    async fn plan_of(&self, access: &Access) -> Result<CurrentPlan, Error> {
        let key = schema::workspace(access.workspace());
        let record = match access.take_ahead().and_then(|ahead| ahead.workspace) {
            Some(record) => Some(record),
            None => self.store().get(std::slice::from_ref(&key)).await?.pop().flatten(),
        };
        read_plan(&key, record)
    }

    /// The workspace's plan, and another record, in one read.
    async fn plan_and(&self, access: &Access, key: &Key) -> Result<(CurrentPlan, Option<Record>), Error> {
        let workspace_key = schema::workspace(access.workspace());
        let mut records = self.store().get(&[workspace_key.clone(), key.clone()]).await?;
        let other = records.pop().flatten();
        Ok((read_plan(&workspace_key, records.pop().flatten())?, other))
    }

    async fn active_agent(&self, access: &Access, agent_id: &str) -> Result<Found, Error> {
        let key = agent_key(access, agent_id)?;
        let record = self.store().get(std::slice::from_ref(&key)).await?.pop().flatten();
        let found = record.map(|record| read(key, &record)).transpose()?;
        found
            .filter(|found| found.agent.is_active)
            .ok_or_else(|| not_found("agent", agent_id))
    }

    /// An active agent with other records, in one read.
    pub(super) async fn active_agent_and(
        &self,
        access: &Access,
        agent_id: &str,
        more: &[Key],
    ) -> Result<(Agent, Vec<Option<Record>>), Error> {
        let key = agent_key(access, agent_id)?;
        let keys: Vec<Key> = std::iter::once(&key).chain(more).cloned().collect();
        let mut records = self.store().get(&keys).await?;
        let others = records.split_off(1);
        let found = records.pop().flatten().map(|record| read(key, &record)).transpose()?;
        found
            .filter(|found| found.agent.is_active)
            .map(|found| (found.agent, others))
            .ok_or_else(|| not_found("agent", agent_id))
    }

    /// An active agent's record with the check that it stays as it is.
    pub(super) async fn active_agent_checked(&self, access: &Access, agent_id: &str) -> Result<(Agent, Check), Error> {
        let found = self.active_agent(access, agent_id).await?;
        Ok((found.agent, Check::Version(found.key, found.version)))
    }
}

fn read_plan(key: &Key, record: Option<Record>) -> Result<CurrentPlan, Error> {
    /// The rest of the record is not needed, and every create reads this.
    #[derive(serde::Deserialize)]
    struct WorkspacePlan {
        plan: Plan,
    }
    let record = record.ok_or_else(|| Error::new(ErrorKind::Forbidden, "you are not a member of this workspace"))?;
    let WorkspacePlan { plan } = schema::decode(key, &record)?;
    Ok(CurrentPlan {
        plan,
        version: record.version,
    })
}

/// The key of an agent; one that could never exist is not found.
fn agent_key(access: &Access, agent_id: &str) -> Result<Key, Error> {
    if !validate::is_agent_id(agent_id) {
        return Err(not_found("agent", agent_id));
    }
    Ok(schema::agent(access.workspace(), agent_id))
}

fn read(key: Key, record: &Record) -> Result<Found, Error> {
    let agent = schema::decode(&key, record)?;
    Ok(Found {
        key,
        version: record.version,
        agent,
    })
}

fn met(condition: &Precondition, found: &Found) -> Result<(), Error> {
    if condition.is_met_by(found.tag()) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Precondition,
        format!(
            "If-Match does not name the agent's current ETag, which is {}: read it again",
            found.tag()
        ),
    ))
}

/// The identity in a patch may only repeat what is stored.
fn same_identity(patch: &AgentPatch, agent: &Agent) -> Result<(), Error> {
    let mut faults = validate::Faults::default();
    if patch.workspace_id.is_some_and(|id| id != agent.workspace_id) {
        faults.push("workspace_id", "cannot be changed after creation");
    }
    if patch.agent_id.as_ref().is_some_and(|id| *id != agent.agent_id) {
        faults.push("agent_id", "cannot be changed after creation");
    }
    faults.into_result().map_err(|invalid: Invalid| invalid.into())
}
