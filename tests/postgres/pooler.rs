//! PgBouncer in transaction mode between the servers and the database.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use agentcfg_core::store::{Key, Kind, Store, conformance};
use agentcfg_postgres::{PostgresOptions, PostgresStore, Statements};
use agentcfg_tests::harness::free_address;
use tempfile::TempDir;

use crate::cluster::{Cluster, directory, hand_over, missing, unprivileged};
use crate::server::{Server, token};

struct Pooler {
    process: Child,
    place: TempDir,
    port: u16,
}

impl Pooler {
    fn start(cluster: &Cluster) -> Option<Self> {
        let places = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"];
        let Some(program) = places.iter().map(PathBuf::from).find(|path| path.exists()) else {
            missing("PgBouncer", "apt-get install pgbouncer");
            return None;
        };
        let (place, port) = (directory(), free_address().port());
        let users = place.path().join("users.txt");
        fs::write(&users, "\"postgres\" \"\"\n").unwrap();
        let settings = format!(
            "[databases]\n* = host={socket} port={from} user=postgres\n[pgbouncer]\nlisten_port={port}\nlisten_addr=\n\
             unix_socket_dir={own}\nauth_type=trust\nauth_file={users}\npool_mode=transaction\ndefault_pool_size=4\n\
             max_client_conn=300\n",
            socket = cluster.socket().display(),
            from = cluster.port(),
            own = place.path().display(),
            users = users.display()
        );
        let file = place.path().join("pgbouncer.ini");
        fs::write(&file, settings).unwrap();
        hand_over(place.path());
        let mut process = unprivileged(Path::new(&program))
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let seen: Vec<String> = log.by_ref().take_while(|line| !line.contains("process up")).collect();
        // The pooler goes on to log, and its pipe must be drained.
        let rest = std::thread::spawn(move || log.count());
        assert!(!rest.is_finished(), "PgBouncer has ended: {seen:#?}");
        Some(Self { process, place, port })
    }

    /// Begins a transaction, which keeps one of the pooler's sessions until its `psql` ends.
    fn keep_session(&self, cluster: &Cluster) -> KeptSession {
        let mut psql = Command::new(cluster.binary("psql"))
            .args([
                "--no-psqlrc",
                "--quiet",
                "--tuples-only",
                "--dbname",
                &self.url("postgres"),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        psql.stdin
            .as_mut()
            .unwrap()
            .write_all(b"BEGIN; SELECT 'begun';\n")
            .unwrap();
        let mut lines = BufReader::new(psql.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("begun")));
        KeptSession(psql)
    }

    fn url(&self, database: &str) -> String {
        let socket = self.place.path().display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{socket}:{}/{database}", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct KeptSession(Child);

impl Drop for KeptSession {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_through_a_transaction_pooler() {
    let Some(cluster) = Cluster::shared() else { return };
    let Some(pooler) = Pooler::start(&cluster) else { return };
    conformance::run(async || {
        let options = PostgresOptions::new(pooler.url("postgres"))
            .schema(cluster.schema())
            .statements(Statements::Unnamed);
        Arc::new(PostgresStore::connect(&options).await.unwrap()) as Arc<dyn Store>
    })
    .await;
}

/// Three servers with far more client connections than the pooler has to the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_work_through_a_transaction_pooler() {
    let Some(cluster) = Cluster::shared() else { return };
    let Some(pooler) = Pooler::start(&cluster) else { return };
    let database = cluster.database();
    let url = pooler.url(database.rsplit_once('/').unwrap().1);
    let settings = [("database_statements", "unnamed"), ("database_pool_size", "20")];
    let servers = [0; 3].map(|_| Server::with(&url, &settings));
    let ada = token("ada");
    let workspace = servers[0].api(&ada).workspace().await;
    servers[0].api(&token("root")).set_plan(&workspace, "pro").await;
    let (_, key) = servers[0].api(&ada).key(&workspace, "write", 1_000_000).await;
    let mut set = tokio::task::JoinSet::new();
    for i in 0..60 {
        let (api, workspace) = (servers[i % 3].api(&key), workspace.clone());
        set.spawn(async move { api.create(&workspace, &format!("agent-{i}")).await.status });
    }
    let mut statuses = set.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![201; 25], vec![422; 35]].concat());
    let listed = servers[2].api(&key).list(&workspace).await.expect(200);
    assert_eq!(listed.as_array().unwrap().len(), 25);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements_behind_a_transaction_pooler_fail_with_the_name_of_the_setting() {
    let Some(cluster) = Cluster::shared() else { return };
    let Some(pooler) = Pooler::start(&cluster) else { return };
    let options = PostgresOptions::new(pooler.url("postgres")).schema(cluster.schema());
    let said = match PostgresStore::connect(&options).await {
        Ok(store) => first_failure(Arc::new(store), || pooler.keep_session(&cluster)).await,
        Err(error) => error.to_string(),
    };
    assert!(said.contains("set database_statements to unnamed"), "{said}");
}

/// The first error of many reads at once, while more and more of the pooler's four sessions are kept from them: a
/// connection of the store then gets another session than the one in which it has prepared its statement.
async fn first_failure(store: Arc<dyn Store>, keep_session: impl Fn() -> KeptSession) -> String {
    let mut kept = Vec::new();
    for _ in 0..50 {
        let mut reads = tokio::task::JoinSet::new();
        for number in 0..32 {
            let store = Arc::clone(&store);
            let key = Key::global("reads", Kind::Membership, format!("item-{number}"));
            reads.spawn(async move { store.get(&[key]).await });
        }
        let failed = reads.join_all().await.into_iter().find_map(Result::err);
        if let Some(error) = failed {
            return error.to_string();
        }
        if kept.len() < 3 {
            kept.push(keep_session());
        }
    }
    panic!("no session lacked a statement");
}
