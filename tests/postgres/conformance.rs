//! The store contract on a real server.

use std::sync::Arc;

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::postgres::{ConnectError, PostgresOptions, PostgresStore, Statements};
use agentcfg_core::store::{Batch, Key, Kind, Store, Write, conformance};
use uuid::Uuid;

use crate::cluster::Cluster;

pub async fn store(cluster: &Cluster, statements: Statements) -> PostgresStore {
    let options = PostgresOptions {
        schema: cluster.schema(),
        statements,
        pool_size: 8,
        ..PostgresOptions::new(cluster.url())
    };
    PostgresStore::connect(&options).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_with_prepared_statements() {
    let Some(cluster) = Cluster::shared() else { return };
    conformance::run(async || Arc::new(store(&cluster, Statements::Prepared).await) as Arc<dyn Store>).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_with_unnamed_statements() {
    let Some(cluster) = Cluster::shared() else { return };
    conformance::run(async || Arc::new(store(&cluster, Statements::Unnamed).await) as Arc<dyn Store>).await;
}

/// Values keep the bytes that `jsonb` would normalise.
#[tokio::test]
async fn values_keep_their_bytes() {
    let Some(cluster) = Cluster::shared() else { return };
    let store = store(&cluster, Statements::Prepared).await;
    let key = Key::in_workspace(WorkspaceId::new(Uuid::from_u128(1)), Kind::Agent, "a");
    for value in [
        "70",
        "0.7",
        "1.0",
        "1e2",
        "1e16",
        "-0.0",
        "1e300",
        "5e-324",
        "18446744073709551615",
        "-9223372036854775808",
        r#"{"z":1,"a":[2,2,1],"b":{"y":null,"x":true}}"#,
        r#""\u007f \\ \" ä 😀 \t""#,
    ] {
        let writes = vec![Write::Put(key.clone(), value.as_bytes().to_vec())];
        store.commit(Batch { checks: vec![], writes }).await.unwrap();
        let found = store.get(std::slice::from_ref(&key)).await.unwrap().remove(0).unwrap();
        assert_eq!(std::str::from_utf8(&found.value).unwrap(), value);
    }
}

/// Many processes may start on an empty database at once; a newer format is refused and left unchanged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_created_once_and_newer_formats_are_refused() {
    let Some(cluster) = Cluster::shared() else { return };
    let schema = cluster.schema();
    let options = PostgresOptions {
        schema: schema.clone(),
        pool_size: 2,
        ..PostgresOptions::new(cluster.url())
    };
    let starts = (0..8).map(|_| {
        let options = options.clone();
        tokio::spawn(async move { PostgresStore::connect(&options).await.map(drop) })
    });
    for start in starts.collect::<Vec<_>>() {
        start.await.unwrap().unwrap();
    }
    assert_eq!(cluster.sql(&format!("SELECT count(*) FROM {schema}.store")), "1");
    cluster.sql(&format!(
        "UPDATE {schema}.store SET format = 9; DROP TABLE {schema}.agents"
    ));
    let refused = PostgresStore::connect(&options).await.unwrap_err();
    assert!(
        matches!(refused, ConnectError::TooNew { found: 9, supported: 1 }),
        "{refused}"
    );
    let agents = cluster.sql(&format!("SELECT to_regclass('{schema}.agents') IS NULL"));
    assert_eq!(agents, "t", "a refused database is left as it is");
}
