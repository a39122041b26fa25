//! The change feed of several servers on one database.

use std::time::Duration;

use agentcfg_client::model::{After, LiveStatus, WorkspaceId};
use agentcfg_client::{ChangeStream, Client, Followed};
use serde_json::json;

use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::server::{Server, token};

fn client(server: &Server, credential: &str) -> Client {
    let builder = Client::builder(format!("http://{}", server.api(credential).address));
    let builder = if credential.starts_with("svc_") {
        builder.api_key(credential)
    } else {
        builder.session_token(credential)
    };
    builder.build().unwrap()
}

async fn bookmark(changes: &mut ChangeStream) {
    let Followed::Bookmark(_) = changes.next().await.unwrap() else {
        panic!("a stream begins with a bookmark");
    };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_of_one_server_is_on_the_streams_of_the_others_within_a_second() {
    let Some(cluster) = Cluster::shared() else { return };
    let servers = Server::three(&cluster.database());
    let ada = token("ada");
    let api = servers[0].api(&ada);
    let workspace = api.workspace().await;
    let id: WorkspaceId = workspace.parse().unwrap();
    api.create(&workspace, "writer").await.expect(201);
    let mut streams: Vec<_> = servers
        .iter()
        .map(|server| client(server, &ada).changes(id, After::Now))
        .collect();
    for changes in &mut streams {
        bookmark(changes).await;
    }
    let path = format!("/api/agents/configs?workspace_id={workspace}&agent_id=writer");
    let mut longest = Duration::ZERO;
    for round in 0..12 {
        let writer = servers[round % 3].api(&ada);
        let body = json!({"role": format!("round {round}")});
        writer.patch(&path, body).await.expect(200);
        let committed = Instant::now();
        for changes in &mut streams {
            let event = changes.next_change().await.unwrap();
            assert_eq!(event.changes["role"].to, format!("round {round}"));
            longest = longest.max(committed.elapsed());
        }
        assert!(longest < Duration::from_secs(1), "{longest:?}");
    }
    println!("longest time from an answer to the event on all servers: {longest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_on_one_server_ends_the_streams_of_the_others() {
    let Some(cluster) = Cluster::shared() else { return };
    let servers = Server::three(&cluster.database());
    let ada = token("ada");
    let api = servers[0].api(&ada);
    let workspace = api.workspace().await;
    let (key_id, key) = api.key(&workspace, "read", 100).await;
    let mut changes = client(&servers[1], &key).changes(workspace.parse().unwrap(), After::Now);
    bookmark(&mut changes).await;
    api.delete(&format!("/api/api-keys?key_id={key_id}")).await.expect(200);
    api.create(&workspace, "late").await.expect(201);
    let ended = tokio::time::timeout(Duration::from_secs(20), changes.next()).await;
    assert!(ended.expect("the stream ends").unwrap_err().is_unauthorized());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_reported_to_one_server_is_on_the_streams_of_the_others() {
    let Some(cluster) = Cluster::shared() else { return };
    let servers = Server::three(&cluster.database());
    let ada = token("ada");
    let api = servers[0].api(&ada);
    let workspace = api.workspace().await;
    api.create(&workspace, "writer").await.expect(201);
    let changes = client(&servers[1], &ada).changes(workspace.parse().unwrap(), After::Now);
    let mut changes = changes.with_status();
    bookmark(&mut changes).await;
    let mut status = async || loop {
        if let Followed::Status(entry) = changes.next().await.unwrap() {
            return entry.status;
        }
    };
    assert_eq!(status().await, LiveStatus::Offline);
    let path = format!("/api/agents/status?workspace_id={workspace}&agent_id=writer");
    let body = Some(json!({"status": "idle"}));
    let begun = Instant::now();
    api.send("PUT", &path, "", body).await.unwrap().expect(200);
    assert_eq!(status().await, LiveStatus::Idle);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}
