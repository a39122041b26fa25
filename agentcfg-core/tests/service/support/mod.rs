//! A service on a clock that the test controls, and the callers that use it.

mod between;
mod counting;
mod frozen;
mod gated;
pub mod race;
mod store;

use std::sync::Arc;

use agentcfg_core::clock::{Clock, ManualClock};
use agentcfg_core::model::{
    Agent, AuditEntry, CreatedApiKey, Environment, NewAgent, NewApiKey, NewWorkspace, Plan, PlanLimits, Precondition,
    Role, Scope, Tag, Timestamp, WorkspaceId, WorkspacePatch,
};
use agentcfg_core::session::LocalSessions;
use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use agentcfg_core::store::{MemoryStore, Store};
use agentcfg_core::{AgentCfg, Caller, Error, ErrorKind, Settings};

pub use self::between::{Between, Call};
pub use self::counting::Counting;
pub use self::frozen::Frozen;
pub use self::gated::GatedStore;
use self::store::Yielding;
pub use self::store::{Fault, Faulty, Shared, Unstamped};

/// The secret of the local identity provider.
pub const SECRET: &[u8; 32] = &[7; 32];

/// The start time of the clock.
pub const START: &str = "2026-11-20T09:30:00Z";

/// No condition.
pub const ANY: &Precondition = &Precondition::None;

/// A tag that no record has.
pub fn unknown_tag() -> Tag {
    Tag::record("00000000".parse().unwrap(), 0)
}

/// A service with its clock and its store.
pub struct World {
    pub service: AgentCfg,
    pub clock: Arc<ManualClock>,
    pub store: Arc<dyn Store>,
    pub settings: Settings,
    place: Option<tempfile::TempDir>,
}

impl World {
    /// A service in memory, with `root` as its operator.
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// The same with other settings.
    pub fn with(choose: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::default();
        // The plan with the lowest limit, so that tests reach it.
        settings.default_plan = Plan::Free;
        settings.operators = ["root".to_owned()].into();
        choose(&mut settings);
        Self::on(Arc::new(MemoryStore::new()), settings)
    }

    /// A service on this store.
    pub fn on(store: Arc<dyn Store>, settings: Settings) -> Self {
        let clock = Arc::new(ManualClock::at(START.parse().unwrap()));
        Self {
            service: instance(&store, &clock, &settings),
            clock,
            store,
            settings,
            place: None,
        }
    }

    /// A service on a file store.
    pub fn on_disk(settings: Settings) -> Self {
        let place = tempfile::tempdir().unwrap();
        let store = RedbStore::open(place.path().join("store.redb"), RedbOptions::default()).unwrap();
        Self {
            place: Some(place),
            ..Self::on(Arc::new(store), settings)
        }
    }

    /// Another service over the same records, through another store.
    pub fn behind(&self, store: Arc<dyn Store>) -> AgentCfg {
        instance(&store, &self.clock, &self.settings)
    }

    /// Another instance of the service on the same store.
    pub fn another_instance(&self) -> AgentCfg {
        self.behind(Arc::clone(&self.store))
    }

    /// Another instance whose tasks yield around each call of the store, in an order that the seed determines.
    pub fn yielding(&self, seed: u64) -> AgentCfg {
        self.behind(Yielding::new(Arc::clone(&self.store), seed))
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn user(&self, user_id: &str) -> Caller {
        self.service.trusted_user(user_id).unwrap()
    }

    /// Creates a workspace for this owner.
    pub async fn workspace(&self, owner: &str) -> WorkspaceId {
        let new = NewWorkspace::new(format!("{owner}'s"));
        let workspace = self.service.create_workspace(&self.user(owner), new).await.unwrap();
        workspace.id
    }

    pub async fn set_plan(&self, workspace: WorkspaceId, plan: Plan) {
        let patch = WorkspacePatch::default().plan(plan);
        self.service
            .update_workspace(&self.user("root"), workspace, patch)
            .await
            .unwrap();
    }

    pub async fn member(&self, workspace: WorkspaceId, owner: &str, user_id: &str, role: Role) -> Caller {
        self.service
            .set_member(&self.user(owner), workspace, &user_id.parse().unwrap(), role)
            .await
            .unwrap();
        self.user(user_id)
    }

    pub async fn agent(&self, workspace: WorkspaceId, owner: &str, agent_id: &str) -> Agent {
        self.service
            .create_agent(
                &self.user(owner),
                NewAgent::new(workspace, agent_id.parse().unwrap(), "Agent"),
            )
            .await
            .unwrap()
            .value
    }

    pub async fn key(&self, workspace: WorkspaceId, owner: &str, scope: Scope) -> CreatedApiKey {
        self.service
            .create_api_key(&self.user(owner), new_key(workspace, scope))
            .await
            .unwrap()
    }

    /// Creates a key and authenticates with it.
    pub async fn key_caller(&self, workspace: WorkspaceId, owner: &str, scope: Scope) -> (CreatedApiKey, Caller) {
        let key = self.key(workspace, owner, scope).await;
        let caller = self.service.authenticate(&key.key).await.unwrap();
        (key, caller)
    }

    /// The whole audit log, oldest first.
    pub async fn log(&self, workspace: WorkspaceId, owner: &str) -> Vec<AuditEntry> {
        let mut log = self
            .service
            .audit_log(&self.user(owner), workspace, 0, 1000)
            .await
            .unwrap();
        log.reverse();
        log
    }

    /// The identifiers of the listed agents.
    pub async fn listed(&self, workspace: WorkspaceId, owner: &str) -> Vec<String> {
        let list = self
            .service
            .list_agents(&self.user(owner), workspace, &Default::default())
            .await
            .unwrap();
        list.value
            .agents()
            .unwrap()
            .iter()
            .map(|agent| agent.agent_id.to_string())
            .collect()
    }

    /// The file of the store, if it is on disk.
    pub fn path(&self) -> Option<&std::path::Path> {
        self.place.as_ref().map(tempfile::TempDir::path)
    }
}

fn instance(store: &Arc<dyn Store>, clock: &Arc<ManualClock>, settings: &Settings) -> AgentCfg {
    AgentCfg::builder(Arc::clone(store))
        .clock(Arc::clone(clock) as _)
        .sessions(LocalSessions::new(SECRET).unwrap())
        .settings(settings.clone())
        .unwrap()
        .build()
}

/// The request that creates a key of this scope.
pub fn new_key(workspace: WorkspaceId, scope: Scope) -> NewApiKey {
    NewApiKey::new(workspace, "ci", Environment::Production, scope)
}

/// The same limit on every plan.
pub fn limits(limit: Option<u32>) -> PlanLimits {
    PlanLimits::default()
        .free(limit)
        .pro(limit)
        .team(limit)
        .enterprise(limit)
}

pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The kind of an error; panics on success.
#[track_caller]
pub fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    result.err().expect("this should have failed").kind()
}

/// The kind and the message of an error; panics on success.
#[track_caller]
pub fn failure<T>(result: Result<T, Error>) -> (ErrorKind, String) {
    let error = result.err().expect("this should have failed");
    (error.kind(), error.message().to_owned())
}
