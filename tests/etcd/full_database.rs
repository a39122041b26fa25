//! A full database: the store is read-only, also for a server that starts then, and accepts changes once there is space
//! again.

use std::time::{Duration, Instant};

use agentcfg_core::store::{Batch, CommitError, Key, Kind, Store, StoreError, Write};
use agentcfg_etcd::{ConnectError, EtcdOptions, EtcdStore};
use agentcfg_tests::harness::free_address;
use serde_json::json;

use crate::cluster::{Cluster, LIMITS};
use crate::server::{Answer, Api, Server, token};

const LONGEST: Duration = Duration::from_secs(30);

fn small() -> Option<Cluster> {
    Cluster::of(3, &[&LIMITS[..3], &["--quota-backend-bytes=16777216"]].concat())
}

/// Writes until the database is full; returns the refusal, and how to write once more.
async fn fill(store: &EtcdStore) -> (CommitError, Batch) {
    let put = Batch {
        checks: vec![],
        writes: vec![Write::Put(Key::global("x", Kind::Meta, "a"), vec![b'1'; 1 << 20])],
    };
    for _ in 0..100 {
        if let Err(refused) = store.commit(put.clone()).await {
            return (refused, put);
        }
    }
    panic!("the quota is 16 MiB");
}

/// Does what the documentation says about a full database.
fn make_space(cluster: &Cluster) {
    cluster.ctl(&["compact", &cluster.revision().to_string()]);
    cluster.ctl(&["defrag"]);
    cluster.ctl(&["alarm", "disarm"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_database_is_read_only_until_there_is_space_again() {
    let Some(cluster) = small() else { return };
    let store = cluster.store().await;
    let (refused, put) = fill(&store).await;
    assert!(
        matches!(&refused, CommitError::Store(StoreError::Unavailable(why)) if why.contains("space exceeded")),
        "{refused}"
    );
    assert!(store.read_only().is_some());
    let key = Key::global("x", Kind::Meta, "a");
    let found = store.get(&[key]).await.unwrap().remove(0).unwrap();
    assert_eq!(found.value.len(), 1 << 20, "reads are served");
    make_space(&cluster);
    let end = Instant::now() + LONGEST;
    while store.read_only().is_some() {
        assert!(Instant::now() < end, "{:?}", store.read_only());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    store.commit(put).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_on_a_full_database_and_serves_reads() {
    let Some(cluster) = small() else { return };
    let database = cluster.database();
    let (_, prefix) = database.split_once('#').unwrap();
    let ada = token("ada");
    let workspace = {
        let server = Server::start(&database);
        let workspace = server.api(&ada).workspace().await;
        server.api(&ada).create(&workspace, "before").await.expect(201);
        workspace
    };
    fill(&cluster.store().await).await;

    let metrics = free_address().to_string();
    let begun = Instant::now();
    let server = Server::with(&database, &[("metrics_listen", &metrics)]);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let (api, open) = (server.api(&ada), server.api(""));
    let degraded = json!({"status": "degraded", "reason": "read-only"});
    assert_eq!(open.get("/readyz").await.expect(200), degraded);
    let scraped = Api {
        address: metrics.parse().unwrap(),
        credential: String::new(),
    };
    let metric = async |line: &str| {
        let end = Instant::now() + LONGEST;
        while !scraped.text("/metrics").await.lines().any(|found| found == line) {
            assert!(Instant::now() < end, "{line} does not come");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    metric("agentcfg_storage_ready 0").await;
    server.wait_for("compact and defragment it, then disarm the alarm");
    let listed = api.list(&workspace).await.expect(200);
    assert_eq!(listed[0]["agent_id"], "before");
    let refused: Answer = api.create(&workspace, "full").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!(api.list(&workspace).await.expect(200).as_array().unwrap().len(), 1);

    // A new store would be a change.
    let other = EtcdOptions::new(cluster.endpoints()).prefix(cluster.prefix());
    let refused = EtcdStore::connect(&other).await.unwrap_err();
    assert!(matches!(refused, ConnectError::Full(_)), "{refused}");

    make_space(&cluster);
    let end = Instant::now() + LONGEST;
    while api.create(&workspace, "after").await.status != 201 {
        assert!(Instant::now() < end, "no change is accepted");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let ready = json!({"status": "ready"});
    while open.get("/readyz").await.expect(200) != ready {
        assert!(Instant::now() < end, "the server is still degraded");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    metric("agentcfg_storage_ready 1").await;
    // Its marker belongs to a lease, though it had none at the start.
    let markers = cluster.ctl(&["get", "--prefix", &format!("{prefix}/commits/"), "-w", "fields"]);
    let leases: Vec<_> = markers.lines().filter(|line| line.starts_with("\"Lease\"")).collect();
    assert!(
        !leases.is_empty() && leases.iter().all(|line| !line.ends_with(" 0")),
        "{markers}"
    );
}

/// As with a PostgreSQL that does not answer, the start fails with the way out, unless it is told to wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_without_a_majority_says_so_or_waits() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let database = cluster.database();
    drop(Server::start(&database));
    cluster.kill(0);
    cluster.kill(1);
    let refused = Server::refused(&database, &[]);
    assert!(refused.contains("--wait-for SECONDS"), "{refused}");
    assert!(
        refused.contains("knows no leader, which takes a majority of the members"),
        "{refused}"
    );
    let waiting = {
        let database = database.clone();
        tokio::task::spawn_blocking(move || Server::with(&database, &[("database_wait", "60")]))
    };
    cluster.start_member(0);
    let server = waiting.await.unwrap();
    server.api(&token("ada")).workspace().await;
}
