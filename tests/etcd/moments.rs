//! Answers and decisions of one moment, with two servers on one cluster.

use std::sync::Arc;

use agentcfg_etcd::EtcdStore;

use crate::cluster::Cluster;
use crate::oracle::{self, Size, service, violations};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_and_decisions_of_two_servers_are_of_one_moment() {
    let Some(cluster) = Cluster::shared() else { return };
    let options = cluster.options();
    let mut services = Vec::new();
    for _ in 0..2 {
        let store = EtcdStore::connect(&options).await.unwrap();
        services.push(service(Arc::new(store)));
    }
    let found = violations("etcd with two servers", &services, Size::short()).await;
    assert!(found.is_empty(), "{}: {:#?}", found.len(), found.first());
}

/// Guarantee 11 with the writers in another process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_lets_the_writers_of_another_server_wait() {
    let Some(cluster) = Cluster::shared() else { return };
    let options = cluster.options();
    let holder = EtcdStore::connect(&options).await.unwrap();
    let writer = EtcdStore::connect(&options).await.unwrap();
    oracle::a_hold_lets_others_wait(Arc::new(holder), Arc::new(writer)).await;
}
