//! Guarantee 1 without concurrency: the results of reads, and their order.

use super::*;

/// Items with orders that are easy to get wrong: prefixes of each other, and characters that
/// collations and UTF-16 order differently than UTF-8 bytes.
const ITEMS: [&str; 11] = ["-", "0", "A", "_", "a", "a-", "a0", "aa", "b", "ä", "\u{10400}"];

async fn filled(store: &Arc<dyn Store>) {
    // In reverse order and in separate batches, so that no engine returns the right order by chance.
    for item in ITEMS.iter().rev() {
        write(store, [put(&agent(item), *item)]).await;
    }
}

/// [`Store::get`] returns one result for each key, also for absent and repeated keys, and for no keys.
pub async fn get_answers_in_the_order_of_the_keys(store: Arc<dyn Store>) {
    write(&store, [put(&agent("a"), 1), put(&agent("b"), 2)]).await;
    let found = store
        .get(&[agent("b"), agent("c"), agent("a"), agent("b")])
        .await
        .unwrap();
    let found: Vec<_> = found.iter().map(|record| record.as_ref().map(parse)).collect();
    assert_eq!(found, [Some(2.into()), None, Some(1.into()), Some(2.into())]);
    assert_eq!(store.get(&[]).await.unwrap(), []);
}

/// A read that starts after a commit was answered sees that commit, from every task.
pub async fn reads_see_what_was_committed(store: Arc<dyn Store>) {
    for number in 0..50 {
        write(&store, [put(&agent("a"), number)]).await;
        let store = store.clone();
        let seen = tokio::spawn(async move { value(&store, &agent("a")).await });
        assert_eq!(seen.await.unwrap(), number);
    }
}

/// A scan returns all items, ascending or descending.
pub async fn scans_go_both_ways(store: Arc<dyn Store>) {
    assert!(items(&store, &agents()).await.is_empty(), "a fresh store is empty");
    filled(&store).await;
    let upwards = items(&store, &agents()).await;
    let mut downwards = items(&store, &descending(agents())).await;
    downwards.reverse();
    assert_eq!(upwards, downwards);
    assert_eq!(upwards.len(), ITEMS.len());
}

/// Items are ordered by their UTF-8 bytes, and each has its own value.
pub async fn scans_order_items_by_their_bytes(store: Arc<dyn Store>) {
    filled(&store).await;
    let found = store.scan(&agents()).await.unwrap();
    for ((key, record), item) in found.entries.iter().zip(ITEMS) {
        assert_eq!((key, parse(record)), (&agent(item), item.into()));
    }
    assert_eq!(found.entries.len(), ITEMS.len());
}

/// [`Scan::with`] is answered like a [`Store::get`], for keys of any partition and kind.
pub async fn scans_read_further_keys_in_the_same_snapshot(store: Arc<dyn Store>) {
    let elsewhere = Key::global("user", Kind::Membership, "x");
    write(
        &store,
        [put(&agent("a"), 1), put(&elsewhere, 2), append(workspace(1), "entry")],
    )
    .await;
    let scan = agents().with([elsewhere, agent("absent"), Key::log_head(workspace(1)), agent("a")]);
    let found = store.scan(&scan).await.unwrap();
    let with: Vec<_> = found.with.iter().map(|record| record.as_ref().map(parse)).collect();
    assert_eq!(with, [Some(2.into()), None, Some(1.into()), Some(1.into())]);
    assert_eq!(found.entries.len(), 1, "a record of `with` is not an entry");
    let none = store.scan(&Scan { limit: 0, ..scan }).await.unwrap();
    assert_eq!((none.entries.len(), none.with.len()), (0, 4));
}

/// [`Scan::after`] excludes the item that it names and all before it, whether or not it exists.
pub async fn scans_start_behind_an_item(store: Arc<dyn Store>) {
    filled(&store).await;
    for after in ITEMS.into_iter().chain(["", "a00", "zz", "\u{10ffff}"]) {
        let scan = Scan {
            after: Some(after.into()),
            ..agents()
        };
        let above: Vec<_> = ITEMS.into_iter().filter(|item| *item > after).collect();
        assert_eq!(items(&store, &scan).await, above, "after {after:?}");
        let below: Vec<_> = ITEMS.into_iter().rev().filter(|item| *item < after).collect();
        assert_eq!(items(&store, &descending(scan)).await, below, "down from {after:?}");
    }
}

/// A scan returns no record of another kind.
pub async fn scans_stay_in_their_kind(store: Arc<dyn Store>) {
    for kind in Kind::ALL {
        for item in ["", "a", "\u{10ffff}"] {
            let key = Key::new(partition_for(kind, 1, "a"), kind, item);
            write(&store, [put(&key, kind as u8)]).await;
        }
    }
    for kind in Kind::ALL {
        for direction in [Direction::Ascending, Direction::Descending] {
            let scan = Scan {
                direction,
                ..Scan::all(partition_for(kind, 1, "a"), kind)
            };
            let found = store.scan(&scan).await.unwrap().entries;
            assert_eq!(found.len(), 3, "{kind:?}");
            assert!(
                found
                    .iter()
                    .all(|(key, record)| key.kind() == kind && parse(record) == kind as u8)
            );
        }
    }
}

/// A scan returns no record of another partition, even if one name is a prefix of the other.
pub async fn scans_stay_in_their_partition(store: Arc<dyn Store>) {
    let workspaces = [0, 1, 2, 256, u128::MAX].map(|n| (Partition::Workspace(workspace(n)), Kind::Agent));
    let names = ["", "a", "aa", "b", "ä", "\u{1}", "\u{10ffff}"];
    let named = names.map(|name| (Partition::Global(name.into()), Kind::Membership));
    let partitions: Vec<_> = workspaces.into_iter().chain(named).collect();
    for (number, (partition, kind)) in partitions.iter().enumerate() {
        for item in ["", "x", "\u{10ffff}"] {
            write(&store, [put(&Key::new(partition.clone(), *kind, item), number)]).await;
        }
    }
    for (number, (partition, kind)) in partitions.iter().enumerate() {
        for direction in [Direction::Ascending, Direction::Descending] {
            let scan = Scan {
                direction,
                ..Scan::all(partition.clone(), *kind)
            };
            let found = store.scan(&scan).await.unwrap().entries;
            assert_eq!(found.len(), 3, "{partition:?}");
            assert!(
                found
                    .iter()
                    .all(|(key, record)| key.partition() == partition && parse(record) == number)
            );
        }
    }
}

/// [`Scan::max_bytes`] keeps the records up to the one that reaches it, and consecutive pages are complete.
pub async fn scans_stop_at_their_bytes(store: Arc<dyn Store>) {
    // The lengths of the values: two and the quotes of a text more than here.
    let lengths = [10, 2_000, 3, 500, 300_000, 1, 1, 40_000, 7];
    for (number, length) in lengths.into_iter().enumerate() {
        write(&store, [put(&agent(&format!("a{number}")), "x".repeat(length))]).await;
    }
    for scan in [agents(), descending(agents())] {
        let whole = store.scan(&scan).await.unwrap();
        for max_bytes in [0, 1, 12, 13, 700, 2_020, 300_000, 342_540, 342_541, usize::MAX] {
            let bounded = Scan {
                max_bytes,
                ..scan.clone()
            };
            let (mut expected, mut bytes) = (Vec::new(), 0);
            for (key, record) in &whole.entries {
                if bytes >= max_bytes {
                    break;
                }
                bytes += record.value.len();
                expected.push(key.item().to_owned());
            }
            assert_eq!(items(&store, &bounded).await, expected, "{max_bytes} bytes");
            let few = Scan { limit: 2, ..bounded };
            expected.truncate(2);
            assert_eq!(items(&store, &few).await, expected, "{max_bytes} bytes, 2 records");
        }
        for max_bytes in [1, 1_000, 50_000] {
            let mut pages: Vec<String> = Vec::new();
            loop {
                let after = pages.last().map(|item| item.as_str().into());
                let page = Scan {
                    max_bytes,
                    after,
                    ..scan.clone()
                };
                let found = store.scan(&page).await.unwrap();
                pages.extend(found.entries.iter().map(|(key, _)| key.item().to_owned()));
                if !page.is_full(found.entries.len(), found.bytes()) {
                    break;
                }
            }
            let all: Vec<_> = whole.entries.iter().map(|(key, _)| key.item()).collect();
            assert_eq!(all.len(), lengths.len());
            assert_eq!(pages, all, "pages of {max_bytes} bytes");
        }
    }
}

/// [`Scan::limit`] keeps the first items in the direction of the scan, and consecutive pages are complete.
pub async fn scans_stop_at_their_limit(store: Arc<dyn Store>) {
    filled(&store).await;
    for scan in [agents(), descending(agents())] {
        let whole = items(&store, &scan).await;
        for limit in [0, 1, 3, ITEMS.len(), ITEMS.len() + 1] {
            let page = items(&store, &Scan { limit, ..scan.clone() }).await;
            assert_eq!(page, whole[..limit.min(whole.len())], "limit {limit}");
        }
        let mut pages = Vec::new();
        loop {
            let after = pages.last().map(|item: &String| item.as_str().into());
            let page = items(
                &store,
                &Scan {
                    limit: 2,
                    after,
                    ..scan.clone()
                },
            )
            .await;
            if page.is_empty() {
                break;
            }
            pages.extend(page);
        }
        assert_eq!(pages, whole);
    }
}
