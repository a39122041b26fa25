//! Browser sessions, login links and rotations on several servers.

use agentcfg_tests::harness::database_settings;
use serde_json::json;

use crate::cluster::Cluster;
use crate::server::{Answer, SECRET, Server, command, token};

fn cookie(set: &Answer) -> String {
    let field = set.header("set-cookie").unwrap_or_else(|| panic!("{set:?}"));
    field.split(';').next().unwrap().to_owned()
}

async fn whoami(server: &Server, cookie: &str) -> Answer {
    let head = format!("cookie: {cookie}\r\n");
    server.api("").send("GET", "/api/whoami", &head, None).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_one_on_all_servers_until_it_is_closed_on_one() {
    let Some(cluster) = Cluster::shared() else { return };
    let servers = Server::three(&cluster.database());
    for round in 0..5 {
        let set = servers[round % 3]
            .api(&token("ada"))
            .send("POST", "/api/sessions", "", None)
            .await
            .unwrap();
        assert_eq!(set.status, 204, "{set:?}");
        let cookie = cookie(&set);
        for server in &servers {
            assert_eq!(whoami(server, &cookie).await.expect(200)["id"], "ada");
        }
        let head = format!("cookie: {cookie}\r\nsec-fetch-site: same-origin\r\n");
        let closing = servers[(round + 1) % 3].api("");
        let closed = closing.send("DELETE", "/api/sessions", &head, None).await.unwrap();
        assert_eq!(closed.status, 204, "{closed:?}");
        for server in &servers {
            whoami(server, &cookie).await.expect(401);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_from_the_database_works_once_on_any_server() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let servers = Server::three(&url);
    let made = command()
        .args(["login-link", "--user", "ada"])
        .envs(database_settings(&url))
        .env("AGENTCFG_SESSION_SECRET", SECRET)
        .env("AGENTCFG_PUBLIC_URL", "https://agents.example.com")
        .output()
        .unwrap();
    let link = String::from_utf8_lossy(&made.stdout);
    let code = link
        .trim()
        .strip_prefix("https://agents.example.com/#login=")
        .unwrap_or_else(|| panic!("{made:?}"));
    let attempts = servers.iter().map(|server| {
        let (api, body) = (server.api(""), json!({ "code": code }));
        tokio::spawn(async move { api.post("/api/sessions", body).await })
    });
    let mut statuses = Vec::new();
    for attempt in attempts.collect::<Vec<_>>() {
        statuses.push(attempt.await.unwrap().status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 401, 401]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotated_key_is_refused_everywhere_at_once() {
    let Some(cluster) = Cluster::shared() else { return };
    let servers = Server::three(&cluster.database());
    let ada = token("ada");
    let workspace = servers[0].api(&ada).workspace().await;
    for round in 0..5 {
        let (id, old) = servers[round % 3].api(&ada).key(&workspace, "read", 1_000_000).await;
        for server in &servers {
            server.api(&old).list(&workspace).await.expect(200);
        }
        let path = format!("/api/api-keys/rotate?key_id={id}");
        let rotated = servers[(round + 1) % 3]
            .api(&ada)
            .post(&path, json!({}))
            .await
            .expect(201);
        let new = rotated["key"].as_str().unwrap();
        for server in &servers {
            server.api(&old).list(&workspace).await.expect(401);
            server.api(new).list(&workspace).await.expect(200);
        }
    }
}
