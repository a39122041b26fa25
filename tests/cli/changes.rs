//! Changing agents, releasing versions, and following the changes.

use std::fs;

use serde_json::json;

use crate::fixture::{Desk, said_by};

#[test]
fn an_agent_is_made_changed_released_and_rolled_back() {
    let desk = Desk::open();
    let create = [
        "agents",
        "create",
        "writer",
        "--display-name",
        "Release writer",
        "--model",
        "gpt-5",
        "--avatar-color",
        "#7c3aed",
        "--capability",
        "writing",
        "--parameter",
        "tone=0.7",
        "--parameter",
        "formality=70",
        "--persona-file",
        "-",
        "--message",
        "first",
    ];
    let persona = "You write.\n  ---\r\n";
    desk.run_with(&create).stdin(persona).finish().exited(0);
    let agent = desk.studio.list().json()[0].clone();
    assert_eq!(agent["persona_prompt"], persona);
    assert_eq!(agent["parameters"], json!({"formality": 70, "tone": 0.7}));
    assert_eq!(agent["color"], "#7c3aed");

    // The file that is shown creates the same agent again.
    let file = desk.ok("agents get writer");
    desk.write("copy.md", &file.replace("agent_id: writer", "agent_id: copy"));
    desk.ok("agents create --file copy.md");
    assert_eq!(desk.studio.list().json()[1]["persona_prompt"], persona);
    desk.studio.remove("copy").expect(200);

    desk.studio
        .change("writer", &json!({"persona_prompt": "Short."}))
        .expect(200);
    desk.ok("label set writer production 1");
    desk.ok("label set writer staging 2 --expected none");
    let diff = desk.ok("diff writer production staging");
    assert!(diff.contains("persona_prompt:") && diff.contains("+ Short."), "{diff}");
    said_by(
        desk.run("diff writer 1 1").finish().exited(0),
        &["have the same content"],
    );
    let planned = desk.json("label promote staging production --dry-run", 0);
    assert_eq!(
        planned,
        json!([{"agent_id": "writer", "label": "production", "version": 2, "previous_version": 1}])
    );
    let shown = desk
        .run("label promote staging production --dry-run")
        .finish()
        .exited(0);
    assert!(
        shown.stdout.contains("AFTER") && shown.stdout.contains("writer"),
        "{shown:?}"
    );
    said_by(shown, &["no label was moved"]);
    assert_eq!(desk.json("label list --label production", 0)[0]["version"], 1);
    desk.ok("label promote staging production --message released");
    assert_eq!(desk.json("label list --label production", 0)[0]["version"], 2);
    said_by(
        desk.run("label promote nothing production").finish().exited(1),
        &["no active agent has the label nothing"],
    );
    said_by(
        desk.run("label promote stagign production").finish().exited(1),
        &["no active agent has the label stagign", "Did you mean staging?"],
    );
    said_by(
        desk.run("label promote lates production").finish().exited(1),
        &["no active agent has the label lates", "Did you mean latest?"],
    );
    let history = desk.json("label history production", 0);
    assert_eq!(
        (&history[0]["message"], &history[0]["moves"][0]["to"]),
        (&json!("released"), &json!(2))
    );
    let shown = desk.ok("label history production --agent writer --limit 1");
    assert!(
        shown.contains("MOVES") && shown.contains("writer 1→2") && shown.contains("released"),
        "{shown}"
    );
    let before = history[1]["revision"].to_string();
    let planned = desk
        .run(&format!("label restore production {before} --dry-run"))
        .finish()
        .exited(0);
    assert!(planned.stdout.contains("AFTER"), "{planned:?}");
    said_by(planned, &["no label was moved"]);
    let restored = desk.json(&format!("label restore production {before}"), 0);
    assert_eq!(
        restored,
        json!([{"agent_id": "writer", "label": "production", "version": 1, "previous_version": 2}])
    );
    said_by(
        desk.run(&format!("label restore production {before}"))
            .finish()
            .exited(0),
        &["is where it was at revision"],
    );
    said_by(
        desk.run("label restore production 9999").finish().exited(1),
        &["revision must be 1 to"],
    );
    said_by(
        desk.run("label history nothing").finish().exited(0),
        &["The label nothing was never moved.\n"],
    );
    let narrowed = desk.run("label history production --agent reader --before 2");
    said_by(
        narrowed.finish().exited(0),
        &["The label production of the agent reader was never moved before revision 2."],
    );
    desk.ok("label promote staging production");
    said_by(
        desk.run("label promote staging production --set docs")
            .finish()
            .exited(1),
        &["no active agent of the set docs has the label staging"],
    );
    let stale = desk.studio.list().need("change-cursor").to_owned();
    desk.ok("label set writer staging 1");
    said_by(
        desk.run(&format!("label promote staging production --base {stale}"))
            .finish()
            .exited(5),
        &["has moved since base"],
    );
    desk.ok("label set writer staging 2");
    assert_eq!(
        desk.ok("label set writer previous production"),
        "previous of writer is version 2\n"
    );
    assert_eq!(
        desk.ok("label set writer previous latest"),
        "previous of writer is version 2\n"
    );
    said_by(
        desk.run("label set writer previous none").finish().exited(4),
        &["has no label"],
    );
    desk.ok("label remove writer previous");
    desk.run_with(&["rollback", "writer", "1", "--message", "too short"])
        .finish()
        .exited(0);
    let versions = desk.json("versions writer", 0);
    assert_eq!(
        (&versions[0]["version"], &versions[0]["restored_from"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(versions[0]["message"], "too short");
    // The current content, by its version, by an older version and by a label.
    desk.ok("label set writer archived 1");
    for to in ["3", "1", "archived"] {
        let said = format!("writer has the content of {to} already, as version 3; nothing was changed\n");
        assert_eq!(desk.ok(&format!("rollback writer {to}")), said);
    }
    desk.ok("label remove writer archived");
    assert_eq!(desk.json("versions writer --limit 1 --before 3", 0)[0]["version"], 2);
    let said = "writer has the content of production again, as version 4\n";
    assert_eq!(desk.ok("rollback writer production"), said);
    assert_eq!(desk.studio.list().json()[0]["persona_prompt"], "Short.");
    desk.ok("label remove writer staging");
    assert_eq!(desk.json("label list --agent writer", 0).as_array().unwrap().len(), 1);

    assert!(desk.ok("agents delete writer --dry-run").contains("would be deleted"));
    assert_eq!(desk.json("agents delete writer --dry-run", 0)["agent_id"], "writer");
    assert_eq!(desk.studio.agent_ids(), ["writer"]);
    desk.ok("agents delete writer --message gone");
    assert!(desk.studio.agent_ids().is_empty());
    assert_eq!(desk.studio.audit()[0]["message"], "gone");
    assert_eq!(
        desk.json("agents list --state inactive", 0).as_array().unwrap().len(),
        2
    );
    desk.ok("agents restore writer");
    assert!(desk.ok("status").contains("offline"));
    let audit = desk.json("audit --action agent.* --target-id writer --limit 2", 0);
    assert_eq!(audit[0]["action"], "agent.restored");
    // Actors are shown by their names, which the records do not have.
    let actor = format!("key ({})", audit[0]["actor"]["id"].as_str().unwrap());
    for line in [
        "audit --limit 1",
        "versions writer",
        "label list",
        "label history production",
    ] {
        let shown = desk.ok(line);
        assert!(shown.contains(&actor), "{line}: {shown}");
    }
    desk.run_with(&["agents", "delete", "writer", "--message", &"x".repeat(501)])
        .finish()
        .exited(1)
        .failed_with(&["message must be at most 500"]);
}

#[test]
fn the_list_of_keys_shows_what_each_is_limited_to() {
    let desk = Desk::open();
    let limits = json!({"scope": "write", "agents": ["a", "b"], "permissions": ["agents:read"], "label": "production"});
    let limited = desk.studio.key_with(&limits);
    let list = desk.ok("keys list");
    let row = list.lines().find(|line| line.contains(&limited.id)).unwrap();
    assert!(
        row.ends_with("agents a, b; permissions agents:read; label production"),
        "{row}"
    );
}

#[test]
fn a_watch_goes_on_where_the_last_one_ended() {
    let desk = Desk::open();
    for number in 0..5 {
        desk.studio.create(&format!("a{number}"), &json!({})).expect(201);
    }
    let first = desk.ok("watch --after start --cursor-file at --limit 3 --output json");
    let then = desk.ok("watch --after start --cursor-file at --limit 4 --output json");
    let revisions: Vec<u64> = format!("{first}{then}")
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["revision"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert_eq!(revisions, [1, 2, 3, 4, 5, 6, 7]);
    let text = desk.ok("watch --after start --limit 8");
    assert!(text.contains("agent.created a4 by"), "{text}");
    let status = desk.ok("watch --status --limit 5");
    assert!(status.contains("a3 offline"), "{status}");

    // A position that is no longer served: the file wins over --after, and without it the watch begins again.
    let cursor = desk.read("at");
    let (workspace, _) = cursor.rsplit_once("-c").unwrap();
    desk.write("at", &format!("{workspace}-c999999\n"));
    let gone = "watch --cursor-file at --after start --limit 1";
    desk.fails(gone, 1, &["no longer served", "remove at: the next watch begins"]);
    fs::remove_file(desk.path("at")).unwrap();
    desk.ok(gone);
    let gone = format!("watch --after {workspace}-c999999");
    desk.fails(&gone, 1, &["no longer served", "watch --after now"]);

    fs::write(desk.path("at"), "nonsense").unwrap();
    desk.fails("watch --cursor-file at --limit 1", 1, &["at must be a cursor"]);
    desk.fails("watch --after yesterday", 1, &["after must be a cursor"]);
}
