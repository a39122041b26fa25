//! Signatures, verified by the reference implementation.

use agentcfg_tests::harness::Studio;
use serde_json::json;
use standardwebhooks::Webhook;

use super::*;
use crate::receiver::{Message, Plan};

#[track_caller]
fn verify(message: &Message, secret: &Value) -> bool {
    let verifier = Webhook::new(secret.as_str().unwrap()).unwrap();
    verifier.verify(&message.body, &message.headers).is_ok()
}

#[test]
fn every_message_is_signed_as_standard_webhooks_describes() {
    let receiver = Receiver::start();
    let server = server_for(&[&receiver]);
    let studio = Studio::on(&server);
    let webhook = create(&studio, &receiver, &json!({}));
    studio
        .create("writer", &json!({"persona_prompt": "a prompt that stays here"}))
        .expect(201);
    studio.change("writer", &json!({"role": "Writer"})).expect(200);
    let messages = receiver.wait_for(2);
    for message in &messages {
        assert!(verify(message, &webhook["secret"]), "{message:?}");
        assert_eq!(message.method, "POST");
        assert_eq!(message.path, "/hook");
        assert_eq!(message.header("content-type"), "application/json");
        assert!(message.body.len() < 2048);
        assert!(!String::from_utf8_lossy(&message.body).contains("a prompt"));
        let other = json!("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=");
        assert!(!verify(message, &other));
        let mut changed = message.clone();
        changed.body = [&message.body[..], b" "].concat().into();
        assert!(!verify(&changed, &webhook["secret"]));
    }
    let epoch = studio
        .list()
        .need("etag")
        .trim_matches('"')
        .split('-')
        .next()
        .unwrap()
        .to_owned();
    let id = webhook["id"].as_str().unwrap();
    let revision = messages[0].revision();
    assert_eq!(messages[0].id(), format!("{id}.{epoch}.{revision}"));
    let (first, second) = (messages[0].json(), messages[1].json());
    let keys: Vec<_> = first.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["type", "timestamp", "data"]);
    let data: Vec<_> = first["data"].as_object().unwrap().keys().map(String::as_str).collect();
    let all = [
        "workspace_id",
        "revision",
        "previous_revision",
        "actor",
        "target",
        "version",
    ];
    assert_eq!(data, all);
    assert_eq!(
        (&first["type"], &second["type"]),
        (&json!("agent.created"), &json!("agent.updated"))
    );
    assert_eq!(first["data"]["workspace_id"], studio.id.to_string());
    assert_eq!(first["data"]["actor"], json!({"type": "user", "id": studio.user}));
    assert_eq!(first["data"]["target"], json!({"type": "agent", "id": "writer"}));
    assert_eq!(first["data"]["previous_revision"], Value::Null);
    assert_eq!(second["data"]["previous_revision"], revision);
    let entry = &studio.audit()[0];
    assert_eq!(second["timestamp"], entry["created_at"]);
}

#[test]
fn a_message_names_the_labels_that_moved_and_the_agents_that_were_applied() {
    let receiver = Receiver::start();
    let server = server_for(&[&receiver]);
    let studio = Studio::on(&server);
    studio.create("writer", &json!({})).expect(201);
    create(&studio, &receiver, &json!({"ordered": true}));
    let send = |method: &str, path: &str, body: Value| {
        let target = format!("/api/agents/{path}workspace_id={}", studio.id);
        let request = server.request(method, target).bearer(&studio.owner);
        request.json(&body).send().expect(200);
    };
    send("PUT", "labels?agent_id=writer&label=live&", json!({"version": 1}));
    send("POST", "labels/promote?", json!({"from": "live", "to": "stable"}));
    let spec = |agent_id: &str| json!({"agent_id": agent_id, "display_name": "Agent"});
    let many: Vec<Value> = (0..101).map(|number| spec(&format!("a{number:03}"))).collect();
    send("POST", "apply?", json!({"agents": [spec("editor")]}));
    send("POST", "apply?", json!({"agents": [spec("editor"), spec("coder")]}));
    send("POST", "apply?", json!({"agents": many}));
    send("POST", "labels/promote?", json!({"from": "latest", "to": "stable"}));
    let messages = receiver.wait_for(6);
    let data = |kind: &str, nth: usize| {
        let mut found = messages
            .iter()
            .map(Message::json)
            .filter(|message| message["type"] == kind);
        found.nth(nth).unwrap()["data"].clone()
    };
    let row = |agent_id: &str, label: &str| json!({"agent_id": agent_id, "label": label, "from": null, "to": 1});
    assert_eq!(data("label.set", 0)["labels"], json!([row("writer", "live")]));
    assert_eq!(data("label.promoted", 0)["labels"], json!([row("writer", "stable")]));
    assert_eq!(data("label.promoted", 0)["truncated"], Value::Null);
    let created = |agent_id: &str| json!({"agent_id": agent_id, "action": "create", "version": 1});
    assert_eq!(data("agents.applied", 0)["agents"], json!([created("editor")]));
    assert_eq!(
        data("agents.applied", 1)["agents"],
        json!([created("coder")]),
        "what stays is left out"
    );
    for (kind, nth, list) in [("agents.applied", 2, "agents"), ("label.promoted", 1, "labels")] {
        let long = data(kind, nth);
        assert_eq!(
            (long[list].as_array().unwrap().len(), &long["truncated"]),
            (100, &json!(true))
        );
    }
    assert!(messages.iter().all(|message| message.body.len() < 24 << 10));
}

#[test]
fn both_secrets_sign_after_a_rotation() {
    let receiver = Receiver::start();
    let server = server_for(&[&receiver]);
    let studio = Studio::on(&server);
    let webhook = create(&studio, &receiver, &json!({}));
    let rotated = on(&studio, "POST", "/rotate-secret", &webhook)
        .send()
        .expect(200)
        .json();
    assert_eq!(rotated["id"], webhook["id"]);
    let (old, new) = (&webhook["secret"], &rotated["secret"]);
    assert_ne!(old, new);
    studio.create("writer", &json!({})).expect(201);
    let message = &receiver.wait_for(1)[0];
    assert!(verify(message, old) && verify(message, new));
    assert_eq!(message.header("webhook-signature").split(' ').count(), 2);
    assert_eq!(list(&studio)[0]["secret"], Value::Null, "shown once");
}

#[test]
fn a_test_is_signed_answered_and_listed() {
    let receiver = Receiver::start();
    let server = server_for(&[&receiver]);
    let studio = Studio::on(&server);
    let webhook = create(&studio, &receiver, &json!({}));
    let disable = json!({"enabled": false});
    on(&studio, "PATCH", "", &webhook).json(&disable).send().expect(200);
    receiver.plan([Plan::Full(418, "x-kind", "pot".into(), "short and stout".into())]);
    let attempt = on(&studio, "POST", "/test", &webhook)
        .json(&json!({}))
        .send()
        .expect(200)
        .json();
    let message = &receiver.wait_for(1)[0];
    assert!(verify(message, &webhook["secret"]));
    assert_eq!(attempt["id"], message.id());
    let id = webhook["id"].as_str().unwrap();
    assert!(message.id().starts_with(&format!("{id}.")) && message.id().contains(".test-"));
    for (field, value) in [
        ("type", json!("webhook.test")),
        ("revision", Value::Null),
        ("attempt", json!(1)),
        ("status", json!(418)),
        ("response", json!("short and stout")),
        ("next_attempt_at", Value::Null),
    ] {
        assert_eq!(attempt[field], value, "{field}");
    }
    assert!(attempt["error"].is_string() && attempt["duration_ms"].is_u64() && attempt["at"].is_string());
    assert_eq!(deliveries(&studio, &webhook), [attempt]);
    assert_eq!(list(&studio)[0]["enabled"], false);
    assert_eq!(list(&studio)[0]["disabled_reason"], Value::Null);
}
