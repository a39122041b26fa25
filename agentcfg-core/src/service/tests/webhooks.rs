//! A test of a webhook while storage fails, and the turns of webhooks whose receivers are slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

use super::{Failing, ada, memory, service, workspace};
use crate::model::{NewAgent, NewWebhook, NewWorkspace};
use crate::service::{AgentCfg, Caller, WebhookSender};
use crate::webhook::{DeliveryAnswer, Outgoing, Transport};

/// A receiver that counts what it takes.
#[derive(Default)]
struct Receiver(AtomicUsize);

#[async_trait]
impl Transport for Receiver {
    async fn post(&self, _: Outgoing) -> DeliveryAnswer {
        self.0.fetch_add(1, Ordering::SeqCst);
        DeliveryAnswer {
            status: Some(204),
            ..DeliveryAnswer::default()
        }
    }
}

#[tokio::test]
async fn a_test_that_was_sent_and_cannot_be_recorded_is_no_error() {
    let store = memory();
    let good = service(&store, &[1]);
    let studio = workspace(&good).await.id;
    let new = NewWebhook::new(studio, "https://example.com/");
    let webhook = good.create_webhook(&ada(&good), new).await.unwrap().webhook.id;
    for applies in [false, true] {
        let failing = service(&Failing::after(&store, 0, applies), &[1]);
        let receiver = Receiver::default();
        let attempt = failing.test_webhook(&ada(&failing), webhook, &receiver).await;
        assert_eq!(attempt.unwrap().status, Some(204), "{applies}");
        assert_eq!(receiver.0.load(Ordering::SeqCst), 1, "{applies}");
    }
}

/// Receivers of which those at `https://slow.example/` never answer.
#[derive(Default)]
struct SlowReceivers {
    slow: AtomicUsize,
    prompt: Notify,
}

#[async_trait]
impl Transport for SlowReceivers {
    async fn post(&self, message: Outgoing) -> DeliveryAnswer {
        if message.url.contains("slow") {
            self.slow.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
        self.prompt.notify_one();
        DeliveryAnswer {
            status: Some(204),
            ..DeliveryAnswer::default()
        }
    }
}

/// Makes a workspace with a webhook, and an event for it.
async fn event_for(service: &AgentCfg, caller: &Caller, url: &str) {
    let name = "Studio".into();
    let studio = service
        .create_workspace(caller, NewWorkspace { name })
        .await
        .unwrap()
        .id;
    service
        .create_webhook(caller, NewWebhook::new(studio, url))
        .await
        .unwrap();
    let agent = NewAgent::new(studio, "writer".parse().unwrap(), "Writer");
    service.create_agent(caller, agent).await.unwrap();
}

#[tokio::test]
async fn slow_receivers_in_many_workspaces_of_one_owner_delay_no_other_owner() {
    let service = service(&memory(), &[1]);
    let receivers = Arc::new(SlowReceivers::default());
    let sender = WebhookSender::new(&service, receivers.clone()).unwrap();
    for _ in 0..300 {
        event_for(&service, &ada(&service), "https://slow.example/").await;
    }
    for _ in 0..3 {
        sender.tick().await.unwrap();
        tokio::task::yield_now().await;
    }
    assert!(
        sender.numbers().lag() > 0,
        "more webhooks are due than one owner gets sessions"
    );
    event_for(
        &service,
        &service.trusted_user("grace").unwrap(),
        "https://prompt.example/",
    )
    .await;
    sender.changed().await;
    // A new webhook is known to the sender from its next tick on.
    sender.tick().await.unwrap();
    let sent = tokio::time::timeout(Duration::from_secs(10), receivers.prompt.notified()).await;
    assert!(
        sent.is_ok(),
        "{} slow ones hold all sessions",
        receivers.slow.load(Ordering::SeqCst)
    );
}
