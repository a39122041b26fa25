//! Guarantee 2: all or nothing, and which failure is reported.

use super::*;

/// Writes of each kind, to run before and after a write that fails.
fn every_write() -> Vec<Write> {
    vec![
        put(&agent("new"), "new"),
        put(&agent("old"), "changed"),
        Write::Delete(agent("gone")),
        add(&counter("c"), 1, None),
        append(workspace(1), "entry"),
        append(workspace(2), "entry"),
    ]
}

async fn prepare(store: &Arc<dyn Store>) {
    let writes = [
        put(&agent("old"), "old"),
        put(&agent("gone"), "still here"),
        add(&counter("c"), 5, None),
        add(&counter("full"), 3, None),
        append(workspace(1), "first"),
    ];
    write(store, writes).await;
}

async fn state(store: &Arc<dyn Store>) -> (Vec<Option<Record>>, Vec<(Key, Record)>) {
    let keys = [
        agent("new"),
        agent("old"),
        agent("gone"),
        counter("c"),
        counter("full"),
        Key::log_head(workspace(1)),
        Key::log_head(workspace(2)),
        Key::log_entry(workspace(1), 2),
        Key::log_entry(workspace(2), 1),
    ];
    (
        store.get(&keys).await.unwrap(),
        store.scan(&agents()).await.unwrap().entries,
    )
}

/// A batch with a failing check changes nothing, for each kind of check.
pub async fn a_failed_check_leaves_nothing(store: Arc<dyn Store>) {
    prepare(&store).await;
    let before = state(&store).await;
    let version = read(&store, &agent("old")).await.unwrap().version;
    for failing in [
        Check::Absent(agent("old")),
        Check::Version(agent("old"), version + 1),
        Check::Version(agent("absent"), version),
    ] {
        let holding = Check::Version(agent("old"), version);
        let outcome = try_commit(&store, [holding, failing.clone()], every_write()).await;
        assert_eq!(outcome, Err(CommitError::Conflict(1)), "{failing:?}");
        assert_eq!(state(&store).await, before, "{failing:?}");
    }
}

/// A batch with an addition out of bounds changes nothing, at each position of the addition.
pub async fn a_failed_add_leaves_nothing(store: Arc<dyn Store>) {
    prepare(&store).await;
    let before = state(&store).await;
    let huge = [i64::MAX, i64::MAX, 1].map(|delta| add(&counter("huge"), delta, None));
    for delta in huge {
        write(&store, [delta]).await;
    }
    for failing in [
        add(&counter("full"), 1, Some(3)),
        add(&counter("full"), -4, None),
        add(&counter("full"), i64::MIN, None),
        add(&counter("empty"), -1, None),
        add(&counter("empty"), 1, Some(0)),
        add(&counter("huge"), 1, None),
    ] {
        for position in 0..=every_write().len() {
            let mut writes = every_write();
            writes.insert(position, failing.clone());
            let outcome = try_commit(&store, [], writes).await;
            assert_eq!(outcome, Err(CommitError::Limit(position)), "{failing:?} at {position}");
            assert_eq!(state(&store).await, before, "{failing:?} at {position}");
        }
    }
    assert_eq!(read(&store, &counter("empty")).await, None);
    assert_eq!(value(&store, &counter("huge")).await, u64::MAX);
}

/// Checks compare the state before the batch, not the state after its writes.
pub async fn checks_see_the_state_before_the_batch(store: Arc<dyn Store>) {
    let created = try_commit(&store, [Check::Absent(agent("a"))], [put(&agent("a"), 1)])
        .await
        .unwrap();
    let check = Check::Version(agent("a"), created.numbers[0]);
    let swapped = try_commit(
        &store,
        [check, Check::Absent(agent("b"))],
        [Write::Delete(agent("a")), put(&agent("b"), 1)],
    );
    assert!(swapped.await.is_ok());
    assert_eq!(items(&store, &agents()).await, ["b"]);
    // Additions and appends too.
    let keys = [counter("c"), Key::log_head(workspace(1))];
    let writes = || [add(&counter("c"), 1, None), append(workspace(1), 1)];
    let first = try_commit(&store, keys.clone().map(Check::Absent), writes()).await;
    assert_eq!(first.map(|committed| committed.numbers), Ok(vec![1, 1]));
    let mut versions = Vec::new();
    for key in &keys {
        versions.push(Check::Version(key.clone(), read(&store, key).await.unwrap().version));
    }
    let second = try_commit(&store, versions.clone(), writes()).await;
    assert_eq!(second.map(|committed| committed.numbers), Ok(vec![2, 2]));
    let stale = try_commit(&store, versions, writes()).await;
    assert_eq!(stale, Err(CommitError::Conflict(0)));
}

/// A batch with a failed check and a failed bound is a conflict: the caller decided on an outdated state.
pub async fn conflicts_come_before_limits(store: Arc<dyn Store>) {
    write(&store, [put(&agent("a"), 1)]).await;
    let outcome = try_commit(&store, [Check::Absent(agent("a"))], [add(&counter("c"), 1, Some(0))]).await;
    assert_eq!(outcome, Err(CommitError::Conflict(0)));
}

/// Of several failures of the same kind, the first is reported.
pub async fn the_first_failed_check_is_named(store: Arc<dyn Store>) {
    write(&store, [put(&agent("a"), 1), put(&agent("b"), 1)]).await;
    let checks = ["x", "b", "y", "a"].map(|item| Check::Absent(agent(item)));
    assert_eq!(try_commit(&store, checks, []).await, Err(CommitError::Conflict(1)));
    let writes = [
        add(&counter("x"), 1, None),
        add(&counter("y"), -1, None),
        add(&counter("z"), -1, None),
    ];
    assert_eq!(try_commit(&store, [], writes).await, Err(CommitError::Limit(1)));
}
