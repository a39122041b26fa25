//! Watches as streams.

use futures_util::{FutureExt, StreamExt};

use super::*;

#[tokio::test]
async fn a_stream_has_each_event_once_and_ends_with_an_error() {
    let stage = Stage::open().await;
    let bob = stage.member("bob", Role::Viewer).await;
    let mut changes = stage.watch(&bob).await.into_stream();
    assert!(changes.next().now_or_never().is_none(), "nothing has happened");
    // Two commits while a read is in progress, and one after it.
    stage.create("first").await;
    stage.create("second").await;
    for name in ["first", "second"] {
        assert_eq!(changes.next().await.unwrap().unwrap().target.id, name);
    }
    let waiting = tokio::spawn(async move { (changes.next().await, changes) });
    tokio::task::yield_now().await;
    stage.create("third").await;
    let (third, mut changes) = waiting.await.unwrap();
    assert_eq!(third.unwrap().unwrap().target.id, "third");

    stage
        .service
        .remove_member(&stage.ada, stage.studio, &"bob".parse().unwrap())
        .await
        .unwrap();
    let refused = changes.next().await.unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
    assert!(changes.next().await.is_none());
}
