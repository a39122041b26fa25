//! The store and the service on a database, compared with reference models.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::cluster::Cluster;
use crate::service_model::{any_step, run, settings};
use crate::status_model::follow;
use crate::store_model::model_tests::{agree, step};
use crate::support::World;
use crate::{budget_scenarios, budget_settlement, usage_ledger};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn wait(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future);
}

#[test]
fn the_store_agrees_with_the_model() {
    let Some(cluster) = Cluster::shared() else { return };
    let steps = proptest::collection::vec(step(), 1..40);
    let agreed = TestRunner::new(config(24)).run(&steps, |steps| {
        wait(async { agree(Arc::new(cluster.store().await), &steps).await });
        Ok(())
    });
    agreed.unwrap();
}

#[test]
fn the_service_agrees_with_the_model() {
    let Some(cluster) = Cluster::shared() else { return };
    let steps = proptest::collection::vec(any_step(), 1..60);
    let agreed = TestRunner::new(config(8)).run(&steps, |steps| {
        wait(async { run(World::on(Arc::new(cluster.store().await), settings()), steps).await });
        Ok(())
    });
    agreed.unwrap();
}

/// A status list that follows the changes of a database shows what a new reader of all of it does.
#[test]
fn the_shared_status_list_shows_what_a_new_reader_finds() {
    let Some(cluster) = Cluster::shared() else { return };
    wait(async { follow(&World::on(Arc::new(cluster.store().await), settings()), 200).await });
}

#[test]
fn usage_is_added_up_over_servers() {
    let Some(cluster) = Cluster::shared() else { return };
    wait(async { usage_ledger::added_up(World::on(Arc::new(cluster.store().await), settings())).await });
    wait(async { usage_ledger::of_two_servers(World::on(Arc::new(cluster.store().await), settings())).await });
}

#[test]
fn budgets_are_exact_over_servers() {
    let Some(cluster) = Cluster::shared() else { return };
    wait(async { budget_scenarios::reserved_and_spent(World::on(Arc::new(cluster.store().await), settings())).await });
    wait(async {
        let world = World::on(Arc::new(cluster.store().await), settings());
        budget_scenarios::estimated_within_the_reservation(world).await;
    });
    wait(async {
        budget_scenarios::of_scopes_and_periods(World::on(Arc::new(cluster.store().await), settings())).await
    });
    wait(async {
        budget_settlement::settled_after_a_kill(World::on(Arc::new(cluster.store().await), settings())).await;
        let world = World::on(Arc::new(cluster.store().await), settings());
        budget_settlement::settled_without_what_was_reported(world).await
    });
    wait(async {
        budget_scenarios::made_beside_calls_of_others(World::on(Arc::new(cluster.store().await), settings())).await
    });
    wait(async {
        budget_scenarios::of_the_period_before(World::on(Arc::new(cluster.store().await), settings())).await;
        budget_scenarios::under_a_clock_that_was_ahead(World::on(Arc::new(cluster.store().await), settings())).await;
        budget_scenarios::written_with_an_unknown_outcome(World::on(Arc::new(cluster.store().await), settings())).await
    });
    wait(async { budget_scenarios::exact_over_servers(World::on(Arc::new(cluster.store().await), settings())).await });
}
