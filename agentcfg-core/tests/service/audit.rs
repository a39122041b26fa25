//! The audit log: one entry for each mutation, and no secret in any entry.

use std::collections::BTreeSet;
use std::sync::Arc;

use agentcfg_core::ErrorKind;
use agentcfg_core::clock::SystemEntropy;
use agentcfg_core::model::{
    Action, AgentPatch, AgentSpec, ApplyAgents, BudgetLimit, BudgetPeriod, BudgetScope, LabelRestore, LabelTarget,
    NewAgent, NewWebhook, NewWorkspace, Parameters, Patch, Plan, Promotion, Provider, ReplayFrom, Role, Rollback,
    RotateApiKey, Scope, Usd, WebhookPatch, WebhookReplay, WorkspacePatch,
};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::store::{Direction, Kind, Partition, PartitionKind, Scan};
use agentcfg_core::vault::{MasterKey, Vault};
use serde_json::{Value, json};

use super::support::{ANY, Faulty, World, kind};

#[tokio::test]
async fn every_mutation_writes_exactly_one_entry_with_what_changed() {
    let world = World::new();
    let ada = world.user("ada");
    let service = &world.service;
    let new = NewWorkspace::new("Studio");
    let workspace = service.create_workspace(&ada, new).await.unwrap().id;
    let id = workspace.to_string();
    let user = json!({"type": "user", "id": "ada"});
    let mut expected: Vec<Value> = vec![json!([user, "workspace.created", "workspace", id, {
        "name": {"from": null, "to": "Studio"}, "plan": {"from": null, "to": "free"},
    }])];
    let rename = WorkspacePatch::default().name("Atelier");
    service.update_workspace(&ada, workspace, rename).await.unwrap();
    expected.push(json!([user, "workspace.updated", "workspace", id, {"name": {"from": "Studio", "to": "Atelier"}}]));
    world.set_plan(workspace, Plan::Pro).await;
    expected.push(
        json!([{"type": "operator", "id": "root"}, "workspace.updated", "workspace", id, {
            "plan": {"from": "free", "to": "pro"},
        }]),
    );
    service
        .set_member(&ada, workspace, &"mel".parse().unwrap(), Role::Member)
        .await
        .unwrap();
    expected.push(json!([user, "member.set", "member", "mel", {"role": {"from": null, "to": "member"}}]));
    service
        .set_member(&ada, workspace, &"mel".parse().unwrap(), Role::Admin)
        .await
        .unwrap();
    expected.push(json!([user, "member.set", "member", "mel", {"role": {"from": "member", "to": "admin"}}]));
    service
        .remove_member(&world.user("mel"), workspace, &"mel".parse().unwrap())
        .await
        .unwrap();
    expected.push(
        json!([{"type": "user", "id": "mel"}, "member.removed", "member", "mel", {
            "role": {"from": "admin", "to": null},
        }]),
    );
    let (created, key) = world.key_caller(workspace, "ada", Scope::Write).await;
    let key_id = &*created.record.id;
    expected.push(json!([user, "api_key.created", "api_key", key_id, {
        "name": {"from": null, "to": "ci"}, "environment": {"from": null, "to": "production"},
        "scope": {"from": null, "to": "write"}, "rate_limit": {"from": null, "to": 100},
    }]));
    let by_key = json!({"type": "api_key", "id": key_id});
    let new = NewAgent::new(workspace, "writer".parse().unwrap(), "Writer").role("author");
    service.create_agent(&key, new).await.unwrap();
    expected.push(json!([by_key, "agent.created", "agent", "writer", {
        "display_name": {"from": null, "to": "Writer"}, "role": {"from": null, "to": "author"},
        "agent_type": {"from": null, "to": "ai"}, "capabilities": {"from": null, "to": []},
        "parameters": {"from": null, "to": {}}, "is_active": {"from": null, "to": true},
    }]));
    let patch = AgentPatch::default()
        .display_name("Writer")
        .role(Patch::Null)
        .parameters(serde_json::from_str::<Parameters>(r#"{"wit":0.7}"#).unwrap());
    service.update_agent(&key, None, "writer", patch, ANY).await.unwrap();
    expected.push(json!([by_key, "agent.updated", "agent", "writer", {
        "role": {"from": "author", "to": null}, "parameters": {"from": {}, "to": {"wit": 0.7}},
    }]));
    service
        .update_agent(&key, None, "writer", AgentPatch::default(), ANY)
        .await
        .unwrap();
    expected.push(json!([by_key, "agent.updated", "agent", "writer", {}]));
    service.delete_agent(&key, None, "writer", ANY).await.unwrap();
    expected.push(json!([by_key, "agent.deactivated", "agent", "writer", {"is_active": {"from": true, "to": false}}]));
    service.restore_agent(&key, None, "writer", ANY).await.unwrap();
    expected.push(json!([by_key, "agent.restored", "agent", "writer", {"is_active": {"from": false, "to": true}}]));
    service.revoke_api_key(&ada, key_id).await.unwrap();
    expected.push(json!([user, "api_key.revoked", "api_key", key_id, {
        "revoked_at": {"from": null, "to": "2026-11-20T09:30:00.000Z"},
    }]));

    let log = world.log(workspace, "ada").await;
    let seen: Vec<Value> = log
        .iter()
        .map(|entry| {
            json!([
                entry.actor,
                entry.action,
                entry.target.kind,
                entry.target.id,
                entry.changes
            ])
        })
        .collect();
    assert_eq!(seen, expected);
    let ids: std::collections::HashSet<_> = log.iter().map(|entry| entry.id).collect();
    assert_eq!(ids.len(), log.len());
    assert!(log.iter().all(|entry| entry.workspace_id == workspace));
    let text = serde_json::to_string(&log[0]).unwrap();
    let names: Vec<String> = serde_json::from_str::<serde_json::Map<_, _>>(&text)
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(
        names,
        [
            "id",
            "workspace_id",
            "actor",
            "action",
            "target",
            "created_at",
            "changes",
            "revision",
            "message",
            "request_id",
        ]
    );
}

#[tokio::test]
async fn every_action_is_written_by_its_operation() {
    let world = World::new();
    let (ada, service) = (world.user("ada"), &world.service);
    let studio = world.workspace("ada").await;
    world.set_plan(studio, Plan::Team).await;
    let vault = Vault::new(vec![MasterKey::generate(&SystemEntropy).unwrap()]).unwrap();
    service.set_vault(vault);
    let at = Some(studio);
    let mel = world.member(studio, "ada", "mel", Role::Member).await;
    let mel_id = mel.user_id().unwrap();
    service.remove_member(&ada, studio, mel_id).await.unwrap();
    let key = world.key(studio, "ada", Scope::Read).await.record.id;
    let rotate = RotateApiKey::default();
    let key = service.rotate_api_key(&ada, &key, rotate).await.unwrap().record.id;
    service.revoke_api_key(&ada, &key).await.unwrap();
    world.agent(studio, "ada", "writer").await;
    let named = AgentPatch::default().display_name("Second");
    service.update_agent(&ada, at, "writer", named, ANY).await.unwrap();
    let first = Rollback::to_version(1);
    service.roll_back_agent(&ada, at, "writer", first, ANY).await.unwrap();
    let one = LabelTarget::new(1);
    service.set_label(&ada, at, "writer", "staging", one).await.unwrap();
    let promotion = Promotion::new("staging".parse().unwrap(), "production".parse().unwrap());
    service.promote_labels(&ada, studio, promotion, false).await.unwrap();
    let restore = LabelRestore::new("production".parse().unwrap(), 1);
    service.restore_label(&ada, studio, restore, false).await.unwrap();
    service.remove_label(&ada, at, "writer", "staging").await.unwrap();
    service.delete_agent(&ada, at, "writer", ANY).await.unwrap();
    service.restore_agent(&ada, at, "writer", ANY).await.unwrap();
    let apply = ApplyAgents::of(vec![AgentSpec::new("editor".parse().unwrap(), "Editor")]);
    service.apply_agents(&ada, studio, apply, false).await.unwrap();
    let (openai, secret) = (Provider::OPENAI, ProviderCredential::new("sk-0123456789").unwrap());
    service.save_provider_key(&ada, studio, openai, &secret).await.unwrap();
    service.delete_provider_key(&ada, studio, openai).await.unwrap();
    let hook = NewWebhook::new(studio, "https://hooks.example.com/");
    let hook = service.create_webhook(&ada, hook).await.unwrap().webhook.id;
    let described = WebhookPatch::default().description("docs");
    service.update_webhook(&ada, hook, described).await.unwrap();
    service.rotate_webhook_secret(&ada, hook).await.unwrap();
    let replay = WebhookReplay::new(ReplayFrom::Start);
    service.replay_webhook(&ada, hook, replay).await.unwrap();
    service.delete_webhook(&ada, hook).await.unwrap();
    let (scope, period) = (BudgetScope::Workspace, BudgetPeriod::Day);
    let set = service.set_budget(&ada, studio, scope, None, period, BudgetLimit::new(Usd::ZERO));
    set.await.unwrap();
    service.remove_budget(&ada, studio, scope, None, period).await.unwrap();
    service.export_workspace(&ada, studio).await.unwrap();

    let log = world.log(studio, "ada").await;
    let written: BTreeSet<Action> = log.iter().map(|entry| entry.action).collect();
    let without: Vec<_> = Action::ALL.iter().filter(|action| !written.contains(action)).collect();
    // A delivery, a model call and the end of another server write them: see the tests of webhooks and budgets.
    assert_eq!(
        without,
        [
            &Action::WebhookDisabled,
            &Action::BudgetSettled,
            &Action::BudgetThresholdReached
        ]
    );
}

#[tokio::test]
async fn a_refused_request_writes_no_entry() {
    let world = World::with(|settings| settings.plan_limits.free = Some(1));
    let workspace = world.workspace("ada").await;
    let faulty = Faulty::new(&world.store);
    let service = world.behind(Arc::clone(&faulty) as _);
    let ada = world.user("ada");
    world.agent(workspace, "ada", "writer").await;
    let before = world.log(workspace, "ada").await;
    let new = |agent_id: &str| NewAgent::new(workspace, agent_id.parse().unwrap(), "A");
    let nameless = new("x").display_name(String::new());
    assert_eq!(kind(service.create_agent(&ada, nameless).await), ErrorKind::Invalid);
    assert_eq!(
        kind(service.create_agent(&world.user("eve"), new("x")).await),
        ErrorKind::Forbidden
    );
    assert_eq!(
        kind(service.delete_agent(&ada, None, "x", ANY).await),
        ErrorKind::NotFound
    );
    assert_eq!(faulty.commits(), 0);
    // The commit itself refuses the next two.
    assert_eq!(
        kind(service.create_agent(&ada, new("writer")).await),
        ErrorKind::Conflict
    );
    assert_eq!(kind(service.create_agent(&ada, new("x")).await), ErrorKind::PlanLimit);
    assert_eq!(
        kind(service.remove_member(&ada, workspace, &"ada".parse().unwrap()).await),
        ErrorKind::Conflict
    );
    assert_eq!(world.log(workspace, "ada").await, before);
}

#[tokio::test]
async fn the_log_is_read_newest_first_in_pages() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    for name in ["a", "b", "c", "d"] {
        let patch = WorkspacePatch::default().name(Some(name.into()));
        world.service.update_workspace(&ada, workspace, patch).await.unwrap();
    }
    for (offset, limit, expected) in [
        (0, 2, &["d", "c"][..]),
        (1, 2, &["c", "b"]),
        (3, 1000, &["a", "ada's"]),
        (4, 1, &["ada's"]),
        (5, 1, &[]),
        (u64::MAX, usize::MAX, &[]),
    ] {
        let page = world.service.audit_log(&ada, workspace, offset, limit).await.unwrap();
        let names: Vec<_> = page
            .iter()
            .map(|entry| entry.changes["name"].to.as_str().unwrap())
            .collect();
        assert_eq!(names, expected, "offset {offset}");
    }
    let other = world.workspace("bob").await;
    let foreign = world.service.audit_log(&ada, other, 0, 1).await;
    assert_eq!(kind(foreign), ErrorKind::Forbidden);
}

#[tokio::test]
async fn no_secret_is_stored_or_logged() {
    let world = World::on_disk(Default::default());
    let workspace = world.workspace("ada").await;
    let (created, _) = world.key_caller(workspace, "ada", Scope::Admin).await;
    world
        .service
        .revoke_api_key(&world.user("ada"), &created.record.id)
        .await
        .unwrap();
    world.service.flush().await.unwrap();
    let secret = &created.key[29..72];
    let log = serde_json::to_string(&world.log(workspace, "ada").await).unwrap();
    assert!(
        !log.contains(secret) && !log.contains("argon2") && !log.contains("hash"),
        "{log}"
    );
    for kind in Kind::ALL {
        let partition = match kind.partition_kind() {
            PartitionKind::Workspace => Partition::Workspace(workspace),
            PartitionKind::Global => Partition::Global(created.record.id.as_str().into()),
        };
        let scan = Scan {
            direction: Direction::Descending,
            ..Scan::all(partition, kind)
        };
        for (key, record) in world.store.scan(&scan).await.unwrap().entries {
            let text = String::from_utf8_lossy(&record.value).into_owned();
            assert!(!text.contains(secret), "{key:?}");
        }
    }
    let file = std::fs::read(world.path().unwrap().join("store.redb")).unwrap();
    assert!(!file.windows(secret.len()).any(|window| window == secret.as_bytes()));
}
