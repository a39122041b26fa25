//! The epoch in each tag: no tag comes back, not even with the numbers of an older backup.

use std::path::Path;
use std::sync::Arc;

use agentcfg_core::model::{AgentPatch, NewAgent, NewWorkspace, Precondition, Tag, WorkspaceId};
use agentcfg_core::store::redb::{RedbOptions, RedbStore, restore};
use agentcfg_core::store::{Batch, Key, MemoryStore, Store, Write};
use agentcfg_core::{AgentCfg, Caller, Error, ErrorKind};

use super::support::{ANY, World, kind};

fn open(path: &Path) -> Arc<RedbStore> {
    Arc::new(RedbStore::open(path, RedbOptions::default()).unwrap())
}

fn start(store: &Arc<RedbStore>) -> (AgentCfg, Caller) {
    let service = AgentCfg::builder(Arc::clone(store)).build();
    let ada = service.trusted_user("ada").unwrap();
    (service, ada)
}

async fn update(
    service: &AgentCfg,
    ada: &Caller,
    workspace: WorkspaceId,
    condition: &Precondition,
) -> Result<Tag, Error> {
    let patch = AgentPatch::default();
    let updated = service
        .update_agent(ada, Some(workspace), "writer", patch, condition)
        .await;
    updated.map(|agent| agent.tag)
}

async fn list_tag(service: &AgentCfg, ada: &Caller, workspace: WorkspaceId) -> Tag {
    let list = service.list_agents(ada, workspace, &Default::default()).await;
    list.unwrap().tag
}

#[tokio::test]
async fn a_tag_from_before_a_restore_is_good_for_nothing() {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place.path().join("store.redb"));
    let (service, ada) = start(&store);
    let new = NewWorkspace::new("Studio");
    let workspace = service.create_workspace(&ada, new).await.unwrap().id;
    service
        .create_agent(&ada, NewAgent::new(workspace, "writer".parse().unwrap(), "Writer"))
        .await
        .unwrap();
    let mut backup = Vec::new();
    store.backup(&mut backup).unwrap();
    let record = update(&service, &ada, workspace, ANY).await.unwrap();
    let list = list_tag(&service, &ada, workspace).await;

    let path = place.path().join("restored.redb");
    restore(&backup[..], &path).unwrap();
    let (restored, ada) = start(&open(&path));
    let again = update(&restored, &ada, workspace, ANY).await.unwrap();
    assert_ne!(again, record);
    assert_ne!(list_tag(&restored, &ada, workspace).await, list);
    let condition = Precondition::matches(Tag::record(record.epoch(), again.number()));
    let stale = update(&restored, &ada, workspace, &condition).await;
    assert_eq!(kind(stale), ErrorKind::Precondition);
    let current = Precondition::matches(again);
    update(&restored, &ada, workspace, &current).await.unwrap();
}

#[tokio::test]
async fn a_store_keeps_its_epoch_over_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = open(&path);
    let (service, ada) = start(&store);
    let new = NewWorkspace::new("Studio");
    let workspace = service.create_workspace(&ada, new).await.unwrap().id;
    let tag = list_tag(&service, &ada, workspace).await;
    drop((service, store));
    let (service, ada) = start(&open(&path));
    assert_eq!(list_tag(&service, &ada, workspace).await, tag);
}

/// As after a restore.
#[tokio::test]
async fn a_store_without_an_epoch_gets_one_and_nothing_else_is_written() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let tag = world
        .service
        .create_agent(
            &world.user("ada"),
            NewAgent::new(workspace, "writer".parse().unwrap(), "Writer"),
        )
        .await
        .unwrap()
        .tag;
    let writes = vec![Write::Delete(Key::epoch())];
    world.store.commit(Batch { checks: vec![], writes }).await.unwrap();
    let log = world.log(workspace, "ada").await.len();

    let (one, other) = (world.another_instance(), world.another_instance());
    let ada = world.user("ada");
    let (first, second) = tokio::join!(list_tag(&one, &ada, workspace), list_tag(&other, &ada, workspace));
    assert_eq!(first, second);
    assert_ne!(first.epoch(), tag.epoch());
    let of_agent = one
        .list_agents(
            &ada,
            workspace,
            &agentcfg_core::service::AgentFilter::default().agent_id(Some("writer".parse().unwrap())),
        )
        .await
        .unwrap();
    assert_eq!(
        of_agent.tag,
        Tag::record(first.epoch(), tag.number()),
        "the record is as it was"
    );
    assert_eq!(world.log(workspace, "ada").await.len(), log);
}

#[tokio::test]
async fn two_new_stores_have_different_epochs() {
    let mut epochs = Vec::new();
    for _ in 0..2 {
        let service = AgentCfg::builder(MemoryStore::new()).build();
        let ada = service.trusted_user("ada").unwrap();
        let new = NewWorkspace::new("Studio");
        let workspace = service.create_workspace(&ada, new).await.unwrap().id;
        epochs.push(list_tag(&service, &ada, workspace).await.epoch());
    }
    assert_ne!(epochs[0], epochs[1]);
}
