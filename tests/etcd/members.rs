//! Faults of members while servers write: nothing that was acknowledged is lost, and a majority is enough.

use std::time::{Duration, Instant};

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::{Batch, CommitError, Key, Kind, Partition, Scan, Store, StoreError, Write};
use rustix::process::Signal;
use uuid::Uuid;

use crate::cluster::Cluster;
use crate::load::Load;
use crate::server::{Server, token};

/// How many faults a run has: `AGENTCFG_TEST_FAULTS`, or a few.
fn faults() -> usize {
    let named = std::env::var("AGENTCFG_TEST_FAULTS").ok();
    named.and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// How long the servers may need until they are ready again, once a majority is there. It takes less than five seconds
/// on a machine that has nothing else to do; here three members, three servers and other tests share its processors.
const RECOVERY: Duration = Duration::from_secs(30);

/// Polls `/readyz` of each server; returns how long it took until all were ready.
async fn until_ready(servers: &[Server]) -> Duration {
    let begun = Instant::now();
    for server in servers {
        while server.api("").get("/readyz").await.status != 200 {
            assert!(begun.elapsed() < Duration::from_secs(60), "a server is not ready");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_fault_of_one_member_loses_an_acknowledged_change() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let servers = Server::three(&cluster.database());
    let load = Load::start(&servers).await;
    let mut slowest = Duration::ZERO;
    for fault in 0..faults() {
        load.progress(20).await;
        // Every second fault hits the leader.
        let member = match fault % 2 {
            0 => cluster.leader().unwrap_or(fault % 3),
            _ => fault % 3,
        };
        let stops = fault % 4 >= 2;
        match stops {
            true => cluster.signal(member, Signal::STOP),
            false => cluster.kill(member),
        }
        let took = until_ready(&servers).await;
        slowest = slowest.max(took);
        assert!(took < RECOVERY, "fault {fault}: ready after {took:?}");
        load.progress(20).await;
        match stops {
            true => cluster.signal(member, Signal::CONT),
            false => cluster.start_member(member),
        }
        cluster.wait_until_ready();
    }
    println!("{} faults, ready again after {slowest:?} at the latest", faults());
    load.verify(&servers).await;
}

/// Without a majority nothing is acknowledged, and the servers say so; with it they go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_the_servers_are_not_ready() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let servers = Server::three(&cluster.database());
    let load = Load::start(&servers).await;
    load.progress(50).await;
    cluster.kill(0);
    cluster.kill(1);
    let ready = servers[0].api("").get("/readyz").await;
    assert_eq!(ready.status, 503);
    let refused = servers[0].api(&token("ada")).get("/api/workspaces").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    // What comes later is refused at once, also when the members that are left answer nothing.
    let refused_soon = async || {
        let begun = Instant::now();
        let refused = servers[0].api(&token("ada")).get("/api/workspaces").await;
        assert_eq!(refused.status, 503);
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    };
    refused_soon().await;
    cluster.signal(2, Signal::STOP);
    refused_soon().await;
    cluster.signal(2, Signal::CONT);
    cluster.start_member(0);
    cluster.wait_until_ready();
    let took = until_ready(&servers).await;
    assert!(took < RECOVERY, "ready after {took:?}");
    load.progress(50).await;
    cluster.start_member(1);
    // A writer whose commit is under way may have waited for the majority.
    load.verify(&servers).await;
}

/// Additions whose answers are lost count exactly once: the store finds each outcome out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_is_exact_through_faults() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let store = std::sync::Arc::new(cluster.store().await);
    let workspace = WorkspaceId::new(Uuid::from_u128(1));
    let counter = Key::in_workspace(workspace, Kind::Counter, "c");
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let (store, counter, stop) = (store.clone(), counter.clone(), stop.clone());
            tokio::spawn(async move {
                let (mut sure, mut unknown) = (0_u64, 0_u64);
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let add = Write::Add {
                        counter: counter.clone(),
                        delta: 1,
                        max: None,
                    };
                    let append = Write::Append {
                        log: workspace,
                        value: b"1".to_vec(),
                    };
                    let batch = Batch {
                        checks: vec![],
                        writes: vec![add, append],
                    };
                    match store.commit(batch).await {
                        Ok(_) => sure += 1,
                        Err(CommitError::Store(StoreError::OutcomeUnknown(_))) => unknown += 1,
                        Err(CommitError::Store(StoreError::Unavailable(_))) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                (sure, unknown)
            })
        })
        .collect();
    for fault in 0..faults() {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let leader = cluster.leader().unwrap_or(0);
        cluster.kill(leader);
        tokio::time::sleep(Duration::from_millis(500 + 100 * (fault as u64 % 5))).await;
        cluster.start_member(leader);
        cluster.wait_until_ready();
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let (mut sure, mut unknown) = (0, 0);
    for writer in writers {
        let counted = writer.await.unwrap();
        sure += counted.0;
        unknown += counted.1;
    }
    let entries = Scan::all(Partition::Workspace(workspace), Kind::LogEntry).with([counter]);
    let found = store.scan(&entries).await.unwrap();
    let count: u64 = std::str::from_utf8(&found.with[0].as_ref().unwrap().value)
        .unwrap()
        .parse()
        .unwrap();
    println!("{sure} additions were acknowledged, {unknown} had an unknown outcome, the counter is {count}");
    assert!((sure..=sure + unknown).contains(&count));
    assert_eq!(found.entries.len() as u64, count, "each addition has its entry");
    let numbers: Vec<_> = found.entries.iter().map(|(key, _)| key.clone()).collect();
    let expected: Vec<_> = (1..=count).map(|number| Key::log_entry(workspace, number)).collect();
    assert_eq!(numbers, expected, "the log has no gap");
}
