//! Webhooks of two servers on one database: one of them sends at a time, and the other takes over.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::receiver::{Message, Receiver};
use crate::server::{Api, Server, token};

const MASTER_KEY: &str = "1717171717171717171717171717171717171717171717171717171717171717";

fn start(url: &str, receiver: &Receiver) -> Server {
    let settings = [
        ("webhook_allowed_hosts", receiver.address().to_string()),
        ("master_keys", MASTER_KEY.to_owned()),
        ("default_plan", "enterprise".to_owned()),
    ];
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Server::with(url, &settings)
}

async fn webhook(api: &Api, workspace: &str, receiver: &Receiver) -> Value {
    let body = json!({"workspace_id": workspace, "url": receiver.url("/hook")});
    api.post("/api/webhooks", body).await.expect(201)
}

fn targets(messages: &[Message]) -> BTreeSet<String> {
    let target = |message: &Message| message.json()["data"]["target"]["id"].as_str().unwrap().to_owned();
    messages.iter().map(target).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_send_each_event_once() {
    let Some(cluster) = Cluster::shared() else { return };
    let (url, receiver) = (cluster.database(), Receiver::start());
    let servers = [start(&url, &receiver), start(&url, &receiver)];
    let ada = token("ada");
    let apis = [servers[0].api(&ada), servers[1].api(&ada)];
    let workspace = apis[0].workspace().await;
    webhook(&apis[1], &workspace, &receiver).await;
    receiver.pause(Duration::from_millis(10));
    let mut expected = BTreeSet::new();
    for number in 0..60 {
        let agent = format!("agent-{number}");
        apis[number % 2].create(&workspace, &agent).await.expect(201);
        expected.insert(agent);
    }
    let messages = tokio::task::block_in_place(|| receiver.wait_for(60));
    assert_eq!(targets(&messages), expected);
    // The end of a session and the next look of both servers bring nothing twice.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(receiver.messages().len(), 60);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_takes_over_from_one_that_was_killed() {
    let Some(cluster) = Cluster::shared() else { return };
    let (url, receiver) = (cluster.database(), Receiver::start());
    let first = start(&url, &receiver);
    let ada = token("ada");
    let workspace = first.api(&ada).workspace().await;
    webhook(&first.api(&ada), &workspace, &receiver).await;
    // The first server waits for an answer when it is killed, and so holds the lease.
    receiver.pause(Duration::from_secs(3600));
    let mut expected = BTreeSet::new();
    for number in 0..20 {
        let agent = format!("agent-{number}");
        first.api(&ada).create(&workspace, &agent).await.expect(201);
        expected.insert(agent);
    }
    tokio::task::block_in_place(|| receiver.wait_for(1));
    drop(first);
    receiver.pause(Duration::ZERO);
    let second = start(&url, &receiver);
    let agent = "after-the-kill";
    second.api(&ada).create(&workspace, agent).await.expect(201);
    expected.insert(agent.to_owned());
    // The lease lasts 20 seconds.
    for _ in 0..900 {
        if targets(&receiver.messages()) == expected {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(targets(&receiver.messages()), expected);
    // Only what was in flight comes twice.
    assert!((21..=23).contains(&receiver.messages().len()));
}
