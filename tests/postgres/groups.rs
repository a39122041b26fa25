//! Batches that share a transaction on a real server.

use std::sync::Arc;

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::rate_limit::SharedWindows;
use agentcfg_core::store::{Batch, Check, CommitError, Committed, Key, Kind, Store, StoreError, Write};
use agentcfg_postgres::{PostgresOptions, PostgresStore, Statements};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::cluster::Cluster;

fn workspace(number: u128) -> WorkspaceId {
    WorkspaceId::new(Uuid::from_u128(number))
}

fn agent(of: u128, item: &str) -> Key {
    Key::in_workspace(workspace(of), Kind::Agent, item)
}

/// Creates an agent with this text as its value.
fn create(of: u128, item: &str, value: &str) -> Batch {
    Batch {
        checks: vec![Check::Absent(agent(of, item))],
        writes: vec![
            Write::Put(agent(of, item), value.as_bytes().to_vec()),
            Write::Append {
                log: workspace(of),
                value: b"{}".to_vec(),
            },
        ],
    }
}

/// How many entries the log of the first workspace has.
async fn entries(store: &PostgresStore) -> usize {
    let head = store.get(&[Key::log_head(workspace(1))]).await.unwrap().remove(0);
    std::str::from_utf8(&head.unwrap().value).unwrap().parse().unwrap()
}

/// Commits batches concurrently; the verdicts are in their order.
async fn commit_all(store: &Arc<PostgresStore>, batches: Vec<Batch>) -> Vec<Result<Committed, CommitError>> {
    let mut commits = JoinSet::new();
    let count = batches.len();
    for (index, batch) in batches.into_iter().enumerate() {
        let store = Arc::clone(store);
        commits.spawn(async move { (index, store.commit(batch).await) });
    }
    let mut verdicts = vec![Ok(Committed { numbers: Vec::new() }); count];
    for (index, verdict) in commits.join_all().await {
        verdicts[index] = verdict;
    }
    verdicts
}

/// The version of a log's head counts the transactions that appended to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_batches_of_a_workspace_share_transactions() {
    const BATCHES: usize = 200;
    let Some(cluster) = Cluster::shared() else { return };
    for statements in [Statements::Prepared, Statements::Unnamed] {
        let store = Arc::new(cluster.store_with(statements).await);
        let head = [Key::log_head(workspace(1))];
        store.commit(create(1, "first", "1")).await.unwrap();
        let before = store.get(&head).await.unwrap().remove(0).unwrap().version;
        let batches = (0..BATCHES).map(|number| create(1, &number.to_string(), "1")).collect();
        for verdict in commit_all(&store, batches).await {
            verdict.unwrap();
        }
        let after = store.get(&head).await.unwrap().remove(0).unwrap();
        assert_eq!(&*after.value, (BATCHES + 1).to_string().as_bytes());
        let transactions = after.version - before;
        assert!(
            transactions <= BATCHES as u64 / 4,
            "{transactions} transactions of {BATCHES} batches"
        );
    }
}

/// The database parses each value. A value that it does not take fails its own batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_the_database_does_not_take_fails_its_batch_alone() {
    const BATCHES: usize = 40;
    let Some(cluster) = Cluster::shared() else { return };
    let store = Arc::new(cluster.store().await);
    let value = |number: usize| if number % 10 == 7 { "{no JSON" } else { "1" };
    let batches = (0..BATCHES).map(|number| create(1, &number.to_string(), value(number)));
    for (number, verdict) in commit_all(&store, batches.collect()).await.into_iter().enumerate() {
        match verdict {
            Ok(_) => assert_eq!(value(number), "1"),
            Err(CommitError::Store(StoreError::Unavailable(_))) => assert_ne!(value(number), "1"),
            Err(other) => panic!("{other}"),
        }
        let found = store.get(&[agent(1, &number.to_string())]).await.unwrap().remove(0);
        assert_eq!(found.is_some(), value(number) == "1");
    }
    assert_eq!(entries(&store).await, 36);
}

/// A group takes keys that must have no record for keys without a row. A deleted one has a row, and so has one with a
/// record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_has_a_row_already_fails_no_other_batch() {
    const BATCHES: usize = 40;
    let Some(cluster) = Cluster::shared() else { return };
    let store = Arc::new(cluster.store().await);
    let found = async |item: &str| store.get(&[agent(1, item)]).await.unwrap().remove(0);
    store.commit(create(1, "there", "1")).await.unwrap();
    store.commit(create(1, "deleted", "1")).await.unwrap();
    let before = found("deleted").await.unwrap().version;
    let delete = Batch {
        checks: Vec::new(),
        writes: vec![Write::Delete(agent(1, "deleted"))],
    };
    store.commit(delete).await.unwrap();
    let items = ["there", "deleted"].map(str::to_owned).into_iter();
    let items: Vec<String> = items.chain((0..BATCHES).map(|number| number.to_string())).collect();
    let batches = items.iter().map(|item| create(1, item, "2")).collect();
    for (item, verdict) in items.iter().zip(commit_all(&store, batches).await) {
        match verdict {
            Ok(_) => assert_ne!(item, "there"),
            Err(CommitError::Conflict(_)) => assert_eq!(item, "there"),
            Err(other) => panic!("{item}: {other}"),
        }
    }
    assert_eq!(&*found("there").await.unwrap().value, b"1");
    let after = found("deleted").await.unwrap();
    assert_eq!(&*after.value, b"2");
    assert!(after.version > before, "{} follows {before}", after.version);
    assert_eq!(entries(&store).await, BATCHES + 3);
}

/// Another session holds the row of a log's head: the commits of that workspace wait, those of others that come later
/// do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_workspace_does_not_delay_the_others() {
    let Some(cluster) = Cluster::shared() else { return };
    let options = PostgresOptions::new(cluster.url())
        .schema(cluster.schema())
        .pool_size(8);
    let store = Arc::new(PostgresStore::connect(&options).await.unwrap());
    store.commit(create(1, "first", "1")).await.unwrap();
    let schema = options.schema.clone();
    let holder = std::thread::spawn({
        let (cluster, schema) = (Arc::clone(&cluster), schema.clone());
        move || {
            cluster.sql(&format!(
                "BEGIN; SELECT 1 FROM {schema}.log_heads WHERE workspace_id = '{}' FOR UPDATE; SELECT pg_sleep(3); COMMIT",
                workspace(1)
            ))
        }
    });
    let held = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%{schema}.log_heads%'"
    );
    while cluster.sql(&held) == "0" {
        tokio::task::yield_now().await;
    }
    let stuck = tokio::spawn({
        let store = Arc::clone(&store);
        let batches = (0..20).map(|number| create(1, &number.to_string(), "1")).collect();
        async move { commit_all(&store, batches).await }
    });
    // A commit that waits for the lock already, because workspaces may share a transaction when all of them begin at
    // once.
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%{schema}.log_heads%'"
    );
    while cluster.sql(&waits) == "0" && !holder.is_finished() {
        tokio::task::yield_now().await;
    }
    let others = (2..40).map(|of| create(of, "a", "1")).collect();
    for verdict in commit_all(&store, others).await {
        verdict.unwrap();
    }
    assert!(!holder.is_finished(), "the others did not wait for the lock");
    holder.join().unwrap();
    for verdict in stuck.await.unwrap() {
        verdict.unwrap();
    }
}

/// Requests that are counted together get a number each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_are_counted_one_by_one() {
    const REQUESTS: u64 = 300;
    let Some(cluster) = Cluster::shared() else { return };
    let store = Arc::new(cluster.store().await);
    let mut hits = JoinSet::new();
    for number in 0..REQUESTS {
        let store = Arc::clone(&store);
        let subject = if number % 3 == 0 { "ada" } else { "ben" };
        hits.spawn(async move { (subject, store.hit(subject, 60_000).await.unwrap().used) });
    }
    let counted = hits.join_all().await;
    for (subject, expected) in [("ada", REQUESTS / 3), ("ben", REQUESTS - REQUESTS / 3)] {
        let mut used: Vec<u64> = counted.iter().filter(|hit| hit.0 == subject).map(|hit| hit.1).collect();
        used.sort_unstable();
        assert_eq!(used, (1..=expected).collect::<Vec<_>>(), "{subject}");
    }
}

/// Reads that share a statement get the records of their own keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_reads_get_their_own_records() {
    const AGENTS: usize = 60;
    let Some(cluster) = Cluster::shared() else { return };
    let store = Arc::new(cluster.store().await);
    let batches = (0..AGENTS).map(|number| create(1, &number.to_string(), &number.to_string()));
    for verdict in commit_all(&store, batches.collect()).await {
        verdict.unwrap();
    }
    let mut reads = JoinSet::new();
    for number in 0..AGENTS * 4 {
        let store = Arc::clone(&store);
        let key = |number: usize| agent(1, &number.to_string());
        let keys = [
            key(number % AGENTS),
            Key::log_head(workspace(1)),
            key(AGENTS),
            key(number / 2 % AGENTS),
        ];
        reads.spawn(async move { (number, store.get(&keys).await.unwrap()) });
    }
    for (number, found) in reads.join_all().await {
        let values: Vec<Option<String>> = found
            .into_iter()
            .map(|record| Some(String::from_utf8(record?.value.to_vec()).unwrap()))
            .collect();
        let expected = [
            Some((number % AGENTS).to_string()),
            Some(AGENTS.to_string()),
            None,
            Some((number / 2 % AGENTS).to_string()),
        ];
        assert_eq!(values, expected);
    }
}

/// PostgreSQL would plan them at each execution, because the arrays of a small group are shorter than those that it
/// assumes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements_are_planned_once_on_a_connection() {
    const ROUNDS: u128 = 60;
    let Some(cluster) = Cluster::start(&["fsync=off", "log_planner_stats=on"]) else {
        return;
    };
    let store = Arc::new(cluster.store().await);
    let checked = agent(0, "checked");
    store.commit(create(0, "checked", "1")).await.unwrap();
    let version = store.get(std::slice::from_ref(&checked)).await.unwrap()[0]
        .as_ref()
        .unwrap()
        .version;
    let rounds = async |rounds: std::ops::Range<u128>| {
        for round in rounds {
            let batch = |of| {
                let mut batch = create(of, &format!("agent-{round}"), "1");
                batch.checks.push(Check::Version(checked.clone(), version));
                batch
            };
            for verdict in commit_all(&store, (0..6).map(batch).collect()).await {
                verdict.unwrap();
            }
        }
    };
    let plannings = || {
        let log = cluster.log();
        log.iter().filter(|line| line.contains("PLANNER STATISTICS")).count() as u128
    };
    rounds(0..ROUNDS).await;
    assert!(plannings() > 0, "the server logs when it plans");
    rounds(ROUNDS..2 * ROUNDS).await;
    let again = plannings();
    assert!(
        again < ROUNDS / 2,
        "{again} plannings in {ROUNDS} rounds of several statements"
    );
}

/// A statement that reads a whole table has a cost for which the database would compile it to machine code at each
/// execution.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_is_compiled_at_each_execution() {
    // A session that is about to compile looks for the compiler, and logs that there is none.
    let settings = ["fsync=off", "jit=on", "jit_provider=absent", "log_min_messages=debug1"];
    let Some(cluster) = Cluster::start(&settings) else {
        return;
    };
    let looked_for_compiler = |text: &str| cluster.log().iter().any(|line| line.contains(text));
    let store = cluster.store().await;
    store.sweep().await.unwrap();
    assert!(!looked_for_compiler("disabling JIT"));
    // The server logs it for a session that compiles.
    cluster.sql("SET jit_above_cost = 0; SELECT sum(n) FROM generate_series(1, 10) AS n");
    assert!(looked_for_compiler("disabling JIT"));
}
