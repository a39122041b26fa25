//! The service against a reference model: every result of a history is compared.

mod reference;
mod step;

use std::collections::{BTreeSet, HashSet};

use agentcfg_core::model::AgentFilter;
use agentcfg_core::model::{NewAgent, Plan, PlanLimits, Tag, WorkspaceId, WorkspacePatch};
use agentcfg_core::{Caller, Error, ErrorKind, Settings};

use self::reference::{Condition, Reference, next_updated_at, patched};
pub use self::step::any_step;
use self::step::{Step, WORKSPACES, agent_id};
use super::support::World;

pub fn settings() -> Settings {
    Settings::default()
        .plan_limits(PlanLimits::default().free(2).pro(3).team(0))
        .default_plan(Plan::Free)
        .operators(BTreeSet::from(["root".to_owned()]))
}

/// A service and its reference models.
struct Pair {
    world: World,
    ada: Caller,
    limits: PlanLimits,
    workspaces: Vec<(WorkspaceId, Reference)>,
}

fn kind<T>(result: Result<T, Error>) -> Result<T, ErrorKind> {
    result.map_err(|error| error.kind())
}

impl Pair {
    async fn new(world: World) -> Self {
        let mut workspaces = Vec::new();
        for _ in 0..WORKSPACES {
            workspaces.push((world.workspace("ada").await, Reference::new(Plan::Free)));
        }
        Self {
            ada: world.user("ada"),
            limits: settings().plan_limits,
            world,
            workspaces,
        }
    }

    async fn take(&mut self, step: Step) {
        let (service, now) = (&self.world.service, self.world.now());
        match step {
            Step::Create(w, a, role) => {
                let (id, reference) = &mut self.workspaces[w];
                let expected = reference.create(&agent_id(a), &self.limits);
                let new = NewAgent::new(*id, agent_id(a).parse().unwrap(), "Agent").role(role.clone());
                let created = kind(service.create_agent(&self.ada, new).await);
                assert_eq!(created.as_ref().map(drop).map_err(|kind| *kind), expected);
                if let Ok(created) = created {
                    let agent = &created.value;
                    assert_eq!((agent.agent_id.as_str(), &agent.role), (&*agent_id(a), &role));
                    assert_eq!((agent.created_at, agent.updated_at, agent.is_active), (now, now, true));
                    reference.store(created.value, created.tag);
                }
            }
            Step::Update(w, a, patch, condition) => {
                let (id, reference) = &mut self.workspaces[w];
                let expected = reference.change(&agent_id(a), condition);
                let expected = expected.map(|held| patched(&held.agent, &patch, now));
                let condition = reference.condition(&agent_id(a), condition);
                let updated = service
                    .update_agent(&self.ada, Some(*id), &agent_id(a), patch, &condition)
                    .await;
                let updated = kind(updated);
                assert_eq!(updated.clone().map(|tagged| tagged.value), expected);
                if let Ok(updated) = updated {
                    reference.store(updated.value, updated.tag);
                }
            }
            Step::Delete(w, a, condition) => {
                let (id, reference) = &mut self.workspaces[w];
                let expected = reference.change(&agent_id(a), condition).map(drop);
                let condition = reference.condition(&agent_id(a), condition);
                let deleted = service
                    .delete_agent(&self.ada, Some(*id), &agent_id(a), &condition)
                    .await;
                assert_eq!(kind(deleted).map(drop), expected);
                if expected.is_ok() {
                    reference.delete(&agent_id(a), now);
                }
            }
            Step::Restore(w, a, condition) => {
                let (id, reference) = &mut self.workspaces[w];
                // No response shows the tag of a deleted record, so naming the current one counts as stale.
                let deleted = reference.active(&agent_id(a)).is_none();
                let condition = match condition {
                    Condition::Current if deleted => Condition::Stale,
                    condition => condition,
                };
                let expected = reference.restore(&agent_id(a), condition, &self.limits).map(|held| {
                    let mut agent = held.agent.clone();
                    agent.is_active = true;
                    agent.updated_at = next_updated_at(agent.updated_at, now);
                    agent
                });
                let condition = reference.condition(&agent_id(a), condition);
                let restored = service
                    .restore_agent(&self.ada, Some(*id), &agent_id(a), &condition)
                    .await;
                let restored = kind(restored);
                assert_eq!(restored.clone().map(|tagged| tagged.value), expected);
                if let Ok(restored) = restored {
                    reference.store(restored.value, restored.tag);
                }
            }
            Step::Report(w, a, report) => {
                let (id, reference) = &mut self.workspaces[w];
                let expected = reference.active(&agent_id(a)).map(drop).ok_or(ErrorKind::NotFound);
                let reported = service
                    .report_status(&self.ada, Some(*id), &agent_id(a), report.clone())
                    .await;
                assert_eq!(kind(reported).map(drop), expected);
                if let Some(held) = reference
                    .agents
                    .get_mut(&agent_id(a))
                    .filter(|held| held.agent.is_active)
                {
                    held.report = Some((report, now));
                }
            }
            Step::List(w, offset, limit) => {
                let (id, reference) = &self.workspaces[w];
                let filter = AgentFilter::default()
                    .offset(offset as u64)
                    .limit(u32::try_from(limit).unwrap());
                let list = service.list_agents(&self.ada, *id, &filter).await.unwrap();
                let expected: Vec<_> = reference.list().into_iter().skip(offset).take(limit).collect();
                assert_eq!(list.value.json(), serde_json::to_vec(&expected).unwrap());
            }
            Step::ListOne(w, a) => {
                let (id, reference) = &self.workspaces[w];
                let filter = AgentFilter::default().agent_id(Some(agent_id(a).parse().unwrap()));
                let list = service.list_agents(&self.ada, *id, &filter).await.unwrap();
                let held = reference.active(&agent_id(a));
                let expected: Vec<_> = held.iter().map(|held| held.agent.clone()).collect();
                assert_eq!(list.value.agents().unwrap(), expected);
                let whole = Tag::list(list.tag.epoch(), reference.revision);
                assert_eq!(list.tag, held.map_or(whole, |held| held.tag));
            }
            Step::Status(w) => {
                let (id, reference) = &self.workspaces[w];
                let status = service.agent_status(&self.ada, *id).await.unwrap();
                assert_eq!(status, reference.status(now));
            }
            Step::Plan(w, plan) => {
                let (id, reference) = &mut self.workspaces[w];
                let patch = WorkspacePatch::default().plan(plan);
                service
                    .update_workspace(&self.world.user("root"), *id, patch)
                    .await
                    .unwrap();
                reference.plan = plan;
                reference.revision += 1;
            }
            Step::Advance(millis) => self.world.clock.advance_millis(millis),
        }
    }

    /// Compares everything that can be read with the model, on this instance and on a new one.
    async fn compare(&self) {
        let mut epochs = HashSet::new();
        for service in [&self.world.service, &self.world.another_instance()] {
            for (id, reference) in &self.workspaces {
                let list = service
                    .list_agents(&self.ada, *id, &AgentFilter::default())
                    .await
                    .unwrap();
                assert_eq!(list.value.agents().unwrap(), reference.list());
                assert_eq!(list.tag, Tag::list(list.tag.epoch(), reference.revision));
                epochs.insert(list.tag.epoch());
            }
        }
        assert!(epochs.len() <= 1, "instances disagree on the epoch: {epochs:?}");
    }

    async fn check(&mut self, steps: Vec<Step>) {
        for step in steps {
            self.take(step).await;
            self.compare().await;
        }
        for (id, reference) in &self.workspaces {
            let status = self.world.service.agent_status(&self.ada, *id).await.unwrap();
            assert_eq!(status, reference.status(self.world.now()));
            let log = self.world.log(*id, "ada").await;
            assert_eq!(log.len() as u64, reference.revision);
        }
    }
}

/// Runs a history on a service that no other test uses.
pub async fn run(world: World, steps: Vec<Step>) {
    Pair::new(world).await.check(steps).await;
}
