//! Errors.

use agentcfg_tests::harness::{Response, Studio};
use serde_json::{Value, json};

/// One refused request for each status that a request can cause.
fn refusals() -> Vec<(u16, Response)> {
    let studio = Studio::on_plan("free");
    let limited = studio.key_with(&json!({"rate_limit": 1})).key;
    let target = format!("/api/agents/configs?workspace_id={}", studio.id);
    studio.server.get(&target).bearer(&limited).send().expect(200);
    for id in ["a", "b", "c"] {
        studio.create(id, &Value::Null).expect(201);
    }
    let server = studio.server;
    vec![
        (400, server.get("/api/agents/configs").bearer(&studio.owner).send()),
        (400, studio.create("Bad Id", &Value::Null)),
        (400, server.patch(&target).bearer(&studio.owner).json(&json!({})).send()),
        (400, server.delete(&target).bearer(&studio.owner).send()),
        (401, server.get(&target).send()),
        (403, server.get(&target).bearer(studio.outsider()).send()),
        (404, studio.change("nobody", &json!({}))),
        (404, studio.remove("nobody")),
        (409, studio.create("a", &Value::Null)),
        (422, studio.create("d", &Value::Null)),
        (429, server.get(&target).bearer(&limited).send()),
    ]
}

#[test]
fn each_cause_has_its_status_and_a_message_in_error_alone() {
    for (status, response) in refusals() {
        let response = response.expect(status);
        assert!(response.error().chars().count() > 8, "{response:?}");
    }
}

#[test]
fn a_message_is_for_people_and_shows_no_internals() {
    for (_, response) in refusals() {
        let message = response.error();
        for internal in ["redb", "panicked", "src/", "Some(", "Err(", "::"] {
            assert!(!message.contains(internal), "{message}");
        }
    }
}
