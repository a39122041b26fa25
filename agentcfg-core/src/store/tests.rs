//! The conformance suite on the stores of this crate.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;

use super::model_tests::{run, step};
use super::{
    Batch, Changes, CommitError, Committed, Key, Kind, MemoryStore, Partition, Position, Record, Scan, Scanned, Store,
    StoreError, Write, conformance,
};
use crate::model::WorkspaceId;

mod memory {
    crate::conformance_tests!(super::make_memory);
}

mod wrapped {
    crate::conformance_tests!(super::make_wrapped);
}

mod redb {
    crate::conformance_tests!(super::make_redb, reopen: super::reopen_redb);
}

async fn make_memory() -> (Arc<dyn Store>, ()) {
    (memory(), ())
}

async fn make_wrapped() -> (Arc<dyn Store>, ()) {
    (Arc::new(Wrapper(Box::new(MemoryStore::new()) as Box<dyn Store>)), ())
}

async fn make_redb() -> (Arc<dyn Store>, tempfile::TempDir) {
    in_file()
}

async fn reopen_redb(store: Arc<dyn Store>, place: &tempfile::TempDir) -> Arc<dyn Store> {
    store.shutdown().await;
    open(place)
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn in_file() -> (Arc<dyn Store>, tempfile::TempDir) {
    let place = tempfile::tempdir().unwrap();
    (open(&place), place)
}

fn open(place: &tempfile::TempDir) -> Arc<dyn Store> {
    Arc::new(super::redb::RedbStore::open(place.path().join("store.redb"), Default::default()).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_redb_store_agrees_with_the_model(steps in proptest::collection::vec(step(), 1..40)) {
        let (store, _place) = in_file();
        run(store, &steps);
    }
}

#[tokio::test]
async fn the_suite_runs_on_one_thread_too() {
    conformance::run(async || memory()).await;
}

#[tokio::test]
async fn a_batch_that_writes_a_key_twice_is_refused_and_changes_nothing() {
    let (in_a_file, _place) = in_file();
    let stores = [memory(), in_a_file];
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

/// A wrapper that writes only what a wrapper must.
struct Wrapper<S>(S);

#[async_trait::async_trait]
impl<S: Store> Store for Wrapper<S> {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.0)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.0.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        self.0.scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.0.commit(batch).await
    }
}

/// A store in memory that answers otherwise where the default of an engine would not be told from it.
struct Distinct(MemoryStore);

#[async_trait::async_trait]
impl Store for Distinct {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.0)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.0.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        self.0.scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.0.commit(batch).await
    }

    async fn changed_since(&self, _: &Partition, _: Kind, _: Option<Position>) -> Result<Changes, StoreError> {
        Err(StoreError::Misuse("changes of its own".into()))
    }

    async fn ready(&self) -> Result<(), StoreError> {
        Err(StoreError::Unavailable("not ready".into()))
    }

    fn read_only(&self) -> Option<String> {
        Some("a full disk".into())
    }

    async fn end_removal(&self, _: WorkspaceId, _: Key) -> Result<(), StoreError> {
        Err(StoreError::Misuse("a removal of its own".into()))
    }
}

/// No wrapper and no pointer loses what the store inside can do.
#[tokio::test]
async fn wrappers_and_pointers_keep_every_method() {
    let distinct = || Distinct(MemoryStore::new());
    let stores: [Arc<dyn Store>; 5] = [
        Arc::new(Wrapper(distinct())),
        Arc::new(Arc::new(distinct())),
        Arc::new(Arc::new(distinct()) as Arc<dyn Store>),
        Arc::new(Box::new(distinct())),
        Arc::new(Wrapper(Box::new(Wrapper(distinct())) as Box<dyn Store>)),
    ];
    let workspace = WorkspaceId::new(uuid::Uuid::from_u128(1));
    let (key, partition) = (Key::global("p", Kind::Meta, "a"), Partition::Global("p".into()));
    for store in stores {
        let stamp = store.stamp(&key).unwrap();
        assert!(store.is_current(stamp) && store.marks().unwrap().is_current(stamp));
        let batch = Batch {
            checks: Vec::new(),
            writes: vec![Write::Put(key.clone(), b"1".to_vec())],
        };
        store.commit(batch).await.unwrap();
        assert!(!store.is_current(stamp));
        assert!(store.get(std::slice::from_ref(&key)).await.unwrap()[0].is_some());
        let found = store.scan(&Scan::all(partition.clone(), Kind::Meta)).await.unwrap();
        assert_eq!(found.entries.len(), 1);
        assert!(store.watch(workspace, Kind::LogHead).is_some());
        assert!(store.track(workspace, Kind::Status).is_some());
        assert!(matches!(
            store.changed_since(&partition, Kind::Meta, None).await,
            Err(StoreError::Misuse(_))
        ));
        assert!(store.ready().await.is_err());
        assert_eq!(store.read_only().as_deref(), Some("a full disk"));
        assert!(matches!(
            store.end_removal(workspace, key.clone()).await,
            Err(StoreError::Misuse(_))
        ));
    }
}
