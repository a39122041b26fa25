//! The conformance suite on the stores of this crate.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::{MemoryStore, Store, conformance};

macro_rules! suite {
    ($($module:ident: $($test:ident),*;)*) => {
        mod memory {
            $( $( suite!(@ $test, super::memory); )* )*
        }
        #[cfg(feature = "redb")]
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

#[cfg(feature = "redb")]
fn redb() -> (Arc<dyn Store>, tempfile::TempDir) {
    let place = tempfile::tempdir().unwrap();
    let store = super::redb::RedbStore::open(place.path().join("store.redb"), Default::default()).unwrap();
    (Arc::new(store), place)
}

#[tokio::test]
async fn the_suite_runs_on_one_thread_too() {
    conformance::run(async || memory().0).await;
}
