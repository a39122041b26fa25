//! Deleted workspaces on several servers: refused everywhere at once, and nothing of them is left in any table.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use crate::cluster::Cluster;
use crate::server::{Server, token};

/// The tables with rows that name a text anywhere, tombstones included.
fn naming(cluster: &Cluster, database: &str, text: &str) -> Vec<String> {
    let tables = cluster.sql_in(
        database,
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'agentcfg'",
    );
    let naming = |table: &&str| {
        let count = format!("SELECT count(*) FROM agentcfg.{table} AS row WHERE row::text LIKE '%{text}%'");
        cluster.sql_in(database, &count).trim() != "0"
    };
    tables
        .lines()
        .map(str::trim)
        .filter(|table| !table.is_empty())
        .filter(naming)
        .map(str::to_owned)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_workspace_is_refused_by_every_server_and_leaves_nothing() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let database = url.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
    let keys = [("master_keys", "17".repeat(32))];
    let keys = keys.each_ref().map(|(name, value)| (*name, value.as_str()));
    let servers = [(); 3].map(|()| Server::with(&url, &keys));
    let (ada, bob) = (token("ada"), token("bob"));
    for round in 0..5 {
        let workspace = servers[0].api(&ada).workspace().await;
        for agent in ["one", "two", "three"] {
            servers[1].api(&ada).create(&workspace, agent).await.expect(201);
        }
        let member = format!("/api/workspaces/members?workspace_id={workspace}&user_id=bob");
        let gone = format!("/api/workspaces/members?workspace_id={workspace}&user_id=eve");
        for path in [&member, &gone] {
            let role = Some(json!({"role": "member"}));
            servers[0]
                .api(&ada)
                .send("PUT", path, "", role)
                .await
                .unwrap()
                .expect(200);
        }
        servers[0].api(&ada).delete(&gone).await.expect(200);
        // For events that never happen.
        let webhook = json!({"workspace_id": workspace, "url": "https://hooks.example.com/", "types": ["unused.*"]});
        let webhook = servers[0].api(&ada).post("/api/webhooks", webhook).await.expect(201);
        let webhook = webhook["id"].as_str().unwrap();
        let (_, key) = servers[0].api(&ada).key(&workspace, "write", 1_000_000).await;
        for server in &servers {
            server.api(&key).list(&workspace).await.expect(200);
        }
        let left = || {
            let named = [workspace.as_str(), webhook].map(|id| naming(&cluster, &database, id));
            BTreeSet::from_iter(named.concat())
        };
        let known = left();
        assert!(known.len() > 7 && known.contains("webhook_places"), "{known:?}");
        let busy = servers.iter().map(|server| {
            let (api, workspace) = (server.api(&key), workspace.clone());
            tokio::spawn(async move {
                let mut number = 0;
                while api.create(&workspace, &format!("busy-{number}")).await.status != 401 {
                    number += 1;
                }
            })
        });
        let busy: Vec<_> = busy.collect();
        let delete = format!("/api/workspaces?workspace_id={workspace}&confirm=Studio");
        servers[round % 3].api(&ada).delete(&delete).await.expect(200);
        for server in &servers {
            server.api(&key).list(&workspace).await.expect(401);
            server.api(&ada).list(&workspace).await.expect(403);
            server.api(&bob).list(&workspace).await.expect(403);
        }
        for task in busy {
            task.await.unwrap();
        }
        for _ in 0..200 {
            if left().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let left = left();
        assert!(
            left.is_empty(),
            "{left:?} name the workspace {workspace} or its webhook {webhook}"
        );
    }
}
