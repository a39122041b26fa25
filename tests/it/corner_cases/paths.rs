//! Paths and methods.

use agentcfg_server::{endpoints, routes};
use agentcfg_tests::harness::{Server, Studio};

use super::target_with;

#[test]
fn an_unknown_path_is_404_whatever_the_credential() {
    let studio = Studio::open();
    for path in ["/api", "/api/", "/api/tasks", "/api/agents", "/metrics", "/favicon.ico"] {
        for request in [studio.server.get(path), studio.server.get(path).bearer(&studio.owner)] {
            let answer = request.send().expect(404);
            assert_eq!(
                answer.header("x-ratelimit-limit"),
                None,
                "it counts in no window: {answer:?}"
            );
        }
    }
}

#[test]
fn paths_match_exactly() {
    let studio = Studio::open();
    for path in [
        "/api/agents/configs/",
        "//api/agents/configs",
        "/api//agents/configs",
        "/api/agents%2fconfigs",
        "/api/agents%2Fconfigs",
        "/api/agents/../agents/configs",
        "/api/./agents/configs",
        "/api/agents/%63onfigs",
        "/API/agents/configs",
        "/api/agents/configs;v=1",
    ] {
        let target = format!("{path}?workspace_id={}", studio.id);
        studio.server.get(target).bearer(&studio.owner).send().expect(404);
    }
}

#[test]
fn an_unsupported_method_is_405_and_allow_lists_the_supported_ones() {
    for route in routes() {
        let has = |method: &str| routes().any(|other| other.path == route.path && other.method == method);
        let has_head = routes().any(|other| other.path == route.path && other.answers_head());
        for method in [
            "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW",
        ] {
            let known = if method == "HEAD" { has_head } else { has(method) };
            if known {
                continue;
            }
            let answer = Server::shared().request(method, route.example()).send().expect(405);
            let mut allowed: Vec<_> = answer.need("allow").split(", ").collect();
            assert!(
                allowed.iter().all(|method| *method == "HEAD" || has(method)),
                "{answer:?}"
            );
            allowed.retain(|method| *method != "HEAD");
            assert_eq!(allowed.len(), routes().filter(|other| other.path == route.path).count());
            assert_eq!(answer.need("allow").contains("HEAD"), has_head);
        }
    }
}

#[test]
fn head_is_answered_as_get_without_the_body() {
    let studio = Studio::open();
    studio.create("writer", &serde_json::Value::Null).expect(201);
    let workspace = studio.id.to_string();
    let webhook = studio.webhook("https://localhost/")["id"].as_str().unwrap().to_owned();
    let label = format!("/api/agents/labels?workspace_id={workspace}&agent_id=writer&label=production");
    let released = studio.server.put(label).bearer(&studio.owner);
    released.json(&serde_json::json!({"version": 1})).send().expect(200);
    for endpoint in endpoints().filter(|endpoint| endpoint.route.answers_head()) {
        let route = endpoint.route;
        if route.path.starts_with("/api/operator/") {
            // The owner is no operator.
            continue;
        }
        let values = [
            ("workspace_id", &*workspace),
            ("agent_id", "writer"),
            ("label", "production"),
            (
                "from",
                if route.path == "/api/usage" {
                    "2026-11-20T00:00:00Z"
                } else {
                    "1"
                },
            ),
            ("after", "now"),
            ("webhook_id", &webhook),
        ];
        let target = target_with(endpoint, &values);
        let get = studio.server.get(&target).bearer(&studio.owner).send().expect(200);
        let head = studio
            .server
            .request("HEAD", &target)
            .bearer(&studio.owner)
            .send()
            .expect(200);
        for name in ["content-type", "content-length", "etag"] {
            assert_eq!(head.header(name), get.header(name), "{} {name}", route.path);
        }
        studio
            .server
            .request("HEAD", route.path)
            .send()
            .expect(if route.path.starts_with("/api/") { 401 } else { 200 });
    }
}
