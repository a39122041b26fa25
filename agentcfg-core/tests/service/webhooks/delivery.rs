//! What is sent, when, and what is sent again.

use agentcfg_core::model::{EventTypes, WebhookPatch};
use agentcfg_core::store::redb::{RedbOptions, RedbStore};

use super::*;

#[tokio::test]
async fn an_event_is_sent_once_with_a_signature() {
    let place = tempfile::tempdir().unwrap();
    let on_disk = RedbStore::open(place.path().join("store.redb"), RedbOptions::default()).unwrap();
    for store in [Arc::new(MemoryStore::new()) as Arc<dyn Store>, Arc::new(on_disk)] {
        let hooks = Hooks::on(store, false).await;
        hooks.agent("before").await;
        let created = hooks.create().await;
        assert_eq!(hooks.sent().await.len(), 0, "a webhook starts at its creation");
        hooks.agent("first").await;
        hooks.agent("second").await;
        let sent = hooks.sent().await;
        assert_eq!(sent.len(), 2);
        let message = &sent[0];
        let (id, start) = (created.webhook.id, created.webhook.cursor);
        assert_eq!(message.id, format!("{id}.{}.{}", start.epoch(), start.revision() + 1));
        assert_eq!(message.timestamp, hooks.clock_seconds());
        assert_eq!(message.url, URL);
        assert!(is_signed_by(message, &created.secret));
        let expected = serde_json::json!({
            "type": "agent.created",
            "timestamp": START.replace('Z', ".000Z"),
            "data": {
                "workspace_id": hooks.studio,
                "revision": start.revision() + 1,
                "previous_revision": null,
                "actor": {"type": "user", "id": "ada"},
                "target": {"type": "agent", "id": "first"},
                "version": body(message)["data"]["version"],
            },
        });
        assert_eq!(body(message), expected);
        assert_eq!(body(&sent[1])["data"]["previous_revision"], start.revision() + 1);
        assert_eq!(hooks.sent().await.len(), 0);
        assert_eq!(hooks.webhook(id).await.cursor.revision(), start.revision() + 2);
        let recorded = hooks.deliveries(id).await;
        assert_eq!(recorded.len(), 2);
        let newest = &recorded[0];
        assert_eq!(
            (newest.revision, newest.attempt, newest.status),
            (Some(start.revision() + 2), 1, Some(200))
        );
        assert_eq!(
            (newest.kind.as_str(), newest.response.as_deref()),
            ("agent.created", Some("answer"))
        );
        assert_eq!((&newest.error, newest.next_attempt_at), (&None, None));
        let numbers = hooks.sender.numbers();
        assert_eq!((numbers.delivered(), numbers.failed(), numbers.lag()), (2, 0, 0));
    }
}

#[tokio::test]
async fn only_the_chosen_types_are_sent_and_the_revisions_between_them_show_no_gap() {
    let hooks = Hooks::new().await;
    let all = hooks.create_with(|new| {
        new.types = EventTypes::new(vec!["member.*".into(), "agent.deactivated".into()]);
    });
    let id = all.await.webhook.id;
    hooks.agent("writer").await;
    let bob = "bob".parse().unwrap();
    let role = agentcfg_core::model::Role::Member;
    hooks
        .service
        .set_member(&hooks.ada, hooks.studio, &bob, role)
        .await
        .unwrap();
    hooks.agent("reader").await;
    let none = &agentcfg_core::model::Precondition::None;
    let workspace = Some(hooks.studio);
    hooks
        .service
        .delete_agent(&hooks.ada, workspace, "writer", none)
        .await
        .unwrap();
    let sent = hooks.sent().await;
    let kinds: Vec<_> = sent.iter().map(|message| body(message)["type"].clone()).collect();
    assert_eq!(kinds, ["member.set", "agent.deactivated"]);
    assert_eq!(body(&sent[1])["data"]["previous_revision"], revisions(&sent)[0]);
    // With other types, the previous revision is the last one that is of them.
    let types = EventTypes::new(vec!["agent.created".into()]);
    let patch = WebhookPatch::default().types(types);
    hooks.service.update_webhook(&hooks.ada, id, patch).await.unwrap();
    hooks.agent("third").await;
    let sent_then = hooks.sent().await;
    assert_eq!(
        body(&sent_then[0])["data"]["previous_revision"],
        revisions(&sent)[0] + 1
    );
}

#[tokio::test]
async fn a_failed_event_is_sent_again_with_the_same_id_and_body() {
    let hooks = Hooks::new().await;
    let id = hooks.create().await.webhook.id;
    hooks.receiver.answer(
        URL,
        [
            status(503),
            DeliveryAnswer::failed("cannot connect"),
            status(302),
            status(200),
        ],
    );
    hooks.agent("writer").await;
    let first = hooks.sent().await;
    assert_eq!(first.len(), 1);
    let waiting = hooks.webhook(id).await.cursor.revision();
    let mut pauses = Vec::new();
    for _ in 0..3 {
        let next = hooks.deliveries(id).await[0].next_attempt_at.unwrap();
        let pause = next.unix_millis() - hooks.clock_millis();
        pauses.push(pause);
        hooks.clock.advance_millis(pause - 1);
        assert_eq!(hooks.sent().await.len(), 0, "not before its time");
        hooks.clock.advance_millis(1);
        let again = hooks.sent().await;
        assert_eq!(
            (again.len(), &again[0].id, &again[0].body),
            (1, &first[0].id, &first[0].body)
        );
        assert!(again[0].timestamp > first[0].timestamp);
    }
    assert!(
        (4_500..5_500).contains(&pauses[0]) && (270_000..330_000).contains(&pauses[1]),
        "{pauses:?}"
    );
    assert_eq!(hooks.webhook(id).await.cursor.revision(), waiting + 1);
    let errors: Vec<_> = hooks
        .deliveries(id)
        .await
        .into_iter()
        .map(|delivery| delivery.error)
        .collect();
    let redirect = "the answer is a redirect, which is not followed";
    let expected = [
        None,
        Some(redirect),
        Some("cannot connect"),
        Some("the status of the answer is not 2xx"),
    ];
    assert_eq!(errors.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    assert_eq!(
        (hooks.sender.numbers().delivered(), hooks.sender.numbers().failed()),
        (1, 3)
    );
}

#[tokio::test]
async fn the_receiver_chooses_the_next_pause() {
    let hooks = Hooks::new().await;
    let id = hooks.create().await.webhook.id;
    let busy = status(429).retry_after("120");
    hooks.receiver.answer(URL, [busy]);
    hooks.agent("writer").await;
    hooks.sent().await;
    let next = hooks.deliveries(id).await[0].next_attempt_at.unwrap();
    assert_eq!(next.unix_millis() - hooks.clock_millis(), 120_000);
}

#[tokio::test]
async fn an_event_is_given_up_after_ten_attempts_and_the_next_one_follows() {
    for ordered in [false, true] {
        let hooks = Hooks::new().await;
        let id = hooks.create_with(|new| new.ordered = ordered).await.webhook.id;
        hooks.receiver.answer(URL, std::iter::repeat_n(status(500), 10));
        hooks.agent("writer").await;
        let (mut attempts, mut hours) = (0, 0);
        while attempts < 10 {
            attempts += hooks.sent().await.len();
            hooks.pass(3600);
            hours += 1;
        }
        assert!((65..90).contains(&hours), "{hours}");
        let last = &hooks.deliveries(id).await[0];
        assert_eq!((last.attempt, last.next_attempt_at), (10, None));
        assert_eq!(hooks.sender.numbers().given_up(), 1);
        hooks.pass(90_000);
        assert_eq!(hooks.sent().await.len(), 0);
        hooks.agent("reader").await;
        let sent = hooks.sent().await;
        assert_eq!(body(&sent[0])["data"]["target"]["id"], "reader");
        assert_eq!(body(&sent[0])["data"]["previous_revision"], revisions(&sent)[0] - 1);
        assert!(hooks.webhook(id).await.enabled);
    }
}

#[tokio::test]
async fn an_ordered_webhook_sends_one_event_at_a_time() {
    let hooks = Hooks::new().await;
    hooks.create_with(|new| new.ordered = true).await;
    let gate = hooks.receiver.gate(URL);
    for number in 0..4 {
        hooks.agent(&format!("agent-{number}")).await;
    }
    hooks.receiver.answer(URL, [status(200), status(500)]);
    hooks.sender.tick().await.unwrap();
    until(|| hooks.receiver.count() == 1).await;
    gate.add_permits(1);
    until(|| hooks.receiver.count() == 2).await;
    // The second one fails, so the third one waits.
    gate.add_permits(100);
    hooks.sender.idle().await;
    assert_eq!(hooks.sent().await.len(), 2);
    hooks.pass(6);
    let order = revisions(&hooks.sent().await);
    assert_eq!(order.len(), 3);
    assert!(order.is_sorted());
}

#[tokio::test]
async fn up_to_sixteen_events_are_in_flight() {
    let hooks = Hooks::new().await;
    hooks.create().await;
    let gate = hooks.receiver.gate(URL);
    for number in 0..60 {
        hooks.agent(&format!("agent-{number}")).await;
    }
    hooks.sender.tick().await.unwrap();
    // The number in flight is one, two, four, eight and then sixteen.
    let mut released = 0;
    for (answered, begun) in [(0, 1), (1, 3), (2, 6), (3, 11), (4, 20), (5, 21), (20, 36)] {
        gate.add_permits(answered - released);
        released = answered;
        until(|| hooks.receiver.count() == begun).await;
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(hooks.receiver.count(), begun, "after {answered} answers");
    }
    gate.add_permits(1000);
    hooks.sender.idle().await;
    assert_eq!(hooks.receiver.count(), 60);
}

#[tokio::test]
async fn a_receiver_that_does_not_answer_delays_no_other() {
    let hooks = Hooks::new().await;
    let dead = "https://dead.example.com/";
    hooks.create_with(|new| new.url = dead.into()).await;
    hooks.create().await;
    hooks.receiver.gate(dead);
    for number in 0..20 {
        hooks.agent(&format!("agent-{number}")).await;
        hooks.sender.tick().await.unwrap();
        let sent = || {
            hooks
                .receiver
                .received
                .lock()
                .unwrap()
                .iter()
                .filter(|m| m.url == URL)
                .count()
        };
        until(|| sent() == number + 1).await;
    }
    let to_dead = hooks
        .receiver
        .take()
        .iter()
        .filter(|message| message.url == dead)
        .count();
    assert_eq!(to_dead, 1, "one attempt at a time until a first success");
}

#[tokio::test]
async fn slow_receivers_give_up_their_places_to_webhooks_that_wait() {
    let hooks = Hooks::new().await;
    let slow = "https://slow.example.com/";
    let gate = hooks.receiver.gate(slow);
    let mallory = hooks.service.trusted_user("mallory").unwrap();
    // More webhooks than there are places, in as many workspaces as that takes.
    for number in 0..7 {
        let name = format!("Slow {number}");
        let workspace = hooks
            .service
            .create_workspace(&mallory, NewWorkspace::new(name))
            .await
            .unwrap()
            .id;
        for _ in 0..20 {
            let new = NewWebhook::new(workspace, slow);
            hooks.service.create_webhook(&mallory, new).await.unwrap();
        }
        for agent in ["a", "b", "c"] {
            let new = NewAgent::new(workspace, agent.parse().unwrap(), agent);
            hooks.service.create_agent(&mallory, new).await.unwrap();
        }
    }
    hooks.sender.tick().await.unwrap();
    until(|| hooks.receiver.count() == 128).await;

    hooks.create().await;
    hooks.agent("writer").await;
    let is_sent = || {
        hooks
            .receiver
            .received
            .lock()
            .unwrap()
            .iter()
            .any(|message| message.url == URL)
    };
    hooks.sender.tick().await.unwrap();
    assert!(!is_sent(), "all places are taken");
    hooks.pass(10);
    // Each receiver answers the attempt that it has, and keeps the next one.
    gate.add_permits(128);
    for _ in 0..1000 {
        hooks.sender.tick().await.unwrap();
        tokio::task::yield_now().await;
    }
    assert!(is_sent());
}

#[tokio::test]
async fn a_test_is_sent_at_once_and_changes_nothing() {
    let hooks = Hooks::new().await;
    let created = hooks.create().await;
    let id = created.webhook.id;
    let patch = WebhookPatch::default().enabled(false);
    let before = hooks.service.update_webhook(&hooks.ada, id, patch).await.unwrap();
    hooks.receiver.answer(URL, [status(410), status(200)]);
    let test = async || {
        hooks
            .service
            .test_webhook(&hooks.ada, id, &*hooks.receiver)
            .await
            .unwrap()
    };
    let (gone, good) = (test().await, test().await);
    assert_eq!(
        (gone.status, good.status, good.revision, good.attempt),
        (Some(410), Some(200), None, 1)
    );
    assert_eq!(good.kind, "webhook.test");
    let sent = hooks.receiver.take();
    assert!(is_signed_by(&sent[0], &created.secret));
    assert!(sent[0].id.starts_with(&format!("{id}.{}.test-", before.cursor.epoch())));
    assert_ne!(sent[0].id, sent[1].id);
    assert_eq!(body(&sent[0])["type"], "webhook.test");
    assert_eq!(body(&sent[0])["data"]["revision"], Value::Null);
    assert_eq!(hooks.webhook(id).await, before);
    assert_eq!(hooks.deliveries(id).await.len(), 2);
}

#[tokio::test]
async fn the_last_hundred_attempts_are_kept() {
    let hooks = Hooks::new().await;
    let id = hooks.create().await.webhook.id;
    for number in 0..130 {
        hooks.agent(&format!("agent-{number}")).await;
    }
    assert_eq!(hooks.sent().await.len(), 130);
    hooks.pass(1);
    for _ in 0..3 {
        hooks
            .service
            .test_webhook(&hooks.ada, id, &*hooks.receiver)
            .await
            .unwrap();
    }
    let kept = hooks.deliveries(id).await;
    assert_eq!(kept.len(), 100);
    assert!(kept[..3].iter().all(|delivery| delivery.kind == "webhook.test"));
    let head = hooks.webhook(id).await.cursor.revision();
    assert_eq!((kept[3].revision, kept[99].revision), (Some(head), Some(head - 96)));
    let partition = agentcfg_core::store::Partition::Workspace(hooks.studio);
    let scan = agentcfg_core::store::Scan::all(partition, agentcfg_core::store::Kind::WebhookDelivery);
    assert_eq!(hooks.store.scan(&scan).await.unwrap().entries.len(), 103);
}

impl Hooks {
    fn clock_millis(&self) -> i64 {
        use agentcfg_core::clock::Clock;
        self.clock.now().unix_millis()
    }

    fn clock_seconds(&self) -> i64 {
        self.clock_millis() / 1000
    }
}

#[tokio::test]
async fn an_event_after_a_change_is_not_sent_as_before_it() {
    for is_deleted in [false, true] {
        let hooks = Hooks::new().await;
        let id = hooks.create().await.webhook.id;
        let gate = hooks.receiver.gate(URL);
        hooks.agent("first").await;
        hooks.agent("second").await;
        hooks.sender.tick().await.unwrap();
        until(|| hooks.receiver.count() == 1).await;
        // The session is at work when the webhook ends.
        if is_deleted {
            hooks.service.delete_webhook(&hooks.ada, id).await.unwrap();
        } else {
            let patch = WebhookPatch::default().enabled(false);
            hooks.service.update_webhook(&hooks.ada, id, patch).await.unwrap();
        }
        for number in 0..40 {
            hooks.agent(&format!("after-{number}")).await;
        }
        gate.add_permits(1000);
        hooks.sender.idle().await;
        hooks.sender.tick().await.unwrap();
        hooks.sender.idle().await;
        let after = |message: &Outgoing| {
            let target = body(message)["data"]["target"]["id"].as_str().unwrap().to_owned();
            target.starts_with("after")
        };
        assert_eq!(hooks.receiver.take().iter().filter(|message| after(message)).count(), 0);
    }
}
