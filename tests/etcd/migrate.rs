//! Migration of a store from a data directory into a cluster and back.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use agentcfg_core::AgentCfg;
use agentcfg_core::model::{AgentPatch, NewAgent, NewWorkspace, Parameters, Precondition, WorkspaceId};
use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use agentcfg_core::store::{Batch, Key, Kind, Store, Write};
use agentcfg_etcd::{EtcdOptions, EtcdStore};
use agentcfg_tests::harness::database_settings;

use crate::cluster::Cluster;
use crate::migration::{fails, succeeds};
use crate::server::{Server, command, token};

fn migration(from: &str, to: &str, database: &str) -> Command {
    let mut command = command();
    command.args(["migrate", "--from", from, "--to", to]);
    command.envs(database_settings(database));
    command
}

fn migrate(from: &str, to: &str, database: &str) -> Output {
    migration(from, to, database).output().unwrap()
}

fn open(dir: &Path) -> Arc<dyn Store> {
    Arc::new(RedbStore::open(dir.join("store.redb"), RedbOptions::default()).unwrap())
}

fn options(database: &str) -> EtcdOptions {
    let (endpoints, prefix) = database.split_once('#').unwrap();
    EtcdOptions::new(endpoints).prefix(prefix.to_owned())
}

async fn put(store: &dyn Store, key: &Key) -> u64 {
    let writes = vec![Write::Put(key.clone(), b"1".to_vec())];
    store.commit(Batch { checks: vec![], writes }).await.unwrap().numbers[0]
}

async fn fill(service: &AgentCfg) -> WorkspaceId {
    let ada = service.trusted_user("ada").unwrap();
    let new = NewWorkspace::new("Süd");
    let workspace = service.create_workspace(&ada, new).await.unwrap().id;
    for agent in ["a", "b", "c"] {
        let new = NewAgent::new(workspace, agent.parse().unwrap(), "Ä").parameters(Parameters::from([(
            "x".to_owned(),
            serde_json::from_str("1e16").unwrap(),
        )]));
        service.create_agent(&ada, new).await.unwrap();
    }
    workspace
}

/// The agents with their versions, and the length of the audit log.
async fn visible(service: &AgentCfg, workspace: WorkspaceId) -> (String, usize) {
    let ada = service.trusted_user("ada").unwrap();
    let list = service.list_agents(&ada, workspace, &Default::default()).await.unwrap();
    let log = service.audit_log(&ada, workspace, 0, 1000).await.unwrap();
    (serde_json::to_string(list.value.agents().unwrap()).unwrap(), log.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_migrates_to_a_cluster_and_back_and_versions_continue() {
    let Some(cluster) = Cluster::shared() else { return };
    let (place, database) = (tempfile::tempdir().unwrap(), cluster.database());
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    std::fs::create_dir(&first).unwrap();
    let gone = Key::global("x", Kind::Meta, "gone");
    let kept = Key::global("x", Kind::Meta, "kept");
    let store = open(&first);
    let service = AgentCfg::builder(Arc::clone(&store)).build();
    let workspace = fill(&service).await;
    let before = visible(&service, workspace).await;
    let kept_version = put(&*store, &kept).await;
    let gone_version = put(&*store, &gone).await;
    let writes = vec![Write::Delete(gone.clone())];
    store.commit(Batch { checks: vec![], writes }).await.unwrap();
    drop((service, store));

    let (from, to) = (first.display().to_string(), second.display().to_string());
    succeeds(&migrate(&from, "etcd", &database), "moved into the database");
    succeeds(&migrate(&from, "etcd", &database), "already in the database");

    let store = Arc::new(EtcdStore::connect(&options(&database)).await.unwrap());
    let service = AgentCfg::builder(Arc::clone(&store)).build();
    assert_eq!(visible(&service, workspace).await, before);
    let found = store.get(std::slice::from_ref(&kept)).await.unwrap();
    assert_eq!(found[0].as_ref().unwrap().version, kept_version);
    let again = put(&*store, &gone).await;
    assert!(
        again > gone_version,
        "a version that was deleted before the move came back"
    );
    assert!(put(&*store, &kept).await > kept_version);
    let ada = service.trusted_user("ada").unwrap();
    let patch = AgentPatch::default().display_name("Moved");
    service
        .update_agent(&ada, Some(workspace), "a", patch, &Precondition::None)
        .await
        .unwrap();
    let after = visible(&service, workspace).await;
    assert_eq!(after.1, before.1 + 1, "the audit log continues");
    fails(&migrate(&from, "etcd", &database), "stop the servers first");
    store.close().await;
    drop((service, store));

    fails(&migrate(&from, "etcd", &database), "not those of");
    succeeds(&migrate("etcd", &to, &database), "moved into the directory");
    succeeds(&migrate("etcd", &to, &database), "already in the directory");
    let store = open(&second);
    let service = AgentCfg::builder(Arc::clone(&store)).build();
    assert_eq!(visible(&service, workspace).await, after);
    assert!(put(&*store, &gone).await > again);
    fails(&migrate("etcd", "postgres", &database), "there is none");
    fails(&migrate("etcd", "etcd", &database), "both are databases");
}

/// After a migration that was killed, no server opens what it left, and the next migration copies everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_run_leaves_nothing_that_a_server_opens() {
    let Some(cluster) = Cluster::shared() else { return };
    let (place, database) = (tempfile::tempdir().unwrap(), cluster.database());
    let store = open(place.path());
    let keys = (0..6000).map(|number| Key::global("many", Kind::Meta, format!("{number:05}")));
    let value = serde_json::json!("x".repeat(2000)).to_string().into_bytes();
    let writes = keys.map(|key| Write::Put(key, value.clone())).collect();
    store.commit(Batch { checks: vec![], writes }).await.unwrap();
    drop(store);
    let from = place.path().display().to_string();
    let (_, prefix) = database.split_once('#').unwrap();
    let records = format!("{prefix}/r/");
    let mut child = migration(&from, "etcd", &database)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let is_empty = || {
        cluster
            .ctl(&["get", "--prefix", "--keys-only", "--limit=1", &records])
            .is_empty()
    };
    while is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "the migration wrote nothing");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let refused = EtcdStore::connect(&options(&database)).await.unwrap_err().to_string();
    assert!(refused.contains("an import into it has not ended"), "{refused}");
    // The killed process counts as connected until its lease has expired.
    let end = Instant::now() + Duration::from_secs(60);
    let moved = loop {
        let moved = migrate(&from, "etcd", &database);
        if moved.status.success() || Instant::now() > end {
            break moved;
        }
        fails(&moved, "stop the servers first");
        thread::sleep(Duration::from_secs(1));
    };
    succeeds(&moved, "6000 records");
    let server = Server::start(&database);
    server.api(&token("ada")).workspace().await;
}
