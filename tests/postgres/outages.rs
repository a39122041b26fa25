//! Outages: the database crashes, restarts or fails over while the servers keep running.

use std::time::Duration;

use agentcfg_tests::harness::{certificate, free_address};
use rustix::process::Signal;
use tokio::time::Instant;

use crate::cluster::{Cluster, directory, hand_over};
use crate::load::Load;
use crate::nemesis::{processes, send};
use crate::server::{Server, token};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_crash_loses_no_acknowledged_change() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let servers = Server::three(&cluster.database());
    let load = Load::start(&servers).await;
    for _ in 0..2 {
        load.progress(100).await;
        cluster.crash();
        let refused = servers[0].api(&token("ada")).get("/api/workspaces").await;
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
        let ready = servers[0].api("").get("/readyz").await;
        assert_eq!(ready.status, 503);
        cluster.up();
    }
    load.progress(100).await;
    let ready = servers[0].api("").get("/readyz").await;
    assert_eq!(ready.status, 200);
    assert!(load.verify(&servers).await > 0, "the outage should have been noticed");
}

/// A database whose processes are stopped accepts connections and answers nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_database_fails_requests_soon_and_serves_again() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let server = Server::start(&cluster.database());
    let ada = token("ada");
    let workspace = server.api(&ada).workspace().await;
    let (_, key) = server.api(&ada).key(&workspace, "write", 100_000).await;
    server.api(&key).list(&workspace).await.expect(200);
    let all = processes(&cluster);
    send(&all, Signal::STOP);
    for _ in 0..2 {
        let begin = Instant::now();
        assert_eq!(server.api("").get("/readyz").await.status, 503);
        assert!(begin.elapsed() < Duration::from_millis(1500), "{:?}", begin.elapsed());
        let begin = Instant::now();
        let (read, change) = tokio::join!(async { server.api(&key).list(&workspace).await }, async {
            server.api(&key).create(&workspace, "late").await
        },);
        assert_eq!((read.status, change.status), (503, 503));
        assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    }
    send(&all, Signal::CONT);
    let again = async { while server.api(&key).list(&workspace).await.status != 200 {} };
    tokio::time::timeout(Duration::from_secs(30), again).await.unwrap();
    assert_eq!(server.api("").get("/readyz").await.status, 200);
}

/// The operations of a request, and of many at once, do not each wait for a database that has stopped to answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_to_a_frozen_database_fail_within_two_seconds() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let url = cluster.database();
    let server = Server::start(&url);
    let ada = server.api(&token("ada"));
    let workspace = ada.workspace().await;
    ada.list(&workspace).await.expect(200);
    let all = processes(&cluster);
    send(&all, Signal::STOP);
    // One alone, and many at once; a busy machine adds up to a second.
    let mut answers = Vec::new();
    for clients in [1, 40, 1] {
        let mut requests = tokio::task::JoinSet::new();
        for _ in 0..clients {
            let (ada, workspace) = (ada.clone(), workspace.clone());
            requests.spawn(async move {
                let begin = Instant::now();
                (ada.list(&workspace).await.status, begin.elapsed())
            });
        }
        answers.extend(requests.join_all().await.into_iter().map(|answer| (clients, answer)));
    }
    let begin = Instant::now();
    let refused = tokio::task::spawn_blocking(move || Server::refused(&url, &[]));
    let (refused, took) = (refused.await, begin.elapsed());
    // A failure must not leave the processes stopped, so all is checked after they go on.
    send(&all, Signal::CONT);
    assert!(took < Duration::from_secs(8), "{took:?}");
    let refused = refused.unwrap();
    assert!(refused.contains("the database did not answer in time"), "{refused}");
    for (clients, (status, took)) in answers {
        assert_eq!(status, 503);
        assert!(took < Duration::from_secs(3), "{clients} clients: {took:?}");
    }
    let again = async { while ada.list(&workspace).await.status != 200 {} };
    tokio::time::timeout(Duration::from_secs(5), again).await.unwrap();
    for _ in 0..20 {
        ada.list(&workspace).await.expect(200);
    }
}

/// A server that waits for its database says why, and does not repeat it all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_waits_for_its_database_names_the_cause_once() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let (base, _) = url.rsplit_once('/').unwrap();
    let refused = Server::refused(&format!("{base}/missing_database"), &[("database_wait", "2")]);
    let waiting: Vec<_> = refused.lines().filter(|line| line.contains("waiting for")).collect();
    assert!(
        matches!(waiting[..], [one] if one.contains("database \"missing_database\" does not exist")),
        "{refused}"
    );
}

/// Servers that create the tables at the same time do not log that they exist.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_start_at_once_on_an_empty_database_log_no_notices() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let starts = [url.clone(), url.clone(), url].map(|url| tokio::task::spawn_blocking(move || Server::start(&url)));
    for start in starts {
        let server = start.await.unwrap();
        let seen = server.seen_before("using the database");
        assert!(!seen.iter().any(|line| line.contains("NOTICE")), "{seen:#?}");
    }
}

/// Failover to a synchronous standby while the servers write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_synchronous_standby_has_every_acknowledged_change_after_a_failover() {
    let Some(primary) = Cluster::start(&[]) else { return };
    let standby = primary.standby(&[]);
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
    primary.sql("SELECT pg_reload_conf()");
    primary.wait_for("is now a synchronous standby");
    primary.sql("CREATE DATABASE shared");
    let url = format!(
        "postgres://postgres@{},{}/shared?target_session_attrs=read-write",
        primary.host(),
        standby.host()
    );
    let servers = Server::three(&url);
    let load = Load::start(&servers).await;
    load.progress(100).await;
    primary.crash();
    standby.sql("SELECT pg_promote()");
    load.progress(100).await;
    assert!(load.verify(&servers).await > 0, "the outage should have been noticed");
}

/// A start without its database fails with the way out, unless it is told to wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_without_its_database_says_so_or_waits() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let url = cluster.database();
    cluster.crash();
    let refused = Server::refused(&url, &[]);
    assert!(
        refused.contains("check database_url, or let `serve --wait-for SECONDS` wait longer for the database"),
        "{refused}"
    );
    let waiting = tokio::task::spawn_blocking(move || Server::with(&url, &[("database_wait", "60")]));
    cluster.up();
    let server = waiting.await.unwrap();
    server.api(&token("ada")).workspace().await;
}

/// While the shared rate window is unreachable, each server counts on its own and logs it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_shared_window_each_server_counts_alone() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let metrics = free_address().to_string();
    let server = Server::with(&url, &[("metrics_listen", &metrics)]);
    let other = Server::start(&url);
    let ada = token("ada");
    let workspace = server.api(&ada).workspace().await;
    let (_, key) = server.api(&ada).key(&workspace, "read", 3).await;
    let database = url.rsplit_once('/').unwrap().1;
    cluster.sql_in(database, "ALTER TABLE agentcfg.rate_windows RENAME TO away");
    for server in [&server, &other] {
        for _ in 0..3 {
            server.api(&key).list(&workspace).await.expect(200);
        }
        server.api(&key).list(&workspace).await.expect(429);
        server.wait_for("counted by this instance alone");
    }
    let scrape = async || {
        let mut api = server.api("");
        api.address = metrics.parse().unwrap();
        let text = api.text("/metrics").await;
        let number = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().parse::<u64>().unwrap()
        };
        (
            number("agentcfg_rate_limit_alone "),
            number("agentcfg_rate_limit_counted_alone_total "),
        )
    };
    let (alone, counted) = scrape().await;
    assert!(alone == 1 && counted >= 4, "{alone} {counted}");
    cluster.sql_in(database, "ALTER TABLE agentcfg.away RENAME TO rate_windows");
    // The next attempt is at most a second away.
    let again = async { while server.api(&key).list(&workspace).await.status == 429 {} };
    tokio::time::timeout(Duration::from_secs(30), again).await.unwrap();
    server.wait_for("together with the other instances again");
    assert_eq!(scrape().await.0, 0);
}

/// A pool of one connection that waits for a lock: the metrics say that it is in use, and that others wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_show_how_the_pool_is_used() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let metrics = free_address().to_string();
    let server = Server::with(&url, &[("metrics_listen", &metrics), ("database_pool_size", "1")]);
    let mut probe = server.api("");
    probe.address = metrics.parse().unwrap();
    let text = probe.text("/metrics").await;
    let observability = include_str!("../observability/test_observability.py");
    let (_, listed) = observability.split_once("ON_POSTGRESQL = (").unwrap();
    let (listed, _) = listed.split_once(')').unwrap();
    let names: Vec<&str> = listed.split('"').skip(1).step_by(2).collect();
    assert_eq!(names.len(), 4);
    for name in names {
        let sample = format!("{name} ");
        assert!(text.lines().any(|line| line.starts_with(&sample)), "{name}: {text}");
    }
    assert!(text.contains("agentcfg_database_connections_max 1\n"), "{text}");

    let ada = server.api(&token("ada"));
    let workspace = ada.workspace().await;
    let database = url.rsplit_once('/').unwrap().1.to_owned();
    let lock = std::thread::spawn(move || {
        let sql = "BEGIN; LOCK TABLE agentcfg.agents IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(1.5); COMMIT";
        cluster.sql_in(&database, sql);
    });
    let is_busy = async {
        loop {
            let text = probe.text("/metrics").await;
            let waits = !text.contains("agentcfg_database_connections_waiting 0\n");
            if text.contains("agentcfg_database_connections_used 1\n") && waits {
                return;
            }
        }
    };
    let changes = async {
        let mut number = 0;
        loop {
            number += 1;
            let name = format!("agent-{number}");
            tokio::join!(ada.create(&workspace, &name), ada.list(&workspace));
        }
    };
    tokio::select! {
        () = is_busy => {}
        () = changes => {}
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("the metrics show no use of the pool"),
    }
    lock.join().unwrap();
}

/// TLS to a server whose certificate a private authority has signed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_is_verified_when_it_is_required() {
    let Some(certificates) = certificates() else { return };
    let place = certificates.path();
    let setting = |name: &str, file: &str| format!("{name}={}", place.join(file).display());
    let (certificate, key) = (
        setting("ssl_cert_file", "server.crt"),
        setting("ssl_key_file", "server.key"),
    );
    let Some(cluster) = Cluster::start(&["listen_addresses=127.0.0.1", "ssl=on", &certificate, &key]) else {
        return;
    };
    let (trusted, foreign) = (place.join("server.crt"), place.join("other.crt"));
    let connect = async |host: &str, query: String| {
        use agentcfg_postgres::{PostgresOptions, PostgresStore};
        let url = format!("postgres://postgres@{host}:{}/postgres?{query}", cluster.port());
        PostgresStore::connect(&PostgresOptions::new(url)).await.map(drop)
    };
    let in_use = || cluster.sql("SELECT count(*) FROM pg_stat_ssl WHERE ssl AND pid <> pg_backend_pid()");
    for query in [
        format!("sslmode=verify-full&sslrootcert={}", trusted.display()),
        format!("sslmode=require&sslrootcert={}", trusted.display()),
        "sslmode=prefer".to_owned(),
        "sslmode=disable".to_owned(),
    ] {
        connect("localhost", query.clone())
            .await
            .unwrap_or_else(|error| panic!("{query}: {error}"));
    }
    for (host, query) in [
        (
            "localhost",
            format!("sslmode=require&sslrootcert={}", foreign.display()),
        ),
        ("localhost", "sslmode=require".to_owned()),
        (
            "127.0.0.1",
            format!("sslmode=verify-full&sslrootcert={}", trusted.display()),
        ),
    ] {
        let refused = connect(host, query.clone()).await;
        assert!(refused.is_err(), "{host} {query}");
    }
    // The connections of an open store are encrypted.
    let options = agentcfg_postgres::PostgresOptions::new(format!(
        "postgres://postgres@localhost:{}/postgres?sslmode=verify-full&sslrootcert={}",
        cluster.port(),
        trusted.display()
    ));
    let store = agentcfg_postgres::PostgresStore::connect(&options).await.unwrap();
    assert_ne!(in_use(), "0");
    drop(store);
}

/// A server that wants to know by a certificate who its client is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_proves_itself_with_its_certificate() {
    let Some(certificates) = certificates() else { return };
    let file = |name: &str| certificates.path().join(name).display().to_string();
    let setting = |name: &str, of: &str| format!("{name}={}", file(of));
    let settings = [
        "listen_addresses=127.0.0.1".to_owned(),
        "ssl=on".to_owned(),
        setting("ssl_cert_file", "server.crt"),
        setting("ssl_key_file", "server.key"),
        setting("ssl_ca_file", "authority.crt"),
    ];
    let Some(cluster) = Cluster::start(&settings.each_ref().map(String::as_str)) else {
        return;
    };
    let rules = cluster.data().join("pg_hba.conf");
    std::fs::write(rules, "local all all trust\nhostssl all all all cert\n").unwrap();
    cluster.sql("SELECT pg_reload_conf()");
    let connect = async |of_client: String| {
        use agentcfg_postgres::{PostgresOptions, PostgresStore};
        let of_server = format!("sslmode=verify-full&sslrootcert={}", file("server.crt"));
        let url = format!(
            "postgres://postgres@localhost:{}/postgres?{of_server}{of_client}",
            cluster.port()
        );
        PostgresStore::connect(&PostgresOptions::new(url)).await.map(drop)
    };
    let pair = |certificate: &str, key: &str| format!("&sslcert={}&sslkey={}", file(certificate), file(key));
    connect(pair("postgres.crt", "postgres.key")).await.unwrap();
    for (of_client, said) in [
        (String::new(), "valid client certificate"),
        // Its common name is no user of the database.
        (
            pair("stranger.crt", "stranger.key"),
            "certificate authentication failed",
        ),
        (pair("postgres.crt", "stranger.key"), "does not fit sslkey"),
        (pair("missing.crt", "postgres.key"), "sslcert"),
        (pair("postgres.crt", "postgres.crt"), "sslkey"),
    ] {
        let error = connect(of_client.clone()).await.unwrap_err().to_string();
        assert!(error.contains(said), "{of_client}: {error}");
    }
}

/// A self-signed certificate for `localhost`, and another one, and an authority with those of two clients; `None`
/// without the program `openssl`.
fn certificates() -> Option<tempfile::TempDir> {
    let place = directory();
    for name in ["server", "other"] {
        let extensions = ["subjectAltName=DNS:localhost", "basicConstraints=critical,CA:FALSE"];
        if !certificate(place.path(), name, None, &extensions) {
            crate::cluster::missing("openssl", "apt-get install openssl");
            return None;
        }
    }
    certificate(place.path(), "authority", None, &[]);
    for client in ["postgres", "stranger"] {
        certificate(
            place.path(),
            client,
            Some("authority"),
            &["basicConstraints=critical,CA:FALSE"],
        );
    }
    hand_over(place.path());
    Some(place)
}
