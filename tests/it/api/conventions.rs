//! General conventions.

use agentcfg_server::{Needs, routes};
use agentcfg_tests::harness::{Server, Studio};
use serde_json::{Value, json};

#[test]
fn every_path_of_the_api_begins_with_api() {
    let outside: Vec<_> = routes()
        .map(|route| route.path)
        .filter(|path| !path.starts_with("/api/"))
        .collect();
    assert_eq!(
        outside,
        ["/mcp", "/openapi.json", "/healthz", "/readyz"],
        "paths outside the API are for operators and tools"
    );
}

#[test]
fn a_body_is_json_and_says_so_in_its_content_type() {
    let studio = Studio::open();
    let body = studio.agent("writer", &Value::Null).to_string();
    let request = studio
        .server
        .post("/api/agents/configs")
        .bearer(&studio.owner)
        .bytes(body.clone());
    request.send().refused(415, &["Content-Type: application/json"]);
    request.header("Content-Type", "application/json").send().expect(201);
}

#[test]
fn a_success_is_the_resource_itself_without_an_envelope() {
    let studio = Studio::open();
    let created = studio.create("writer", &Value::Null).json();
    assert_eq!(created["agent_id"], "writer");
    assert_eq!(studio.list().json(), json!([created]));
}

#[test]
fn a_list_is_a_json_array_even_when_it_is_empty() {
    let studio = Studio::open();
    assert_eq!(studio.list().json(), json!([]));
    for path in [
        "/api/agents/status",
        "/api/workspaces/members",
        "/api/api-keys",
        "/api/audit-log",
    ] {
        let target = format!("{path}?workspace_id={}", studio.id);
        let list = studio
            .server
            .get(target)
            .bearer(&studio.owner)
            .send()
            .expect(200)
            .json();
        assert!(list.is_array(), "{path}: {list}");
    }
}

#[test]
fn a_request_that_needs_a_workspace_and_names_no_valid_one_is_400() {
    let studio = Studio::open();
    for path in [
        "/api/agents/configs",
        "/api/agents/status",
        "/api/workspaces/members",
        "/api/api-keys",
        "/api/audit-log",
    ] {
        for query in ["", "?workspace_id=", "?workspace_id=7", "?workspace_id=not-a-uuid"] {
            let request = studio.server.get(format!("{path}{query}")).bearer(&studio.owner);
            request.send().refused(400, &["workspace_id"]);
        }
        // The endpoints of the specification ignore a parameter that they do not know.
        let named = match path.starts_with("/api/agents/") {
            true => "workspace_id",
            false => "other",
        };
        let request = studio.server.get(format!("{path}?other=1")).bearer(&studio.owner);
        request.send().refused(400, &[named]);
    }
    let mut body = studio.agent("writer", &Value::Null);
    body["workspace_id"] = json!("not-a-uuid");
    let request = studio.server.post("/api/agents/configs").bearer(&studio.owner);
    request.clone().json(&body).send().refused(400, &["workspace_id"]);
    body.as_object_mut().unwrap().remove("workspace_id");
    request.json(&body).send().refused(400, &["workspace_id is required"]);
}

#[test]
fn timestamps_are_iso_8601() {
    let studio = Studio::open();
    let created = studio.create("writer", &Value::Null).json();
    for field in ["created_at", "updated_at"] {
        let text = created[field].as_str().unwrap();
        let read = chrono::DateTime::parse_from_rfc3339(text).unwrap();
        let age = chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now()).signed_duration_since(read);
        assert!(age.num_seconds().abs() < 60, "{text}");
    }
}

#[test]
fn every_endpoint_of_the_api_requires_a_credential() {
    for route in routes().filter(|route| route.path.starts_with("/api/")) {
        assert_ne!(route.needs, Needs::Nothing, "{}", route.path);
        Server::shared()
            .request(route.method, route.example())
            .send()
            .refused(401, &["credentials"]);
    }
}
