//! Heads of requests and responses: size limits, request ids, credentials.

use agentcfg_tests::harness::{Server, Studio, Wire};
use serde_json::{Value, json};

fn request_line(length: usize) -> String {
    let rest = "GET /healthz?x= HTTP/1.1".len();
    format!(
        "GET /healthz?x={} HTTP/1.1\r\nHost: x\r\n\r\n",
        "y".repeat(length - rest)
    )
}

#[test]
fn a_request_line_may_have_eight_kibibytes() {
    let server = Server::shared();
    assert_eq!(server.raw(request_line(8192)).unwrap().status, 200);
    for length in [8193, 9000, 20_000, 100_000] {
        server.raw(request_line(length)).unwrap().refused(414, &["8192"]);
    }
}

#[test]
fn the_headers_may_have_sixteen_kibibytes() {
    let server = Server::shared();
    server
        .get("/healthz")
        .header("X-Long", "y".repeat(16_000))
        .send()
        .expect(200);
    for length in [16_385, 30_000, 200_000] {
        let answer = server.raw(format!(
            "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n",
            "y".repeat(length)
        ));
        answer.unwrap().refused(431, &["16384"]);
    }
    let many = "X-Many: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n";
    let answer = server.raw(format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{}\r\n", many.repeat(400)));
    answer.unwrap().refused(431, &[]);
}

#[test]
fn every_response_has_a_request_id_of_its_own() {
    let server = Server::shared();
    let mut seen = std::collections::HashSet::new();
    for target in ["/healthz", "/nowhere", "/api/workspaces", "/readyz", "/openapi.json"] {
        for _ in 0..5 {
            let answer = server.get(target).send();
            assert!(seen.insert(answer.need("x-request-id").to_owned()), "{answer:?}");
            assert_eq!(answer.need("x-content-type-options"), "nosniff", "{target}");
        }
    }
}

#[test]
fn a_valid_request_id_of_the_caller_is_echoed() {
    let server = Server::shared();
    let longest = "x".repeat(128);
    for id in ["a", "trace-1/2:3", "!~", &longest] {
        for target in ["/healthz", "/nowhere", "/api/workspaces"] {
            let answer = server.get(target).header("X-Request-Id", id).send();
            assert_eq!(answer.need("x-request-id"), id);
        }
    }
    for id in ["", "two words", "ä", &"x".repeat(129), "tab\there"] {
        let answer = server.get("/healthz").header("X-Request-Id", id).send();
        assert_ne!(answer.need("x-request-id"), id);
    }
}

#[test]
fn the_scheme_bearer_is_read_in_any_case() {
    let studio = Studio::open();
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        let field = format!("{scheme} {}", studio.owner);
        studio
            .server
            .get("/api/workspaces")
            .header("Authorization", field)
            .send()
            .expect(200);
    }
    for scheme in ["Basic", "Token", "Bearerx", "Bearer:"] {
        let field = format!("{scheme} {}", studio.owner);
        studio
            .server
            .get("/api/workspaces")
            .header("Authorization", field)
            .send()
            .expect(401);
    }
}

#[test]
fn two_authorization_headers_are_401_even_when_both_are_good() {
    let studio = Studio::open();
    let once = studio.server.get("/api/workspaces").bearer(&studio.owner);
    once.send().expect(200);
    once.bearer(&studio.owner).send().refused(401, &["once"]);
}

#[test]
fn a_credential_outside_the_authorization_header_is_ignored() {
    let studio = Studio::open();
    let target = format!("/api/workspaces?access_token={0}&api_key={0}", studio.owner);
    let request = studio
        .server
        .get(target)
        .header("X-Api-Key", &studio.owner)
        .header("Cookie", &studio.owner);
    request.send().refused(401, &["missing credentials"]);
}

#[test]
fn timestamps_have_milliseconds_and_end_in_z() {
    let studio = Studio::open();
    let record = studio.create("writer", &Value::Null).json();
    let text = record["created_at"].as_str().unwrap();
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z");
}

#[test]
fn a_connection_stays_open_after_an_error() {
    let studio = Studio::open();
    let mut wire = Wire::connect(studio.server.address());
    studio.server.get("/api/workspaces").send_on(&mut wire).expect(401);
    studio.server.get("/nowhere").send_on(&mut wire).expect(404);
    let body = studio.agent("Bad Id", &Value::Null);
    studio
        .server
        .post("/api/agents/configs")
        .bearer(&studio.owner)
        .json(&body)
        .send_on(&mut wire)
        .expect(400);
    studio
        .server
        .post("/api/agents/configs")
        .json(&json!({}))
        .send_on(&mut wire)
        .expect(401);
    studio.server.request("HEAD", "/healthz").send_on(&mut wire).expect(200);
    studio
        .server
        .get("/api/workspaces")
        .bearer(&studio.owner)
        .send_on(&mut wire)
        .expect(200);
}
