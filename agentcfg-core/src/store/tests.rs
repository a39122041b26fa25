//! The conformance suite on the stores of this crate.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;

use super::model_tests::{run, step};
use super::{Batch, CommitError, Key, Kind, MemoryStore, Store, StoreError, Write, conformance};

macro_rules! suite {
    ($($module:ident: $($test:ident),*;)*) => {
        mod memory {
            $( $( suite!(@ $test, super::memory); )* )*
        }
        mod redb {
            $( $( suite!(@ $test, super::redb); )* )*
        }
    };
    (@ $test:ident, $make:path) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            let (store, _place) = $make();
            crate::store::conformance::$test(store).await;
        }
    };
}

conformance::for_all_tests!(suite);

fn memory() -> (Arc<dyn Store>, ()) {
    (Arc::new(MemoryStore::new()), ())
}

fn redb() -> (Arc<dyn Store>, tempfile::TempDir) {
    let place = tempfile::tempdir().unwrap();
    let store = super::redb::RedbStore::open(place.path().join("store.redb"), Default::default()).unwrap();
    (Arc::new(store), place)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_redb_store_agrees_with_the_model(steps in proptest::collection::vec(step(), 1..40)) {
        let (store, _place) = redb();
        run(store, &steps);
    }
}

#[tokio::test]
async fn the_suite_runs_on_one_thread_too() {
    conformance::run(async || memory().0).await;
}

#[tokio::test]
async fn a_batch_that_writes_a_key_twice_is_refused_and_changes_nothing() {
    let (in_a_file, _place) = redb();
    let stores = [memory().0, in_a_file];
    let (other, key) = (Key::global("p", Kind::Meta, "a"), Key::global("p", Kind::Meta, "b"));
    for store in stores {
        let writes = [&other, &key, &key].map(|key| Write::Put(key.clone(), b"1".to_vec()));
        let batch = Batch {
            checks: Vec::new(),
            writes: writes.into(),
        };
        let refused = store.commit(batch).await.unwrap_err();
        assert!(
            matches!(&refused, CommitError::Store(StoreError::Misuse(text)) if text.contains("p/Meta/b")),
            "{refused}"
        );
        assert_eq!(store.get(&[other.clone(), key.clone()]).await.unwrap(), [None, None]);
    }
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "Agent has no records in Global")]
fn a_key_outside_the_partitions_of_its_kind_is_a_defect() {
    let _ = Key::global("p", Kind::Agent, "a");
}
