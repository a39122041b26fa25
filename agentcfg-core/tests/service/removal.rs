//! The end of a workspace: who may end it, what it takes away at once, and that nothing of it is left.

use std::sync::Arc;

use agentcfg_core::clock::SystemEntropy;
use agentcfg_core::model::{Plan, Provider, Role, Scope, StatusReport, WorkspaceId, WorkspacePatch};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::store::{Key, Kind, Partition, PartitionKind, Scan, Store};
use agentcfg_core::vault::{MasterKey, Vault};
use agentcfg_core::{AgentCfg, ErrorKind};

use super::support::{Fault, Faulty, World, failure, kind};

const NAME: &str = "ada's";

/// A workspace with records of every kind, and the identifiers of its API keys.
async fn full(world: &World) -> (WorkspaceId, Vec<String>) {
    let workspace = world.workspace("ada").await;
    world.set_plan(workspace, Plan::Enterprise).await;
    let mut keys = Vec::new();
    for number in 0..5 {
        world
            .member(workspace, "ada", &format!("user-{number}"), Role::Member)
            .await;
        let (key, caller) = world.key_caller(workspace, "ada", Scope::Write).await;
        keys.push(key.record.id.to_string());
        let agent_id = format!("agent-{number}");
        world.agent(workspace, "ada", &agent_id).await;
        let report = StatusReport::working("T-1", "Title");
        world
            .service
            .report_status(&caller, None, &*agent_id, report)
            .await
            .unwrap();
    }
    let vault = Vault::new(vec![MasterKey::generate(&SystemEntropy).unwrap()]).unwrap();
    world.service.set_vault(vault);
    let credential = ProviderCredential::new("sk-0123456789").unwrap();
    world
        .service
        .save_provider_key(&world.user("ada"), workspace, Provider::OPENAI, &credential)
        .await
        .unwrap();
    world.service.flush().await.unwrap();
    (workspace, keys)
}

/// The records in the store that belong to a workspace.
async fn left(store: &dyn Store, workspace: WorkspaceId, keys: &[String]) -> Vec<Key> {
    let mut left = Vec::new();
    for kind in Kind::ALL {
        if kind.partition_kind() == PartitionKind::Workspace {
            let scan = Scan::all(Partition::Workspace(workspace), kind);
            left.extend(store.scan(&scan).await.unwrap().entries);
        }
    }
    let users = (0..5).map(|number| format!("user-{number}")).chain(["ada".into()]);
    let memberships = users.map(|user| (user, Kind::Membership));
    let keys = keys
        .iter()
        .flat_map(|key| [(key.clone(), Kind::ApiKey), (key.clone(), Kind::KeyUse)]);
    let lists = [
        ("provider-keys".into(), Kind::SealedKey),
        ("removals".into(), Kind::Removal),
    ];
    for (name, kind) in memberships.chain(keys).chain(lists) {
        let scan = Scan::all(Partition::Global(name.as_str().into()), kind);
        left.extend(store.scan(&scan).await.unwrap().entries);
    }
    left.into_iter().map(|(key, _)| key).collect()
}

#[tokio::test]
async fn a_deleted_workspace_is_refused_at_once_and_removed() {
    let world = World::new();
    let (workspace, keys) = full(&world).await;
    let other = world.workspace("eve").await;
    let service = &world.service;
    let key = world.key(workspace, "ada", Scope::Admin).await;
    let known = service.authenticate(&key.key).await.unwrap();
    let elsewhere = world.another_instance();
    elsewhere.authenticate(&key.key).await.unwrap();
    assert!(left(&*world.store, workspace, &keys).await.len() > 40);

    service
        .delete_workspace(&world.user("ada"), workspace, NAME)
        .await
        .unwrap();
    for service in [service, &elsewhere] {
        assert_eq!(kind(service.authenticate(&key.key).await), ErrorKind::Unauthorized);
        for user in ["ada", "user-1"] {
            let user = world.user(user);
            let list = service.list_agents(&user, workspace, &Default::default()).await;
            assert_eq!(
                failure(list),
                (
                    ErrorKind::Forbidden,
                    "you are not a member of this workspace".to_owned()
                )
            );
            assert!(service.list_workspaces(&user).await.unwrap().is_empty());
        }
    }
    let list = service.list_agents(&known, workspace, &Default::default()).await;
    assert_eq!(kind(list), ErrorKind::Unauthorized);
    let plan = WorkspacePatch::default().plan(Plan::Pro);
    let changed = service.update_workspace(&world.user("root"), workspace, plan).await;
    assert_eq!(kind(changed), ErrorKind::NotFound);
    let again = service.delete_workspace(&world.user("ada"), workspace, NAME).await;
    assert_eq!(kind(again), ErrorKind::Forbidden);

    // The use of a key that is not written yet.
    service.remove_deleted_workspaces().await.unwrap();
    service.flush().await.unwrap();
    elsewhere.flush().await.unwrap();
    assert_eq!(left(&*world.store, workspace, &keys).await, []);
    assert_eq!(left(&*world.store, workspace, &[key.record.id.to_string()]).await, []);
    assert_eq!(service.remove_deleted_workspaces().await.unwrap(), 0);
    assert_eq!(world.log(other, "eve").await.len(), 1, "another workspace is as before");
}

#[tokio::test]
async fn only_an_owner_who_names_the_workspace_deletes_it() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (_, key) = world.key_caller(workspace, "ada", Scope::Admin).await;
    let admin = world.member(workspace, "ada", "adam", Role::Admin).await;
    let (ada, eve, root) = (world.user("ada"), world.user("eve"), world.user("root"));
    let delete = async |caller, name: &str| world.service.delete_workspace(caller, workspace, name).await;
    for confirm in [NAME, "", "other"] {
        for caller in [&key, &admin, &eve, &root] {
            let answers: Vec<_> = [delete(caller, confirm).await, delete(caller, NAME).await]
                .into_iter()
                .map(failure)
                .collect();
            assert_eq!(answers[0].0, ErrorKind::Forbidden);
            assert_eq!(answers[0], answers[1], "it does not depend on the name");
        }
    }
    for wrong in ["", "Ada's", "ada's ", "ada"] {
        let (kind, message) = failure(delete(&ada, wrong).await);
        assert_eq!(kind, ErrorKind::Invalid);
        assert_eq!(message, "confirm must be the exact name of the workspace");
    }
    assert_eq!(world.log(workspace, "ada").await.len(), 3, "nothing was recorded");
}

/// Lets one commit after another fail, as a crash does, and resumes with another instance.
#[tokio::test]
async fn a_deletion_cut_off_at_any_commit_is_resumed() {
    let mut cut = 0;
    loop {
        let world = World::new();
        let (workspace, keys) = full(&world).await;
        let faulty = Faulty::new(&world.store);
        let service = world.behind(Arc::clone(&faulty) as _);
        faulty.script(
            (0..cut)
                .map(|_| Fault::After(Box::pin(async {})))
                .chain((0..1000).map(|_| Fault::Unavailable)),
        );
        let deleted = service.delete_workspace(&world.user("ada"), workspace, NAME).await;
        let removed = service.remove_deleted_workspaces().await;
        let resumed: AgentCfg = world.another_instance();
        if cut == 0 {
            assert_eq!(kind(deleted), ErrorKind::Unavailable);
            assert_eq!(resumed.remove_deleted_workspaces().await.unwrap(), 0);
            assert_eq!(world.listed(workspace, "ada").await.len(), 5, "it is as before");
        } else {
            if let Err(error) = deleted {
                assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
            }
            resumed.remove_deleted_workspaces().await.unwrap();
            assert_eq!(left(&*world.store, workspace, &keys).await, [], "cut at {cut}");
        }
        if removed.is_ok() && cut > 0 {
            break;
        }
        cut += 1;
    }
    assert!(cut > 10, "{cut} commits");
}

#[tokio::test]
async fn a_member_who_is_added_meanwhile_does_not_stay() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    world.member(workspace, "ada", "adam", Role::Admin).await;
    let faulty = Faulty::new(&world.store);
    let service = world.behind(Arc::clone(&faulty) as _);
    // Between the commit of the deletion and the first removal of members, another member acts.
    let meanwhile = {
        let (service, adam) = (world.another_instance(), world.user("adam"));
        async move {
            let bob = "bob".parse().unwrap();
            service.set_member(&adam, workspace, &bob, Role::Member).await.unwrap();
            let key = super::support::new_key(workspace, Scope::Read);
            service.create_api_key(&adam, key).await.unwrap();
        }
    };
    faulty.script([Fault::After(Box::pin(async {})), Fault::After(Box::pin(meanwhile))]);
    service
        .delete_workspace(&world.user("ada"), workspace, NAME)
        .await
        .unwrap();
    for user in ["ada", "adam", "bob"] {
        let members = service.list_members(&world.user(user), workspace).await;
        assert_eq!(kind(members), ErrorKind::Forbidden, "{user}");
    }
    service.remove_deleted_workspaces().await.unwrap();
    assert_eq!(left(&*world.store, workspace, &[]).await, []);
}
