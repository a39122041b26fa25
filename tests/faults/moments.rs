//! Answers and decisions of one moment in one process; the tests of the databases do the same with two servers.

use std::sync::Arc;

use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use agentcfg_core::store::{MemoryStore, Store};
use agentcfg_tests::harness::scratch;

use crate::oracle::{self, Planted, Size, service, violations};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_and_decisions_are_of_one_moment_in_memory() {
    let service = service(Arc::new(MemoryStore::new()));
    let found = violations("memory", &[service], Size::short()).await;
    assert!(found.is_empty(), "{}: {:#?}", found.len(), found.first());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_and_decisions_are_of_one_moment_on_disk() {
    let place = scratch();
    let store = RedbStore::open(place.path().join("store.redb"), RedbOptions::default()).unwrap();
    let found = violations("redb", &[service(Arc::new(store))], Size::short()).await;
    assert!(found.is_empty(), "{}: {:#?}", found.len(), found.first());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oracle_finds_decisions_and_answers_without_their_checks() {
    for fault in Planted::FAULTS {
        let mut found = Vec::new();
        // What is planted shows only where two clients meet.
        for _ in 0..30 {
            let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
            let service = service(Planted::new(memory, fault));
            found = violations(&format!("a store with {fault:?}"), &[service], Size::least()).await;
            if !found.is_empty() {
                break;
            }
        }
        println!("FIGURES {fault:?}: {} violations", found.len());
        assert!(!found.is_empty(), "{fault:?}");
    }
}

/// The tests of the databases do the same with two processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_lets_the_writers_of_the_same_store_wait() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    oracle::a_hold_lets_others_wait(Arc::clone(&store), store).await;
}
