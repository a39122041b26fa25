//! The guarantees under concurrent commits.

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::*;

const CONTENDERS: usize = 32;

/// Commits one batch for each contender concurrently. The outcomes are in any order.
async fn race(store: &Arc<dyn Store>, batch: impl Fn(usize) -> Batch) -> Vec<(usize, Result<Committed, CommitError>)> {
    let start = Arc::new(Barrier::new(CONTENDERS));
    let mut contenders = JoinSet::new();
    for number in 0..CONTENDERS {
        let (store, start, batch) = (store.clone(), start.clone(), batch(number));
        contenders.spawn(async move {
            start.wait().await;
            (number, store.commit(batch).await)
        });
    }
    contenders.join_all().await
}

fn batch(checks: impl IntoIterator<Item = Check>, writes: impl IntoIterator<Item = Write>) -> Batch {
    Batch {
        checks: checks.into_iter().collect(),
        writes: writes.into_iter().collect(),
    }
}

/// The numbers of the winners; asserts that all others failed with this error.
fn winners(outcomes: Vec<(usize, Result<Committed, CommitError>)>, loss: &CommitError) -> Vec<usize> {
    let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(_, outcome)| outcome.is_ok());
    for (number, outcome) in lost {
        assert_eq!(outcome.as_ref(), Err(loss), "contender {number}");
    }
    won.into_iter().map(|(number, _)| number).collect()
}

/// Of many concurrent creates of one key, exactly one succeeds, and its value stays.
pub async fn one_of_many_creates_a_key(store: Arc<dyn Store>) {
    for round in 0..5 {
        let key = agent(&format!("round-{round}"));
        let outcomes = race(&store, |number| {
            batch([Check::Absent(key.clone())], [put(&key, number)])
        })
        .await;
        let winners = winners(outcomes, &CommitError::Conflict(0));
        assert_eq!(winners.len(), 1, "one contender wins");
        assert_eq!(value(&store, &key).await, winners[0]);
    }
}

/// Of many concurrent replaces of one version, exactly one succeeds, and its value stays.
pub async fn one_of_many_replaces_a_version(store: Arc<dyn Store>) {
    let key = agent("a");
    for _ in 0..5 {
        let version = write(&store, [put(&key, "start")]).await[0];
        let check = || [Check::Version(key.clone(), version)];
        let outcomes = race(&store, |number| batch(check(), [put(&key, number)])).await;
        let winners = winners(outcomes, &CommitError::Conflict(0));
        assert_eq!(winners.len(), 1, "one contender wins");
        assert_eq!(value(&store, &key).await, winners[0]);
    }
}

/// Of many concurrent additions to a bounded counter, exactly as many succeed as fit, and the other
/// batches write nothing.
pub async fn parallel_additions_stop_at_the_maximum(store: Arc<dyn Store>) {
    const ROOM: usize = 5;
    let bounded = |number: usize| {
        batch(
            [],
            [
                put(&agent(&number.to_string()), number),
                add(&counter("c"), 1, Some(ROOM as u64)),
            ],
        )
    };
    let mut winners = winners(race(&store, bounded).await, &CommitError::Limit(1));
    assert_eq!(winners.len(), ROOM);
    assert_eq!(value(&store, &counter("c")).await, ROOM);
    let mut written: Vec<usize> = items(&store, &agents())
        .await
        .iter()
        .map(|item| item.parse().unwrap())
        .collect();
    winners.sort_unstable();
    written.sort_unstable();
    assert_eq!(written, winners);
}

/// Concurrent additions within the bounds all succeed, and each returns a different sum.
pub async fn parallel_additions_all_count(store: Arc<dyn Store>) {
    let outcomes = race(&store, |_| batch([], [add(&counter("c"), 2, None)])).await;
    let mut sums: Vec<u64> = outcomes
        .into_iter()
        .map(|(_, outcome)| outcome.unwrap().numbers[0])
        .collect();
    sums.sort_unstable();
    assert_eq!(sums, (1..=CONTENDERS as u64).map(|count| count * 2).collect::<Vec<_>>());
}

/// Concurrent appends get numbers without gaps or duplicates, and each entry has its own value.
pub async fn parallel_appends_leave_no_gap(store: Arc<dyn Store>) {
    let outcomes = race(&store, |number| {
        // Every fourth batch fails, which must not use up a number.
        let fails = (number % 4 == 0).then(|| add(&counter("empty"), -1, None));
        batch([], [append(workspace(1), number)].into_iter().chain(fails))
    })
    .await;
    let mut numbers = Vec::new();
    for (contender, outcome) in outcomes {
        match outcome {
            Ok(committed) => {
                numbers.push(committed.numbers[0]);
                let entry = Key::log_entry(workspace(1), committed.numbers[0]);
                assert_eq!(value(&store, &entry).await, contender);
            }
            Err(error) => assert_eq!((error, contender % 4), (CommitError::Limit(1), 0)),
        }
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=CONTENDERS as u64 * 3 / 4).collect::<Vec<_>>());
    assert_eq!(value(&store, &Key::log_head(workspace(1))).await, numbers.len());
}

/// A read that runs during commits sees each batch completely or not at all.
pub async fn reads_see_whole_batches(store: Arc<dyn Store>) {
    const ROUNDS: u64 = 60;
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            for round in 1..=ROUNDS {
                write(
                    &store,
                    [
                        put(&agent("a"), round),
                        append(workspace(1), round),
                        put(&agent("b"), round),
                    ],
                )
                .await;
                tokio::task::yield_now().await;
            }
        }
    });
    let entries =
        Scan::all(Partition::Workspace(workspace(1)), Kind::LogEntry).with([Key::log_head(workspace(1)), agent("a")]);
    let mut last = 0;
    while last < ROUNDS {
        let pair = store
            .get(&[agent("a"), agent("b"), Key::log_head(workspace(1))])
            .await
            .unwrap();
        let pair: Vec<_> = pair.iter().map(|record| record.as_ref().map(parse)).collect();
        assert!(pair.iter().all(|one| *one == pair[0]), "{pair:?}");

        let found = store.scan(&entries).await.unwrap();
        let with: Vec<_> = found
            .with
            .iter()
            .map(|record| record.as_ref().map_or(Value::from(0), parse))
            .collect();
        assert_eq!(with, [found.entries.len(), found.entries.len()]);
        let seen = found.entries.len() as u64;
        assert!(seen >= last, "a later read sees an earlier state");
        last = seen;
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}
