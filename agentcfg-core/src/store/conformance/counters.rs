//! Counters: bounded additions that do not conflict.

use super::*;

/// An addition to an absent counter starts from 0, and the counter reads as a decimal number.
pub async fn counters_start_at_zero(store: Arc<dyn Store>) {
    assert_eq!(write(&store, [add(&counter("c"), 3, None)]).await, [3]);
    assert_eq!(&*read(&store, &counter("c")).await.unwrap().value, b"3");
    assert_eq!(write(&store, [add(&counter("none"), 0, Some(0))]).await, [0]);
    write(&store, [Write::Delete(counter("c"))]).await;
    assert_eq!(
        write(&store, [add(&counter("c"), 1, None)]).await,
        [1],
        "a deleted counter starts at 0 again"
    );
}

/// The maximum bounds the result of an increase. It does not apply to a decrease.
pub async fn counters_respect_their_maximum(store: Arc<dyn Store>) {
    assert_eq!(write(&store, [add(&counter("c"), 2, Some(2))]).await, [2]);
    for (delta, max) in [(1, 2), (1, 0), (i64::MAX, 100)] {
        let outcome = try_commit(&store, [], [add(&counter("c"), delta, Some(max))]).await;
        assert_eq!(outcome, Err(CommitError::Limit(0)), "{delta} up to {max}");
    }
    assert_eq!(write(&store, [add(&counter("c"), 8, Some(10))]).await, [10]);
    assert_eq!(
        write(&store, [add(&counter("c"), -3, Some(2))]).await,
        [7],
        "above the maximum, but falling"
    );
    assert_eq!(
        write(&store, [add(&counter("c"), 0, Some(2))]).await,
        [7],
        "above the maximum, but not rising"
    );
}

/// A decrease below 0 fails with a limit, a decrease to exactly 0 succeeds.
pub async fn counters_never_fall_below_zero(store: Arc<dyn Store>) {
    let below = try_commit(&store, [], [add(&counter("c"), -1, None)]).await;
    assert_eq!(below, Err(CommitError::Limit(0)));
    write(&store, [add(&counter("c"), 2, None)]).await;
    for delta in [-3, i64::MIN] {
        let outcome = try_commit(&store, [], [add(&counter("c"), delta, Some(u64::MAX))]).await;
        assert_eq!(outcome, Err(CommitError::Limit(0)), "{delta}");
    }
    assert_eq!(write(&store, [add(&counter("c"), -2, None)]).await, [0]);
}

/// A counter reaches `u64::MAX` in steps within the range of `i64`, and does not wrap around.
pub async fn counters_stop_at_the_end_of_their_range(store: Arc<dyn Store>) {
    let up = |delta| add(&counter("c"), delta, None);
    assert_eq!(write(&store, [up(i64::MAX)]).await, [i64::MAX as u64]);
    assert_eq!(write(&store, [up(i64::MAX)]).await, [u64::MAX - 1]);
    assert_eq!(try_commit(&store, [], [up(2)]).await, Err(CommitError::Limit(0)));
    assert_eq!(write(&store, [add(&counter("c"), 1, Some(u64::MAX))]).await, [u64::MAX]);
    assert_eq!(try_commit(&store, [], [up(1)]).await, Err(CommitError::Limit(0)));
    assert_eq!(try_commit(&store, [], [up(i64::MAX)]).await, Err(CommitError::Limit(0)));
    assert_eq!(write(&store, [up(i64::MIN)]).await, [u64::MAX >> 1]);
    assert_eq!(value(&store, &counter("c")).await, u64::MAX >> 1);
}

/// Additions to one counter do not conflict with each other, and any order gives the same sum.
pub async fn additions_commute(store: Arc<dyn Store>) {
    let deltas = [5, 3, -2, 7, -1];
    for (name, order) in [("c", [0, 1, 2, 3, 4]), ("d", [3, 0, 4, 1, 2])] {
        for index in order {
            let checks = [Check::Absent(agent("unrelated"))];
            let added = try_commit(&store, checks, [add(&counter(name), deltas[index], Some(20))]).await;
            assert!(added.is_ok(), "{added:?}");
        }
        assert_eq!(value(&store, &counter(name)).await, 12);
    }
}

/// One batch can add to several counters, each with its own bounds.
pub async fn one_batch_may_add_to_several(store: Arc<dyn Store>) {
    let both = |first, second| [add(&counter("c"), first, Some(2)), add(&counter("cc"), second, Some(3))];
    assert_eq!(write(&store, both(2, 3)).await, [2, 3]);
    assert_eq!(try_commit(&store, [], both(0, 1)).await, Err(CommitError::Limit(1)));
    assert_eq!(write(&store, both(-1, -2)).await, [1, 1]);
}
