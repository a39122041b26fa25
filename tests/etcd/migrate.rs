//! Migration of a store from a data directory into a cluster and back.

use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use agentcfg_core::AgentCfg;
use agentcfg_core::model::{AgentPatch, Precondition};
use agentcfg_core::store::{Batch, Key, Kind, Store, Write};
use agentcfg_etcd::{EtcdOptions, EtcdStore};
use agentcfg_tests::harness::database_settings;

use crate::cluster::Cluster;
use crate::migration::{fails, fill, open, put, same_in_another_epoch, succeeds, visible_state};
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

fn options(database: &str) -> EtcdOptions {
    let (endpoints, prefix) = database.split_once('#').unwrap();
    EtcdOptions::new(endpoints).prefix(prefix.to_owned())
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
    let workspaces = fill(&service).await;
    let before = visible_state(&service, &workspaces).await;
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
    same_in_another_epoch(&visible_state(&service, &workspaces).await, &before);
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
        .update_agent(&ada, Some(workspaces[0]), "a", patch, &Precondition::None)
        .await
        .unwrap();
    let after = visible_state(&service, &workspaces).await;
    assert_eq!(after[0].3, before[0].3 + 1, "the audit log continues");
    fails(&migrate(&from, "etcd", &database), "stop the servers first");
    store.close().await;
    drop((service, store));

    fails(&migrate(&from, "etcd", &database), "not those of");
    succeeds(&migrate("etcd", &to, &database), "moved into the directory");
    succeeds(&migrate("etcd", &to, &database), "already in the directory");
    let store = open(&second);
    let service = AgentCfg::builder(Arc::clone(&store)).build();
    same_in_another_epoch(&visible_state(&service, &workspaces).await, &after);
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
