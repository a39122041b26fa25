//! `kill -9` while events are sent: each arrives at least once.

use std::collections::BTreeSet;
use std::time::Duration;

use agentcfg_tests::harness::{Server, Studio, eventually, scratch};
use serde_json::json;

use super::*;
use crate::receiver::Plan;

const EVENTS: usize = 120;

#[test]
fn no_event_is_lost_when_the_server_is_killed() {
    let receiver = Receiver::start();
    let place = scratch();
    let data = place.path().join("data");
    let start = || {
        Server::builder()
            .set("webhook_allowed_hosts", receiver.address().to_string())
            .set("session_rate_limit", "1000000")
            .data(&data)
            .start()
    };
    let mut server = start();
    let studio = Studio::on(&server);
    let (id, user, owner) = (studio.id, studio.user.clone(), studio.owner.clone());
    let webhook = create(&studio, &receiver, &json!({}));
    receiver.pause(Duration::from_millis(15));
    // Some fail at first, so that pending attempts are killed too.
    receiver.plan((0..6).map(|_| Plan::Full(503, "retry-after", "2".into(), String::new())));
    let mut expected = BTreeSet::new();
    for round in 0..4 {
        let studio = Studio {
            server: &server,
            id,
            user: user.clone(),
            owner: owner.clone(),
        };
        // The events of a round are there before the first is sent, so that the kill comes in between.
        let enable = |enabled: bool| {
            let body = json!({"enabled": enabled});
            on(&studio, "PATCH", "", &webhook).json(&body).send().expect(200);
        };
        enable(false);
        for number in 0..EVENTS / 4 {
            let agent = format!("agent-{round}-{number}");
            studio.create(&agent, &json!({})).expect(201);
            expected.insert(agent);
        }
        let before = receiver.messages().len();
        enable(true);
        receiver.wait_for(before + 5);
        server.kill();
        server = start();
    }
    let received = || {
        let target =
            |message: &crate::receiver::Message| message.json()["data"]["target"]["id"].as_str().unwrap().to_owned();
        receiver.messages().iter().map(target).collect::<BTreeSet<_>>()
    };
    eventually("every event has arrived", || received() == expected);
    let studio = Studio {
        server: &server,
        id,
        user,
        owner,
    };
    eventually("the cursor is at the end", || {
        let cursor = list(&studio)[0]["cursor"].as_str().unwrap().to_owned();
        let revision: usize = cursor.rsplit_once("-c").unwrap().1.parse().unwrap();
        revision == studio.audit().len()
    });
    // A message that comes twice is the same.
    let messages = receiver.messages();
    for message in &messages {
        let twins = messages.iter().filter(|other| other.id() == message.id());
        assert!(twins.into_iter().all(|other| other.body == message.body));
    }
    assert!(messages.len() < 3 * EVENTS, "{} messages", messages.len());
    let verifier = standardwebhooks::Webhook::new(webhook["secret"].as_str().unwrap()).unwrap();
    for message in &messages {
        verifier.verify(&message.body, &message.headers).unwrap();
    }
}
