//! The typed client on a real server.

use std::time::Duration;

use agentcfg_client::model::{DisabledReason, NewWebhook, ReplayFrom, WebhookPatch, WebhookReplay};
use agentcfg_client::{Client, Timeouts};
use agentcfg_tests::harness::Studio;
use serde_json::json;

use super::*;
use crate::receiver::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn every_method_does_what_it_says() {
    let receiver = Receiver::start();
    let server = tokio::task::block_in_place(|| server_for(&[&receiver]));
    let studio = tokio::task::block_in_place(|| Studio::on(&server));
    let timeouts = Timeouts::default().attempt(Duration::from_secs(20));
    let client = Client::builder(server.url())
        .session_token(&studio.owner)
        .timeouts(timeouts)
        .build()
        .unwrap();
    let refused = client
        .create_webhook(&NewWebhook::new(studio.id, "https://10.0.0.1/"))
        .await
        .unwrap_err();
    assert!(refused.is_invalid());
    let created = client
        .create_webhook(&NewWebhook::new(studio.id, receiver.url("/hook")))
        .await
        .unwrap();
    let webhook = created.webhook;
    assert_eq!(
        client.list_webhooks(studio.id).await.unwrap(),
        std::slice::from_ref(&webhook)
    );
    receiver.plan([Plan::Status(503)]);
    let attempt = client.test_webhook(webhook.id).await.unwrap();
    assert_eq!((attempt.status, attempt.kind.as_str()), (Some(503), "webhook.test"));
    assert_eq!(client.webhook_deliveries(webhook.id).await.unwrap(), [attempt]);
    let rotated = client.rotate_webhook_secret(webhook.id).await.unwrap();
    assert_ne!(rotated.secret, created.secret);
    let patch = WebhookPatch::default().description("Deploys").enabled(false);
    let changed = client.update_webhook(webhook.id, &patch).await.unwrap();
    assert_eq!(
        (changed.description.as_deref(), changed.enabled),
        (Some("Deploys"), false)
    );
    assert_eq!(changed.disabled_reason, None::<DisabledReason>);
    let replay = WebhookReplay::new(ReplayFrom::After(webhook.cursor));
    assert_eq!(
        client.replay_webhook(webhook.id, &replay).await.unwrap().cursor,
        webhook.cursor
    );
    client.delete_webhook(webhook.id).await.unwrap();
    assert!(client.webhook_deliveries(webhook.id).await.unwrap_err().is_not_found());
    let targets: Vec<_> = receiver
        .messages()
        .iter()
        .map(|message| message.json()["data"]["target"].clone())
        .collect();
    assert_eq!(targets, [json!({"type": "webhook", "id": webhook.id.to_string()})]);
}
