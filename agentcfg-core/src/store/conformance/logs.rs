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
