//! The cost of credentials, and when last uses are written.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::task::JoinSet;

use crate::model::{Environment, NewApiKey, Scope};
use crate::service::AgentCfg;
use crate::service::tests::{ada, memory, service, workspace};
use crate::{ErrorKind, token};

/// A key, and a service that was started after its creation and has an empty key table.
async fn unseen() -> (String, AgentCfg) {
    let store = memory();
    let first = service(&store, &[1]);
    let workspace = workspace(&first).await.id;
    let new = NewApiKey::new(workspace, "pipeline", Environment::Production, Scope::Read);
    let key = first.create_api_key(&ada(&first), new).await.unwrap().key;
    (key, service(&store, &[1]))
}

fn hashes(service: &AgentCfg) -> usize {
    service.inner.plaintexts.hashing.asked.load(Ordering::Relaxed)
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
async fn requests_with_a_new_key_at_the_same_time_share_one_slow_hash() {
    let (key, service) = unseen().await;
    let mut callers = JoinSet::new();
    for _ in 0..64 {
        let (key, service) = (key.clone(), service.clone());
        callers.spawn(async move { service.authenticate(&key).await.is_ok() });
    }
    assert!(callers.join_all().await.into_iter().all(|is_good| is_good));
    assert_eq!(hashes(&service), 1);
}

async fn is_pending<F: Future>(mut future: Pin<&mut F>) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

#[tokio::test]
async fn a_request_that_is_cancelled_in_the_slow_hash_leaves_it_to_the_next() {
    let (key, service) = unseen().await;
    // All hashing threads are busy, so that no hash is done before the first request is cancelled.
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = Arc::new(std::sync::Mutex::new(gate));
    let mut still = Vec::new();
    for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
        let (gate, hashing) = (Arc::clone(&gate), &service.inner.plaintexts.hashing);
        let mut hash = Box::pin(hashing.run(move || gate.lock().unwrap().recv().is_err()));
        assert!(is_pending(hash.as_mut()).await);
        still.push(hash);
    }
    let mut first = Box::pin(service.authenticate(&key));
    let mut second = Box::pin(service.authenticate(&key));
    for caller in [&mut first, &mut second] {
        assert!(is_pending(caller.as_mut()).await);
    }
    drop(first);
    drop(open);
    assert!(second.await.is_ok());
}

#[tokio::test]
async fn last_uses_are_written_where_the_app_never_flushes() {
    let (key, mut service) = unseen().await;
    let inner = Arc::get_mut(&mut service.inner).unwrap();
    inner.uses.write_every = std::time::Duration::from_millis(1);
    let store = Arc::clone(&inner.store);
    service.authenticate(&key).await.unwrap();
    let id = token::parse(&key).unwrap();
    let record = crate::store::Key::global(id, crate::store::Kind::KeyUse, "");
    while store.get(std::slice::from_ref(&record)).await.unwrap() == [None] {
        tokio::task::yield_now().await;
    }
}
