//! The client's mirror of a label, at the real server.

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::time::Duration;

use agentcfg_client::model::{Label, LabelTarget, Promotion};
use agentcfg_client::{Client, ReleasedMirror, RetryPolicy};
use agentcfg_tests::harness::{Server, Studio};
use serde_json::json;

fn production() -> Label {
    "production".parse().unwrap()
}

/// The versions of a mirror, by agent.
fn versions(mirror: &ReleasedMirror) -> BTreeMap<String, u64> {
    let row = |row: &agentcfg_client::model::ReleasedAgent| (row.agent_id.to_string(), row.version);
    mirror.agents().iter().map(row).collect()
}

async fn next(mirror: &mut ReleasedMirror) {
    tokio::time::timeout(Duration::from_secs(30), mirror.changed())
        .await
        .expect("the label has moved")
        .unwrap();
}

async fn set(client: &Client, studio: &Studio<'_>, agent_id: &str, version: u64) {
    let target = LabelTarget::new(version);
    client
        .set_label(Some(studio.id), agent_id, &production(), &target)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_of_many_agents_is_one_step() {
    let studio = Studio::open();
    for number in 0..40 {
        studio
            .create(&format!("agent-{number:02}"), &json!({"role": "first"}))
            .expect(201);
        studio
            .change(&format!("agent-{number:02}"), &json!({"role": "second"}))
            .expect(200);
    }
    let client: Client = studio.client();
    let ids = (0..40)
        .map(|number| format!("agent-{number:02}").parse().unwrap())
        .collect::<Vec<_>>();
    let all = Promotion::new("latest".parse().unwrap(), production()).agent_ids(ids);
    client.promote_labels(studio.id, &all, false).await.unwrap();
    let mut mirror = client.mirror(studio.id).label(production()).await.unwrap();
    assert_eq!(mirror.agents().len(), 40);
    assert_eq!(mirror.get("agent-07").unwrap().config.role.as_deref(), Some("second"));
    assert!(mirror.get("none").is_none() && !mirror.is_from_file());
    let before = mirror.snapshot();
    for round in 0..5 {
        for number in 0..40 {
            studio
                .change(
                    &format!("agent-{number:02}"),
                    &json!({"role": format!("round {round}")}),
                )
                .expect(200);
        }
        client.promote_labels(studio.id, &all, false).await.unwrap();
        next(&mut mirror).await;
        let found: Vec<u64> = versions(&mirror).into_values().collect();
        assert_eq!(found, vec![3 + round; 40], "all or none");
    }
    assert_eq!(before.get("agent-07").unwrap().version, 2, "a snapshot stays as it is");
    studio.remove("agent-07").expect(200);
    next(&mut mirror).await;
    assert!(mirror.get("agent-07").is_none(), "a deleted agent is not released");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mirror_survives_a_dead_server_and_starts_from_its_file() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agents.json");
    let studio = Studio::on(&server);
    studio.create("writer", &json!({"role": "first"})).expect(201);
    studio.change("writer", &json!({"role": "second"})).expect(200);
    let (workspace, identity) = (studio.id, studio.identity());
    let client = Client::builder(server.url())
        .session_token(&studio.owner)
        .retry(RetryPolicy::NEVER)
        .build()
        .unwrap();
    set(&client, &studio, "writer", 1).await;
    let mirror = |client: Client| client.mirror(workspace).label(production()).file(&file).into_future();
    let mut running = mirror(client.clone()).await.unwrap();
    set(&client, &studio, "writer", 2).await;
    next(&mut running).await;
    server.kill();
    let mut from_file = mirror(client.clone()).await.unwrap();
    assert!(from_file.is_from_file());
    assert_eq!(versions(&from_file)["writer"], 2);
    assert_eq!(from_file.get("writer").unwrap().config.role.as_deref(), Some("second"));
    // Without the file, and with that of another label, the failure is told.
    assert!(client.mirror(workspace).label(production()).await.is_err());
    let other = client
        .mirror(workspace)
        .label("staging".parse().unwrap())
        .file(&file)
        .await;
    assert!(other.unwrap_err().is_connect());
    let server = Server::builder().data(server.data()).listen(server.address()).start();
    let studio = identity.on(&server);
    set(&client, &studio, "writer", 1).await;
    for mirror in [&mut running, &mut from_file] {
        next(mirror).await;
        assert_eq!(versions(mirror)["writer"], 1);
        assert!(!mirror.is_from_file() && mirror.file_error().is_none());
    }
}
