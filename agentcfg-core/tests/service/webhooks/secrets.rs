//! Secrets: shown once, sealed at rest, rotated, and sealed again under another master key.

use agentcfg_core::ErrorKind;
use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use base64ct::{Base64, Encoding};

use super::*;

#[tokio::test]
async fn both_secrets_sign_for_a_day() {
    let hooks = Hooks::new().await;
    let created = hooks.create().await;
    let id = created.webhook.id;
    let rotated = hooks.service.rotate_webhook_secret(&hooks.ada, id).await.unwrap();
    assert_ne!(rotated.secret, created.secret);
    for (seconds, both) in [(0, true), (86_399, true), (1, false)] {
        hooks.pass(seconds);
        hooks.agent(&format!("agent-{seconds}")).await;
        let sent = hooks.sent().await;
        assert!(is_signed_by(&sent[0], &rotated.secret));
        assert_eq!(is_signed_by(&sent[0], &created.secret), both, "after {seconds} s");
    }
    let entries = hooks.service.audit_log(&hooks.ada, hooks.studio, 0, 100).await.unwrap();
    assert!(
        entries
            .iter()
            .any(|entry| entry.action.as_str() == "webhook.secret_rotated")
    );
}

#[tokio::test]
async fn a_secret_is_nowhere_in_plaintext() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = RedbStore::open(&path, RedbOptions::default()).unwrap();
    let hooks = Hooks::on(Arc::new(store), false).await;
    let created = hooks.create().await;
    let rotated = hooks
        .service
        .rotate_webhook_secret(&hooks.ada, created.webhook.id)
        .await
        .unwrap();
    hooks.agent("writer").await;
    hooks.sent().await;
    let list = hooks.service.list_webhooks(&hooks.ada, hooks.studio).await.unwrap();
    let log = hooks.service.audit_log(&hooks.ada, hooks.studio, 0, 100).await.unwrap();
    let deliveries = hooks.deliveries(created.webhook.id).await;
    let shown = serde_json::to_string(&(list, log, deliveries)).unwrap() + &format!("{created:?} {rotated:?}");
    let file = std::fs::read(&path).unwrap();
    for secret in [&created.secret, &rotated.secret] {
        let text = secret.strip_prefix("whsec_").unwrap();
        assert!(!shown.contains(text) && !shown.contains("whsec_"));
        let raw = base64(text);
        for needle in [text.as_bytes(), &raw] {
            assert!(!file.windows(needle.len()).any(|window| window == needle));
        }
    }
}

fn base64(text: &str) -> Vec<u8> {
    Base64::decode_vec(text).unwrap()
}

#[tokio::test]
async fn without_a_master_key_there_are_no_webhooks() {
    let service = AgentCfg::builder(MemoryStore::new()).build();
    let ada = service.trusted_user("ada").unwrap();
    let studio = service
        .create_workspace(&ada, NewWorkspace::new("Studio"))
        .await
        .unwrap();
    let refused = service
        .create_webhook(&ada, NewWebhook::new(studio.id, URL))
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotConfigured);
    assert!(refused.message().contains("secrets of webhooks"));
}

#[tokio::test]
async fn a_new_master_key_seals_the_secrets_again() {
    let hooks = Hooks::new().await;
    let created = hooks.create().await;
    let rotated = hooks
        .service
        .rotate_webhook_secret(&hooks.ada, created.webhook.id)
        .await
        .unwrap();
    assert!(hooks.service.master_keys_needed().await.unwrap().any_sealed);
    hooks.service.set_vault(Vault::new(vec![key(2), key(1)]).unwrap());
    let progress = hooks.service.rewrap_provider_keys(&mut |_| {}).await.unwrap();
    assert_eq!((progress.examined, progress.rewrapped, progress.unreadable), (1, 1, 0));
    assert_eq!(hooks.service.master_keys_needed().await.unwrap().keys, [key(2).id()]);
    hooks.service.set_vault(Vault::new(vec![key(2)]).unwrap());
    hooks.agent("writer").await;
    let sent = hooks.sent().await;
    assert!(is_signed_by(&sent[0], &created.secret) && is_signed_by(&sent[0], &rotated.secret));
}

#[tokio::test]
async fn lost_master_keys_cost_the_webhooks() {
    let hooks = Hooks::new().await;
    hooks.create().await;
    hooks.create().await;
    assert_eq!(
        hooks.service.forget_master_keys().await.unwrap_err().kind(),
        ErrorKind::Conflict
    );
    assert_eq!(hooks.service.discard_provider_keys("root").await.unwrap(), 2);
    assert_eq!(hooks.service.list_webhooks(&hooks.ada, hooks.studio).await.unwrap(), []);
    hooks.service.forget_master_keys().await.unwrap();
    let newest = &hooks.service.audit_log(&hooks.ada, hooks.studio, 0, 1).await.unwrap()[0];
    assert_eq!(
        (newest.action.as_str(), newest.actor.id.as_str()),
        ("webhook.deleted", "root")
    );
}
