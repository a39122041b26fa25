//! The history of agents on PostgreSQL: the lists of the past.

use std::sync::Arc;

use agentcfg_core::clock::ManualClock;
use agentcfg_core::{AgentCfg, Settings};
use agentcfg_postgres::{PostgresOptions, PostgresStore};

use crate::cluster::Cluster;
use crate::support::{START, limits};

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
    let options = PostgresOptions::new(cluster.url()).schema(cluster.schema());
    let store = PostgresStore::connect(&options).await.unwrap();
    let clock = Arc::new(ManualClock::at(START.parse().unwrap()));
    let settings = Settings::default().plan_limits(limits(Some(5)));
    let builder = AgentCfg::builder(store)
        .clock(Arc::clone(&clock) as _)
        .settings(settings)
        .unwrap();
    let count = operations();
    past_model::compare(&builder.build(), &clock, 11, count, 50, Some(count as u64 / 5)).await;
}
