//! The store contract on a real server.

use std::sync::Arc;

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::rate_limit::SharedWindows;
use agentcfg_core::store::{BUILD, Batch, FORMAT, Key, Kind, OtherFormat, Store, Write, conformance};
use agentcfg_postgres::{ConnectError, PostgresOptions, PostgresStore, Statements};
use uuid::Uuid;

use crate::cluster::Cluster;
use crate::contract_misuse;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_with_prepared_statements() {
    let Some(cluster) = Cluster::shared() else { return };
    conformance::run(async || Arc::new(cluster.store().await) as Arc<dyn Store>).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_with_unnamed_statements() {
    let Some(cluster) = Cluster::shared() else { return };
    conformance::run(async || Arc::new(cluster.store_with(Statements::Unnamed).await) as Arc<dyn Store>).await;
}

/// Values keep the bytes that `jsonb` would normalise.
#[tokio::test]
async fn values_keep_their_bytes() {
    let Some(cluster) = Cluster::shared() else { return };
    let store = cluster.store().await;
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

/// An update takes the room of old row versions in its page, without a vacuum.
#[tokio::test]
async fn a_record_that_changes_often_takes_no_more_room() {
    // One of its own: a snapshot of another test would keep the old row versions.
    let Some(cluster) = Cluster::start(&[]) else { return };
    let schema = cluster.schema();
    let options = PostgresOptions::new(cluster.url()).schema(schema.clone());
    let store = PostgresStore::connect(&options).await.unwrap();
    let key = Key::in_workspace(WorkspaceId::new(Uuid::from_u128(1)), Kind::Agent, "writer");
    let prompt: String = include_str!("../../docs/operations.md").chars().take(5000).collect();
    for number in 0..300 {
        let value = serde_json::json!({ "number": number, "persona_prompt": prompt });
        let writes = vec![Write::Put(key.clone(), value.to_string().into_bytes())];
        store.commit(Batch { checks: vec![], writes }).await.unwrap();
    }
    let size = cluster.sql(&format!("SELECT pg_total_relation_size('{schema}.agents')"));
    let size: u64 = size.parse().unwrap();
    assert!(size <= 20 * 8192, "{size} bytes after 300 changes of 5 kB");
}

/// Many processes may start on an empty database at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_created_once() {
    let Some(cluster) = Cluster::shared() else { return };
    let schema = cluster.schema();
    let options = PostgresOptions::new(cluster.url()).schema(schema.clone()).pool_size(2);
    let starts = (0..8).map(|_| {
        let options = options.clone();
        tokio::spawn(async move { PostgresStore::connect(&options).await.map(drop) })
    });
    for start in starts.collect::<Vec<_>>() {
        start.await.unwrap().unwrap();
    }
    let made = cluster.sql(&format!("SELECT format || ' ' || made_by FROM {schema}.store"));
    assert_eq!(made, format!("{FORMAT} {BUILD}"));
}

/// A database of another format is refused and left as it is: a newer one that names its build, and an older one that
/// does not.
#[tokio::test]
async fn other_formats_are_refused() {
    let Some(cluster) = Cluster::shared() else { return };
    let schema = cluster.schema();
    let options = PostgresOptions::new(cluster.url()).schema(schema.clone());
    PostgresStore::connect(&options).await.unwrap();
    cluster.sql(&format!("DROP TABLE {schema}.agents"));
    for (change, found, build) in [
        ("UPDATE store SET format = 9, made_by = '7.1.0'", 9, Some("7.1.0")),
        ("UPDATE store SET format = 1", 1, Some("7.1.0")),
        ("ALTER TABLE store DROP COLUMN made_by", 1, None),
    ] {
        cluster.sql(&format!("SET search_path = {schema}; {change}"));
        let refused = PostgresStore::connect(&options).await.unwrap_err();
        let expected = OtherFormat {
            found,
            build: build.map(str::to_owned),
        };
        assert!(
            matches!(&refused, ConnectError::OtherFormat(other) if *other == expected),
            "{refused}"
        );
        let agents = cluster.sql(&format!("SELECT to_regclass('{schema}.agents') IS NULL"));
        assert_eq!(agents, "t", "a refused database is left as it is");
    }
}

/// What breaks the contract for callers is refused, and nothing changes.
#[tokio::test]
async fn misuse_is_refused() {
    let Some(cluster) = Cluster::shared() else { return };
    let text = contract_misuse::is_refused(&cluster.store().await).await;
    assert!(text.contains("x/Meta/a"), "{text}");
}

/// A clock that was set back leaves windows that end far ahead. The next request brings the end back within one length.
#[tokio::test]
async fn a_window_ends_one_length_from_now_at_the_latest() {
    const LENGTH: i64 = 60_000;
    let Some(cluster) = Cluster::shared() else { return };
    let schema = cluster.schema();
    let options = PostgresOptions::new(cluster.url()).schema(schema.clone());
    let store = PostgresStore::connect(&options).await.unwrap();
    let first = store.hit("subject", LENGTH).await.unwrap();
    let again = store.hit("subject", LENGTH).await.unwrap();
    assert_eq!((again.ends_at_millis, again.used), (first.ends_at_millis, 2));
    cluster.sql(&format!(
        "UPDATE {schema}.rate_windows SET ends_at = ends_at + 3 * 3600 * 1000"
    ));
    let clamped = store.hit("subject", LENGTH).await.unwrap();
    assert!(
        (1..=LENGTH).contains(&(clamped.ends_at_millis - clamped.now_millis)),
        "{clamped:?}"
    );
    assert_eq!(clamped.used, 3, "the window is shortened, not refilled");
    let after = store.hit("subject", LENGTH).await.unwrap();
    assert_eq!((after.ends_at_millis, after.used), (clamped.ends_at_millis, 4));
}
