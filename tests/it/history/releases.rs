//! Releases over HTTP.

use agentcfg_tests::harness::{Request, Studio};
use serde_json::{Value, json};

use super::on;

/// A request for something of the workspace.
fn ask(studio: &Studio, method: &str, path: &str, more: &str) -> Request {
    let target = format!("/api/agents/{path}?workspace_id={}{more}", studio.id);
    studio.server.request(method, target).bearer(&studio.owner)
}

fn released(studio: &Studio, more: &str) -> Value {
    ask(studio, "GET", "released", &format!("&label=production{more}"))
        .send()
        .expect(200)
        .json()
}

fn set(studio: &Studio, agent_id: &str, label: &str, version: u64) {
    let request = on(studio, "PUT", "labels", agent_id, &format!("&label={label}"));
    request.json(&json!({"version": version})).send().expect(200);
}

#[test]
fn what_a_label_releases_is_one_request() {
    let studio = Studio::open();
    for agent_id in ["a", "b", "c"] {
        studio.create(agent_id, &json!({"role": "first"})).expect(201);
        studio.change(agent_id, &json!({"role": "second"})).expect(200);
    }
    assert_eq!(released(&studio, ""), json!([]));
    set(&studio, "b", "production", 1);
    set(&studio, "a", "production", 2);
    let rows = released(&studio, "");
    let fields: Vec<_> = rows[0].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["agent_id", "label", "version", "updated_at", "config"]);
    let of = |row: &Value| json!([row["agent_id"], row["version"], row["config"]["role"]]);
    assert_eq!(
        [of(&rows[0]), of(&rows[1])],
        [json!(["a", 2, "second"]), json!(["b", 1, "first"])]
    );
    assert!(
        rows[0]["config"].get("definition").is_none(),
        "it is absent where none is set"
    );
    assert_eq!(released(&studio, "&agent_id=b"), json!([rows[1]]));
    assert_eq!(released(&studio, "&agent_id=No%20Agent"), json!([]));
    let latest = ask(&studio, "GET", "released", "&label=latest")
        .send()
        .expect(200)
        .json();
    assert_eq!(latest.as_array().unwrap().len(), 3);
    studio.remove("a").expect(200);
    assert_eq!(released(&studio, ""), json!([rows[1]]));
    ask(&studio, "GET", "released", "")
        .send()
        .refused(400, &["label is required"]);
    ask(&studio, "GET", "released", "&label=A")
        .send()
        .refused(400, &["label must be 1 to 36"]);
    ask(&studio, "GET", "released", "&lable=production")
        .send()
        .refused(400, &["did you mean label?"]);
}

#[test]
fn the_entity_tag_changes_with_the_answer_alone() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    set(&studio, "a", "production", 1);
    let get = |known: &str| {
        let request = ask(&studio, "GET", "released", "&label=production");
        request.header("if-none-match", known).send()
    };
    let first = get("\"other\"").expect(200);
    let (tag, cursor) = (
        first.header("etag").unwrap().to_owned(),
        first.header("change-cursor").unwrap().to_owned(),
    );
    studio.change("a", &json!({"role": "second"})).expect(200);
    let same = get(&tag).expect(304);
    assert_eq!(same.header("etag"), Some(&*tag));
    assert_ne!(same.header("change-cursor"), Some(&*cursor), "the position goes on");
    set(&studio, "a", "production", 2);
    let moved = get(&tag).expect(200);
    assert_ne!(moved.header("etag"), Some(&*tag));
    // The changes after the cursor lead from one answer to the other.
    let changes = studio
        .server
        .get(format!("/api/changes?workspace_id={}&after={cursor}", studio.id));
    let events = changes.bearer(&studio.owner).send().expect(200).json();
    assert_eq!(
        events[1]["changes"]["agents/a/labels/production"],
        json!({"from": 1, "to": 2})
    );
}

#[test]
fn a_label_has_a_history_and_can_go_back() {
    let studio = Studio::open();
    for agent_id in ["a", "b"] {
        studio.create(agent_id, &Value::Null).expect(201);
        studio.change(agent_id, &json!({"role": "second"})).expect(200);
        set(&studio, agent_id, "production", 1);
    }
    let history = |more: &str| {
        let asked = ask(&studio, "GET", "labels/history", &format!("&label=production{more}"));
        asked.send().expect(200).json()
    };
    let before = history("")[0]["revision"].as_u64().unwrap();
    let promote = |body: Value| {
        ask(&studio, "POST", "labels/promote", "&message=Release")
            .json(&body)
            .send()
    };
    promote(json!({"from": "latest", "to": "production"})).expect(200);
    let rows = history("");
    let fields: Vec<_> = rows[0].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["revision", "created_at", "actor", "message", "moves"]);
    assert_eq!(
        (&rows[0]["message"], &rows[0]["moves"]),
        (
            &json!("Release"),
            &json!([{"agent_id": "a", "from": 1, "to": 2}, {"agent_id": "b", "from": 1, "to": 2}])
        )
    );
    assert_eq!(history("&limit=1"), json!([rows[0]]));
    assert_eq!(
        history(&format!("&before={}", rows[0]["revision"])),
        json!([rows[1], rows[2]])
    );
    assert_eq!(history("&agent_id=b").as_array().unwrap().len(), 2);
    let restore = |more: &str, body: Value| ask(&studio, "POST", "labels/restore", more).json(&body).send();
    let back = json!({"label": "production", "revision": before});
    let planned = restore("&dry_run=true", back.clone()).expect(200).json();
    let row = |agent_id| json!({"agent_id": agent_id, "label": "production", "version": 1, "previous_version": 2});
    assert_eq!(planned, json!([row("a"), row("b")]));
    let now = ask(&studio, "GET", "released", "&label=latest").send().expect(200);
    let based = json!({"label": "production", "revision": before, "base": now.header("change-cursor")});
    set(&studio, "a", "other", 1);
    assert_eq!(restore("", based.clone()).expect(200).json(), planned);
    restore("", based).refused(412, &["has moved since base"]);
    assert_eq!(restore("", back).expect(200).json(), json!([]));
    assert_eq!(studio.audit()[0]["action"], "label.restored");
    restore("", json!({"label": "production"})).refused(400, &["revision is required"]);
    restore("", json!({"label": "latest", "revision": 1})).refused(400, &["label must not be latest"]);
    restore("", json!({"label": "production", "revision": 9999})).refused(400, &["revision must be 1 to"]);
    restore("", json!({"label": "production", "revision": 1, "base": "x"})).refused(400, &["base"]);
    for bad in ["&label=latest", "&label=A", ""] {
        ask(&studio, "GET", "labels/history", bad)
            .send()
            .refused(400, &["label"]);
    }
    promote(json!({"from": "latest", "to": "production", "set": "docs", "agent_ids": ["a"]}))
        .refused(400, &["agent_ids and set must not both be given"]);
    promote(json!({"from": "latest", "to": "production", "set": "Bad Set"})).refused(400, &["set"]);
}

#[test]
fn a_long_history_is_streamed_whole() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    studio.change("a", &json!({"role": "second"})).expect(200);
    for number in 0..300 {
        set(&studio, "a", "production", 1 + number % 2);
    }
    let rows = ask(&studio, "GET", "labels/history", "&label=production&limit=1000")
        .send()
        .expect(200)
        .json();
    assert_eq!(rows.as_array().unwrap().len(), 300);
    assert_eq!(rows[299]["moves"][0]["from"], Value::Null);
}

#[test]
fn a_dry_run_needs_to_read_alone() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    let key = studio.key("read").key;
    for (path, body) in [
        ("labels/promote", json!({"from": "latest", "to": "production"})),
        ("labels/restore", json!({"label": "production", "revision": 1})),
        ("apply", json!({"agents": [{"agent_id": "b", "display_name": "B"}]})),
    ] {
        let ask = |more: &str| {
            let target = format!("/api/agents/{path}?workspace_id={}{more}", studio.id);
            studio.server.post(target).bearer(&key).json(&body).send()
        };
        ask("&dry_run=true").expect(200);
        ask("&dry%5Frun=true").expect(200);
        ask("&dry_run=false").refused(403, &["agents:"]);
        ask("").refused(403, &["agents:"]);
    }
}
