//! What a webhook sends after it was disabled, enabled, replayed, changed or deleted.

use agentcfg_core::model::{ActorType, Cursor, DisabledReason, ReplayFrom, WebhookPatch, WebhookReplay};

use super::*;

#[tokio::test]
async fn a_receiver_that_is_gone_gets_nothing_until_it_is_enabled_again() {
    let hooks = Hooks::new().await;
    let id = hooks.create().await.webhook.id;
    hooks.receiver.answer(URL, [status(410)]);
    hooks.agent("writer").await;
    let refused = hooks.sent().await;
    let webhook = hooks.webhook(id).await;
    assert_eq!(
        (webhook.enabled, webhook.disabled_reason),
        (false, Some(DisabledReason::Gone))
    );
    assert_eq!(webhook.cursor.revision(), revisions(&refused)[0] - 1);
    assert_eq!(hooks.deliveries(id).await[0].next_attempt_at, None);
    let entry = &hooks.service.audit_log(&hooks.ada, hooks.studio, 0, 1).await.unwrap()[0];
    assert_eq!(
        (entry.action.as_str(), entry.actor.kind, entry.actor.id.as_str()),
        ("webhook.disabled", ActorType::System, "webhooks")
    );
    assert_eq!(entry.changes["enabled"].to, false);
    assert_eq!(entry.changes["disabled_reason"].to, "gone");
    hooks.agent("reader").await;
    hooks.pass(86_400);
    assert_eq!(hooks.sent().await.len(), 0);
    let patch = WebhookPatch::default().enabled(true);
    let webhook = hooks.service.update_webhook(&hooks.ada, id, patch).await.unwrap();
    assert_eq!((webhook.enabled, webhook.disabled_reason), (true, None));
    let sent = hooks.sent().await;
    assert_eq!(sent.len(), 2);
    assert_eq!((&sent[0].id, &sent[0].body), (&refused[0].id, &refused[0].body));
    assert_eq!(
        hooks.deliveries(id).await.iter().map(|d| d.attempt).collect::<Vec<_>>(),
        [1, 2, 1]
    );
}

#[tokio::test]
async fn five_days_without_a_success_disable_a_webhook() {
    let hooks = Hooks::new().await;
    let id = hooks.create().await.webhook.id;
    hooks.receiver.answer(URL, std::iter::repeat_n(status(500), 100));
    let mut hours = 0;
    while hooks.webhook(id).await.enabled {
        if hours % 24 == 0 {
            hooks.agent(&format!("agent-{hours}")).await;
        }
        hooks.sent().await;
        hooks.pass(3600);
        hours += 1;
        assert!(hours < 200);
    }
    assert!((120..=125).contains(&hours), "{hours}");
    assert_eq!(hooks.webhook(id).await.disabled_reason, Some(DisabledReason::Failing));
    hooks.receiver.answers.lock().unwrap().clear();
    let patch = WebhookPatch::default().enabled(true);
    hooks.service.update_webhook(&hooks.ada, id, patch).await.unwrap();
    let sent = revisions(&hooks.sent().await);
    assert!(sent.len() >= 4 && sent.is_sorted(), "{sent:?}");
    assert!(hooks.webhook(id).await.enabled);
    assert_eq!(hooks.sent().await.len(), 0);
}

#[tokio::test]
async fn a_webhook_that_is_disabled_by_hand_goes_on_from_its_cursor() {
    let hooks = Hooks::new().await;
    let id = hooks.create().await.webhook.id;
    let set = async |enabled| {
        let patch = WebhookPatch::default().enabled(enabled);
        hooks.service.update_webhook(&hooks.ada, id, patch).await.unwrap()
    };
    hooks.agent("first").await;
    hooks.sent().await;
    assert_eq!(set(false).await.disabled_reason, None);
    hooks.agent("second").await;
    assert_eq!(hooks.sent().await.len(), 0);
    set(true).await;
    let sent = hooks.sent().await;
    assert_eq!(body(&sent[0])["data"]["target"]["id"], "second");
    assert_eq!(sent.len(), 1);
}

#[tokio::test]
async fn a_replay_sends_what_is_after_the_cursor_again() {
    let hooks = Hooks::new().await;
    hooks.agent("before").await;
    let created = hooks.create().await.webhook;
    for number in 0..3 {
        hooks.agent(&format!("agent-{number}")).await;
    }
    let first = hooks.sent().await;
    let replay = async |after| {
        let replay = WebhookReplay::new(after);
        hooks.service.replay_webhook(&hooks.ada, created.id, replay).await
    };
    let replayed = replay(ReplayFrom::After(created.cursor)).await.unwrap();
    assert_eq!(replayed.cursor, created.cursor);
    let again = hooks.sent().await;
    let both = |messages: &[Outgoing]| {
        messages
            .iter()
            .map(|m| (m.id.clone(), m.body.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(both(&again), both(&first));
    replay(ReplayFrom::Start).await.unwrap();
    let all = hooks.sent().await;
    assert_eq!(all.len(), 4);
    assert_eq!(body(&all[0])["data"]["target"]["id"], "before");
    assert_eq!(body(&all[1])["data"]["previous_revision"], Value::Null);
    assert_eq!(both(&all[1..]), both(&first));
    let actions: Vec<_> = hooks.service.audit_log(&hooks.ada, hooks.studio, 0, 2).await.unwrap();
    assert!(actions.iter().all(|entry| entry.action.as_str() == "webhook.replayed"));
    // Cursors that do not fit.
    let (epoch, workspace) = (created.cursor.epoch(), created.cursor.workspace());
    let (nil, other) = (WorkspaceId::new(uuid::Uuid::nil()), "00000000".parse().unwrap());
    let later = Cursor::new(epoch, workspace, 1000);
    let other_epoch = Cursor::new(other, workspace, created.cursor.revision());
    let elsewhere = Cursor::new(epoch, nil, created.cursor.revision());
    for (cursor, rule) in [
        (later, "after must not be later than the webhook's cursor"),
        (
            other_epoch,
            "after is a cursor from before the store was restored or moved",
        ),
        (elsewhere, "after is a cursor of another workspace"),
    ] {
        assert_eq!(replay(ReplayFrom::After(cursor)).await.unwrap_err().message(), rule);
    }
}

#[tokio::test]
async fn a_replay_while_events_are_sent_takes_effect() {
    let hooks = Hooks::new().await;
    let created = hooks.create().await.webhook;
    let gate = hooks.receiver.gate(URL);
    hooks.agent("first").await;
    hooks.sender.tick().await.unwrap();
    until(|| hooks.receiver.count() == 1).await;
    let replay = WebhookReplay::new(ReplayFrom::Start);
    hooks
        .service
        .replay_webhook(&hooks.ada, created.id, replay)
        .await
        .unwrap();
    gate.add_permits(100);
    hooks.sender.idle().await;
    hooks.receiver.take();
    assert_eq!(hooks.sent().await.len(), 1);
    assert!(hooks.webhook(created.id).await.cursor.revision() > 0);
}

#[tokio::test]
async fn a_webhook_that_is_changed_or_deleted_while_events_are_sent() {
    let hooks = Hooks::new().await;
    let created = hooks.create().await.webhook;
    let gate = hooks.receiver.gate(URL);
    hooks.agent("first").await;
    hooks.sender.tick().await.unwrap();
    until(|| hooks.receiver.count() == 1).await;
    let elsewhere = "https://elsewhere.example.com/";
    let patch = WebhookPatch::default().url(Some(elsewhere.into()));
    hooks
        .service
        .update_webhook(&hooks.ada, created.id, patch)
        .await
        .unwrap();
    gate.add_permits(1);
    hooks.sender.idle().await;
    assert_eq!(hooks.deliveries(created.id).await.len(), 1, "its end is recorded");
    hooks.receiver.take();
    hooks.agent("second").await;
    assert_eq!(hooks.sent().await[0].url, elsewhere);
    let gate = hooks.receiver.gate(elsewhere);
    hooks.agent("third").await;
    hooks.sender.tick().await.unwrap();
    until(|| hooks.receiver.count() == 1).await;
    hooks.service.delete_webhook(&hooks.ada, created.id).await.unwrap();
    gate.add_permits(1);
    hooks.sender.idle().await;
    hooks.agent("fourth").await;
    hooks.receiver.take();
    assert_eq!(hooks.sent().await.len(), 0);
    for kind in [
        agentcfg_core::store::Kind::Webhook,
        agentcfg_core::store::Kind::WebhookState,
        agentcfg_core::store::Kind::WebhookDelivery,
    ] {
        let partition = agentcfg_core::store::Partition::Workspace(hooks.studio);
        let scan = agentcfg_core::store::Scan::all(partition, kind);
        assert_eq!(hooks.store.scan(&scan).await.unwrap().entries, [], "{kind:?}");
    }
}
