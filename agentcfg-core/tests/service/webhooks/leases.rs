//! Several servers, and crashes: one sender at a time, and each event at least once.

use super::*;

#[tokio::test]
async fn one_of_two_servers_sends() {
    let hooks = Hooks::on(Arc::new(MemoryStore::new()), true).await;
    let other = hooks.another();
    hooks.create().await;
    for round in 0..10 {
        for number in 0..5 {
            hooks.agent(&format!("agent-{round}-{number}")).await;
        }
        let (one, two) = tokio::join!(hooks.sender.tick(), other.tick());
        one.unwrap();
        two.unwrap();
        hooks.sender.idle().await;
        other.idle().await;
    }
    hooks.sender.tick().await.unwrap();
    hooks.sender.idle().await;
    let sent = revisions(&hooks.receiver.take());
    assert_eq!(sent.len(), 50);
    assert!(sent.is_sorted());
}

#[tokio::test]
async fn a_server_that_has_died_is_replaced_after_its_lease() {
    let hooks = Hooks::on(Arc::new(MemoryStore::new()), true).await;
    hooks.create().await;
    hooks.receiver.gate(URL);
    hooks.agent("writer").await;
    hooks.sender.tick().await.unwrap();
    until(|| hooks.receiver.count() == 1).await;
    let other = hooks.another();
    // A sender that is at work renews its lease.
    for _ in 0..10 {
        hooks.sender.tick().await.unwrap();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        other.tick().await.unwrap();
        other.idle().await;
        hooks.pass(5);
    }
    assert_eq!(hooks.receiver.count(), 1);
    let Hooks {
        sender,
        receiver,
        clock,
        ..
    } = hooks;
    drop(sender);
    receiver.gates.lock().unwrap().clear();
    other.tick().await.unwrap();
    // The lease was last renewed five seconds before.
    clock.advance_millis(14_000);
    other.tick().await.unwrap();
    other.idle().await;
    assert_eq!(receiver.count(), 1);
    clock.advance_millis(2_000);
    other.tick().await.unwrap();
    other.idle().await;
    let sent = receiver.take();
    assert_eq!((sent.len(), &sent[0].id), (2, &sent[1].id));
}

#[tokio::test]
async fn a_clock_that_is_set_does_not_move_a_lease() {
    let hooks = Hooks::on(Arc::new(MemoryStore::new()), true).await;
    hooks.create().await;
    hooks.receiver.gate(URL);
    hooks.agent("writer").await;
    hooks.sender.tick().await.unwrap();
    until(|| hooks.receiver.count() == 1).await;
    let other = hooks.another();
    for _ in 0..5 {
        hooks.clock.step_millis(3_600_000);
        other.tick().await.unwrap();
        other.idle().await;
    }
    assert_eq!(hooks.receiver.count(), 1);
}

#[tokio::test]
async fn an_only_server_goes_on_at_once_after_a_crash() {
    let hooks = Hooks::new().await;
    hooks.create().await;
    let gate = hooks.receiver.gate(URL);
    for number in 0..20 {
        hooks.agent(&format!("agent-{number}")).await;
    }
    hooks.sender.tick().await.unwrap();
    // Some are answered and recorded, some are in flight.
    gate.add_permits(7);
    until(|| hooks.receiver.count() >= 12).await;
    let Hooks {
        sender,
        receiver,
        clock,
        store,
        ..
    } = hooks;
    drop(sender);
    let before: std::collections::BTreeSet<u64> = revisions(&receiver.take()).into_iter().collect();
    receiver.gates.lock().unwrap().clear();
    let service = instance(&store, &clock, false);
    let sender = WebhookSender::new(&service, Arc::clone(&receiver) as _).unwrap();
    sender.tick().await.unwrap();
    sender.idle().await;
    let after = revisions(&receiver.take());
    let all: std::collections::BTreeSet<u64> = before.iter().chain(&after).copied().collect();
    assert_eq!(all.len(), 20, "none is lost");
    assert!(after.len() < 20, "what was recorded is not sent again: {after:?}");
}

#[tokio::test]
async fn a_stop_waits_for_what_is_in_flight_and_releases_the_lease() {
    let hooks = Hooks::on(Arc::new(MemoryStore::new()), true).await;
    hooks.create().await;
    let gate = hooks.receiver.gate(URL);
    for number in 0..5 {
        hooks.agent(&format!("agent-{number}")).await;
    }
    hooks.sender.tick().await.unwrap();
    until(|| hooks.receiver.count() == 1).await;
    let stopping = hooks.sender.stop();
    gate.add_permits(1);
    stopping.await;
    assert_eq!(hooks.receiver.count(), 1);
    gate.add_permits(100);
    let other = hooks.another();
    other.tick().await.unwrap();
    other.idle().await;
    let sent = revisions(&hooks.receiver.take());
    assert_eq!(sent.len(), 5, "each once: {sent:?}");
}
