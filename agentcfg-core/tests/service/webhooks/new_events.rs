//! Events that the sender finds before its next tick, because its own service has committed them.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use agentcfg_core::model::WebhookPatch;

use super::*;

/// Whether the sender knows of a new event.
async fn is_changed(sender: &WebhookSender) -> bool {
    let mut changed = pin!(sender.changed());
    poll_fn(|cx| Poll::Ready(changed.as_mut().poll(cx).is_ready())).await
}

impl Hooks {
    /// The messages that one look for new events brings.
    async fn sent_changed(&self) -> Vec<Outgoing> {
        self.sender.send_changed().await.unwrap();
        self.sender.idle().await;
        self.receiver.take()
    }
}

#[tokio::test]
async fn an_event_of_this_service_waits_for_no_tick() {
    for is_shared in [false, true] {
        let hooks = Hooks::on(Arc::new(MemoryStore::new()), is_shared).await;
        hooks.agent("before").await;
        assert!(!is_changed(&hooks.sender).await, "there is no webhook");
        // A webhook that no tick has seen.
        let webhook = hooks.create().await.webhook;
        assert!(is_changed(&hooks.sender).await);
        assert_eq!(hooks.sent_changed().await.len(), 0);
        assert!(!is_changed(&hooks.sender).await);
        hooks.agent("first").await;
        assert!(is_changed(&hooks.sender).await);
        assert_eq!(hooks.sent_changed().await.len(), 1);
        assert!(!is_changed(&hooks.sender).await);
        // One that a tick has seen.
        hooks.sender.tick().await.unwrap();
        assert!(!is_changed(&hooks.sender).await);
        hooks.agent("second").await;
        assert_eq!(hooks.sent_changed().await.len(), 1);
        // One that was disabled, and is enabled again.
        let enabled = |enabled| WebhookPatch::default().enabled(enabled);
        let change = async |patch| {
            hooks
                .service
                .update_webhook(&hooks.ada, webhook.id, patch)
                .await
                .unwrap()
        };
        change(enabled(false)).await;
        hooks.agent("third").await;
        assert_eq!(hooks.sent_changed().await.len(), 0);
        hooks.sender.tick().await.unwrap();
        change(enabled(true)).await;
        assert_eq!(hooks.sent_changed().await.len(), 1);
    }
}

#[tokio::test]
async fn events_of_workspaces_without_webhooks_wake_no_sender() {
    let hooks = Hooks::new().await;
    hooks.create().await;
    hooks.sender.tick().await.unwrap();
    let new = NewWorkspace::new("Other");
    let other = hooks.service.create_workspace(&hooks.ada, new).await.unwrap().id;
    let new = NewAgent::new(other, "writer".parse().unwrap(), "Writer");
    hooks.service.create_agent(&hooks.ada, new).await.unwrap();
    assert!(!is_changed(&hooks.sender).await);
}

#[tokio::test]
async fn events_of_another_server_wait_for_the_tick() {
    let hooks = Hooks::on(Arc::new(MemoryStore::new()), true).await;
    hooks.create().await;
    hooks.sender.tick().await.unwrap();
    let other = hooks.another();
    other.tick().await.unwrap();
    hooks.agent("first").await;
    assert!(!is_changed(&other).await);
    other.tick().await.unwrap();
    other.idle().await;
    assert_eq!(hooks.receiver.count(), 1);
}

/// An event may be committed when the session has read its last one and has not ended yet.
#[tokio::test]
async fn the_end_of_a_session_wakes_the_sender_if_there_were_new_events() {
    let hooks = Hooks::new().await;
    hooks.create_with(|new| new.ordered = true).await;
    hooks.sender.tick().await.unwrap();
    let gate = hooks.receiver.gate(URL);
    hooks.agent("first").await;
    hooks.sender.send_changed().await.unwrap();
    until(|| hooks.receiver.count() == 1).await;
    hooks.agent("second").await;
    assert!(is_changed(&hooks.sender).await);
    hooks.sender.send_changed().await.unwrap();
    assert!(!is_changed(&hooks.sender).await, "the session is at work");
    gate.add_permits(2);
    hooks.sender.idle().await;
    assert!(is_changed(&hooks.sender).await);
    assert_eq!(revisions(&hooks.receiver.take()).len(), 2);
    assert_eq!(hooks.sent_changed().await.len(), 0);
    assert!(!is_changed(&hooks.sender).await, "it is no loop");
}
