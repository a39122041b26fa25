//! A workspace with agents and API keys to measure on.

use agentcfg_core::model::{Environment, NewAgent, NewApiKey, NewWorkspace, Plan, PlanLimits, Scope, WorkspaceId};
use agentcfg_core::{AgentCfg, Caller, Settings};

/// A workspace that is ready to be measured.
pub struct Fixture {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its owner.
    pub owner: Caller,
    /// The plaintexts of its API keys.
    pub keys: Vec<String>,
}

/// Settings under which no limit gets in the way.
pub fn unlimited() -> Settings {
    Settings {
        plan_limits: PlanLimits {
            free: None,
            pro: None,
            team: None,
            enterprise: None,
        },
        // Whoever serves the same data later with the usual limits finds no workspace above its own.
        default_plan: Plan::Enterprise,
        ..Settings::default()
    }
}

/// Makes a workspace with so many agents and keys.
pub async fn make(service: &AgentCfg, agents: usize, keys: usize) -> Fixture {
    let owner = service.trusted_user("owner").expect("a user id");
    let workspace = service
        .create_workspace(&owner, NewWorkspace { name: "bench".into() })
        .await
        .expect("a workspace")
        .id;
    for i in 0..agents {
        service
            .create_agent(&owner, agent(workspace, i))
            .await
            .expect("an agent");
    }
    let mut plaintexts = Vec::with_capacity(keys);
    for i in 0..keys {
        let new = NewApiKey {
            workspace_id: workspace,
            name: format!("key {i}"),
            environment: Environment::Production,
            scope: Scope::Write,
            expires_at: None,
            rate_limit: Some(1_000_000),
        };
        plaintexts.push(service.create_api_key(&owner, new).await.expect("a key").key);
    }
    Fixture {
        workspace,
        owner,
        keys: plaintexts,
    }
}

/// An agent of the size that they have in practice: about 420 bytes of JSON.
pub fn agent(workspace: WorkspaceId, i: usize) -> NewAgent {
    NewAgent {
        role: Some("Researcher".into()),
        model: Some("claude-sonnet-4".into()),
        color: Some("#7c3aed".into()),
        persona_prompt: Some("You read carefully, you cite what you found, and you say what you do not know.".into()),
        capabilities: vec!["search".into(), "summarise".into()],
        parameters: [("warmth".to_owned(), 70.into()), ("rigour".to_owned(), 90.into())].into(),
        ..NewAgent::new(workspace, format!("agent-{i}"), format!("Agent {i}"))
    }
}
