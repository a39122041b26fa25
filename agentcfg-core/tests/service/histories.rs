//! Random histories, compared with a reference model.

use std::sync::Arc;

use agentcfg_core::store::MemoryStore;
use proptest::prelude::*;

use super::model::{any_step, run, settings};
use super::support::World;

fn wait(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_service_in_memory_agrees_with_the_model(steps in proptest::collection::vec(any_step(), 1..60)) {
        wait(run(World::on(Arc::new(MemoryStore::new()), settings()), steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_service_on_disk_agrees_with_the_model(steps in proptest::collection::vec(any_step(), 1..60)) {
        wait(run(World::on_disk(settings()), steps));
    }
}
