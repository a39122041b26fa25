//! Exports: what is in them, the revision that they show, and who may take them.

use agentcfg_core::clock::SystemEntropy;
use agentcfg_core::model::{
    Action, Agent, AgentFilter, AgentLabel, AgentPatch, AgentSpec, AgentState, ApplyAgents, BudgetLimit, BudgetPeriod,
    BudgetScope, ExportLine, ExportedVersion, LabelFilter, LabelTarget, NewAgent, NewWebhook, Patch, Plan, Provider,
    Role, RotateApiKey, Scope, StatusReport, Usd, WorkspaceId,
};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::service::{CallFacts, Export, ModelRequest};
use agentcfg_core::vault::{MasterKey, Vault};
use agentcfg_core::{Error, ErrorKind};

use super::support::{ANY, World, kind};

fn read(piece: &[u8]) -> Vec<ExportLine> {
    let text = std::str::from_utf8(piece).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn rest(export: &mut Export) -> Result<Vec<ExportLine>, Error> {
    let mut lines = Vec::new();
    while let Some(piece) = export.next().await? {
        lines.extend(read(&piece));
    }
    Ok(lines)
}

/// The agents among lines, in the order of their identifiers.
fn agents<'a>(lines: impl IntoIterator<Item = &'a ExportLine>) -> Vec<Agent> {
    let mut agents: Vec<_> = lines
        .into_iter()
        .filter_map(|line| match line {
            ExportLine::Agent(agent) => Some(agent.clone()),
            _ => None,
        })
        .collect();
    agents.sort_by(|a, b| a.agent_id.cmp(&b.agent_id));
    agents
}

/// All agents of a workspace as a list shows them.
async fn listed(world: &World, workspace: WorkspaceId) -> Vec<Agent> {
    let filter = AgentFilter::default().state(AgentState::All);
    let list = world
        .service
        .list_agents(&world.user("ada"), workspace, &filter)
        .await
        .unwrap();
    let mut agents: Vec<_> = list.value.agents().unwrap().to_vec();
    agents.sort_by(|a, b| a.agent_id.cmp(&b.agent_id));
    agents
}

/// Creates agents with long prompts, so that an export of them has several pieces.
async fn long_agents(world: &World, workspace: WorkspaceId, count: usize) {
    world.set_plan(workspace, Plan::Enterprise).await;
    for number in 0..count {
        let agent_id = format!("agent-{number:03}").parse().unwrap();
        let new = NewAgent::new(workspace, agent_id, "Agent").persona_prompt("p".repeat(5000));
        world.service.create_agent(&world.user("ada"), new).await.unwrap();
    }
}

#[tokio::test]
async fn an_export_has_every_kind_and_no_secret() {
    let world = World::new();
    let ada = world.user("ada");
    let workspace = world.workspace("ada").await;
    world.set_plan(workspace, Plan::Team).await;
    let vault = Vault::new(vec![MasterKey::generate(&SystemEntropy).unwrap()]).unwrap();
    world.service.set_vault(vault);
    world.member(workspace, "ada", "bob", Role::Viewer).await;
    world.agent(workspace, "ada", "writer").await;
    world.agent(workspace, "ada", "gone").await;
    world
        .service
        .delete_agent(&ada, Some(workspace), "gone", ANY)
        .await
        .unwrap();
    let (key, caller) = world.key_caller(workspace, "ada", Scope::Write).await;
    let revoked = world.key(workspace, "ada", Scope::Read).await;
    world.service.revoke_api_key(&ada, &revoked.record.id).await.unwrap();
    let report = StatusReport::working("T-1", "Title");
    world
        .service
        .report_status(&caller, None, "writer", report)
        .await
        .unwrap();
    let target = LabelTarget::new(1);
    let labelled = world
        .service
        .set_label(&ada, Some(workspace), "writer", "production", target);
    labelled.await.unwrap();
    let hook = NewWebhook::new(workspace, "https://hooks.example.com/");
    let hook = world.service.create_webhook(&ada, hook).await.unwrap();
    let credential = ProviderCredential::new("sk-secret-0123456789").unwrap();
    world
        .service
        .save_provider_key(&ada, workspace, Provider::OPENAI, &credential)
        .await
        .unwrap();
    let set =
        ApplyAgents::of(vec![AgentSpec::new("writer".parse().unwrap(), "Agent")]).set(Some("docs".parse().unwrap()));
    let applied = world.service.apply_agents(&ada, workspace, set, false).await.unwrap();
    assert_eq!(applied.results.len(), 1);
    let limit = BudgetLimit::new(Usd::ZERO);
    let budget = (BudgetScope::Workspace, None, BudgetPeriod::Day);
    let set = world
        .service
        .set_budget(&ada, workspace, budget.0, budget.1, budget.2, limit);
    set.await.unwrap();
    let request = ModelRequest::new(Provider::OPENAI, "v1/responses");
    let call = world
        .service
        .resolve_model_call(&ada, None, "writer", &request)
        .await
        .unwrap();
    let _ = world
        .service
        .meter(&call, &call.first, CallFacts::default())
        .end(200, None, false);
    world.service.flush().await.unwrap();

    let mut export = world.service.export_workspace(&ada, workspace).await.unwrap();
    let revision = export.revision();
    let mut text = Vec::new();
    while let Some(piece) = export.next().await.unwrap() {
        text.extend(piece);
    }
    let lines = read(&text);
    let text = String::from_utf8(text).unwrap();
    for secret in ["argon2", "sk-secret", &key.key, "sealed", &hook.secret, "whsec_"] {
        assert!(!text.contains(secret), "{secret}");
    }
    let mut kinds: Vec<_> = text.lines().map(|line| line.split('"').nth(3).unwrap()).collect();
    let expected = [
        "workspace",
        "member",
        "member",
        "agent",
        "agent",
        "version",
        "version",
        "label",
        "set",
        "status",
        "api_key",
        "api_key",
        "provider_key",
        "webhook",
        "budget",
        "usage",
    ];
    assert_eq!(kinds[..16], expected);
    kinds.dedup();
    assert_eq!(kinds, ExportLine::KINDS);
    assert_eq!(agents(&lines), listed(&world, workspace).await);
    let log: Vec<_> = lines
        .iter()
        .filter_map(|line| match line {
            ExportLine::Audit(entry) => Some(entry.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(log, world.log(workspace, "ada").await);
    assert_eq!(
        (log.len() as u64, log.last().unwrap().action),
        (revision, Action::WorkspaceExported)
    );
}

#[tokio::test]
async fn an_export_shows_one_revision_while_others_change_the_workspace() {
    let world = World::new();
    let ada = world.user("ada");
    let workspace = world.workspace("ada").await;
    long_agents(&world, workspace, 160).await;
    let service = &world.service;
    for agent_id in ["agent-050", "agent-051"] {
        service
            .delete_agent(&ada, Some(workspace), agent_id, ANY)
            .await
            .unwrap();
    }
    let keys = [
        world.key(workspace, "ada", Scope::Read).await,
        world.key(workspace, "ada", Scope::Read).await,
    ];
    for (agent_id, label) in [("agent-010", "kept"), ("agent-040", "moved"), ("agent-079", "removed")] {
        let target = LabelTarget::new(1);
        let set = service.set_label(&ada, Some(workspace), agent_id, label, target);
        set.await.unwrap();
    }
    let labels_before = service
        .list_labels(&ada, workspace, LabelFilter::default())
        .await
        .unwrap()
        .decode()
        .unwrap();
    let before = listed(&world, workspace).await;
    let keys_before = service.list_api_keys(&ada, workspace).await.unwrap();

    let mut export = service.export_workspace(&ada, workspace).await.unwrap();
    let (mut lines, mut round) = (Vec::new(), 0);
    while let Some(piece) = export.next().await.unwrap() {
        lines.extend(read(&piece));
        round += 1;
        // Two changes of one agent: that of the revision is before both.
        for role in ["first", "second"] {
            for agent_id in ["agent-079", "agent-040"] {
                let patch = AgentPatch::default()
                    .role(format!("{role} {round}"))
                    .persona_prompt(Patch::Null);
                let changed = service.update_agent(&ada, Some(workspace), agent_id, patch, ANY).await;
                changed.unwrap();
            }
        }
        if round == 1 {
            for agent_id in ["agent-060", "agent-061"] {
                service
                    .delete_agent(&ada, Some(workspace), agent_id, ANY)
                    .await
                    .unwrap();
            }
            service
                .restore_agent(&ada, Some(workspace), "agent-050", ANY)
                .await
                .unwrap();
            service.revoke_api_key(&ada, &keys[1].record.id).await.unwrap();
            service
                .rotate_api_key(&ada, &keys[0].record.id, RotateApiKey::default())
                .await
                .unwrap();
            let moved = service.set_label(&ada, Some(workspace), "agent-040", "moved", LabelTarget::new(2));
            moved.await.unwrap();
            let removed = service.remove_label(&ada, Some(workspace), "agent-079", "removed");
            removed.await.unwrap();
            let new = service.set_label(&ada, Some(workspace), "agent-079", "new", LabelTarget::new(1));
            new.await.unwrap();
        }
        world.agent(workspace, "ada", &format!("agent-07-{round}")).await;
        world.key(workspace, "ada", Scope::Read).await;
    }
    assert!(round > 3, "{round} pieces");
    assert_eq!(agents(&lines), before);
    let mut exported: Vec<_> = lines
        .iter()
        .filter_map(|line| match line {
            ExportLine::ApiKey(key) => Some(key.clone()),
            _ => None,
        })
        .collect();
    exported.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    assert_eq!(exported, keys_before);
    let entries = lines.iter().filter(|line| matches!(line, ExportLine::Audit(_)));
    assert_eq!(entries.count() as u64, export.revision());
    let labels: Vec<&AgentLabel> = lines
        .iter()
        .filter_map(|line| match line {
            ExportLine::Label(label) => Some(label),
            _ => None,
        })
        .collect();
    assert_eq!(labels, labels_before.iter().collect::<Vec<_>>());
    let versions: Vec<&ExportedVersion> = lines
        .iter()
        .filter_map(|line| match line {
            ExportLine::Version(version) => Some(version),
            _ => None,
        })
        .collect();
    assert_eq!(versions.len(), before.len(), "each agent had one version");
    assert!(versions.iter().all(|version| version.version == 1));
}

#[tokio::test]
async fn an_export_ends_with_an_error_when_the_right_to_it_ends() {
    for end in ["membership", "role", "workspace"] {
        let world = World::new();
        let (ada, bob) = (world.user("ada"), "bob".parse().unwrap());
        let workspace = world.workspace("ada").await;
        long_agents(&world, workspace, 60).await;
        let owner = world.member(workspace, "ada", "bob", Role::Owner).await;
        let mut export = world.service.export_workspace(&owner, workspace).await.unwrap();
        export.next().await.unwrap().unwrap();
        match end {
            "membership" => drop(world.service.remove_member(&ada, workspace, &bob).await.unwrap()),
            "role" => drop(
                world
                    .service
                    .set_member(&ada, workspace, &bob, Role::Admin)
                    .await
                    .unwrap(),
            ),
            _ => {
                world.service.delete_workspace(&ada, workspace, "ada's").await.unwrap();
                world.service.remove_deleted_workspaces().await.unwrap();
            }
        }
        assert_eq!(kind(rest(&mut export).await), ErrorKind::Forbidden, "{end}");
    }
}

#[tokio::test]
async fn only_an_owner_takes_an_export() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (_, key) = world.key_caller(workspace, "ada", Scope::Admin).await;
    let admin = world.member(workspace, "ada", "adam", Role::Admin).await;
    let log = world.log(workspace, "ada").await.len();
    for caller in [&key, &admin, &world.user("eve"), &world.user("root")] {
        let refused = world.service.export_workspace(caller, workspace).await;
        assert_eq!(kind(refused.map(drop)), ErrorKind::Forbidden);
    }
    assert_eq!(world.log(workspace, "ada").await.len(), log);
}
