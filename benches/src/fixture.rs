//! A workspace with agents and API keys, to measure on.

use agentcfg_core::model::{
    Environment, NewAgent, NewApiKey, NewWorkspace, Parameters, Plan, PlanLimits, Scope, WorkspaceId,
};
use agentcfg_core::store::Store;
use agentcfg_core::{AgentCfg, Caller, Settings};
use tokio::task::JoinSet;

/// A workspace that is ready for a measurement.
pub struct Fixture {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its owner.
    pub owner: Caller,
    /// The plaintexts of its API keys.
    pub keys: Vec<String>,
}

/// Settings without effective limits.
fn unlimited() -> Settings {
    // A later server with the default limits then finds no workspace above the limit of its plan.
    Settings::default()
        .plan_limits(PlanLimits::default())
        .default_plan(Plan::Enterprise)
        .max_workspaces_per_user(None)
}

/// The service with these settings, on a store.
pub fn service(store: impl Store) -> AgentCfg {
    let builder = AgentCfg::builder(store).settings(unlimited());
    builder.expect("settings in their ranges").build()
}

/// Creates a workspace with this many agents and keys.
pub async fn make(service: &AgentCfg, agents: usize, keys: usize) -> Fixture {
    let owner = service.trusted_user("owner").expect("a user id");
    let workspace = service
        .create_workspace(&owner, NewWorkspace::new("bench"))
        .await
        .expect("a workspace")
        .id;
    for i in 0..agents {
        service
            .create_agent(&owner, agent(workspace, i))
            .await
            .expect("an agent");
    }
    let made = at_once(0..keys, |i| {
        let (service, owner) = (service.clone(), owner.clone());
        async move {
            let new = NewApiKey::new(workspace, format!("key {i}"), Environment::Production, Scope::Write)
                .rate_limit(1_000_000);
            service.create_api_key(&owner, new).await.expect("a key").key
        }
    });
    Fixture {
        workspace,
        keys: made.await,
        owner,
    }
}

/// Uses each key once, so that later uses need no password hash.
pub async fn use_once(service: &AgentCfg, keys: &[String]) {
    let uses = at_once(keys.to_vec(), |key| {
        let service = service.clone();
        async move { service.authenticate(&key).await.map(drop) }
    });
    for used in uses.await {
        used.expect("a key that is good");
    }
}

/// The results of several futures, a limited number of which run concurrently.
async fn at_once<I, F>(items: impl IntoIterator<Item = I>, work: impl Fn(I) -> F) -> Vec<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    const AT_ONCE: usize = 64;
    let mut running = JoinSet::new();
    let mut results = Vec::new();
    for item in items {
        if running.len() == AT_ONCE {
            results.extend(running.join_next().await.map(|result| result.expect("the work")));
        }
        running.spawn(work(item));
    }
    results.extend(running.join_all().await);
    results
}

/// An agent of a realistic size: about 420 bytes of JSON.
pub fn agent(workspace: WorkspaceId, i: usize) -> NewAgent {
    NewAgent::new(workspace, format!("agent-{i}").parse().unwrap(), format!("Agent {i}"))
        .role("Researcher")
        .model("claude-sonnet-4")
        .color("#7c3aed")
        .persona_prompt("You read carefully, you cite what you found, and you say what you do not know.")
        .capabilities(vec!["search".into(), "summarise".into()])
        .parameters(Parameters::from([
            ("warmth".to_owned(), 70.into()),
            ("rigour".to_owned(), 90.into()),
        ]))
}
