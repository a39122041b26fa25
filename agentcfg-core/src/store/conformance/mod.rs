//! The storage contract as tests, for every implementation of [`Store`].
//!
//! [`conformance_tests!`](crate::conformance_tests) makes a `#[test]` of each, so that a test runner names the one that
//! failed; [`run`] runs all of them. Each is also a public function, which takes one fresh, empty store. A test fails
//! by panicking.
//!
//! The suite cannot test what needs a fault of the machine: that a commit is on disk before it is answered, and that an
//! error of the disk or the network is reported as [`StoreError::OutcomeUnknown`] where the outcome is unknown. Kill
//! the process, and cut the connection, in tests of your own.
//!
//! A store that leaves [`Store::stamp`], [`Store::is_current`], [`Store::watch`], [`Store::track`],
//! [`Store::changed_since`], [`Store::hold`] and [`Store::ready`] at their default bodies passes too.
//!
//! Use a multi-threaded runtime: on one thread the tests of races pass as well, but detect fewer defects.
//!
//! ```
//! use std::sync::Arc;
//!
//! use agentcfg_core::store::{MemoryStore, Store, conformance};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! conformance::run(async || Arc::new(MemoryStore::new()) as Arc<dyn Store>).await;
//! # }
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod atomicity;
mod changes;
mod counters;
mod durability;
mod groups;
mod holds;
mod logs;
mod races;
mod reads;
mod stamps;
mod trackers;
mod watchers;
mod writes;

use std::sync::Arc;

use serde_json::Value;

use super::{
    Batch, Check, CommitError, Committed, Direction, Key, Kind, Partition, PartitionKind, Record, Scan, Stamp, Store,
    StoreError, Write,
};
use crate::model::WorkspaceId;

/// Passes the list of all tests to another macro, so that the list exists once.
#[doc(hidden)]
#[macro_export]
macro_rules! __for_all_conformance_tests {
    ([$($then:tt)+] $($with:tt)*) => {
        $($then)+! {
            $($with)*
            atomicity:
                a_failed_add_leaves_nothing,
                a_failed_check_leaves_nothing,
                checks_see_the_state_before_the_batch,
                conflicts_come_before_limits,
                the_first_failed_check_is_named;
            changes:
                a_reader_of_changes_has_each_answered_commit,
                changes_are_those_since_the_position;
            counters:
                additions_commute,
                counters_never_fall_below_zero,
                counters_respect_their_maximum,
                counters_start_at_zero,
                counters_stop_at_the_end_of_their_range,
                one_batch_may_add_to_several;
            groups:
                concurrent_batches_have_an_order,
                concurrent_workspaces_stay_apart;
            holds:
                a_hold_ends_when_it_is_dropped,
                a_holder_goes_before_writers_that_never_rest;
            logs:
                a_failed_batch_takes_no_log_number,
                a_record_can_have_the_revision_of_its_batch,
                entries_are_scanned_in_the_order_of_their_numbers,
                logs_are_numbered_without_gaps,
                logs_of_workspaces_are_independent;
            races:
                one_of_many_creates_a_key,
                one_of_many_replaces_a_version,
                parallel_additions_all_count,
                parallel_additions_stop_at_the_maximum,
                parallel_appends_leave_no_gap,
                reads_see_whole_batches;
            reads:
                get_answers_in_the_order_of_the_keys,
                reads_see_what_was_committed,
                scans_go_both_ways,
                scans_order_items_by_their_bytes,
                scans_read_further_keys_in_the_same_snapshot,
                scans_start_behind_an_item,
                scans_stay_in_their_kind,
                scans_stay_in_their_partition,
                scans_stop_at_their_bytes,
                scans_stop_at_their_limit;
            stamps:
                a_refused_batch_keeps_stamps_current,
                a_write_ends_the_stamps_of_its_keys,
                stamps_end_before_the_commit_is_answered;
            trackers:
                a_reader_that_follows_its_tracker_has_each_answered_commit,
                a_tracker_has_what_commits_have_changed;
            watchers:
                a_commit_notifies_the_watchers_of_what_it_wrote,
                no_commit_is_missed_between_a_read_and_a_wait;
            writes:
                a_delete_removes,
                a_put_replaces,
                an_empty_batch_succeeds,
                numbers_answer_each_write,
                the_end_of_a_removal_takes_its_marker_and_nothing_of_others,
                values_come_back_as_written,
                versions_check_one_write,
                versions_never_return;
        }
    };
}
pub use self::durability::{abandoned_commits_are_whole, answered_commits_survive};

/// Makes a `#[test]` of each test of the suite.
///
/// The first argument is an async function without parameters that returns a fresh, empty store as `Arc<dyn Store>`,
/// and what must live as long as the store, such as its folder, or `()`. With `reopen`, an async function that takes
/// the store and a reference to that value, closes the store and returns it opened again, the suite tests what survives
/// as well.
///
/// ```
/// use std::sync::Arc;
///
/// use agentcfg_core::store::redb::{RedbOptions, RedbStore};
/// use agentcfg_core::store::{MemoryStore, Store};
/// use tempfile::TempDir;
///
/// mod memory {
///     # use super::*;
///     async fn make() -> (Arc<dyn Store>, ()) {
///         (Arc::new(MemoryStore::new()), ())
///     }
///
///     agentcfg_core::conformance_tests!(make);
/// }
///
/// mod in_a_file {
///     # use super::*;
///     fn open(folder: &TempDir) -> Arc<dyn Store> {
///         Arc::new(RedbStore::open(folder.path().join("store.redb"), RedbOptions::default()).unwrap())
///     }
///
///     async fn make() -> (Arc<dyn Store>, TempDir) {
///         let folder = tempfile::tempdir().unwrap();
///         (open(&folder), folder)
///     }
///
///     async fn reopen(store: Arc<dyn Store>, folder: &TempDir) -> Arc<dyn Store> {
///         store.shutdown().await;
///         open(folder)
///     }
///
///     agentcfg_core::conformance_tests!(make, reopen: reopen);
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! conformance_tests {
    ($make:path) => {
        $crate::__for_all_conformance_tests! { [$crate::__conformance_test] ($make) }
    };
    ($make:path, reopen: $reopen:path) => {
        $crate::conformance_tests! { $make }
        $crate::__conformance_test! {
            @reopen ($make, $reopen) answered_commits_survive, abandoned_commits_are_whole
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_test {
    ($make:tt $($module:ident: $($test:ident),*;)*) => {
        $( $( $crate::__conformance_test! { @one $make $test } )* )*
    };
    (@one ($make:path) $test:ident) => {
        #[test]
        fn $test() {
            $crate::store::conformance::block_on(async {
                let (store, _place) = $make().await;
                $crate::store::conformance::$test(store).await;
            });
        }
    };
    (@reopen ($make:path, $reopen:path) $($test:ident),*) => {$(
        #[test]
        fn $test() {
            $crate::store::conformance::block_on(async {
                let (store, place) = $make().await;
                $crate::store::conformance::$test(store, async |store| $reopen(store, &place).await).await;
            });
        }
    )*};
}

/// Runs a test on a runtime with two threads.
#[doc(hidden)]
pub fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts")
        .block_on(test);
}

macro_rules! publish {
    ($($module:ident: $($test:ident),*;)*) => {
        $( pub use self::$module::{$($test),*}; )*

        /// Runs the whole suite, each test on its own store.
        ///
        /// # Panics
        ///
        /// If the store does not keep a guarantee.
        pub async fn run<F, Fut>(make: F)
        where
            F: Fn() -> Fut,
            Fut: Future<Output = Arc<dyn Store>>,
        {
            $( $( $test(make().await).await; )* )*
        }
    };
}

crate::__for_all_conformance_tests!([publish]);

fn workspace(number: u128) -> WorkspaceId {
    WorkspaceId::new(uuid::Uuid::from_u128(number))
}

fn agent(item: &str) -> Key {
    Key::in_workspace(workspace(1), Kind::Agent, item)
}

fn counter(item: &str) -> Key {
    Key::in_workspace(workspace(1), Kind::Counter, item)
}

fn put(key: &Key, value: impl Into<Value>) -> Write {
    Write::Put(key.clone(), value.into().to_string().into_bytes())
}

fn add(key: &Key, delta: i64, max: Option<u64>) -> Write {
    Write::Add {
        counter: key.clone(),
        delta,
        max,
    }
}

fn append(workspace: WorkspaceId, value: impl Into<Value>) -> Write {
    Write::Append {
        log: workspace,
        value: value.into().to_string().into_bytes(),
    }
}

async fn try_commit(
    store: &Arc<dyn Store>,
    checks: impl IntoIterator<Item = Check>,
    writes: impl IntoIterator<Item = Write>,
) -> Result<Committed, CommitError> {
    let batch = Batch {
        checks: checks.into_iter().collect(),
        writes: writes.into_iter().collect(),
    };
    store.commit(batch).await
}

async fn write(store: &Arc<dyn Store>, writes: impl IntoIterator<Item = Write>) -> Vec<u64> {
    try_commit(store, [], writes)
        .await
        .expect("a batch without checks and bounds succeeds")
        .numbers
}

async fn read(store: &Arc<dyn Store>, key: &Key) -> Option<Record> {
    let mut found = store.get(std::slice::from_ref(key)).await.expect("a read succeeds");
    assert_eq!(found.len(), 1, "one answer for one key");
    found.remove(0)
}

/// The value under a key; `Null` if there is none.
async fn value(store: &Arc<dyn Store>, key: &Key) -> Value {
    read(store, key).await.map_or(Value::Null, |record| parse(&record))
}

/// Engines may reformat a JSON text, so the tests compare parsed values and not bytes.
fn parse(record: &Record) -> Value {
    serde_json::from_slice(&record.value).expect("a value is a JSON text")
}

async fn items(store: &Arc<dyn Store>, scan: &Scan) -> Vec<String> {
    let found = store.scan(scan).await.expect("a scan succeeds");
    found.entries.iter().map(|(key, _)| key.item().to_owned()).collect()
}

/// A partition that holds records of this kind: a workspace's, or the global one of this name.
fn partition_for(kind: Kind, number: u128, name: &str) -> Partition {
    match kind.partition_kind() {
        PartitionKind::Workspace => Partition::Workspace(workspace(number)),
        PartitionKind::Global => Partition::Global(name.into()),
    }
}

fn agents() -> Scan {
    Scan::all(Partition::Workspace(workspace(1)), Kind::Agent)
}

fn descending(scan: Scan) -> Scan {
    Scan {
        direction: Direction::Descending,
        ..scan
    }
}
