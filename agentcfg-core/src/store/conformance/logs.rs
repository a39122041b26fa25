//! Guarantee 6 without concurrency: logs have no gaps.

use super::*;

fn entries(number: u128) -> Scan {
    Scan::all(Partition::Workspace(workspace(number)), Kind::LogEntry)
}

/// Entries are numbered from 1, the head holds the last number, and each entry's key has its number.
pub async fn logs_are_numbered_without_gaps(store: Arc<dyn Store>) {
    assert_eq!(
        read(&store, &Key::log_head(workspace(1))).await,
        None,
        "an empty log has no head"
    );
    for number in 1..=12_u64 {
        assert_eq!(write(&store, [append(workspace(1), number)]).await, [number]);
        assert_eq!(
            &*read(&store, &Key::log_head(workspace(1))).await.unwrap().value,
            number.to_string().as_bytes()
        );
        assert_eq!(value(&store, &Key::log_entry(workspace(1), number)).await, number);
    }
    assert_eq!(read(&store, &Key::log_entry(workspace(1), 13)).await, None);
}

/// A failed batch with an append uses up no number.
pub async fn a_failed_batch_takes_no_log_number(store: Arc<dyn Store>) {
    write(&store, [append(workspace(1), 1)]).await;
    let limit = try_commit(&store, [], [append(workspace(1), "lost"), add(&counter("c"), -1, None)]).await;
    assert_eq!(limit, Err(CommitError::Limit(1)));
    let check = Check::Absent(Key::log_head(workspace(1)));
    assert_eq!(
        try_commit(&store, [check], [append(workspace(1), "lost")]).await,
        Err(CommitError::Conflict(0))
    );
    assert_eq!(write(&store, [append(workspace(1), 2)]).await, [2]);
    assert_eq!(value(&store, &Key::log_entry(workspace(1), 2)).await, 2);
}

/// A record that is put with a revision has the number of the entry of its batch as its first field, whatever the order
/// of the writes, and also where it replaces another one.
pub async fn a_record_can_have_the_revision_of_its_batch(store: Arc<dyn Store>) {
    let version = |number: u128, item: &str| Key::in_workspace(workspace(number), Kind::AgentVersion, item);
    let revised = |key: &Key, n: u64| Write::PutRevised(key.clone(), format!("{{\"n\":{n}}}").into_bytes());
    let (first, second) = (version(1, "a 1"), version(1, "a 2"));
    for number in 1..=3 {
        write(&store, [revised(&first, number), append(workspace(1), number)]).await;
        let text = format!("{{\"revision\":{number},\"n\":{number}}}");
        assert_eq!(&*read(&store, &first).await.unwrap().value, text.as_bytes());
    }
    let writes = [
        append(workspace(1), 4),
        append(workspace(2), 1),
        revised(&second, 7),
        revised(&version(2, "b 1"), 8),
    ];
    write(&store, writes).await;
    assert_eq!(
        &*read(&store, &second).await.unwrap().value,
        b"{\"revision\":4,\"n\":7}"
    );
    assert_eq!(
        &*read(&store, &version(2, "b 1")).await.unwrap().value,
        b"{\"revision\":1,\"n\":8}"
    );
    let alone = Batch {
        writes: vec![revised(&second, 9)],
        ..Batch::default()
    };
    assert!(matches!(
        store.commit(alone).await,
        Err(CommitError::Store(StoreError::Misuse(_)))
    ));
}

/// A scan of a log is in numeric order also when the number of digits changes, in both directions.
pub async fn entries_are_scanned_in_the_order_of_their_numbers(store: Arc<dyn Store>) {
    for number in 1..=101_u64 {
        write(&store, [append(workspace(1), number)]).await;
    }
    let numbers = |found: Vec<(Key, Record)>| found.iter().map(|(_, record)| parse(record)).collect::<Vec<_>>();
    let upwards = numbers(store.scan(&entries(1)).await.unwrap().entries);
    assert_eq!(upwards, (1..=101_u64).map(Value::from).collect::<Vec<_>>());
    let after = Some(Key::log_entry(workspace(1), 100).item().into());
    let page = Scan {
        after,
        limit: 3,
        ..descending(entries(1))
    };
    assert_eq!(numbers(store.scan(&page).await.unwrap().entries), [99, 98, 97]);
}

/// Each workspace's log is numbered separately, also within one batch.
pub async fn logs_of_workspaces_are_independent(store: Arc<dyn Store>) {
    write(&store, [append(workspace(1), "a")]).await;
    assert_eq!(
        write(&store, [append(workspace(1), "b"), append(workspace(2), "c")]).await,
        [2, 1]
    );
    assert_eq!(items(&store, &entries(1)).await.len(), 2);
    assert_eq!(items(&store, &entries(2)).await.len(), 1);
}
