//! Concurrent tasks, in many interleavings.

use std::future::Future;
use std::sync::Arc;

use agentcfg_core::store::MemoryStore;
use agentcfg_core::{Error, ErrorKind, Settings};
use tokio::task::JoinSet;

use super::{World, Yielding, limits};

/// `limit` is that of a workspace's active agents, and of a user's workspaces.
fn settings(limit: Option<u32>) -> Settings {
    let settings = Settings::default().plan_limits(limits(limit));
    settings.max_workspaces_per_user(limit)
}

/// Runs a scenario on threads with both stores, and on one thread in a hundred interleavings.
pub fn everywhere<F: Future<Output = ()>>(limit: Option<u32>, scenario: impl Fn(Arc<World>) -> F) {
    let threads = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap();
    for _ in 0..5 {
        let world = World::on(Arc::new(MemoryStore::new()), settings(limit));
        threads.block_on(scenario(Arc::new(world)));
    }
    threads.block_on(scenario(Arc::new(World::on_disk(settings(limit)))));
    let one = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    for seed in 0..100 {
        let store = Yielding::new(Arc::new(MemoryStore::new()), seed);
        one.block_on(scenario(Arc::new(World::on(store, settings(limit)))));
    }
}

/// Runs these tasks concurrently; returns the result of each in the order of their numbers.
pub async fn at_once<T, F>(count: usize, task: impl Fn(usize) -> F) -> Vec<Result<T, ErrorKind>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let task = task(number);
        tasks.spawn(async move { (number, task.await.map_err(|error| error.kind())) });
    }
    let mut results = tasks.join_all().await;
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

pub fn tally<T>(results: &[Result<T, ErrorKind>], kind: ErrorKind) -> (usize, usize) {
    let won = results.iter().filter(|result| result.is_ok()).count();
    let lost = results
        .iter()
        .filter(|result| result.as_ref().err() == Some(&kind))
        .count();
    (won, lost)
}
