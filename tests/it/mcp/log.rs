//! The tools of the audit log, and the reasons of changes.

use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

use super::{done, told};

#[test]
fn changes_have_a_reason_and_the_log_is_searched_by_what_the_api_filters_by() {
    let studio = Studio::open();
    let (server, key) = (studio.server, studio.key("admin"));
    let run = |tool: &str, arguments: Value| done(server, &key.key, tool, &arguments);
    run(
        "create_agent",
        json!({"agent_id": "writer", "display_name": "Writer", "message": "A new desk"}),
    );
    let made = run("create_agent", json!({"agent_id": "editor", "display_name": "Editor"}));
    let update = json!({"agent_id": "editor", "etag": made["etag"], "role": "Editor", "message": "Has a title"});
    run("update_agent", update);
    run("deactivate_agent", json!({"agent_id": "editor", "message": "On leave"}));
    run("restore_agent", json!({"agent_id": "editor", "message": "Back"}));

    let found = |arguments: Value| {
        let log = run("search_audit_log", arguments);
        let entries = log["entries"].as_array().unwrap().clone();
        let of = |entry: &Value| entry["message"].as_str().unwrap_or("none").to_owned();
        entries.iter().map(of).collect::<Vec<_>>()
    };
    let of_editor = ["Back", "On leave", "Has a title", "none"];
    assert_eq!(found(json!({"target_id": "editor"})), of_editor);
    assert_eq!(found(json!({"target_id": "editor", "actor": key.id})), of_editor);
    assert_eq!(found(json!({"actor": studio.user, "action": "agent.*"})), [""; 0]);
    assert_eq!(found(json!({"action": "agent.created"})), ["none", "A new desk"]);
    assert_eq!(found(json!({"action": "agent.*", "limit": 2})), ["Back", "On leave"]);
    assert_eq!(
        found(json!({"target_type": "agent", "limit": 1, "offset": 1})),
        ["On leave"]
    );
    assert_eq!(found(json!({"target_type": "spaceship"})), [""; 0]);
    let log = run("search_audit_log", json!({"target_id": "editor"}));
    let entries = log["entries"].as_array().unwrap();
    let before = json!({"target_id": "editor", "before": entries[1]["revision"]});
    assert_eq!(found(before), of_editor[2..]);
    let first = json!({"target_id": "editor", "since": entries[3]["created_at"]});
    assert_eq!(found(first), of_editor, "since is inclusive");
    let none = json!({"target_id": "editor", "until": entries[3]["created_at"]});
    assert_eq!(found(none), [""; 0], "until is exclusive");

    let long = "x".repeat(501);
    for (arguments, faults) in [
        (json!({"since": "yesterday"}), "since must"),
        (json!({"before": 0}), "before must be an integer"),
        (json!({"actor": 7}), "actor must be a string"),
        (json!({"message": "x"}), "message is not a known argument"),
    ] {
        assert!(
            told(server, &key.key, "search_audit_log", &arguments).contains(faults),
            "{faults}"
        );
    }
    for message in [json!(long), json!("a\0b"), json!(7), Value::Null] {
        let restore = json!({"agent_id": "writer", "message": message});
        assert!(told(server, &key.key, "restore_agent", &restore).starts_with("message must"));
    }
}

#[test]
fn long_changes_are_listed_by_their_names_and_long_lists_in_pages() {
    let studio = Studio::open();
    let server = studio.server;
    // One change with 100 prompts of 20 kB, and ten agents of which each is shorter than the bound.
    let agents: Vec<Value> = (0..100)
        .map(|number| json!({"agent_id": format!("a{number}"), "display_name": "A", "persona_prompt": "\u{10ffff}".repeat(5000)}))
        .collect();
    let target = format!("/api/agents/apply?workspace_id={}", studio.id);
    server
        .post(target)
        .bearer(&studio.owner)
        .json(&json!({ "agents": agents }))
        .send()
        .expect(200);
    let log = done(
        server,
        &studio.owner,
        "search_audit_log",
        &json!({"action": "agents.applied"}),
    );
    let entry = &log["entries"][0];
    assert!(entry.get("changes").is_none(), "{entry}");
    let (names, count) = (
        entry["changed_fields"].as_array().unwrap(),
        entry["changed_fields_count"].as_u64().unwrap(),
    );
    assert!(names.len() == 200 && count > 200, "{} of {count} names", names.len());
    assert_eq!(names[0].as_str().unwrap(), "agents/a0/agent_type");

    for number in 0..30 {
        let new =
            json!({"agent_id": format!("b{number}"), "display_name": "B", "persona_prompt": "\u{10ffff}".repeat(5000)});
        done(server, &studio.owner, "create_agent", &new);
    }
    let (mut offset, mut found, mut pages) = (0, Vec::new(), 0);
    loop {
        let arguments = json!({"action": "agent.created", "offset": offset});
        let log = done(server, &studio.owner, "search_audit_log", &arguments);
        let entries = log["entries"].as_array().unwrap();
        found.extend(
            entries
                .iter()
                .map(|entry| entry["target"]["id"].as_str().unwrap().to_owned()),
        );
        assert!(entries.iter().all(|entry| entry["changes"].is_object()));
        pages += 1;
        let Some(next) = log["next_offset"].as_u64() else { break };
        assert_eq!(next, found.len() as u64);
        offset = next;
    }
    let expected: Vec<_> = (0..30).rev().map(|number| format!("b{number}")).collect();
    assert_eq!((pages, found), (2, expected));
}
