//! The conformance suite on the stores of this crate.

use std::sync::Arc;

use super::{MemoryStore, Store, conformance};

macro_rules! suite {
    ($make:path: $($test:ident),* $(,)?) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            let (store, _place) = $make();
            conformance::$test(store).await;
        }
    )* };
}

macro_rules! suites {
    ($($test:ident),* $(,)?) => {
        mod memory {
            use super::*;
            suite!(super::memory: $($test),*);
        }
        #[cfg(feature = "redb")]
        mod redb {
            use super::*;
            suite!(super::redb: $($test),*);
        }
    };
}

fn memory() -> (Arc<dyn Store>, ()) {
    (Arc::new(MemoryStore::new()), ())
}

#[cfg(feature = "redb")]
fn redb() -> (Arc<dyn Store>, tempfile::TempDir) {
    let place = tempfile::tempdir().unwrap();
    let store = super::redb::RedbStore::open(place.path().join("store.redb"), Default::default()).unwrap();
    (Arc::new(store), place)
}

suites!(
    get_answers_in_the_order_of_the_keys,
    reads_see_what_was_committed,
    scans_go_both_ways,
    scans_order_items_by_their_bytes,
    scans_read_more_keys_along,
    scans_start_behind_an_item,
    scans_stay_in_their_kind,
    scans_stay_in_their_partition,
    scans_stop_at_their_limit,
    a_delete_removes,
    a_put_replaces,
    an_empty_batch_succeeds,
    numbers_answer_each_write,
    values_come_back_as_written,
    versions_check_one_write,
    versions_never_return,
    a_failed_add_leaves_nothing,
    a_failed_check_leaves_nothing,
    checks_see_the_state_before_the_batch,
    conflicts_come_before_limits,
    the_first_failed_check_is_named,
    additions_commute,
    counters_never_fall_below_zero,
    counters_respect_their_maximum,
    counters_start_at_zero,
    counters_stop_at_the_end_of_their_range,
    one_batch_may_add_to_several,
    a_failed_batch_takes_no_log_number,
    entries_are_scanned_in_the_order_of_their_numbers,
    logs_of_workspaces_are_apart,
    logs_are_numbered_without_gaps,
    one_of_many_creates_a_key,
    one_of_many_replaces_a_version,
    parallel_appends_leave_no_gap,
    parallel_additions_all_count,
    parallel_additions_stop_at_the_maximum,
    reads_see_whole_batches,
);

#[tokio::test]
async fn the_suite_runs_on_one_thread_too() {
    conformance::run(async || memory().0).await;
}
