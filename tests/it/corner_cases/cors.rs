//! CORS: requests of web pages from other origins.

use agentcfg_server::routes;
use agentcfg_tests::harness::{Response, Server, Studio};

const APP: &str = "https://app.example.com";

fn preflight(server: &Server, path: &str, origin: &str) -> Response {
    let request = server.request("OPTIONS", path).header("Origin", origin);
    request.header("Access-Control-Request-Method", "PATCH").send()
}

fn with_origins() -> Server {
    Server::builder()
        .set("cors_origins", format!("{APP}, http://localhost:3000"))
        .start()
}

#[test]
fn no_origin_is_allowed_unless_configured() {
    let server = Server::shared();
    preflight(server, "/api/agents/configs", APP).expect(405);
    let answer = server.get("/healthz").header("Origin", APP).send();
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

#[test]
fn a_preflight_from_an_allowed_origin_is_204_without_a_credential() {
    let server = with_origins();
    for route in routes() {
        for origin in [APP, "http://localhost:3000"] {
            let answer = preflight(&server, route.example(), origin).expect(204);
            assert_eq!(answer.need("access-control-allow-origin"), origin);
            assert!(
                answer.need("access-control-allow-methods").contains(route.method),
                "{answer:?}"
            );
            let headers = answer.need("access-control-allow-headers").to_ascii_lowercase();
            for needed in [
                "authorization",
                "content-type",
                "if-match",
                "if-none-match",
                "x-request-id",
            ] {
                assert!(headers.contains(needed), "{headers}");
            }
            assert_eq!(answer.header("x-ratelimit-limit"), None);
        }
    }
    preflight(&server, "/nowhere", APP).expect(404);
}

#[test]
fn a_preflight_grants_the_header_names_that_were_asked_for() {
    let server = with_origins();
    let request = server.request("OPTIONS", "/api/agents/model-calls/openai/v1/responses");
    let request = request
        .header("Origin", APP)
        .header("Access-Control-Request-Method", "POST");
    let names = "authorization, x-stainless-lang, x-stainless-os";
    let answer = request
        .header("Access-Control-Request-Headers", names)
        .send()
        .expect(204);
    assert_eq!(answer.need("access-control-allow-headers"), names);
}

#[test]
fn another_origin_gets_no_cors_headers() {
    let server = with_origins();
    for origin in [
        "https://evil.example.com",
        "null",
        "https://app.example.com.evil.com",
        "http://app.example.com",
        "",
    ] {
        let answer = preflight(&server, "/api/agents/configs", origin).expect(405);
        assert_eq!(answer.header("access-control-allow-origin"), None, "{origin}");
    }
}

#[test]
fn an_allowed_origin_may_read_the_exposed_headers_on_errors_too() {
    let server = with_origins();
    let studio = Studio::on(&server);
    for request in [
        server.get("/api/workspaces"),
        server.get("/api/workspaces").bearer(&studio.owner),
    ] {
        let answer = request.header("Origin", APP).send();
        assert_eq!(answer.need("access-control-allow-origin"), APP);
        assert_eq!(answer.need("vary"), "Origin");
        let exposed = answer.need("access-control-expose-headers").to_ascii_lowercase();
        for header in [
            "x-ratelimit-limit",
            "x-ratelimit-remaining",
            "x-ratelimit-reset",
            "etag",
            "x-request-id",
            "retry-after",
            "location",
            "fault-fields",
        ] {
            assert!(exposed.contains(header), "{exposed}");
        }
        assert_eq!(
            answer.header("access-control-allow-credentials"),
            None,
            "there are no cookies to send"
        );
    }
    assert_eq!(
        server.get("/healthz").send().need("vary"),
        "Origin",
        "a cache must keep the answers apart"
    );
}
