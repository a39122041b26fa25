//! Answers and decisions of one moment: another client changes the workspace between two reads, or before the commit.

mod answers;
mod decisions;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agentcfg_core::model::{
    AgentFilter, AgentId, AgentPatch, AgentSpec, ApplyAction, ApplyAgents, AsOf, AuditFilter, LabelRestore,
    LabelTarget, Precondition, Promotion, Rollback, RotateApiKey, Scope, SetName, VersionSelector, WorkspaceId,
};
use agentcfg_core::store::Kind;
use agentcfg_core::{AgentCfg, Caller, ErrorKind, Settings};

use super::support::{ANY, Between, Call, World, kind, limits};

/// More agents than fit in one piece of a read.
const MANY: usize = 300;

/// A workspace, a service whose store runs changes before its calls, and another service that makes those.
struct Scene {
    world: World,
    workspace: WorkspaceId,
    ada: Caller,
    between: Arc<Between>,
    service: AgentCfg,
    other: Other,
}

/// The other client of the workspace.
#[derive(Clone)]
struct Other {
    service: AgentCfg,
    ada: Caller,
    workspace: WorkspaceId,
}

impl Scene {
    async fn of(agents: usize) -> Self {
        let world = World::with(|settings: &mut Settings| settings.plan_limits = limits(None));
        let workspace = world.workspace("ada").await;
        let between = Between::new(&world.store);
        let scene = Self {
            service: world.behind(Arc::clone(&between) as _),
            ada: world.user("ada"),
            other: Other {
                service: world.service.clone(),
                ada: world.user("ada"),
                workspace,
            },
            workspace,
            between,
            world,
        };
        scene.other.apply(agents, "first").await;
        scene
    }

    async fn promote(&self, from: &str, to: &str) -> Vec<(String, u64)> {
        self.promote_those(from, to, None).await.unwrap()
    }

    async fn promote_those(
        &self,
        from: &str,
        to: &str,
        those: Option<&[&str]>,
    ) -> Result<Vec<(String, u64)>, agentcfg_core::Error> {
        let those: Option<Vec<AgentId>> = those.map(|ids| ids.iter().map(|id| id.parse().unwrap()).collect());
        let promotion = Promotion::new(from.parse().unwrap(), to.parse().unwrap()).agent_ids(those);
        let promoted = self
            .service
            .promote_labels(&self.ada, self.workspace, promotion, false)
            .await?;
        let row = |row: &agentcfg_core::model::PromotedLabel| (row.agent_id.to_string(), row.version);
        Ok(promoted.iter().map(row).collect())
    }

    /// The version that each label of this name points at.
    async fn labels(&self, label: &str) -> Vec<(String, u64)> {
        let filter = agentcfg_core::model::LabelFilter::default().label(label);
        let found = self
            .world
            .service
            .list_labels(&self.ada, self.workspace, filter)
            .await
            .unwrap()
            .decode()
            .unwrap();
        let row = |row: &agentcfg_core::model::AgentLabel| (row.agent_id.to_string(), row.version);
        found.iter().map(row).collect()
    }
}

fn id(number: usize) -> String {
    format!("agent-{number:04}")
}

impl Other {
    /// Gives all agents this role in one commit.
    async fn apply(&self, agents: usize, role: &str) {
        let spec = |number| AgentSpec::new(id(number).parse().unwrap(), "Agent").role(role);
        let body = ApplyAgents::of((0..agents).map(spec).collect());
        self.service
            .apply_agents(&self.ada, self.workspace, body, false)
            .await
            .unwrap();
    }

    async fn edit(&self, agent: &str, role: &str) {
        let patch = AgentPatch::default().role(role);
        let to = Some(self.workspace);
        self.service
            .update_agent(&self.ada, to, agent, patch, ANY)
            .await
            .unwrap();
    }

    async fn label(&self, agent: &str, label: &str, version: u64) {
        let (to, target) = (Some(self.workspace), LabelTarget::new(version));
        self.service
            .set_label(&self.ada, to, agent, label, target)
            .await
            .unwrap();
    }

    async fn deactivate(&self, agent: &str) {
        let to = Some(self.workspace);
        self.service.delete_agent(&self.ada, to, agent, ANY).await.unwrap();
    }
}
