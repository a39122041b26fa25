//! The tools, as their credentials see them.

use agentcfg_tests::harness::{Server, Studio};
use serde_json::{Value, json};

use super::{done, modern, result, told};

const READS: [&str; 3] = ["list_agents", "get_agent", "list_models"];
const WRITES: [&str; 4] = ["create_agent", "update_agent", "deactivate_agent", "restore_agent"];
const VERSIONS: [&str; 2] = ["list_versions", "diff_versions"];
const RELEASES: [&str; 2] = ["set_label", "promote_label"];

pub(super) fn tools(server: &Server, credential: &str) -> Vec<Value> {
    let list = result(modern(server, credential, "tools/list", &json!({})).send());
    list["tools"].as_array().unwrap().clone()
}

fn names(server: &Server, credential: &str) -> Vec<String> {
    let tools = tools(server, credential);
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn tools_are_listed_by_what_the_credential_may_do() {
    let studio = Studio::open();
    let server = studio.server;
    let usage = ["get_usage"];
    let reads = [&READS[..], &VERSIONS, &usage].concat();
    let writes = [&WRITES[..], &["report_status"], &VERSIONS, &["rollback_agent"]].concat();
    let all = [&READS[..], &["search_audit_log"], &writes, &RELEASES, &usage].concat();
    let without_log = [&READS[..], &writes, &usage].concat();
    for (credential, expected) in [
        (studio.key("read").key, reads.clone()),
        (studio.key("write").key, without_log.clone()),
        (studio.key("admin").key, all.clone()),
        (studio.owner.clone(), all),
        (studio.member("viewer"), reads),
        (studio.member("member"), without_log),
        (studio.outsider(), vec![]),
    ] {
        assert_eq!(names(server, &credential), expected);
    }
}

#[test]
fn the_list_fits_into_sixteen_kilobytes() {
    let studio = Studio::open();
    let list = modern(studio.server, &studio.key("admin").key, "tools/list", &json!({}))
        .send()
        .expect(200);
    assert!(list.body.len() <= 16_000, "{} bytes", list.body.len());
    for tool in list.json()["result"]["tools"].as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["annotations"]["openWorldHint"], false, "{tool}");
    }
}

#[test]
fn an_agent_lives_through_its_tools() {
    let studio = Studio::open();
    let (server, key) = (studio.server, studio.key("write"));
    let run = |tool: &str, arguments: Value| done(server, &key.key, tool, &arguments);
    let made = run(
        "create_agent",
        json!({"agent_id": "writer", "display_name": "Writer", "persona_prompt": "Write.", "parameters": {"warmth": 70}}),
    );
    assert_eq!(
        (&made["agent_id"], &made["parameters"]["warmth"]),
        (&json!("writer"), &json!(70))
    );
    assert!(made.get("role").is_none(), "null fields are left out");
    let got = run("get_agent", json!({"agent_id": "writer"}));
    assert_eq!(got, made);

    let update = json!({"agent_id": "writer", "etag": got["etag"], "role": "Author", "clear": ["persona_prompt"]});
    let changed = run("update_agent", update.clone());
    assert_eq!(
        (&changed["role"], changed.get("persona_prompt")),
        (&json!("Author"), None)
    );
    let stale = told(server, &key.key, "update_agent", &update);
    let current = changed["etag"].as_str().unwrap();
    assert!(
        stale.contains("etag is not the current one") && !stale.contains(current),
        "{stale}"
    );
    // The etag of HTTP, with its quotes, is accepted too.
    let list = studio.list_request("&agent_id=writer").send().expect(200);
    run(
        "update_agent",
        json!({"agent_id": "writer", "etag": list.etag(), "role": "Editor"}),
    );

    let report =
        json!({"agent_id": "writer", "status": "working", "current_task_id": "T1", "current_task_title": "Notes"});
    assert_eq!(run("report_status", report)["status"], "working");
    let listed = run("list_agents", json!({}));
    assert_eq!(listed["agents"][0]["status"], "working");
    assert_eq!(listed["agents"][0]["current_task_title"], "Notes");
    assert!(listed["agents"][0].get("persona_prompt").is_none());

    assert_eq!(
        run("deactivate_agent", json!({"agent_id": "writer"})),
        json!({"agent_id": "writer", "is_active": false})
    );
    assert_eq!(run("list_agents", json!({}))["agents"], json!([]));
    let inactive = run("list_agents", json!({"state": "inactive"}));
    assert_eq!(inactive["agents"][0]["is_active"], false);
    assert_eq!(run("restore_agent", json!({"agent_id": "writer"}))["is_active"], true);
    assert!(!run("list_models", json!({}))["models"].as_array().unwrap().is_empty());

    let log = done(server, &studio.owner, "search_audit_log", &json!({"limit": 2}));
    assert_eq!(log["next_offset"], 2);
    assert_eq!(log["entries"][0]["action"], "agent.restored");
    assert_eq!(log["entries"][0]["actor"], json!({"type": "api_key", "id": key.id}));
}

#[test]
fn versions_are_listed_compared_rolled_back_and_released() {
    let studio = Studio::open();
    let (server, key) = (studio.server, studio.key("admin").key);
    for agent_id in ["writer", "editor"] {
        studio.create(agent_id, &json!({"role": "first"})).expect(201);
        studio.change(agent_id, &json!({"role": "second"})).expect(200);
    }
    let run = |tool: &str, arguments: Value| done(server, &key, tool, &arguments);
    let set = run(
        "set_label",
        json!({"agent_id": "writer", "label": "production", "version": 1}),
    );
    assert_eq!((&set["label"], &set["version"]), (&json!("production"), &json!(1)));
    let versions = run("list_versions", json!({"agent_id": "writer"}));
    assert_eq!(versions["versions"][1]["labels"], json!(["production"]));
    assert_eq!(
        run("list_versions", json!({"agent_id": "writer", "before": 2}))["versions"][0]["version"],
        1
    );
    let diff = run("diff_versions", json!({"agent_id": "writer", "from": "production"}));
    assert_eq!(
        (&diff["from"], &diff["to"], &diff["changes"]["role"]["to"]),
        (&json!(1), &json!(2), &json!("second"))
    );
    let back = run(
        "rollback_agent",
        json!({"agent_id": "writer", "label": "production", "message": "Bad tone"}),
    );
    assert_eq!((&back["version"], &back["role"]), (&json!(3), &json!("first")));
    assert_eq!(studio.audit()[0]["message"], "Bad tone");
    let planned = run(
        "promote_label",
        json!({"from": "latest", "to": "production", "dry_run": true}),
    );
    let moved = run("promote_label", json!({"from": "latest", "to": "production"}));
    assert_eq!(planned, moved);
    assert_eq!(moved["labels"].as_array().unwrap().len(), 2);
    let staged = run(
        "set_label",
        json!({"agent_id": "writer", "label": "staging", "from": "production"}),
    );
    assert_eq!(staged["version"], 3);
    for (tool, arguments, fault) in [
        (
            "set_label",
            json!({"agent_id": "writer", "label": "x"}),
            "version or from is required",
        ),
        (
            "set_label",
            json!({"agent_id": "writer", "label": "x", "version": 1, "from": "y"}),
            "version and from must not both be given",
        ),
        (
            "set_label",
            json!({"agent_id": "writer", "label": "latest", "version": 1}),
            "latest",
        ),
        (
            "set_label",
            json!({"agent_id": "writer", "label": "staging", "version": 1, "expected_version": 1}),
            "points at version 3",
        ),
        (
            "rollback_agent",
            json!({"agent_id": "writer"}),
            "version or label is required",
        ),
        (
            "rollback_agent",
            json!({"agent_id": "writer", "version": 9}),
            "has no version 9",
        ),
        (
            "promote_label",
            json!({"from": "a", "to": "a"}),
            "must be another label",
        ),
        (
            "promote_label",
            json!({"from": "a", "to": "b", "dry_run": "yes"}),
            "dry_run must be a boolean",
        ),
        (
            "diff_versions",
            json!({"agent_id": "writer", "from": "none"}),
            "has no label",
        ),
    ] {
        let message = told(server, &key, tool, &arguments);
        assert!(message.contains(fault), "{tool} {arguments}: {message}");
    }
    let writer = studio.key("write").key;
    let refused = told(
        server,
        &writer,
        "set_label",
        &json!({"agent_id": "writer", "label": "x", "version": 1}),
    );
    assert!(refused.contains("agents:release"), "{refused}");
}

#[test]
fn a_persona_is_edited_in_places() {
    let studio = Studio::open();
    let (server, key) = (studio.server, studio.key("write").key);
    let persona = "You write short notes. Never shout.";
    studio.create("writer", &json!({"persona_prompt": persona})).expect(201);
    let got = done(server, &key, "get_agent", &json!({"agent_id": "writer"}));
    let edit = |etag: &Value, find: &str, more: Value| {
        let edits = json!([{"find": find, "replace": "long"}]);
        let mut arguments = json!({"agent_id": "writer", "etag": etag, "persona_edits": edits});
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        arguments
    };
    let edited = done(
        server,
        &key,
        "update_agent",
        &edit(&got["etag"], "short", json!({"role": "Author"})),
    );
    assert_eq!(edited["persona_prompt"], "You write long notes. Never shout.");
    assert_eq!(edited["role"], "Author");
    for (arguments, fault) in [
        (edit(&got["etag"], "long", json!({})), "etag is not the current one"),
        (
            edit(&edited["etag"], "short", json!({})),
            "occurs 0 times; nothing was changed",
        ),
        (edit(&edited["etag"], "o", json!({})), "exactly once"),
        (
            edit(&edited["etag"], "long", json!({"persona_prompt": "x"})),
            "cannot be given together",
        ),
        (
            edit(&edited["etag"], "long", json!({"clear": ["persona_prompt"]})),
            "cannot be given together",
        ),
        (
            json!({"agent_id": "writer", "etag": edited["etag"], "persona_edits": ["x"]}),
            "persona_edits[0] must be an object",
        ),
    ] {
        let message = told(server, &key, "update_agent", &arguments);
        assert!(message.contains(fault), "{arguments}: {message}");
    }
}

#[test]
fn what_the_api_refuses_is_told_to_the_model() {
    let studio = Studio::on_plan("free");
    let (server, read, admin) = (studio.server, studio.key("read").key, studio.key("admin").key);
    let new = json!({"agent_id": "a", "display_name": "A"});
    assert!(told(server, &read, "create_agent", &new).contains("lacks the permission agents:configure"));
    assert!(told(server, &read, "search_audit_log", &json!({})).contains("audit_log:read"));
    assert!(told(server, &read, "get_agent", &json!({"agent_id": "none"})).contains("not found"));
    done(server, &admin, "create_agent", &new);
    assert!(told(server, &admin, "create_agent", &new).contains("already exists"));
    for id in ["b", "c"] {
        done(
            server,
            &admin,
            "create_agent",
            &json!({"agent_id": id, "display_name": "x"}),
        );
    }
    let over = told(
        server,
        &admin,
        "create_agent",
        &json!({"agent_id": "d", "display_name": "x"}),
    );
    assert!(over.contains("allows 3 active agents"), "{over}");
    let foreign = Studio::open();
    let elsewhere = json!({"workspace_id": foreign.id});
    assert!(told(server, &admin, "list_agents", &elsewhere).contains("another workspace"));
}

#[test]
fn arguments_are_checked() {
    let studio = Studio::open();
    let (server, key) = (studio.server, studio.key("admin").key);
    studio.create("writer", &Value::Null).expect(201);
    for (tool, arguments, fault) in [
        (
            "list_agents",
            json!({"limit": 0}),
            "limit must be an integer from 1 to 1000",
        ),
        (
            "list_agents",
            json!({"limit": "5"}),
            "limit must be an integer from 1 to 1000",
        ),
        ("list_agents", json!({"state": "gone"}), "state must be"),
        ("list_agents", json!({"workspace_id": "x"}), "workspace_id must be"),
        (
            "list_agents",
            json!({"verbose": true}),
            "verbose is not a known argument",
        ),
        ("list_agents", json!([]), "arguments must be an object"),
        ("get_agent", json!({}), "agent_id is required"),
        (
            "get_agent",
            json!({"agent_id": 7}),
            "agent_id must be a string, got a number",
        ),
        ("create_agent", json!({"agent_id": "A"}), "agent_id"),
        ("create_agent", json!({"agent_id": "a"}), "display_name is required"),
        (
            "create_agent",
            json!({"agent_id": "a", "display_name": "x", "role": null}),
            "role must not be null",
        ),
        (
            "create_agent",
            json!({"agent_id": "a", "display_name": "x", "is_active": true}),
            "is_active is read-only",
        ),
        ("update_agent", json!({"agent_id": "writer"}), "etag is required"),
        (
            "update_agent",
            json!({"agent_id": "writer", "etag": "x"}),
            "etag is not the current one",
        ),
        (
            "update_agent",
            json!({"agent_id": "writer", "etag": "x", "role": null}),
            "name it in clear",
        ),
        (
            "update_agent",
            json!({"agent_id": "writer", "etag": "x", "clear": ["display_name"]}),
            "clear must name role",
        ),
        (
            "update_agent",
            json!({"agent_id": "writer", "etag": "x", "color": 7, "role": "x", "clear": ["role", "id"]}),
            "role is given, and named in clear; clear must name role, description, model, color, persona_prompt, definition, not id; \
             color must be a string, got a number",
        ),
        (
            "report_status",
            json!({"agent_id": "writer", "status": "working"}),
            "current_task_id is required",
        ),
        (
            "report_status",
            json!({"agent_id": "writer", "status": "busy"}),
            "status must be",
        ),
    ] {
        let message = told(server, &key, tool, &arguments);
        assert!(message.contains(fault), "{tool} {arguments}: {message}");
    }
}

#[test]
fn a_user_of_several_workspaces_names_one() {
    let studio = Studio::open();
    let (server, owner) = (studio.server, &studio.owner);
    done(server, owner, "list_agents", &json!({}));
    let sibling = studio.sibling();
    assert!(told(server, owner, "list_agents", &json!({})).contains("workspace_id is required"));
    let new = json!({"workspace_id": sibling.id, "agent_id": "a", "display_name": "A"});
    assert!(
        told(
            server,
            owner,
            "create_agent",
            &json!({"agent_id": "a", "display_name": "A"})
        )
        .contains("workspace_id")
    );
    done(server, owner, "create_agent", &new);
    let listed = done(server, owner, "list_agents", &json!({"workspace_id": sibling.id}));
    assert_eq!(listed["agents"][0]["agent_id"], "a");
}
