//! Migration of a store from a data directory into a database and back.

use std::process::Output;
use std::sync::Arc;

use agentcfg_core::AgentCfg;
use agentcfg_core::model::{AgentPatch, Precondition};
use agentcfg_core::store::{Batch, Key, Kind, Store, Write};
use agentcfg_postgres::{PostgresOptions, PostgresStore};

use crate::cluster::Cluster;
use crate::migration::{fails, fill, open, put, same_in_another_epoch, succeeds, visible_state};
use crate::server::{Server, command, token};

fn migrate(from: &str, to: &str) -> Output {
    command()
        .args(["migrate", "--from", from, "--to", to])
        .output()
        .unwrap()
}

async fn version(store: &dyn Store, key: &Key) -> u64 {
    let found = store.get(std::slice::from_ref(key)).await.unwrap();
    found[0].as_ref().map_or(0, |record| record.version)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_migrates_to_a_database_and_back_and_versions_continue() {
    let Some(cluster) = Cluster::shared() else { return };
    let (place, url) = (tempfile::tempdir().unwrap(), cluster.database());
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    std::fs::create_dir(&first).unwrap();
    let (gone, kept) = (
        Key::global("x", Kind::Meta, "gone"),
        Key::global("x", Kind::Meta, "kept"),
    );
    let store = open(&first);
    let workspaces = fill(&AgentCfg::builder(Arc::clone(&store)).build()).await;
    let before = visible_state(&AgentCfg::builder(Arc::clone(&store)).build(), &workspaces).await;
    let kept_version = put(&*store, &kept).await;
    let gone_version = put(&*store, &gone).await;
    let writes = vec![Write::Delete(gone.clone())];
    store.commit(Batch { checks: vec![], writes }).await.unwrap();
    drop(store);

    let (from, to) = (first.display().to_string(), second.display().to_string());
    succeeds(&migrate(&from, &url), "moved into the database");
    succeeds(&migrate(&from, &url), "already in the database");

    let store = Arc::new(PostgresStore::connect(&PostgresOptions::new(&url)).await.unwrap());
    let service = AgentCfg::builder(Arc::clone(&store)).build();
    let arrived = visible_state(&service, &workspaces).await;
    same_in_another_epoch(&arrived, &before);
    assert_eq!(version(&*store, &kept).await, kept_version);
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
    service
        .remove_member(&ada, workspaces[0], &"bob".parse().unwrap())
        .await
        .unwrap();
    let after = visible_state(&service, &workspaces).await;
    assert_eq!(after[0].3, before[0].3 + 2, "the audit log continues");
    fails(&migrate(&from, &url), "stop the servers first");
    store.close();
    drop((service, store));
    wait_until_unused(&cluster, &url);

    fails(&migrate(&from, &url), "not those of");
    succeeds(&migrate(&url, &to), "moved into the directory");
    succeeds(&migrate(&url, &to), "already in the directory");
    fails(&migrate(&url, &from), "first");
    let store = open(&second);
    let back = visible_state(&AgentCfg::builder(Arc::clone(&store)).build(), &workspaces).await;
    same_in_another_epoch(&back, &after);
    assert_ne!(back[0].1.epoch(), before[0].1.epoch());
    assert!(put(&*store, &gone).await > again);
    let member = Key::in_workspace(workspaces[0], Kind::Member, "bob");
    assert!(put(&*store, &member).await > again);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_from_a_database_with_unused_master_keys_can_be_served() {
    let Some(cluster) = Cluster::shared() else { return };
    let (place, url) = (tempfile::tempdir().unwrap(), cluster.database());
    let keys = "7".repeat(64);
    drop(Server::with(&url, &[("master_keys", &keys)]));
    wait_until_unused(&cluster, &url);
    let to = place.path().join("data");
    succeeds(
        &migrate(&url, to.to_str().unwrap()),
        "left out the list of master keys: nothing in the store is sealed under one",
    );
    let check = command()
        .args(["check-config", "--listen", "127.0.0.1:0"])
        .env("AGENTCFG_DATA", &to)
        .output()
        .unwrap();
    succeeds(&check, "the settings are good");
}

/// The database notices a closed connection a little later than the client.
fn wait_until_unused(cluster: &Cluster, url: &str) {
    let database = url.rsplit_once('/').unwrap().1;
    let count = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'");
    while cluster.sql(&count) != "0" {}
}

/// A killed migration leaves nothing behind, and the next one copies everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_run_leaves_nothing_behind() {
    let Some(cluster) = Cluster::shared() else { return };
    let (place, url) = (tempfile::tempdir().unwrap(), cluster.database());
    let store = open(place.path());
    let keys = (0..4000).map(|i| Key::global("many", Kind::Meta, format!("{i:05}")));
    let value = serde_json::json!("x".repeat(2000)).to_string().into_bytes();
    let writes = keys.map(|key| Write::Put(key, value.clone())).collect();
    store.commit(Batch { checks: vec![], writes }).await.unwrap();
    drop(store);
    let from = place.path().display().to_string();
    let database = url.rsplit_once('/').unwrap().1.to_owned();
    let mut cut = 0;
    for _ in 0..3 {
        let mut child = command()
            .args(["migrate", "--from", &from, "--to", &url])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Waits until the transfer is in progress. The session of a previous poll may still be listed.
        let busy = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%INSERT INTO agentcfg.meta%' \
                    AND query NOT LIKE '%pg_stat_activity%' AND datname = current_database()";
        while cluster.sql_in(&database, busy) == "0" && child.try_wait().unwrap().is_none() {}
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until_unused(&cluster, &url);
        let there = "SELECT count(*) FROM agentcfg.meta";
        if cluster.sql_in(&database, there) != "0" {
            // The migration finished before this test could kill it.
            break;
        }
        cut += 1;
    }
    println!("{cut} runs were killed on the way");
    succeeds(&migrate(&from, &url), "4000 records");
    let server = Server::start(&url);
    server.api(&token("ada")).workspace().await;
}
