//! The history of agents on PostgreSQL: the lists of the past, and data from before versions.

use std::sync::Arc;

use agentcfg_core::clock::ManualClock;
use agentcfg_core::{AgentCfg, Settings};
use agentcfg_postgres::{PostgresOptions, PostgresStore};

use crate::cluster::Cluster;
use crate::support::{START, limits};

#[path = "../upgrade/mod.rs"]
mod fixture;
#[path = "../../agentcfg-core/tests/service/past_model.rs"]
mod past_model;

/// How many operations a run has: few by default, and as many as `AGENTCFG_TEST_OPERATIONS` names in a long run.
fn operations() -> usize {
    let long = std::env::var("AGENTCFG_TEST_OPERATIONS").ok();
    long.and_then(|number| number.parse().ok()).unwrap_or(150)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_list_is_answered_again() {
    let Some(cluster) = Cluster::shared() else { return };
    let options = PostgresOptions {
        schema: cluster.schema(),
        ..PostgresOptions::new(cluster.url())
    };
    let store = PostgresStore::connect(&options).await.unwrap();
    let clock = Arc::new(ManualClock::at(START.parse().unwrap()));
    let settings = Settings {
        plan_limits: limits(Some(5)),
        ..Settings::default()
    };
    let builder = AgentCfg::builder(store)
        .clock(Arc::clone(&clock) as _)
        .settings(settings);
    let count = operations();
    past_model::compare(&builder.build(), &clock, 11, count, 50, Some(count as u64 / 5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_from_before_versions_keeps_its_past() {
    let Some(cluster) = Cluster::shared() else { return };
    assert!(!fixture::REDB.is_empty());
    let url = cluster.database();
    let name = url.rsplit('/').next().unwrap();
    cluster.sql_in(name, fixture::POSTGRES);
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'agentcfg' AND tablename LIKE 'agent\\_%'";
    assert_eq!(cluster.sql_in(name, tables), "0");
    let store = PostgresStore::connect(&PostgresOptions::new(url.clone()))
        .await
        .unwrap();
    assert_eq!(
        cluster.sql_in(name, tables),
        "3",
        "the tables of versions, touches and labels are made"
    );
    fixture::check(Arc::new(store)).await;
}
