//! Labels over HTTP.

use agentcfg_tests::harness::{Studio, at_once};
use serde_json::{Value, json};

use super::on;

#[test]
fn a_release_moves_a_label_and_can_be_taken_back() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    studio.change("a", &json!({"role": "second"})).expect(200);
    let put = |version: u64, more: &str| {
        let request = on(&studio, "PUT", "labels", "a", &format!("&label=production{more}"));
        request.json(&json!({"version": version})).send()
    };
    let first = put(1, "&message=First").expect(200).json();
    let fields: Vec<_> = first.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["agent_id", "label", "version", "updated_at", "actor"]);
    assert_eq!(studio.audit()[0]["message"], "First");
    put(2, "").expect(200);
    put(1, "").expect(200);
    let released = on(&studio, "GET", "version", "a", "&label=production")
        .send()
        .expect(200)
        .json();
    assert_eq!(
        (&released["version"], &released["labels"]),
        (&json!(1), &json!(["production"]))
    );
    assert_eq!(released["config"]["role"], Value::Null);
    let diff = on(&studio, "GET", "diff", "a", "&from=production&to=latest")
        .send()
        .expect(200)
        .json();
    assert_eq!((&diff["from"], &diff["to"]), (&json!(1), &json!(2)));
    let entries = studio.audit().len();
    put(1, "").expect(200);
    assert_eq!(studio.audit().len(), entries, "the same again records nothing");
    on(&studio, "DELETE", "labels", "a", "&label=production")
        .send()
        .expect(200);
    on(&studio, "DELETE", "labels", "a", "&label=production")
        .send()
        .refused(404, &["has no label"]);
}

#[test]
fn a_label_can_take_the_version_of_another_one() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    studio.change("a", &json!({"role": "second"})).expect(200);
    let put = |label: &str, body: Value| {
        on(&studio, "PUT", "labels", "a", &format!("&label={label}"))
            .json(&body)
            .send()
    };
    put("staging", json!({"version": 1})).expect(200);
    assert_eq!(
        put("production", json!({"label": "staging"})).expect(200).json()["version"],
        1
    );
    assert_eq!(
        put("staging", json!({"label": "latest"})).expect(200).json()["version"],
        2
    );
    put("production", json!({"label": "staging", "expected_version": 2})).refused(412, &["points at version 1"]);
    let moved = put(
        "production",
        json!({"label": "staging", "version": null, "expected_version": 1}),
    )
    .expect(200);
    assert_eq!(moved.json()["version"], 2);
    let version = |agent: &str| {
        let answer = on(&studio, "GET", "version", agent, "&label=production").send();
        answer.expect(200).json()
    };
    assert_eq!(version("a")["is_active"], true);
    studio.remove("a").expect(200);
    assert_eq!(
        (&version("a")["is_active"], &version("a")["version"]),
        (&json!(false), &json!(2))
    );
}

#[test]
fn wrong_requests_for_labels_are_refused() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    let put = |more: &str, body: Value| on(&studio, "PUT", "labels", "a", more).json(&body).send();
    let one = json!({"version": 1});
    put("", one.clone()).refused(400, &["the query parameter label is required"]);
    put("&label=latest", one.clone()).refused(400, &["latest"]);
    put("&label=7", one.clone()).refused(400, &["digits alone"]);
    put("&label=A", one.clone()).refused(400, &["label must be 1 to 36"]);
    put(&format!("&label={}", "x".repeat(37)), one.clone()).refused(400, &["at most 36 characters, got 37"]);
    put("&label=x", json!({})).refused(400, &["version or label is required"]);
    put("&label=x", json!({"version": null})).refused(400, &["version or label is required"]);
    put("&label=x", json!({"version": 1, "label": "y"})).refused(400, &["version and label must not both be given"]);
    put("&label=x", json!({"label": "y"})).refused(404, &["has no label"]);
    put("&label=x", json!({"label": "A"})).refused(400, &["label must be 1 to 36"]);
    put("&label=x", json!({"version": 1.5})).refused(400, &["version must be a whole number"]);
    put("&label=x", json!({"version": 1, "expected_version": "1"}))
        .refused(400, &["expected_version must be an integer"]);
    put("&label=x", json!({"version": 2})).refused(404, &["has no version 2"]);
    put("&label=x", json!({"version": 1, "expected_version": 1})).refused(412, &["does not exist"]);
    put("&label=x", json!({"version": 1, "expected_version": null})).expect(200);
    put("&label=x", json!({"version": 1, "expected_version": null})).refused(412, &["points at version 1"]);
    on(&studio, "DELETE", "labels", "a", "&label=latest")
        .send()
        .refused(400, &["latest"]);
    for number in 1..20 {
        put(&format!("&label=l{number}"), one.clone()).expect(200);
    }
    put("&label=more", one).refused(422, &["20 labels"]);
    let promote = |body: Value| {
        let target = format!("/api/agents/labels/promote?workspace_id={}", studio.id);
        studio.server.post(target).bearer(&studio.owner).json(&body).send()
    };
    promote(json!({"from": "x"})).refused(400, &["to is required"]);
    promote(json!({"from": "x", "to": "x"})).refused(400, &["to must be another label"]);
    promote(json!({"from": "x", "to": "latest"})).refused(400, &["to must not be latest"]);
    promote(json!({"from": "x", "to": "y", "agent_ids": []})).refused(400, &["1 to 1000 agents, got 0"]);
    promote(json!({"from": "x", "to": "y", "agent_ids": ["A"]})).refused(400, &["agent_ids[0] must be"]);
    let many: Vec<_> = (0..1001).map(|number| format!("a{number}")).collect();
    promote(json!({"from": "x", "to": "y", "agent_ids": many})).refused(400, &["1 to 1000 agents, got 1001"]);
    promote(json!({"from": "none", "to": "y", "agent_ids": ["a"]})).refused(404, &["has no label"]);
    promote(json!({"from": "x", "to": "l1", "agent_ids": ["a", "b"]})).refused(404, &["not found"]);
    assert_eq!(
        promote(json!({"from": "none", "to": "y"})).expect(200).json(),
        json!([])
    );
    let dry = format!("/api/agents/labels/promote?workspace_id={}&dry_run=perhaps", studio.id);
    let dry = studio.server.post(dry).bearer(&studio.owner);
    dry.json(&json!({"from": "x", "to": "y"}))
        .send()
        .refused(400, &["dry_run must be true or false"]);
    let target = "/api/agents/labels/promote";
    let without = studio.server.post(target).bearer(&studio.owner);
    without
        .json(&json!({"from": "x", "to": "y"}))
        .send()
        .refused(400, &["workspace_id is required"]);
}

#[test]
fn writing_is_not_releasing() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    let target = "/api/agents/labels?agent_id=a&label=production";
    let put = |key: &str| {
        studio
            .server
            .put(target)
            .bearer(key)
            .json(&json!({"version": 1}))
            .send()
    };
    put(&studio.key("write").key).refused(403, &["agents:release"]);
    put(&studio.member("member")).refused(403, &["agents:release"]);
    put(&studio.key("admin").key).expect(200);
    put(&studio.member("admin")).expect(200);
}

#[test]
fn one_of_many_concurrent_releases_wins() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    for number in 0..8 {
        studio.change("a", &json!({"role": number.to_string()})).expect(200);
    }
    let answers = at_once(8, |number| {
        let request = on(&studio, "PUT", "labels", "a", "&label=production");
        request
            .json(&json!({"version": number + 1, "expected_version": null}))
            .send()
    });
    let won = answers.iter().filter(|answer| answer.status == 200).count();
    assert!(answers.iter().all(|answer| [200, 412].contains(&answer.status)));
    assert_eq!(won, 1);
}
