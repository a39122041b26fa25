//! Files that are checked without a server, and what is found in any of them.

use std::fs;

use serde_json::{Value, json};

use crate::fixture::{Desk, said_by};

const WRITER: &str = "---\ndisplay_name: Writer\n---\nYou write.\n";

#[test]
fn a_directory_is_checked_without_a_server_and_a_credential() {
    let desk = Desk::open();
    desk.write("agents/writer.md", WRITER);
    desk.write("agents/editor.md", WRITER);
    let valid = desk.bare("validate agents").finish().exited(0);
    assert_eq!(
        (valid.stdout.as_str(), valid.stderr.as_str()),
        ("2 files are valid\n", "")
    );
    let valid = desk.bare("validate agents --output json").finish().succeeded();
    assert_eq!(
        serde_json::from_str::<Value>(&valid).unwrap(),
        json!({"agents": ["editor", "writer"]})
    );

    desk.write("agents/bad.md", "---\nname: Bad\ntools:\n  - Read\n---\n");
    said_by(
        desk.bare("validate agents").finish().exited(1),
        &[
            "agents/bad.md:1:1: display_name is required",
            "agents/bad.md:2:7: name is not a known field (did you mean display_name?)",
            "agents/bad.md:3:1: tools is not a known field",
            "3 problems in 1 file",
        ],
    );
    desk.bare("validate nowhere").finish().exited(1);
    fs::create_dir(desk.path("agents/team")).unwrap();
    for name in ["bad", "editor", "writer"] {
        fs::rename(
            desk.path(&format!("agents/{name}.md")),
            desk.path(&format!("agents/team/{name}.md")),
        )
        .unwrap();
    }
    said_by(
        desk.bare("validate agents").finish().exited(0),
        &[
            "agents has no files of agents",
            "agents/team has 3 files of agents, which are ignored",
        ],
    );
}

#[test]
fn a_conflict_in_a_persona_is_not_applied() {
    let desk = Desk::open();
    let conflict = format!("{WRITER}<<<<<<< HEAD\nMuch.\n=======\nLittle.\n>>>>>>> topic\n");
    desk.write("agents/writer.md", &conflict);
    desk.write(
        "agents/quoted.md",
        &format!("{WRITER}> <<<<<<< HEAD\n\n    =======\n\nHeading\n=======\n"),
    );
    let said = [
        "agents/writer.md:5:1: a conflict is not resolved",
        "1 problem in 1 file",
    ];
    for command in [
        "validate agents",
        "plan agents",
        "apply agents",
        "agents create --file agents/writer.md",
    ] {
        desk.fails(command, 1, &said[..1]);
    }
    desk.fails("apply agents", 1, &said);
    assert!(desk.studio.agent_ids().is_empty());
    desk.write("agents/writer.md", &conflict.replace('\n', "\r\n"));
    desk.fails("plan agents", 1, &said);
    desk.write("agents/writer.md", &conflict);
    desk.bare("validate agents --allow-conflict-markers").finish().exited(0);
    desk.ok("apply agents --allow-conflict-markers");
    // It is the text of the agent now, which an edit of another field keeps.
    desk.editor("sed -i 's/^display_name: .*/display_name: Other/' \"$1\"");
    let editor = desk.path("editor.sh");
    desk.run("agents edit writer").env("VISUAL", editor).finish().exited(0);
    let agents = desk.studio.list().json();
    let writer = agents
        .as_array()
        .unwrap()
        .iter()
        .find(|agent| agent["agent_id"] == "writer")
        .unwrap();
    assert_eq!(writer["display_name"], "Other");
    assert!(
        writer["persona_prompt"]
            .as_str()
            .unwrap()
            .contains("\n=======\nLittle."),
        "{writer}"
    );
    // Front matter is never meant so.
    desk.write(
        "agents/writer.md",
        "---\n<<<<<<< HEAD\ndisplay_name: A\n=======\ndisplay_name: B\n>>>>>>> b\n---\n",
    );
    desk.fails(
        "validate agents --allow-conflict-markers",
        1,
        &["agents/writer.md:2:1: a conflict is not"],
    );
}

#[test]
fn lines_that_end_as_on_windows_are_warned_of_once() {
    let desk = Desk::open();
    desk.write("agents/good.md", WRITER);
    assert_eq!(
        desk.run("plan agents").finish().exited(2).stderr,
        "Plan: 1 to create.\n"
    );
    for name in ["a", "b", "c", "d", "e"] {
        desk.write(&format!("agents/{name}.md"), &WRITER.replace('\n', "\r\n"));
    }
    for (command, code) in [("validate agents", 0), ("plan agents", 2), ("apply agents", 0)] {
        let warned = desk.run(command).finish().exited(code);
        let warned = said_by(
            warned,
            &[
                "5 files have lines that end as on Windows (CRLF)",
                "agents/a.md, agents/b.md, agents/c.md and 2 more",
            ],
        );
        assert_eq!(warned.stderr.matches("agents/*.md -text").count(), 1, "{warned:?}");
    }
    // Of a directory whose place in the repository is not known.
    let path = desk.path("agents").display().to_string();
    said_by(
        desk.run(&format!("validate {path}")).finish().exited(0),
        &[" *.md -text"],
    );
}
