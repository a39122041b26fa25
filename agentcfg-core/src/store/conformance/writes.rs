//! Single writes, their numbers, and guarantee 5: a version is never reused.

use super::*;

/// Reads and scans do not return a deleted record, and deleting an absent key succeeds.
pub async fn a_delete_removes(store: Arc<dyn Store>) {
    write(&store, [put(&agent("a"), 1), put(&agent("b"), 2)]).await;
    assert_eq!(
        write(&store, [Write::Delete(agent("a")), Write::Delete(agent("absent"))]).await,
        [0, 0]
    );
    assert_eq!(read(&store, &agent("a")).await, None);
    assert_eq!(items(&store, &agents()).await, ["b"]);
}

/// A put replaces the record under its key and no other record.
pub async fn a_put_replaces(store: Arc<dyn Store>) {
    write(&store, [put(&agent("a"), 1), put(&agent("ab"), 2)]).await;
    write(&store, [put(&agent("a"), "another, longer value")]).await;
    assert_eq!(value(&store, &agent("a")).await, "another, longer value");
    assert_eq!(value(&store, &agent("ab")).await, 2);
}

/// A batch without writes reports whether its checks hold.
pub async fn an_empty_batch_succeeds(store: Arc<dyn Store>) {
    assert!(write(&store, []).await.is_empty());
    assert!(try_commit(&store, [Check::Absent(agent("a"))], []).await.is_ok());
    write(&store, [put(&agent("a"), 1)]).await;
    assert_eq!(
        try_commit(&store, [Check::Absent(agent("a"))], []).await,
        Err(CommitError::Conflict(0))
    );
}

/// [`Committed::numbers`] has one number for each write, in the order of the writes.
pub async fn numbers_answer_each_write(store: Arc<dyn Store>) {
    write(&store, [add(&counter("c"), 40, None), append(workspace(1), "first")]).await;
    let numbers = write(
        &store,
        [
            append(workspace(1), "second"),
            put(&agent("a"), 1),
            Write::Delete(agent("b")),
            add(&counter("c"), 2, Some(42)),
            put(&agent("c"), 1),
        ],
    )
    .await;
    let version = |record: Option<Record>| record.unwrap().version;
    let put_versions = (
        version(read(&store, &agent("a")).await),
        version(read(&store, &agent("c")).await),
    );
    assert_eq!(numbers, [2, put_versions.0, 0, 42, put_versions.1]);
}

/// The end of a removal deletes its marker, and can be repeated. Records and versions of other workspaces stay.
pub async fn the_end_of_a_removal_takes_its_marker_and_nothing_of_others(store: Arc<dyn Store>) {
    let marker = |number| Key::global("removals", Kind::Removal, workspace(number).to_string());
    let other = |item: &str| Key::in_workspace(workspace(2), Kind::Agent, item);
    let writes = [
        put(&agent("a"), 1),
        put(&other("a"), 2),
        put(&other("b"), 3),
        put(&marker(1), 4),
        put(&marker(2), 5),
    ];
    let last = write(&store, writes).await[2];
    write(&store, [Write::Delete(agent("a")), Write::Delete(other("b"))]).await;
    for _ in 0..2 {
        store
            .end_removal(workspace(1), marker(1))
            .await
            .expect("a removal ends");
        assert_eq!(read(&store, &marker(1)).await, None);
        assert_eq!(value(&store, &other("a")).await, 2);
        assert_eq!(value(&store, &marker(2)).await, 5);
    }
    let next = write(&store, [put(&other("b"), 6)]).await[0];
    assert!(
        next > last,
        "the version of a deleted record of another workspace is kept"
    );
}

/// A value reads back as an equal JSON value, of any type and length.
pub async fn values_come_back_as_written(store: Arc<dyn Store>) {
    let long = "ä\u{1f600}\"\\\n".repeat(20_000);
    let values = [
        serde_json::json!({"text": long, "nested": [{"a": [null, true, 0.1, -1, 18446744073709551615_u64]}]}),
        serde_json::json!([]),
        serde_json::json!(null),
        serde_json::json!(""),
    ];
    for expected in values {
        write(&store, [put(&agent("a"), expected.clone())]).await;
        assert_eq!(parse(&read(&store, &agent("a")).await.unwrap()), expected);
    }
}

/// A version check holds until the next write to the key: compare-and-set succeeds once.
pub async fn versions_check_one_write(store: Arc<dyn Store>) {
    let version = write(&store, [put(&agent("a"), 1)]).await[0];
    assert_eq!(read(&store, &agent("a")).await.unwrap().version, version);
    let check = || [Check::Version(agent("a"), version)];
    write(&store, [put(&agent("other"), 1)]).await;
    assert!(try_commit(&store, check(), [put(&agent("a"), 1)]).await.is_ok());
    assert_eq!(
        try_commit(&store, check(), []).await,
        Err(CommitError::Conflict(0)),
        "the same value again"
    );
    write(&store, [Write::Delete(agent("a"))]).await;
    assert_eq!(
        try_commit(&store, check(), []).await,
        Err(CommitError::Conflict(0)),
        "deleted"
    );
    assert_eq!(
        try_commit(&store, [Check::Version(agent("never"), 0)], []).await,
        Err(CommitError::Conflict(0)),
        "an absent key has no version"
    );
}

/// Each put of a key gets a greater version than all before, also after the key was deleted.
pub async fn versions_never_return(store: Arc<dyn Store>) {
    let mut last = 0;
    for round in 0..20 {
        let version = write(&store, [put(&agent("a"), 1)]).await[0];
        assert!(version > last, "round {round}: {version} after {last}");
        last = version;
        if round % 2 == 0 {
            write(&store, [Write::Delete(agent("a"))]).await;
        }
        if round % 5 == 0 {
            write(&store, [put(&agent("b"), 1), Write::Delete(agent("c"))]).await;
        }
    }
    // A counter and a log head are records with versions too.
    for (key, change) in [
        (counter("c"), add(&counter("c"), 1, None)),
        (Key::log_head(workspace(1)), append(workspace(1), 1)),
    ] {
        write(&store, [change.clone()]).await;
        let version = read(&store, &key).await.unwrap().version;
        write(&store, [change]).await;
        assert!(read(&store, &key).await.unwrap().version > version, "{key:?}");
    }
}
