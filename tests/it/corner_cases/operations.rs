//! Endpoints for operators and tools.

use agentcfg_core::routing::Catalogue;
use agentcfg_server::{Route, routes};
use agentcfg_tests::harness::{Server, Studio, Wire, free_address};

#[test]
fn health_and_readiness_need_no_credential() {
    let server = Server::shared();
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        for request in [
            server.get(path),
            server.get(path).bearer("garbage"),
            server.request("HEAD", path),
        ] {
            request.send().expect(200);
        }
    }
}

#[tokio::test]
async fn the_client_asks_for_health_and_readiness() {
    let client = Server::shared().client("svc_live_anything");
    client.healthy().await.unwrap();
    client.ready().await.unwrap();
}

#[test]
fn openapi_covers_every_route_and_no_other() {
    let document = Server::shared().get("/openapi.json").send().expect(200).json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    for route in routes() {
        let operation = &document["paths"][route.path][route.method.to_ascii_lowercase()];
        assert!(operation["responses"].is_object(), "{} {}", route.method, route.path);
    }
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in ["get", "post", "put", "patch", "delete"]
            .iter()
            .filter(|method| item.get(**method).is_some())
        {
            // A path below the prefix of a route may be described by itself.
            let is_below = |route: &Route| {
                let prefix = route
                    .prefix
                    .and_then(|prefix| Some((prefix, path.strip_prefix(prefix.text)?)));
                prefix.is_some_and(|(prefix, rest)| (prefix.accepts)(rest, &Catalogue::default()))
            };
            let is_here = |route: &Route| route.path == path || is_below(route);
            assert!(
                routes().any(|route| is_here(route) && route.method.eq_ignore_ascii_case(method)),
                "{method} {path} is described and not there"
            );
        }
    }
}

#[test]
fn metrics_have_an_address_of_their_own_and_are_off_by_default() {
    Server::shared().get("/metrics").send().expect(404);
    let address = free_address();
    let server = Server::builder().set("metrics_listen", address.to_string()).start();
    let studio = Studio::on(&server);
    studio.list();
    server.get("/nowhere").send().expect(404);
    for (accept, described, has_end) in [
        (
            "application/openmetrics-text",
            "# TYPE agentcfg_http_requests counter\n",
            true,
        ),
        ("*/*", "# TYPE agentcfg_http_requests_total counter\n", false),
    ] {
        let answer = Wire::connect(address)
            .send(format!("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n"))
            .receive("GET")
            .unwrap();
        assert_eq!(answer.status, 200);
        let text = String::from_utf8(answer.body).unwrap();
        assert!(
            text.contains("/api/agents/configs") && text.contains(described),
            "{text}"
        );
        assert_eq!(text.ends_with("# EOF\n"), has_end, "{text}");
        for secret in [&studio.owner, &studio.id.to_string(), &studio.user] {
            assert!(!text.contains(secret.as_str()), "metrics name no tenant");
        }
    }
    server.get("/metrics").send().expect(404);
}

#[test]
fn a_log_in_json_has_an_object_on_each_line() {
    let server = Server::builder().set("log", "trace").set("log_format", "json").start();
    let studio = Studio::on(&server);
    studio.list();
    server.stop();
    let log = server.stderr();
    let lines: Vec<_> = log.lines().filter(|line| line.starts_with('{')).collect();
    assert!(!lines.is_empty(), "{log}");
    for line in lines {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(entry["level"].is_string() && entry["timestamp"].is_string(), "{line}");
    }
}
