//! Versions over HTTP.

use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

use super::on;

#[test]
fn the_version_is_in_a_header_and_not_in_the_record() {
    let studio = Studio::open();
    let created = studio.create("a", &Value::Null).expect(201);
    assert_eq!(created.need("agent-version"), "1");
    let fields: Vec<String> = created.json().as_object().unwrap().keys().cloned().collect();
    assert!(
        !fields
            .iter()
            .any(|field| field.contains("version") || field == "history"),
        "{fields:?}"
    );
    let changed = studio.change("a", &json!({"role": "x"})).expect(200);
    assert_eq!(changed.need("agent-version"), "2");
    assert_eq!(
        studio
            .change("a", &json!({"role": "x"}))
            .expect(200)
            .need("agent-version"),
        "2"
    );
    let one = studio.list_request("&agent_id=a").send().expect(200);
    assert_eq!(one.need("agent-version"), "2");
    let known = studio
        .list_request("&agent_id=a")
        .header("If-None-Match", one.etag())
        .send()
        .expect(304);
    assert_eq!(known.need("agent-version"), "2");
    assert_eq!(studio.list().header("agent-version"), None);
    assert_eq!(
        studio
            .list_request("&agent_id=b")
            .send()
            .expect(200)
            .header("agent-version"),
        None
    );
    studio.remove("a").expect(200);
    assert_eq!(studio.restore("a").expect(200).need("agent-version"), "2");
    let back = on(&studio, "POST", "rollback", "a", "")
        .json(&json!({"version": 1}))
        .send()
        .expect(200);
    assert_eq!(back.need("agent-version"), "3");
    assert_eq!(back.etag(), studio.list_request("&agent_id=a").send().etag());
    assert_eq!(back.json()["role"], Value::Null);
}

#[test]
fn versions_are_listed_and_read() {
    let studio = Studio::open();
    studio.create("a", &json!({"persona_prompt": "One.\n"})).expect(201);
    let target = format!(
        "/api/agents/configs?workspace_id={}&agent_id=a&message=Why%20not%3F",
        studio.id
    );
    let request = studio.server.patch(target).bearer(&studio.owner);
    request.json(&json!({"persona_prompt": "Two.\n"})).send().expect(200);
    let list = on(&studio, "GET", "versions", "a", "").send().expect(200).json();
    let fields: Vec<_> = list[0].as_object().unwrap().keys().collect();
    let row = [
        "agent_id",
        "version",
        "created_at",
        "actor",
        "message",
        "restored_from",
        "labels",
    ];
    assert_eq!(fields, row);
    assert_eq!((&list[0]["version"], &list[1]["version"]), (&json!(2), &json!(1)));
    assert_eq!(list[0]["message"], "Why not?");
    assert_eq!(list[1]["message"], Value::Null);
    assert_eq!(list[0]["actor"], json!({"type": "user", "id": studio.user}));
    assert_eq!(studio.audit()[0]["message"], "Why not?");
    let first = on(&studio, "GET", "version", "a", "&version=1")
        .send()
        .expect(200)
        .json();
    let mut without = first.clone();
    let config = without.as_object_mut().unwrap().remove("config").unwrap();
    assert_eq!(without.as_object_mut().unwrap().remove("is_active"), Some(json!(true)));
    assert_eq!(without, list[1]);
    assert_eq!(config.as_object().unwrap().len(), 9);
    assert_eq!(config["persona_prompt"], "One.\n");
    let latest = on(&studio, "GET", "version", "a", "&label=latest").send().expect(200);
    assert_eq!(latest.json(), on(&studio, "GET", "version", "a", "").send().json());
    let diff = on(&studio, "GET", "diff", "a", "&from=1").send().expect(200).json();
    let expected = json!({
        "agent_id": "a", "from": 1, "to": 2,
        "changes": {"persona_prompt": {"from": "One.\n", "to": "Two.\n"}},
        "prompt_diff": "--- version 1\n+++ version 2\n@@ -1 +1 @@\n-One.\n+Two.\n",
    });
    assert_eq!(diff, expected);
    let target = format!("/api/agents/versions?workspace_id={}", studio.id);
    let all = studio
        .server
        .get(target)
        .bearer(&studio.owner)
        .send()
        .expect(200)
        .json();
    assert_eq!(all, json!([list[0]]));
}

#[test]
fn wrong_requests_for_versions_are_refused() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    for (path, more, status, said) in [
        ("version", "&version=1&label=x", 400, "must not be given together"),
        ("version", "&version=1&revision=1", 400, "must not be given together"),
        ("version", "&at=2026-11-20T09:30:00Z&revision=1", 400, "at and revision"),
        ("version", "&version=x", 400, "version must be a whole number"),
        ("version", "&version=-1", 400, "version must be a whole number"),
        ("version", "&at=yesterday", 400, "at must be an RFC 3339 timestamp"),
        ("version", "&revision=99", 400, "revision must be 1 to"),
        ("version", "&revision=0", 400, "revision must be 1"),
        ("version", "&version=0", 404, "has no version 0"),
        ("version", "&version=2", 404, "has no version 2"),
        ("version", "&version=18446744073709551615", 404, "has no version"),
        ("version", "&label=production", 404, "has no label"),
        ("version", "&label=No%20Label%00", 404, "has no label"),
        ("version", "&at=2001-01-01T00:00:00Z", 404, "had no version then"),
        ("diff", "", 400, "from is required"),
        ("diff", "&from=1&to=2", 404, "has no version 2"),
        (
            "diff",
            "&from=99999999999999999999999",
            404,
            "has no label \"99999999999999999999999\"",
        ),
        (
            "diff",
            "&from=1&to=99999999999999999999999",
            404,
            "has no label \"99999999999999999999999\"",
        ),
        ("diff", "&from=1&to=", 404, "has no label \"\""),
        ("diff", "&from=production", 404, "has no label"),
        ("versions", "&limit=0", 400, "limit must be 1 to 1000"),
        ("versions", "&limit=1001", 400, "limit must be 1 to 1000"),
        ("versions", "&before=0", 400, "before must be 1"),
    ] {
        on(&studio, "GET", path, "a", more).send().refused(status, &[said]);
    }
    for (path, more) in [("version", ""), ("versions", ""), ("diff", "&from=1")] {
        on(&studio, "GET", path, "unknown", more)
            .send()
            .refused(404, &["not found"]);
        on(&studio, "GET", path, "No%20Agent", more)
            .send()
            .refused(404, &["not found"]);
    }
    let target = format!("/api/agents/versions?workspace_id={}&before=2", studio.id);
    studio
        .server
        .get(target)
        .bearer(&studio.owner)
        .send()
        .refused(400, &["before", "agent_id"]);
    for (body, status, said) in [
        (json!({}), 400, "version or label is required"),
        (json!({"version": null}), 400, "version or label is required"),
        (
            json!({"version": 1, "label": "a"}),
            400,
            "version and label must not both be given",
        ),
        (json!({"version": "1"}), 400, "version must be an integer"),
        (json!({"version": -1}), 400, "version must be a whole number"),
        (json!({"label": "A"}), 400, "label must be 1 to 36"),
        (json!({"version": 1, "x": 1}), 400, "x is not a known field"),
        (json!({"version": 2}), 404, "has no version 2"),
        (json!({"label": "beta"}), 404, "has no label"),
    ] {
        on(&studio, "POST", "rollback", "a", "")
            .json(&body)
            .send()
            .refused(status, &[said]);
    }
    let stale = on(&studio, "POST", "rollback", "a", "").header("If-Match", "\"x\"");
    stale.json(&json!({"version": 1})).send().refused(412, &[]);
    let long = "x".repeat(501);
    for method in ["PATCH", "DELETE"] {
        let target = format!(
            "/api/agents/configs?workspace_id={}&agent_id=a&message={long}",
            studio.id
        );
        let request = studio.server.request(method, target).bearer(&studio.owner);
        let refused = request.json(&json!({})).send();
        refused.refused(
            400,
            &["the query parameter message must be at most 500 characters, got 501"],
        );
    }
    let target = format!(
        "/api/agents/configs?workspace_id={}&agent_id=a&message=a%00b",
        studio.id
    );
    let request = studio.server.patch(target).bearer(&studio.owner);
    request
        .json(&json!({}))
        .send()
        .refused(400, &["message must not contain a NUL character"]);
}
