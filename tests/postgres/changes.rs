//! Reads of changes: what is new alone, from transactions that end late too, and everything after a restart.

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::{Batch, Changes, Key, Kind, Partition, Position, Store, Write};
use agentcfg_postgres::{PostgresOptions, PostgresStore};
use rustix::process::{Pid, Signal, kill_process};
use uuid::Uuid;

use crate::cluster::Cluster;

/// The most records that a read may have beside the one that changed: another transaction, such as one of the server's
/// own maintenance, may have been under way.
const FEW: usize = 20;
const ALL: usize = 500;

fn workspace() -> WorkspaceId {
    WorkspaceId::new(Uuid::from_u128(7))
}

fn report(number: usize) -> Write {
    Write::Put(
        Key::in_workspace(workspace(), Kind::Status, format!("a{number}")),
        b"{\"n\":1}".to_vec(),
    )
}

/// A store of 500 reports, in the schema `changes`.
async fn filled(cluster: &Cluster) -> PostgresStore {
    let options = PostgresOptions::new(cluster.url()).schema("changes");
    let store = PostgresStore::connect(&options).await.unwrap();
    put(&store, 0..ALL).await;
    store
}

async fn put(store: &PostgresStore, numbers: impl Iterator<Item = usize>) {
    let writes = numbers.map(report).collect();
    store.commit(Batch { checks: vec![], writes }).await.unwrap();
}

async fn changed_since(store: &PostgresStore, position: Option<Position>) -> Changes {
    let partition = Partition::Workspace(workspace());
    store.changed_since(&partition, Kind::Status, position).await.unwrap()
}

fn has(changes: &Changes, number: usize) -> bool {
    let item = format!("a{number}");
    changes.entries.iter().any(|(key, _)| key.item() == item)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_of_changes_reads_what_is_new_alone() {
    let Some(cluster) = Cluster::start(&["autovacuum=off"]) else {
        return;
    };
    let store = filled(&cluster).await;
    let all = changed_since(&store, None).await;
    assert!(all.is_all && all.entries.len() == ALL);
    put(&store, [7].into_iter()).await;
    let changes = changed_since(&store, all.position).await;
    assert!(!changes.is_all && has(&changes, 7), "{changes:?}");
    assert!(changes.entries.len() <= FEW, "{} records", changes.entries.len());
    let none = changed_since(&store, changes.position).await;
    assert!(!none.is_all && none.entries.len() <= FEW, "{none:?}");

    // After a crash the numbers of transactions may return.
    cluster.crash();
    cluster.up();
    let after = changed_since(&store, none.position).await;
    assert!(after.is_all && after.entries.len() == ALL);
}

/// A database that recovers from the death of one of its processes hands out again the numbers of transactions that it
/// lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovery_of_the_database_ends_positions() {
    let Some(cluster) = Cluster::start(&["autovacuum=off"]) else {
        return;
    };
    let store = filled(&cluster).await;
    let all = changed_since(&store, None).await;
    let backend = cluster.sql(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1",
    );
    let backend = Pid::from_raw(backend.trim().parse().unwrap()).unwrap();
    kill_process(backend, Signal::KILL).unwrap();
    cluster.wait_for("ready to accept");
    let after = changed_since(&store, all.position).await;
    assert!(after.is_all && after.entries.len() == ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_ends_after_the_next_ones_is_not_missed() {
    let Some(cluster) = Cluster::start(&["autovacuum=off", "max_prepared_transactions=1"]) else {
        return;
    };
    let store = filled(&cluster).await;
    let first = changed_since(&store, None).await;
    cluster.sql(
        "BEGIN; UPDATE changes.statuses SET version = version + 1, value = '{\"n\":2}' WHERE agent_id = 'a7'; \
         PREPARE TRANSACTION 'late'",
    );
    put(&store, [8, 9].into_iter()).await;
    let second = changed_since(&store, first.position).await;
    assert!(!second.is_all && has(&second, 8) && has(&second, 9));
    assert!(
        !has(&second, 7)
            || second.entries.iter().all(|(key, record)| {
                key.item() != "a7" || record.as_ref().is_some_and(|record| *record.value == *b"{\"n\":1}")
            })
    );
    cluster.sql("COMMIT PREPARED 'late'");
    let third = changed_since(&store, second.position).await;
    let late = third.entries.iter().find(|(key, _)| key.item() == "a7");
    let late = late.and_then(|(_, record)| record.as_ref()).expect("the late change");
    assert!(!third.is_all && *late.value == *b"{\"n\":2}", "{late:?}");
    assert!(third.entries.len() <= FEW, "{} records", third.entries.len());
}
