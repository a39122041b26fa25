//! Three servers on one database keep the guarantees of a single one.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::server::{Answer, Server, token};

fn statuses(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

/// Sends all requests concurrently.
async fn at_once(requests: impl IntoIterator<Item = impl Future<Output = Answer> + Send + 'static>) -> Vec<Answer> {
    let mut set = JoinSet::new();
    for request in requests {
        set.spawn(request);
    }
    set.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_takes_the_last_slot_and_an_agent_id() {
    let Some(cluster) = Cluster::shared() else { return };
    let servers = Server::three(&cluster.database());
    let ada = token("ada");
    for round in 0..5 {
        let workspace = servers[0].api(&ada).workspace().await;
        for agent in ["one", "two"] {
            servers[1].api(&ada).create(&workspace, agent).await.expect(201);
        }
        let creates = (0..24).map(|i| {
            let (api, workspace) = (servers[i % 3].api(&ada), workspace.clone());
            async move { api.create(&workspace, &format!("agent-{i}")).await }
        });
        let answers = at_once(creates).await;
        assert_eq!(
            (statuses(&answers, 201), statuses(&answers, 422)),
            (1, 23),
            "round {round}"
        );
        for server in &servers {
            let listed = server.api(&ada).list(&workspace).await.expect(200);
            assert_eq!(listed.as_array().unwrap().len(), 3, "every server sees the slot taken");
        }

        let workspace = servers[0].api(&ada).workspace().await;
        let creates = (0..24).map(|i| {
            let (api, workspace) = (servers[i % 3].api(&ada), workspace.clone());
            async move { api.create(&workspace, "same").await }
        });
        let answers = at_once(creates).await;
        assert_eq!(
            (statuses(&answers, 201), statuses(&answers, 409)),
            (1, 23),
            "round {round}"
        );
    }
}

/// Once a revocation is acknowledged, no server accepts the key, although each has cached it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_refused_everywhere_once_its_revocation_is_acknowledged() {
    let Some(cluster) = Cluster::shared() else { return };
    let servers = Server::three(&cluster.database());
    let ada = token("ada");
    let workspace = servers[0].api(&ada).workspace().await;
    let mut asked = 0;
    for round in 0..20 {
        let (id, key) = servers[round % 3].api(&ada).key(&workspace, "write", 1_000_000).await;
        // Every server has cached the key, and other requests use it continuously.
        for server in &servers {
            for _ in 0..2 {
                server.api(&key).list(&workspace).await.expect(200);
            }
        }
        let busy = servers.iter().map(|server| {
            let (api, workspace) = (server.api(&key), workspace.clone());
            tokio::spawn(async move { while api.list(&workspace).await.status == 200 {} })
        });
        let busy: Vec<_> = busy.collect();
        let path = format!("/api/api-keys?key_id={id}");
        servers[(round + 1) % 3].api(&ada).delete(&path).await.expect(200);
        let uses = (0..12).map(|i| {
            let (api, workspace) = (servers[i % 3].api(&key), workspace.clone());
            async move {
                match i % 2 {
                    0 => api.list(&workspace).await,
                    _ => api.create(&workspace, &format!("late-{i}")).await,
                }
            }
        });
        let answers = at_once(uses).await;
        asked += answers.len();
        assert_eq!(statuses(&answers, 401), answers.len(), "round {round}");
        for task in busy {
            task.await.unwrap();
        }
    }
    println!("{asked} requests after a revocation's answer, 0 accepted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_servers_share_one_rate_window() {
    let Some(cluster) = Cluster::shared() else { return };
    let servers = Server::three(&cluster.database());
    let ada = token("ada");
    let workspace = servers[0].api(&ada).workspace().await;
    for cold in [true, false] {
        let (_, key) = servers[0].api(&ada).key(&workspace, "read", 100).await;
        let mut before = 0;
        if !cold {
            // Each server knows the key, so the count and the check of the key run concurrently.
            for server in &servers {
                server.api(&key).list(&workspace).await.expect(200);
                before += 1;
            }
        }
        let uses = (0..150).map(|i| {
            let (api, workspace) = (servers[i % 3].api(&key), workspace.clone());
            async move { api.list(&workspace).await }
        });
        let answers = at_once(uses).await;
        let (good, over) = (statuses(&answers, 200), statuses(&answers, 429));
        assert_eq!((good + before, over), (100, 50 + before), "cold: {cold}");
        let mut left: Vec<u32> = answers
            .iter()
            .filter(|answer| answer.status == 200)
            .map(|answer| answer.header("x-ratelimit-remaining").unwrap().parse().unwrap())
            .collect();
        left.sort_unstable();
        let expected: Vec<u32> = (0..u32::try_from(good).unwrap()).collect();
        assert_eq!(left, expected, "each request has a unique number");
        let resets: std::collections::BTreeSet<_> = answers
            .iter()
            .map(|answer| answer.header("x-ratelimit-reset").unwrap())
            .collect();
        assert_eq!(resets.len(), 1, "one window for all: {resets:?}");
    }
}

/// Compare-and-set: of all updates with the same tag one succeeds, and every server sees it at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_update_is_lost_and_the_audit_log_has_them_in_order() {
    let Some(cluster) = Cluster::shared() else { return };
    let servers = Server::three(&cluster.database());
    let ada = token("ada");
    let workspace = servers[0].api(&ada).workspace().await;
    let created = servers[0].api(&ada).create(&workspace, "writer").await;
    let mut tag = created.header("etag").unwrap().to_owned();
    let path = format!("/api/agents/configs?agent_id=writer&workspace_id={workspace}");
    let mut changed = 0;
    for round in 0..8 {
        let patches = (0..12).map(|i| {
            let (api, path) = (servers[i % 3].api(&ada), path.clone());
            let head = format!("if-match: {tag}\r\n");
            let body = json!({"display_name": format!("round {round} by {i}")});
            async move { api.send("PATCH", &path, &head, Some(body)).await.unwrap() }
        });
        let answers = at_once(patches).await;
        assert_eq!(
            (statuses(&answers, 200), statuses(&answers, 412)),
            (1, 11),
            "round {round}"
        );
        let winner = answers.iter().find(|answer| answer.status == 200).unwrap();
        tag = winner.header("etag").unwrap().to_owned();
        changed += 1;
        for server in &servers {
            let listed = server.api(&ada).list(&workspace).await.expect(200);
            assert_eq!(listed[0], winner.body, "every server shows the change");
        }
    }
    // Without a condition all updates succeed, one after another.
    let patches = (0..30).map(|i| {
        let (api, path) = (servers[i % 3].api(&ada), path.clone());
        async move { api.patch(&path, json!({"display_name": format!("free {i}")})).await }
    });
    let answers = at_once(patches).await;
    assert_eq!(statuses(&answers, 200), 30);
    changed += 30;

    let path = format!("/api/audit-log?workspace_id={workspace}&limit=1000");
    let mut log = servers[2]
        .api(&ada)
        .get(&path)
        .await
        .expect(200)
        .as_array()
        .unwrap()
        .clone();
    log.reverse();
    let updates: Vec<&Value> = log.iter().filter(|entry| entry["action"] == "agent.updated").collect();
    assert_eq!(updates.len(), changed);
    let mut name = json!("writer");
    for entry in updates {
        let change = &entry["changes"]["display_name"];
        assert_eq!(change["from"], name, "each change goes on from the one before it");
        name = change["to"].clone();
    }
    let listed = servers[1].api(&ada).list(&workspace).await.expect(200);
    assert_eq!(listed[0]["display_name"], name);
}

/// A start with missing or invalid settings names them.
#[test]
fn a_start_with_invalid_settings_names_them() {
    let run = |settings: &[(&str, &str)], arguments: &[&str]| {
        let output = crate::server::command()
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .envs(settings.iter().copied())
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let url = ("AGENTCFG_DATABASE_URL", "postgres://u:hunter2@127.0.0.1:9/x");
    let secret = ("AGENTCFG_SESSION_SECRET", crate::server::SECRET);
    let said = run(&[url], &[]);
    assert!(said.contains("AGENTCFG_SESSION_SECRET_FILE"), "{said}");
    let said = run(&[url, secret], &["--wait-for", "1"]);
    assert!(
        said.contains("cannot reach the database") && said.contains("--wait-for"),
        "{said}"
    );
    assert!(!said.contains("hunter2"), "{said}");
}

/// A start with `--wait-for` waits for a database that starts later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wait_for_delays_the_start_until_the_database_is_up() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let url = cluster.database();
    cluster.shut_down();
    let starting = std::thread::spawn({
        let url = url.clone();
        move || Server::with(&url, &[("database_wait", "60")])
    });
    cluster.up();
    let server = starting.join().unwrap();
    server.api(&token("ada")).workspace().await;
}
