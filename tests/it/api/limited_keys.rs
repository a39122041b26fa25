//! API keys that are limited to some permissions, agents and a label.

use agentcfg_tests::harness::{Request, Response, Studio};
use serde_json::{Value, json};

/// A workspace with the agents `a`, `b` and `c`, each of two versions, the first of them labelled `production`.
fn studio() -> Studio<'static> {
    let studio = Studio::open();
    for agent_id in ["a", "b", "c"] {
        studio.create(agent_id, &json!({"role": "first"})).expect(201);
        studio.change(agent_id, &json!({"role": "second"})).expect(200);
        label(&studio, &studio.owner, agent_id, "production", 1).expect(200);
    }
    studio
}

fn ask(studio: &Studio, key: &str, method: &str, path: &str) -> Request {
    let joint = if path.contains('?') { '&' } else { '?' };
    let target = format!("/api/{path}{joint}workspace_id={}", studio.id);
    studio.server.request(method, target).bearer(key)
}

fn get(studio: &Studio, key: &str, path: &str) -> Response {
    ask(studio, key, "GET", path).send()
}

fn post(studio: &Studio, key: &str, path: &str, body: &Value) -> Response {
    ask(studio, key, "POST", path).json(body).send()
}

fn label(studio: &Studio, key: &str, agent_id: &str, label: &str, version: u64) -> Response {
    let path = format!("agents/labels?agent_id={agent_id}&label={label}");
    ask(studio, key, "PUT", &path).json(&json!({"version": version})).send()
}

/// The agents of the rows of an answer.
fn agents(answer: Response) -> Vec<String> {
    let rows = answer.expect(200).json();
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row["agent_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_record_shows_the_limits_where_they_are_set_and_rotation_passes_them_on() {
    let studio = Studio::open();
    let plain = studio.create_key(&json!({"permissions": null, "agents": null, "label": null}));
    let plain = plain.expect(201).json();
    for field in ["permissions", "agents", "label"] {
        assert!(plain.get(field).is_none(), "{field}");
    }
    let limits = json!({
        "scope": "write", "label": "latest",
        "permissions": ["models:invoke", "agents:read", "agents:read"], "agents": ["b", "a", "b"],
    });
    let created = studio.create_key(&limits).expect(201).json();
    let shown = |key: &Value| (key["permissions"].clone(), key["agents"].clone(), key["label"].clone());
    let expected = (
        json!(["agents:read", "models:invoke"]),
        json!(["b", "a"]),
        json!("latest"),
    );
    assert_eq!(shown(&created), expected);
    let path = format!("api-keys/rotate?key_id={}", created["id"].as_str().unwrap());
    let rotated = ask(&studio, &studio.owner, "POST", &path).send().expect(201).json();
    assert_eq!(shown(&rotated), expected);
    let whoami = get(&studio, rotated["key"].as_str().unwrap(), "whoami")
        .expect(200)
        .json();
    assert_eq!(whoami["workspaces"][0]["permissions"], expected.0);

    let many: Vec<String> = (0..101).map(|i| format!("agent-{i}")).collect();
    let no_permissions: [&str; 0] = [];
    for (body, said) in [
        (
            json!({"permissions": no_permissions}),
            "permissions must name at least one permission",
        ),
        (json!({"permissions": ["agents:fly"]}), "permissions[0] must be one of"),
        (
            json!({"scope": "read", "permissions": ["agents:read", "models:invoke"]}),
            "permissions[1] must be a permission of the scope read, got models:invoke",
        ),
        (
            json!({"permissions": ["api_keys:manage"]}),
            "permissions[0] must be a permission of the scope admin",
        ),
        (json!({"permissions": "agents:read"}), "permissions must be an array"),
        (
            json!({"agents": no_permissions}),
            "agents must name 1 to 100 agents, got 0",
        ),
        (json!({"agents": many}), "agents must name 1 to 100 agents, got 101"),
        (json!({"agents": ["a", "No Agent"]}), "agents[1]"),
        (json!({"label": "No Label"}), "label"),
    ] {
        studio.create_key(&body).refused(400, &[said]);
    }
    let repeated = [&many[..100], &many[..100]].concat();
    studio.create_key(&json!({"agents": repeated})).expect(201);
}

#[test]
fn a_key_has_the_permissions_that_it_names_and_no_others() {
    let studio = studio();
    let key = studio.key_with(&json!({"permissions": ["agents:release"]})).key;
    label(&studio, &key, "a", "production", 2).expect(200);
    get(&studio, &key, "agents/configs").refused(403, &["limited to some permissions", "agents:read"]);
    let promotion = json!({"from": "production", "to": "staging"});
    post(&studio, &key, "agents/labels/promote?dry_run=true", &promotion).refused(403, &["agents:read"]);
    post(&studio, &key, "agents/labels/promote", &promotion).expect(200);
    let reader = studio.key_with(&json!({"permissions": ["agents:read"]})).key;
    post(&studio, &reader, "agents/labels/promote", &promotion).refused(403, &["agents:release"]);
    post(&studio, &reader, "agents/labels/promote?dry_run=true", &promotion).expect(200);
    get(&studio, &reader, "audit-log").refused(403, &["audit_log:read"]);
}

#[test]
fn lists_show_the_agents_of_the_key_alone() {
    let studio = studio();
    let key = studio.key_with(&json!({"agents": ["c", "a", "not-yet"]})).key;
    for path in [
        "agents/configs",
        "agents/configs?state=all",
        "agents/configs?revision=12",
        "agents/released?label=production",
        "agents/released?label=latest",
        "agents/labels",
        "agents/versions",
        "agents/status",
        "agents/diff?from=production&to=latest",
    ] {
        let shown = agents(get(&studio, &key, path));
        assert_eq!(shown, ["a", "c"], "{path}");
        assert_eq!(agents(get(&studio, &studio.owner, path)), ["a", "b", "c"], "{path}");
    }
    assert_eq!(agents(get(&studio, &key, "agents/configs?limit=1&offset=1")), ["c"]);

    // Other rows, other tags: those of the key stay until something changes.
    for path in [
        "agents/configs",
        "agents/released?label=production",
        "agents/configs?revision=12",
    ] {
        let (own, whole) = (
            get(&studio, &key, path).etag(),
            get(&studio, &studio.owner, path).etag(),
        );
        assert_ne!(own, whole, "{path}");
        assert_eq!(own, get(&studio, &key, path).etag(), "{path}");
        let known = ask(&studio, &key, "GET", path).header("if-none-match", own);
        known.send().expect(304);
    }
    // A key of all agents sees the same rows under another tag.
    let all = studio.key_with(&json!({"agents": ["a", "b", "c"]})).key;
    for path in ["agents/configs", "agents/released?label=production"] {
        let (own, whole) = (get(&studio, &all, path), get(&studio, &studio.owner, path));
        assert_eq!(own.json(), whole.json(), "{path}");
        assert_ne!(own.etag(), whole.etag(), "{path}");
    }
    for agent_id in ["a", "b"] {
        let report = ask(
            &studio,
            &studio.owner,
            "PUT",
            &format!("agents/status?agent_id={agent_id}"),
        );
        report.json(&json!({"status": "idle"})).send().expect(200);
    }
    assert_eq!(agents(get(&studio, &key, "agents/status/history")), ["a"]);
}

#[test]
fn naming_another_agent_is_forbidden() {
    let studio = studio();
    let key = studio.key_with(&json!({"agents": ["a", "new"]})).key;
    let said = &["limited to some agents", "\"b\" is none of them"][..];
    for path in [
        "agents/configs?agent_id=b",
        "agents/configs?agent_id=b&revision=12",
        "agents/released?label=production&agent_id=b",
        "agents/labels?agent_id=b",
        "agents/labels/history?label=production&agent_id=b",
        "agents/versions?agent_id=b",
        "agents/version?agent_id=b&version=1",
        "agents/diff?agent_id=b&from=1&to=2",
        "agents/status/history?agent_id=b",
        "usage?agent_id=b",
        "usage/calls?agent_id=b",
    ] {
        get(&studio, &key, path).refused(403, said);
    }
    // Not even an identifier that no agent can have is told from another one.
    for path in [
        "agents/versions?",
        "agents/configs?",
        "agents/configs?state=all&",
        "agents/released?label=production&",
        "agents/labels?",
    ] {
        get(&studio, &key, &format!("{path}agent_id=No%20Agent")).refused(403, &["limited to some agents"]);
    }
    for (method, path, body) in [
        ("PATCH", "agents/configs?agent_id=b", json!({"role": "x"})),
        ("DELETE", "agents/configs?agent_id=b", json!({})),
        ("POST", "agents/configs/restore?agent_id=b", json!({})),
        ("POST", "agents/rollback?agent_id=b", json!({"version": 1})),
        ("PUT", "agents/status?agent_id=b", json!({"status": "idle"})),
        ("PUT", "agents/labels?agent_id=b&label=x", json!({"version": 1})),
        ("DELETE", "agents/labels?agent_id=b&label=production", json!({})),
        ("POST", "agents/prompt?agent_id=b", json!({})),
        (
            "POST",
            "agents/labels/promote",
            json!({"from": "production", "to": "x", "agent_ids": ["a", "b"]}),
        ),
        (
            "POST",
            "agents/apply",
            json!({"agents": [{"agent_id": "b", "display_name": "B"}]}),
        ),
        (
            "POST",
            "agents/apply?dry_run=true",
            json!({"agents": [{"agent_id": "b", "display_name": "B"}]}),
        ),
    ] {
        let request = ask(&studio, &key, method, path);
        let request = if method == "DELETE" {
            request
        } else {
            request.json(&body)
        };
        request.send().refused(403, said);
    }
    let new = |agent_id: &str| json!({"workspace_id": studio.id, "agent_id": agent_id, "display_name": "N"});
    studio
        .server
        .post("/api/agents/configs")
        .bearer(&key)
        .json(&new("other"))
        .send()
        .refused(403, &["limited"]);
    studio
        .server
        .post("/api/agents/configs")
        .bearer(&key)
        .json(&new("new"))
        .send()
        .expect(201);
    assert_eq!(agents(get(&studio, &key, "agents/configs")), ["a", "new"]);
}

#[test]
fn what_concerns_the_whole_workspace_is_forbidden() {
    let studio = studio();
    let key = studio.key_with(&json!({"agents": ["a"]})).key;
    for (path, permission) in [
        ("audit-log", "audit_log:read"),
        ("webhooks", "webhooks:read"),
        ("workspaces/members", "users:read"),
        ("api-keys", "api_keys:read"),
        ("usage?by=key", "audit_log:read"),
        ("usage?by=agent,user", "audit_log:read"),
    ] {
        get(&studio, &key, path).refused(403, &["limited to some", permission]);
    }
    get(&studio, &key, "workspaces/export").refused(403, &[]);
    get(&studio, &key, "provider-keys").expect(200);
    get(&studio, &key, "models").expect(200);
    get(&studio, &key, "usage?by=agent").expect(200);
    let whoami = get(&studio, &key, "whoami").expect(200).json();
    let permissions = whoami["workspaces"][0]["permissions"].as_array().unwrap();
    for lacking in [
        "audit_log:read",
        "webhooks:read",
        "webhooks:manage",
        "users:read",
        "api_keys:read",
    ] {
        assert!(!permissions.contains(&json!(lacking)), "{lacking}");
    }
    assert!(permissions.contains(&json!("agents:release")));
}

#[test]
fn changes_of_many_touch_the_agents_of_the_key_alone() {
    let studio = studio();
    let key = studio.key_with(&json!({"agents": ["a", "c"]})).key;
    let promoted = post(
        &studio,
        &key,
        "agents/labels/promote",
        &json!({"from": "latest", "to": "staging"}),
    );
    assert_eq!(agents(promoted), ["a", "c"]);
    let base = get(&studio, &key, "agents/configs").need("change-cursor").to_owned();
    label(&studio, &studio.owner, "b", "staging", 1).expect(200);
    studio.change("b", &json!({"role": "third"})).expect(200);
    // The moves of other agents do not count.
    let promotion = json!({"from": "latest", "to": "staging", "base": base});
    post(&studio, &key, "agents/labels/promote", &promotion).expect(200);
    post(&studio, &studio.owner, "agents/labels/promote", &promotion).refused(412, &["staging"]);
    label(&studio, &studio.owner, "a", "staging", 1).expect(200);
    post(&studio, &key, "agents/labels/promote", &promotion).refused(412, &["staging"]);

    let history = get(&studio, &studio.owner, "agents/labels/history?label=staging")
        .expect(200)
        .json();
    let first = history.as_array().unwrap().last().unwrap()["revision"]
        .as_u64()
        .unwrap();
    let restore = json!({"label": "staging", "revision": first - 1});
    assert_eq!(
        agents(post(&studio, &key, "agents/labels/restore", &restore)),
        ["a", "c"]
    );
    assert_eq!(
        agents(get(&studio, &studio.owner, "agents/labels?label=staging")),
        ["b"]
    );

    let spec = |agent_id: &str| json!({"agent_id": agent_id, "display_name": "N"});
    let all = json!({"set": "docs", "agents": [spec("a"), spec("b"), spec("c")]});
    post(&studio, &studio.owner, "agents/apply", &all).expect(200);
    let pruned = post(
        &studio,
        &key,
        "agents/apply",
        &json!({"set": "docs", "prune": true, "agents": [spec("a")]}),
    );
    let pruned = pruned.expect(200).json();
    let results: Vec<_> = pruned["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["agent_id"].clone(), row["action"].clone()))
        .collect();
    assert_eq!(
        results,
        [(json!("a"), json!("none")), (json!("c"), json!("deactivate"))]
    );
    assert_eq!(agents(get(&studio, &studio.owner, "agents/configs")), ["a", "b"]);
    let of_set = post(
        &studio,
        &key,
        "agents/labels/promote",
        &json!({"from": "latest", "to": "beta", "set": "docs"}),
    );
    assert_eq!(agents(of_set), ["a"]);
}

#[test]
fn the_feed_and_the_history_of_labels_show_the_agents_of_the_key_alone() {
    let studio = studio();
    let key = studio.key_with(&json!({"agents": ["a", "c"]})).key;
    post(
        &studio,
        &studio.owner,
        "agents/labels/promote",
        &json!({"from": "latest", "to": "staging"}),
    )
    .expect(200);
    post(
        &studio,
        &studio.owner,
        "agents/labels/promote",
        &json!({"from": "latest", "to": "only-b", "agent_ids": ["b"]}),
    )
    .expect(200);
    let page = get(&studio, &key, "changes?after=start&limit=1000").expect(200).json();
    let events = page.as_array().unwrap();
    let paths = |event: &Value| {
        event["changes"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    for event in events {
        let target = event["target"]["id"].as_str().unwrap();
        match event["target"]["type"].as_str().unwrap() {
            "agent" => assert!(["a", "c"].contains(&target), "{event}"),
            _ => assert_eq!(paths(event), ["agents/a/labels/staging", "agents/c/labels/staging"]),
        }
    }
    assert_eq!(events.len(), 7, "three events of two agents, and the promotion");
    let mut stream = ask(&studio, &key, "GET", "changes?after=start").follow();
    for expected in events {
        assert_eq!(stream.find("change").data, *expected);
    }
    let history = |key: &str, label: &str| {
        get(&studio, key, &format!("agents/labels/history?label={label}"))
            .expect(200)
            .json()
    };
    let moves = history(&key, "staging");
    let moved: Vec<_> = moves[0]["moves"]
        .as_array()
        .unwrap()
        .iter()
        .map(|moved| moved["agent_id"].clone())
        .collect();
    assert_eq!(moved, [json!("a"), json!("c")]);
    assert_eq!(history(&key, "only-b"), json!([]));
    assert_eq!(history(&studio.owner, "only-b").as_array().unwrap().len(), 1);
}

#[test]
fn a_pinned_label_selects_the_version() {
    let studio = studio();
    let key = studio.key_with(&json!({"label": "production"})).key;
    let versions = |path: &str| {
        let rows = get(&studio, &key, path).expect(200).json();
        rows.as_array()
            .unwrap()
            .iter()
            .map(|row| row["version"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(versions("agents/released"), [1, 1, 1]);
    assert_eq!(versions("agents/released?label=production"), [1, 1, 1]);
    let said = &["pinned to the label \"production\""];
    get(&studio, &key, "agents/released?label=latest").refused(403, said);
    let prompt = |more: &str| post(&studio, &key, &format!("agents/prompt?agent_id=a{more}"), &json!({}));
    for more in ["", "&label=production"] {
        assert_eq!(prompt(more).expect(200).json()["version"], 1, "{more}");
    }
    for more in ["&label=latest", "&version=1", "&label=staging"] {
        prompt(more).refused(403, said);
    }
    let latest = studio.key_with(&json!({"label": "latest"})).key;
    let rendered = post(&studio, &latest, "agents/prompt?agent_id=a", &json!({}));
    assert_eq!(rendered.expect(200).json()["version"], 2);
    get(&studio, &latest, "agents/released?label=production").refused(403, &["latest"]);
    // Without a pin a label is needed.
    get(&studio, &studio.owner, "agents/released").refused(400, &["label is required"]);
}
