//! Snapshots of a cluster, restored as the documentation says.

use serde_json::json;

use crate::cluster::Cluster;
use crate::server::{Server, token};

/// The revisions of the cluster return, and the versions of records with them. No tag from before is accepted for the
/// other content that has the same version now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tags_from_before_a_restore_fail() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let database = cluster.database();
    let ada = token("ada");
    let server = Server::start(&database);
    let api = server.api(&ada);
    let workspace = api.workspace().await;
    api.create(&workspace, "a").await.expect(201);
    let list = format!("/api/agents/configs?workspace_id={workspace}");
    let agent = format!("{list}&agent_id=a");
    let rename = |name: &str| Some(json!({ "display_name": name }));
    let tag = async |path: &str| api.get(path).await.header("etag").unwrap().to_owned();
    let unchanged = tag(&agent).await;
    let snapshot = cluster.save_snapshot();
    api.patch(&agent, json!({"display_name": "After"})).await.expect(200);
    let (changed, listed) = (tag(&agent).await, tag(&list).await);
    let events = format!("/api/changes?workspace_id={workspace}&after=");
    let seen = api.get(&format!("{events}start")).await.expect(200);
    let cursors = seen
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["cursor"].as_str().unwrap());

    cluster.restore(&snapshot, "agentcfg-2");

    // A server that was not stopped changes nothing on the other cluster, and shows nothing of it.
    let late = api.send("PATCH", &agent, "", rename("Late")).await.unwrap();
    assert_eq!(late.status, 503, "{}", late.body);
    assert_eq!(server.api("").get("/readyz").await.status, 503);
    server.wait_for("another one than at the start");
    drop(server);

    let server = Server::start(&database);
    server.wait_for("another one than before");
    let api = server.api(&ada);
    let shown = api.get(&agent).await.expect(200);
    assert_eq!(shown[0]["display_name"], "a", "the state of the snapshot");
    for tag in [&unchanged, &changed] {
        let head = format!("if-match: {tag}\r\n");
        let refused = api.send("PATCH", &agent, &head, rename("Wrong")).await.unwrap();
        assert_eq!(refused.status, 412, "{tag}: {}", refused.body);
    }
    for (path, tag) in [(&agent, &unchanged), (&agent, &changed), (&list, &listed)] {
        let head = format!("if-none-match: {tag}\r\n");
        let fresh = api.send("GET", path, &head, None).await.unwrap();
        assert_eq!(fresh.status, 200, "{path} {tag}");
    }
    for cursor in cursors {
        let refused = api.get(&format!("{events}{cursor}")).await;
        assert_eq!(refused.status, 410, "{cursor}: {}", refused.body);
    }
    // The new tags work, and stay when the server starts again.
    let tag = api.get(&agent).await.header("etag").unwrap().to_owned();
    drop(server);
    let server = Server::start(&database);
    let head = format!("if-match: {tag}\r\n");
    let done = server.api(&ada).send("PATCH", &agent, &head, rename("Right")).await;
    done.unwrap().expect(200);
    server.api(&ada).create(&workspace, "b").await.expect(201);
}
