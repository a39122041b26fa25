//! The end of a service.

use agentcfg_core::model::{After, NewWorkspace};
use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use agentcfg_core::{AgentCfg, ErrorKind};

use super::support::{World, kind};

#[tokio::test]
async fn a_shutdown_ends_watches() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (service, ada) = (&world.service, world.user("ada"));
    let mut watch = service.watch(&ada, workspace, After::Now).await.unwrap();
    let waiting = tokio::spawn(async move { kind(watch.next().await) });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    service.shutdown().await.unwrap();
    assert_eq!(waiting.await.unwrap(), ErrorKind::Unavailable);
    let mut late = service.watch(&ada, workspace, After::Now).await.unwrap();
    assert_eq!(kind(late.next().await), ErrorKind::Unavailable);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_frees_the_file_of_the_store_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let open = || RedbStore::open(folder.path().join("store.redb"), RedbOptions::default());
    let service = AgentCfg::builder(open().unwrap()).build();
    let ada = service.trusted_user("ada").unwrap();
    let studio = service
        .create_workspace(&ada, NewWorkspace::new("Studio"))
        .await
        .unwrap();
    // It leaves a task in the background that holds the service.
    service.delete_workspace(&ada, studio.id, "Studio").await.unwrap();
    let clone = service.clone();
    service.shutdown().await.unwrap();
    let again = AgentCfg::builder(open().expect("the file is free")).build();
    again.remove_deleted_workspaces().await.unwrap();
    assert!(again.list_workspaces(&ada).await.unwrap().is_empty());
    assert_eq!(kind(clone.list_workspaces(&ada).await), ErrorKind::Unavailable);
}
