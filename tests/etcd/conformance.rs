//! The store contract on a real cluster.

use std::sync::Arc;

use agentcfg_core::clock::{Clock, ManualClock};
use agentcfg_core::model::WorkspaceId;
use agentcfg_core::rate_limit::SharedWindows;
use agentcfg_core::store::{
    BUILD, Batch, Check, CommitError, Direction, FORMAT, Key, Kind, OtherFormat, Partition, Scan, Store, StoreError,
    Write, conformance,
};
use agentcfg_etcd::{ConnectError, EtcdStore};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::cluster::{Cluster, LIMITS};
use crate::contract_misuse;

fn workspace(number: u128) -> WorkspaceId {
    WorkspaceId::new(Uuid::from_u128(number))
}

async fn write(store: &EtcdStore, writes: Vec<Write>) -> Vec<u64> {
    let batch = Batch { checks: vec![], writes };
    store.commit(batch).await.unwrap().numbers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds() {
    let Some(cluster) = Cluster::shared() else { return };
    conformance::run(async || Arc::new(cluster.store().await) as Arc<dyn Store>).await;
}

/// Versions that this process did not assign, and a number that another process changed.
#[tokio::test]
async fn a_store_decides_on_what_other_processes_wrote() {
    let Some(cluster) = Cluster::shared() else { return };
    let options = cluster.options();
    let (one, other) = (
        EtcdStore::connect(&options).await.unwrap(),
        EtcdStore::connect(&options).await.unwrap(),
    );
    let counter = Key::in_workspace(workspace(1), Kind::Counter, "c");
    let add = |max| {
        vec![Write::Add {
            counter: counter.clone(),
            delta: 1,
            max: Some(max),
        }]
    };
    assert_eq!(write(&one, add(9)).await, [1]);
    assert_eq!(write(&other, add(9)).await, [2]);
    assert_eq!(write(&one, add(9)).await, [3]);
    let refused = other
        .commit(Batch {
            checks: vec![],
            writes: add(3),
        })
        .await;
    assert_eq!(refused, Err(CommitError::Limit(0)));
    let key = Key::global("x", Kind::Meta, "a");
    let put = || vec![Write::Put(key.clone(), b"1".to_vec())];
    let version = write(&one, put()).await[0];
    let next = Batch {
        checks: vec![Check::Version(key.clone(), version)],
        writes: put(),
    };
    other.commit(next.clone()).await.unwrap();
    assert_eq!(one.commit(next).await, Err(CommitError::Conflict(0)));
}

/// More records than a page has, in both directions, with a compaction of their revisions.
#[tokio::test]
async fn long_scans_read_pages_of_one_revision() {
    let Some(cluster) = Cluster::shared() else { return };
    let store = cluster.store().await;
    let log = workspace(1);
    for part in 0..6_u32 {
        let put = |number: u32| {
            let item = format!("{:05}", part * 300 + number);
            Write::Put(Key::in_workspace(log, Kind::Agent, item), b"1".to_vec())
        };
        let mut writes: Vec<_> = (0..300).map(put).collect();
        writes.push(Write::Append {
            log,
            value: b"1".to_vec(),
        });
        write(&store, writes).await;
    }
    let all = Scan::all(Partition::Workspace(log), Kind::Agent).with([Key::log_head(log)]);
    let found = store.scan(&all).await.unwrap();
    let items: Vec<_> = found.entries.iter().map(|(key, _)| key.item().to_owned()).collect();
    let expected: Vec<_> = (0..1800).map(|number| format!("{number:05}")).collect();
    assert_eq!(items, expected);
    assert_eq!(&*found.with[0].as_ref().unwrap().value, b"6");
    for (after, limit, first, length) in [
        (None, usize::MAX, "01799", 1800),
        (Some("01000"), 700, "00999", 700),
        (Some("00003"), 10, "00002", 3),
        (Some("00700"), usize::MAX, "00699", 700),
    ] {
        let scan = Scan {
            direction: Direction::Descending,
            after: after.map(Into::into),
            limit,
            ..all.clone()
        };
        let found = store.scan(&scan).await.unwrap().entries;
        assert_eq!((found[0].0.item(), found.len()), (first, length), "{after:?}");
        assert!(found.is_sorted_by(|(a, _), (b, _)| a.item() > b.item()));
    }
    let newest = Scan {
        direction: Direction::Descending,
        limit: 2,
        ..Scan::all(Partition::Workspace(log), Kind::LogEntry)
    };
    let found = store.scan(&newest).await.unwrap().entries;
    let keys: Vec<_> = found.into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [Key::log_entry(log, 6), Key::log_entry(log, 5)]);
}

/// A compaction under a reader makes it begin again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_survives_the_compaction_of_its_revision() {
    let Some(cluster) = Cluster::shared() else { return };
    let store = Arc::new(cluster.store().await);
    let log = workspace(1);
    let put = |number: u32| {
        Write::Put(
            Key::in_workspace(log, Kind::Agent, format!("{number:05}")),
            vec![b'1'; 2000],
        )
    };
    write(&store, (0..3000).map(put).collect()).await;
    let reader = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            for _ in 0..30 {
                let all = Scan::all(Partition::Workspace(log), Kind::Agent);
                assert_eq!(store.scan(&all).await.unwrap().entries.len(), 3000);
            }
        }
    });
    while !reader.is_finished() {
        write(&store, vec![put(1)]).await;
        let key = Key::in_workspace(log, Kind::Agent, "00001");
        let version = store.get(&[key]).await.unwrap()[0].as_ref().unwrap().version;
        cluster.ctl(&["compact", &version.to_string()]);
    }
    reader.await.unwrap();
}

/// Values keep their bytes, and damage is found.
#[tokio::test]
async fn values_keep_their_bytes_and_damage_is_reported() {
    let Some(cluster) = Cluster::shared() else { return };
    let options = cluster.options();
    let store = EtcdStore::connect(&options).await.unwrap();
    let key = Key::global("x", Kind::Meta, "a");
    for value in ["1e16", "-0.0", r#"{"z":1,"a":[2]}"#, r#""\u007f ä 😀""#] {
        write(&store, vec![Write::Put(key.clone(), value.as_bytes().to_vec())]).await;
        let found = store.get(std::slice::from_ref(&key)).await.unwrap().remove(0).unwrap();
        assert_eq!(std::str::from_utf8(&found.value).unwrap(), value);
    }
    let plain = Key::global("x", Kind::Meta, "b");
    let stored = [format!("{}/r/", options.prefix).as_bytes(), &plain.encode()].concat();
    // Every byte of this key is ASCII, but for the two that a shell cannot pass.
    assert!(stored.contains(&0));
    write(&store, vec![Write::Put(plain.clone(), b"1".to_vec())]).await;
    assert!(store.get(&[plain]).await.unwrap()[0].is_some());
}

/// Many processes may start on an empty cluster at once; another format is refused and left unchanged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_made_once_and_other_formats_are_refused() {
    let Some(cluster) = Cluster::shared() else { return };
    let options = cluster.options();
    let starts = (0..4).map(|_| {
        let options = options.clone();
        tokio::spawn(async move { EtcdStore::connect(&options).await.map(drop) })
    });
    for start in starts.collect::<Vec<_>>() {
        start.await.unwrap().unwrap();
    }
    let key = format!("{}/store", options.prefix);
    let facts = || cluster.ctl(&["get", "--print-value-only", &key]);
    let made: Value = serde_json::from_str(&facts()).unwrap();
    assert_eq!((&made["format"], &made["made_by"]), (&json!(FORMAT), &json!(BUILD)));
    for (other, found, build) in [
        (r#"{"format":9,"made_by":"7.1.0","more":true}"#, 9, Some("7.1.0")),
        (r#"{"format":1,"base":0,"cluster":1}"#, 1, None),
    ] {
        cluster.ctl(&["put", &key, other]);
        let refused = EtcdStore::connect(&options).await.unwrap_err();
        let expected = OtherFormat {
            found,
            build: build.map(str::to_owned),
        };
        assert!(
            matches!(&refused, ConnectError::OtherFormat(found) if *found == expected),
            "{refused}"
        );
        assert_eq!(facts().trim(), other, "a refused store is left as it is");
    }
    cluster.ctl(&["put", &key, "other"]);
    let refused = EtcdStore::connect(&options).await.unwrap_err();
    assert!(matches!(refused, ConnectError::Unusable(_)), "{refused}");
}

/// The start refuses a cluster that could not hold the largest change, and names the option.
#[tokio::test]
async fn a_cluster_with_low_limits_is_refused() {
    for (settings, says) in [
        (&LIMITS[1..], "--max-txn-ops must be at least 6064"),
        (&LIMITS[..1], "--max-request-bytes must be at least 10485760"),
    ] {
        let Some(cluster) = Cluster::of(1, settings) else {
            return;
        };
        let refused = EtcdStore::connect(&cluster.options()).await.unwrap_err();
        assert!(
            matches!(&refused, ConnectError::TooSmall(text) if text.contains(says)),
            "{refused}"
        );
    }
}

/// The largest change that the service makes: 1000 agents with their versions and memberships, and as many that are
/// pruned.
#[tokio::test]
async fn the_largest_change_is_one_commit() {
    let Some(cluster) = Cluster::shared() else { return };
    let store = cluster.store().await;
    let log = workspace(1);
    let key = |kind, number: u32| Key::in_workspace(log, kind, format!("agent-{number:05}"));
    let puts = |number: u32| {
        [Kind::Agent, Kind::AgentVersion, Kind::SetMember].map(|kind| Write::Put(key(kind, number), vec![b'1'; 500]))
    };
    let checks =
        (0..2000).flat_map(|number| [Kind::Agent, Kind::SetMember].map(|kind| Check::Absent(key(kind, number))));
    let mut writes: Vec<_> = (0..2000).flat_map(puts).collect();
    writes.push(Write::Append {
        log,
        value: vec![b'1'; 5 << 20],
    });
    let batch = Batch {
        checks: checks.collect(),
        writes,
    };
    let committed = store.commit(batch.clone()).await.unwrap();
    assert_eq!(committed.numbers.len(), 6001);
    assert_eq!(store.commit(batch.clone()).await, Err(CommitError::Conflict(0)));
    let more = (0..65).map(|number| Write::Delete(Key::in_workspace(log, Kind::Status, number.to_string())));
    let larger = Batch {
        checks: vec![],
        writes: batch.writes.into_iter().chain(more).collect(),
    };
    let refused = store.commit(larger).await;
    assert!(
        matches!(&refused, Err(CommitError::Store(StoreError::TooLarge(why))) if why.contains("operations")),
        "{refused:?}"
    );
}

/// Two stores with different prefixes share a cluster.
#[tokio::test]
async fn stores_with_different_prefixes_are_apart() {
    let Some(cluster) = Cluster::shared() else { return };
    let (one, other) = (cluster.store().await, cluster.store().await);
    let key = Key::global("x", Kind::Meta, "a");
    write(&one, vec![Write::Put(key.clone(), b"1".to_vec())]).await;
    assert_eq!(other.get(&[key]).await.unwrap(), [None]);
}

#[tokio::test]
async fn misuse_is_refused() {
    let Some(cluster) = Cluster::shared() else { return };
    let store = cluster.store().await;
    contract_misuse::is_refused(&store).await;
    store.close().await;
    assert!(matches!(store.get(&[]).await, Err(StoreError::Unavailable(_))));
}

/// Two processes count in one window, whose end a clock that was set back brings nearer.
#[tokio::test]
async fn processes_share_a_window() {
    const LENGTH: i64 = 60_000;
    let Some(cluster) = Cluster::shared() else { return };
    let clock = Arc::new(ManualClock::at("2026-11-20T09:30:00Z".parse().unwrap()));
    let options = cluster.options().clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let stores = [
        EtcdStore::connect(&options).await.unwrap(),
        EtcdStore::connect(&options).await.unwrap(),
    ];
    let first = stores[0].hit("subject", LENGTH).await.unwrap();
    let second = stores[1].hit("subject", LENGTH).await.unwrap();
    assert_eq!(
        (second.ends_at_millis, first.used, second.used),
        (first.ends_at_millis, 1, 2)
    );
    let hits: Vec<_> = (0..40)
        .map(|number| {
            let store = &stores[number % 2];
            async move { store.hit("subject", LENGTH).await.unwrap().used }
        })
        .collect();
    let mut used = Vec::new();
    for hit in hits {
        used.push(hit.await);
    }
    assert_eq!(used, (3..43).collect::<Vec<_>>());
    clock.step_millis(-3_600_000);
    let shortened = stores[0].hit("subject", LENGTH).await.unwrap();
    assert_eq!(shortened.ends_at_millis - shortened.now_millis, LENGTH);
    assert_eq!(shortened.used, 43, "the window is shortened, not refilled");
    clock.advance_millis(LENGTH);
    assert_eq!(stores[1].hit("subject", LENGTH).await.unwrap().used, 1);
    let windows = format!("{}/windows/", options.prefix);
    let left = || {
        cluster
            .ctl(&["get", "--prefix", "--keys-only", &windows])
            .trim()
            .to_owned()
    };
    stores[0].sweep().await.unwrap();
    assert_eq!(left(), format!("{windows}subject"));
    clock.advance_millis(3 * LENGTH);
    stores[0].sweep().await.unwrap();
    assert_eq!(left(), "");
}
