//! What a credential costs.

use tokio::task::JoinSet;

use super::*;
use crate::ErrorKind;
use crate::model::{Environment, NewApiKey, Scope};
use crate::token;

/// A key, and a service that was started anew since: it has seen no key.
async fn unseen() -> (String, AgentCfg) {
    let store = memory();
    let first = service(&store, &[1]);
    let new = NewApiKey {
        workspace_id: workspace(&first).await.id,
        name: "pipeline".into(),
        environment: Environment::Production,
        scope: Scope::Read,
        expires_at: None,
        rate_limit: None,
    };
    let key = first.create_api_key(&ada(&first), new).await.unwrap().key;
    (key, service(&store, &[1]))
}

fn hashes(service: &AgentCfg) -> usize {
    service.inner.authenticator.hashing.asked.load(Ordering::Relaxed)
}

async fn is_refused(service: &AgentCfg, key: &str) -> bool {
    service.authenticate(key).await.map_err(|error| error.kind()).err() == Some(ErrorKind::Unauthorized)
}

#[tokio::test]
async fn a_wrong_secret_costs_no_slow_hash() {
    let (key, service) = unseen().await;
    assert!(is_refused(&service, &token::forged(&key)).await);
    assert_eq!(hashes(&service), 0);
    assert!(service.authenticate(&key).await.is_ok());
    assert_eq!(hashes(&service), 1);
    assert!(is_refused(&service, &token::forged(&key)).await);
    assert_eq!(hashes(&service), 1);
}

#[tokio::test]
async fn those_who_come_with_a_new_key_at_the_same_time_share_one_slow_hash() {
    let (key, service) = unseen().await;
    let mut callers = JoinSet::new();
    for _ in 0..64 {
        let (key, service) = (key.clone(), service.clone());
        callers.spawn(async move { service.authenticate(&key).await.is_ok() });
    }
    assert!(callers.join_all().await.into_iter().all(|is_good| is_good));
    assert_eq!(hashes(&service), 1);
}

#[tokio::test]
async fn who_leaves_during_the_slow_hash_leaves_it_to_the_next() {
    let (key, service) = unseen().await;
    let mut first = Box::pin(service.authenticate(&key));
    let mut second = Box::pin(service.authenticate(&key));
    for caller in [&mut first, &mut second] {
        let begun = std::future::poll_fn(|cx| std::task::Poll::Ready(caller.as_mut().poll(cx))).await;
        assert!(begun.is_pending());
    }
    drop(first);
    assert!(second.await.is_ok());
}
