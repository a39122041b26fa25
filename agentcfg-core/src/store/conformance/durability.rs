//! Guarantees 3 and 4: what is answered stays, and a batch is never half there. They need a store that can be opened
//! again.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use serde_json::json;

use super::{add, agent, agents, append, counter, items, put, read, try_commit, value, workspace, write};
use crate::store::{Check, Key, Store, Write};

/// What is answered is there after the store was closed and opened again, with its versions and numbers.
pub async fn answered_commits_survive<Fut>(store: Arc<dyn Store>, reopen: impl FnOnce(Arc<dyn Store>) -> Fut)
where
    Fut: Future<Output = Arc<dyn Store>>,
{
    write(&store, [put(&agent("kept"), json!({"n": 1})), put(&agent("gone"), 1)]).await;
    write(&store, [add(&counter("c"), 7, None)]).await;
    write(&store, [append(workspace(1), "first")]).await;
    let last = write(&store, [put(&agent("kept"), json!({"n": 2}))]).await[0];
    write(&store, [Write::Delete(agent("gone"))]).await;
    let before = read(&store, &agent("kept")).await;

    let store = reopen(store).await;

    assert_eq!(read(&store, &agent("kept")).await, before);
    assert_eq!(items(&store, &agents()).await, ["kept"], "a deletion survives");
    assert_eq!(value(&store, &counter("c")).await, json!(7));
    assert_eq!(value(&store, &Key::log_entry(workspace(1), 1)).await, json!("first"));
    assert_eq!(
        write(&store, [append(workspace(1), "second")]).await,
        [2],
        "the log goes on"
    );
    let again = write(&store, [put(&agent("gone"), 2), put(&agent("kept"), 3)]).await;
    assert!(
        again.iter().all(|version| *version > last),
        "versions go on: {again:?}, {last}"
    );
    let stale = [Check::Version(agent("kept"), last)];
    try_commit(&store, stale, [Write::Delete(agent("kept"))])
        .await
        .expect_err("the version before it is checked");
}

/// A commit whose future is dropped has an unknown outcome: it is there as a whole, or not at all.
pub async fn abandoned_commits_are_whole<Fut>(store: Arc<dyn Store>, reopen: impl FnOnce(Arc<dyn Store>) -> Fut)
where
    Fut: Future<Output = Arc<dyn Store>>,
{
    const COUNT: u64 = 40;
    let of = |number| [agent(&format!("{number}-a")), agent(&format!("{number}-b"))];
    for number in 0..COUNT {
        let writes = of(number)
            .map(|key| put(&key, number))
            .into_iter()
            .chain([add(&counter("c"), 1, None), append(workspace(1), number)]);
        let mut commit = pin!(try_commit(&store, [], writes));
        // Polled until it waits, and no further.
        if let Poll::Ready(done) = commit.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            done.expect("a batch without checks succeeds");
        }
    }

    let store = reopen(store).await;

    let mut found = 0;
    for number in 0..COUNT {
        let [a, b] = of(number);
        let there = [read(&store, &a).await.is_some(), read(&store, &b).await.is_some()];
        assert_eq!(there[0], there[1], "batch {number} is there as a whole or not at all");
        found += u64::from(there[0]);
    }
    let counted = value(&store, &counter("c")).await.as_u64().unwrap_or(0);
    assert_eq!(counted, found, "the counter has the batches that are there");
    assert_eq!(
        write(&store, [append(workspace(1), "next")]).await,
        [found + 1],
        "the log has an entry for each batch that is there"
    );
}
