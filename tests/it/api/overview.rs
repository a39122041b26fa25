//! What a dashboard draws: the history of statuses, differences of labels, tests of keys, summaries of the audit log.

use agentcfg_tests::harness::{Server, Studio};
use serde_json::{Value, json};

fn get(studio: &Studio<'_>, path: &str) -> Value {
    studio.server.get(path).bearer(&studio.owner).send().expect(200).json()
}

#[test]
fn the_history_of_statuses_has_reports_and_their_ends() {
    // It is asked until a report ends, on a fast machine more often than the default allows.
    let server = Server::builder()
        .set("status_ttl", "1")
        .set("session_rate_limit", "1000000")
        .start();
    let studio = Studio::on(&server);
    for agent in ["writer", "poet"] {
        studio.create(agent, &Value::Null).expect(201);
    }
    let report = |agent: &str, body: &Value| {
        let path = format!("/api/agents/status?workspace_id={}&agent_id={agent}", studio.id);
        server.put(path).bearer(&studio.owner).json(body).send().expect(200);
    };
    let task = json!({"status": "working", "current_task_id": "T-1", "current_task_title": "Notes"});
    report("writer", &task);
    report("writer", &task);
    report("writer", &json!({"status": "idle"}));
    report("poet", &json!({"status": "idle"}));
    let path = format!("/api/agents/status/history?workspace_id={}", studio.id);
    let changes = agentcfg_tests::harness::until("the reports end", || {
        let changes = get(&studio, &path);
        (changes.as_array().unwrap().len() == 5).then_some(changes)
    });
    let of = |agent: &str| -> Vec<Value> {
        let all = changes.as_array().unwrap().iter();
        all.filter(|change| change["agent_id"] == agent)
            .map(|change| change["status"].clone())
            .collect()
    };
    assert_eq!(of("writer"), ["working", "idle", "offline"]);
    assert_eq!(of("poet"), ["idle", "offline"]);
    assert_eq!(changes[0]["current_task_title"], "Notes");
    let times: Vec<_> = changes
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["at"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    let one = server
        .get(format!("{path}&agent_id=poet&since={}", times[1]))
        .bearer(&studio.owner)
        .send()
        .expect(200);
    assert_eq!(one.json().as_array().unwrap().len(), 2);
    assert!(one.need("history-since") <= times[0]);
    assert_eq!(get(&studio, &format!("{path}&agent_id=unknown")), json!([]));
    let bad = server
        .get(format!("{path}&since=yesterday"))
        .bearer(&studio.owner)
        .send();
    bad.refused(400, &["since"]);
}

#[test]
fn two_labels_are_compared_for_all_agents() {
    let studio = Studio::open();
    for agent in ["b-agent", "a-agent", "unreleased", "gone"] {
        studio
            .create(agent, &json!({"persona_prompt": "one\ntwo\n", "model": "gpt-5.5"}))
            .expect(201);
    }
    let label = |agent: &str, label: &str, version: u64| {
        let path = format!(
            "/api/agents/labels?workspace_id={}&agent_id={agent}&label={label}",
            studio.id
        );
        let put = studio.server.put(path).bearer(&studio.owner);
        put.json(&json!({"version": version})).send().expect(200);
    };
    for agent in ["b-agent", "a-agent", "gone"] {
        label(agent, "production", 1);
    }
    studio
        .change("b-agent", &json!({"persona_prompt": "one\nthree\nfour\n"}))
        .expect(200);
    studio.change("b-agent", &json!({"model": "gpt-6-sol"})).expect(200);
    studio.remove("gone").expect(200);
    let path = format!("/api/agents/diff?workspace_id={}", studio.id);
    let expected = json!([
        {"agent_id": "b-agent", "from": 1, "to": 3, "versions": 2, "fields": ["model", "persona_prompt"], "lines_added": 2, "lines_removed": 1},
        {"agent_id": "a-agent", "from": 1, "to": 1, "versions": 0, "fields": [], "lines_added": 0, "lines_removed": 0},
    ]);
    assert_eq!(get(&studio, &format!("{path}&from=production&to=latest")), expected);
    assert_eq!(get(&studio, &format!("{path}&from=production")), expected);
    let back = get(&studio, &format!("{path}&from=latest&to=production"));
    assert_eq!((&back[0]["from"], &back[0]["lines_added"]), (&json!(3), &json!(1)));
    assert_eq!(
        get(&studio, &format!("{path}&from=latest&to=latest"))
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(get(&studio, &format!("{path}&from=staging&to=latest")), json!([]));
    for (query, said) in [
        ("from=1&to=latest", "labels"),
        ("from=Not+One", "the query parameter from must be"),
        ("from=staging&to=Not+One", "the query parameter to must be"),
        ("to=latest", "from"),
    ] {
        let refused = studio
            .server
            .get(format!("{path}&{query}"))
            .bearer(&studio.owner)
            .send();
        refused.refused(400, &[said]);
    }
    // Two labels are of a workspace, which a key has to name too.
    let key = studio.key("read").key;
    let refused = studio.server.get("/api/agents/diff?from=staging").bearer(&key).send();
    refused.refused(400, &["workspace_id is required unless agent_id is given"]);
}

#[test]
fn a_summary_of_the_audit_log_has_no_values() {
    let studio = Studio::open();
    let agents: Vec<_> = (0..40)
        .map(|i| json!({"agent_id": format!("a{i}"), "display_name": "A", "persona_prompt": "secret words", "role": "r"}))
        .collect();
    let apply = format!("/api/agents/apply?workspace_id={}", studio.id);
    let apply = studio.server.post(apply).bearer(&studio.owner);
    apply.json(&json!({"agents": agents})).send().expect(200);
    studio.change("a1", &json!({"role": "other"})).expect(200);
    let path = format!("/api/audit-log?workspace_id={}", studio.id);
    let (full, summary) = (get(&studio, &path), get(&studio, &format!("{path}&view=summary")));
    assert_eq!(get(&studio, &format!("{path}&view=full")), full);
    assert!(!summary.to_string().contains("secret words"));
    for (full, summary) in full.as_array().unwrap().iter().zip(summary.as_array().unwrap()) {
        for field in ["id", "actor", "action", "target", "created_at", "revision", "message"] {
            assert_eq!(full[field], summary[field]);
        }
        let paths: Vec<_> = full["changes"].as_object().unwrap().keys().collect();
        let shown = summary["changes"].as_object().unwrap();
        assert!(shown.values().all(Value::is_null));
        assert!(shown.keys().eq(paths.iter().copied().take(100)));
        match paths.len() {
            ..=100 => assert!(summary.get("paths").is_none()),
            many => assert_eq!(summary["paths"], many),
        }
    }
    assert!(summary.as_array().unwrap().iter().any(|entry| entry["paths"].is_u64()));
    let some = get(&studio, &format!("{path}&view=summary&action=agent.updated&limit=1"));
    assert_eq!(some[0]["changes"], json!({"role": null}));
    let bad = studio
        .server
        .get(format!("{path}&view=short"))
        .bearer(&studio.owner)
        .send();
    bad.refused(400, &["view", "full, summary"]);
}
