//! Request bodies: strict JSON and the size limit.

use agentcfg_server::endpoints;
use agentcfg_tests::harness::{Request, Studio};
use serde_json::{Value, json};

use super::target_with;

fn creation(studio: &Studio<'_>) -> Request {
    studio.server.post("/api/agents/configs").bearer(&studio.owner)
}

#[test]
fn a_body_without_a_json_content_type_is_415_on_every_endpoint_that_reads_one() {
    let studio = Studio::open();
    for endpoint in endpoints().filter(|endpoint| endpoint.content.is_json()) {
        let route = endpoint.route;
        // An endpoint that checks the membership before the body needs to know of which workspace.
        let target = format!("{}?workspace_id={}", route.path, studio.id);
        let request = studio
            .server
            .request(route.method, target)
            .bearer(&studio.owner)
            .bytes("{}");
        request.send().refused(415, &["application/json"]);
        for other in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonp",
            "json",
            "",
        ] {
            request.clone().header("Content-Type", other).send().expect(415);
        }
        request
            .clone()
            .header("Content-Encoding", "gzip")
            .header("Content-Type", "application/json")
            .send()
            .expect(415);
    }
    for good in [
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/json ;x=y",
    ] {
        creation(&studio)
            .bytes("{}")
            .header("Content-Type", good)
            .send()
            .expect(400);
    }
}

#[test]
fn a_body_of_the_greatest_length_is_read_and_of_one_byte_more_is_413() {
    let studio = Studio::open();
    let body = studio.agent("writer", &Value::Null).to_string();
    let padded = |length: usize| format!("{body}{}", " ".repeat(length - body.len()));
    creation(&studio)
        .text(padded((1 << 20) + 1))
        .send()
        .refused(413, &["1048576"]);
    assert_eq!(studio.agent_ids(), [""; 0]);
    creation(&studio).text(padded(1 << 20)).send().expect(201);
    for endpoint in endpoints().filter(|endpoint| endpoint.content.is_json()) {
        let route = endpoint.route;
        assert_eq!(
            endpoint.max_body >> 20,
            if route.path == "/api/agents/apply" { 10 } else { 1 }
        );
        let target = format!("{}?workspace_id={}", route.path, studio.id);
        let request = studio.server.request(route.method, target).bearer(&studio.owner);
        request.text(padded(endpoint.max_body + 1)).send().expect(413);
    }
}

#[test]
fn a_body_that_is_no_json_object_is_400() {
    let studio = Studio::open();
    for body in [
        "",
        " ",
        "{",
        "}",
        "nul",
        "null",
        "true",
        "7",
        "\"text\"",
        "[]",
        "{}{}",
        "{\"a\":1,}",
        "{'a':1}",
        "{a:1}",
        "NaN",
        "{\"agent_id\": \"a\"} x",
        "// {}",
    ] {
        creation(&studio).text(body).send().refused(400, &["body"]);
    }
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    creation(&studio)
        .text(format!("{{\"parameters\": {deep}}}"))
        .send()
        .expect(400);
}

#[test]
fn byte_order_marks_broken_utf8_and_lone_surrogates_are_400() {
    let studio = Studio::open();
    let good = studio.agent("writer", &Value::Null).to_string();
    let with_name = |name: &[u8]| {
        let head = good.as_bytes().strip_suffix(b"}").unwrap();
        [head, b",\"role\":\"", name, b"\"}"].concat()
    };
    creation(&studio)
        .text([b"\xef\xbb\xbf", good.as_bytes()].concat())
        .send()
        .expect(400);
    for bad in [
        &b"\xff"[..],
        b"\xc3\x28",
        b"\xed\xa0\x80",
        b"\\ud800",
        b"\\udc00\\ud800",
        b"\\ud83e ",
    ] {
        creation(&studio).text(with_name(bad)).send().expect(400);
    }
    let record = creation(&studio)
        .text(with_name(b"\\ud83e\\udd80"))
        .send()
        .expect(201)
        .json();
    assert_eq!(record["role"], "🦀");
}

#[test]
fn a_duplicate_key_in_any_object_is_400() {
    let studio = Studio::open();
    let (id, agent) = (studio.id, r#""agent_id":"a","display_name":"A""#);
    for body in [
        format!(r#"{{"workspace_id":"{id}","workspace_id":"{id}",{agent}}}"#),
        format!(r#"{{"workspace_id":"{id}",{agent},"parameters":{{"x":1,"x":1}}}}"#),
        format!(r#"{{"workspace_id":"{id}",{agent},"parameters":{{"x":1,"\u0078":2}}}}"#),
        format!(r#"{{"workspace_id":"{id}",{agent},"rol\u0065":"a","role":"b"}}"#),
    ] {
        creation(&studio).text(body).send().refused(400, &["more than once"]);
    }
    studio
        .server
        .post("/api/workspaces")
        .bearer(&studio.owner)
        .text(r#"{"name":"a","name":"a"}"#)
        .send()
        .expect(400);
}

#[test]
fn unknown_fields_are_400_and_named_on_every_endpoint_that_reads_a_body() {
    let studio = Studio::open();
    let workspace = studio.id.to_string();
    for endpoint in endpoints().filter(|endpoint| endpoint.content.is_json()) {
        let route = endpoint.route;
        let values = [
            ("workspace_id", &*workspace),
            ("agent_id", "a"),
            ("user_id", "u"),
            ("provider", "openai"),
            ("label", "x"),
            ("webhook_id", &workspace),
            ("scope", "workspace"),
            ("period", "day"),
        ];
        let target = target_with(endpoint, &values);
        let request = studio.server.request(route.method, target).bearer(&studio.owner);
        request.json(&json!({"colour": "red"})).send().refused(400, &["colour"]);
    }
    for field in ["id", "is_active", "created_at", "updated_at"] {
        studio
            .create("writer", &json!({field: true}))
            .refused(400, &[field, "read-only"]);
        studio
            .change("writer", &json!({field: true}))
            .refused(400, &[field, "read-only"]);
    }
}

#[test]
fn a_nul_character_is_400_in_every_text() {
    let studio = Studio::open();
    for fields in [
        json!({"display_name": "a\0"}),
        json!({"role": "\0"}),
        json!({"description": "\0"}),
        json!({"model": "\0"}),
        json!({"persona_prompt": "\0"}),
        json!({"capabilities": ["a\0"]}),
        json!({"parameters": {"a\0": 1}}),
        json!({"agent_id": "a\0"}),
        json!({"color": "#ff\0"}),
        json!({"a\0": 1}),
    ] {
        studio.create("writer", &fields).expect(400);
    }
    studio
        .server
        .post("/api/workspaces")
        .bearer(&studio.owner)
        .json(&json!({"name": "\0"}))
        .send()
        .expect(400);
    studio.create_key(&json!({"name": "a\0"})).expect(400);
}

#[test]
fn all_faults_of_a_body_are_reported_at_once_in_the_order_of_the_fields() {
    let studio = Studio::open();
    let message = studio
        .create(
            "Bad Id",
            &json!({"display_name": "x".repeat(142), "color": "red", "role": 1, "shape": "round"}),
        )
        .expect(400)
        .error();
    let faults: Vec<_> = message.split("; ").collect();
    let fields: Vec<_> = faults.iter().map(|fault| fault.split(' ').next().unwrap()).collect();
    assert_eq!(
        fields,
        ["agent_id", "display_name", "role", "color", "shape"],
        "{message}"
    );
    assert_eq!(faults[1], "display_name must be at most 100 characters, got 142");
}
