//! Agents of other tools: import, and export --format, with the real server.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use agentcfg_tests::harness::{Finished, command_binary};
use serde_json::{Value, json};

use crate::fixture::{Desk, said_by};

const TRIAGE: &str = "---\nname: Triage\ndescription: Sorts new tickets.\ntools: Read, mcp__desk__*\nmodel: haiku\nhooks:\n  Stop: []\n---\n\nYou sort.\n";

/// The versions of a prompt of Langfuse with their labels.
fn versions(name: &str, labels: &[&[&str]]) -> Vec<Value> {
    let one = |(i, labels): (usize, &&[&str])| {
        let version = i + 1;
        json!({
            "name": name, "type": "text", "prompt": format!("Version {version} for {{{{team}}}}."),
            "config": {"model": "gpt-5.5", "temperature": 0.5, "note": version}, "version": version, "labels": labels, "tags": ["t"],
        })
    };
    labels.iter().enumerate().map(one).collect()
}

/// Runs a command with `--json`, and returns the report.
#[track_caller]
fn report(desk: &Desk, line: &str, code: i32) -> Value {
    let finished: Finished = desk.run(&format!("{line} --json")).finish().exited(code);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

#[test]
fn files_of_another_tool_come_in_and_go_back() {
    let desk = Desk::open();
    desk.write("claude/triage.md", TRIAGE);
    desk.write("claude/notes.md", "# Notes\n");

    let shown = desk.bare("import claude-code claude").finish().exited(0);
    for said in [
        "agent    triage (Triage)",
        "tools -> definition.tools",
        "skipped  claude/notes.md",
    ] {
        assert!(shown.stdout.contains(said), "{said}: {shown:?}");
    }
    said_by(shown, &["1 agent, 1 version", "1 skipped", "Nothing was changed."]);

    desk.bare("import claude-code claude --out agents --dry-run")
        .finish()
        .exited(0);
    assert!(!desk.path("agents").exists());
    desk.bare("import claude-code claude --out agents").finish().exited(0);
    assert_eq!(desk.names("agents"), ["triage.md"]);
    let again = desk
        .bare("import claude-code claude --out agents --json")
        .finish()
        .exited(0);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((&again["unchanged"], &again["written"]), (&json!(1), &json!([])));
    desk.bare("export --format claude-code --from agents back")
        .finish()
        .exited(0);
    assert_eq!(desk.read("back/triage.md").replace('"', ""), TRIAGE);

    desk.ok("apply agents");
    let log = desk.studio.audit().len();
    let applied = report(&desk, "import claude-code claude --apply", 0);
    assert_eq!(
        (&applied["versions_made"], &applied["unchanged"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(desk.studio.audit().len(), log, "what is there already changes nothing");
    desk.ok("export --format claude-code from-server");
    assert_eq!(desk.read("from-server/triage.md"), desk.read("back/triage.md"));

    let refused = desk.run("export --format codex other --strict").finish().exited(1);
    assert!(
        refused
            .stdout
            .contains("not held  triage: definition.tools, definition.claude-code"),
        "{refused:?}"
    );
    assert!(!desk.path("other").exists());
    desk.ok("export --format codex other");
    assert!(
        desk.read("other/triage.toml")
            .contains("developer_instructions = \"You sort.\"")
    );
}

#[test]
fn versions_come_in_in_their_order_with_their_labels() {
    let desk = Desk::open();
    let first = versions("help/triage", &[&["old"], &["production"], &["latest", "staging"]]);
    desk.write("prompts.json", &json!(first).to_string());
    let planned = report(&desk, "import langfuse prompts.json --apply --dry-run", 0);
    assert_eq!(planned["agents"][0]["versions"], 3);
    assert!(desk.studio.agent_ids().is_empty());

    let applied = report(&desk, "import langfuse prompts.json --apply --label imported", 0);
    assert_eq!(applied["versions_made"], 3, "{applied}");
    let labels = desk.json("label list", 0);
    let labels: Vec<_> = labels
        .as_array()
        .unwrap()
        .iter()
        .map(|label| (label["label"].as_str().unwrap(), label["version"].as_u64().unwrap()))
        .collect();
    for label in [("old", 1), ("production", 2), ("staging", 3), ("imported", 3)] {
        assert!(labels.contains(&label), "{label:?}: {labels:?}");
    }
    let second: Value = desk.json("agents get help-triage --version 2", 0);
    assert_eq!(second["config"]["persona_prompt"], "Version 2 for {{team}}.");
    assert_eq!(
        second["config"]["definition"]["model_settings"],
        json!({"temperature": 0.5})
    );

    let log = desk.studio.audit().len();
    let again = report(&desk, "import langfuse prompts.json --apply --label imported", 0);
    assert_eq!((&again["versions_made"], &again["labels_set"]), (&json!(0), &json!([])));
    assert_eq!(desk.studio.audit().len(), log, "a second run changes nothing");

    desk.ok("export --format langfuse out");
    let back: Value = serde_json::from_str(&desk.read("out/prompts.json")).unwrap();
    let mut now = json!(first);
    now[2]["labels"] = json!(["latest", "staging", "imported"]);
    assert_eq!(back, now, "the labels are those of the workspace");

    // A label that an interrupted run did not set is set by the next one.
    desk.ok("label remove help-triage production");
    let resumed = report(&desk, "import langfuse prompts.json --apply", 0);
    assert_eq!(resumed["labels_set"], json!(["help-triage:production"]));
    // Only what is new comes in later.
    let more = versions("help/triage", &[&["old"], &[], &["staging"], &["production"]]);
    desk.write("prompts.json", &json!(more).to_string());
    assert_eq!(
        report(&desk, "import langfuse prompts.json --apply", 0)["versions_made"],
        1
    );
    assert_eq!(desk.json("agents get help-triage --label production", 0)["version"], 4);
}

#[test]
fn five_hundred_prompts_take_less_than_a_minute() {
    let desk = Desk::open();
    let prompts: Vec<_> = (0..500)
        .flat_map(|i| versions(&format!("team/prompt {i}"), &[&[], &["production"]]))
        .collect();
    desk.write("prompts.json", &json!(prompts).to_string());
    let start = Instant::now();
    let applied = report(&desk, "import langfuse prompts.json --apply", 0);
    assert_eq!(applied["versions_made"], 1000);
    assert_eq!(applied["labels_set"].as_array().unwrap().len(), 500);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert_eq!(
        report(&desk, "import langfuse prompts.json --apply", 0)["versions_made"],
        0
    );
}

#[test]
fn what_cannot_come_in_is_named_and_the_rest_comes_in() {
    let desk = Desk::open();
    desk.write("claude/triage.md", TRIAGE);
    desk.write(
        "claude/long.md",
        &format!("---\nname: long\ndescription: d\n---\n{}\n", "word ".repeat(1200)),
    );
    desk.write("claude/leaky.md", "---\nname: leaky\ndescription: d\nmcpServers:\n  - a:\n      command: a\n      env: {A_TOKEN: abcdef12345}\n---\nx\n");
    let failed = desk.run("import claude-code claude --apply").finish().exited(1);
    for said in [
        "leaky.md:7:22: mcpServers[0].a.env.A_TOKEN has a literal secret",
        "too long long: persona_prompt has 5999",
    ] {
        assert!(failed.stdout.contains(said), "{said}: {failed:?}");
    }
    assert!(!failed.stdout.contains("abcdef12345"), "{failed:?}");
    said_by(failed, &["max_persona_prompt", "Sources with problems were left out"]);
    assert_eq!(desk.studio.agent_ids(), ["triage"]);
    desk.fails("import claude-code nowhere", 1, &["nowhere"]);
    desk.fails("import unknown claude", 64, &["claude-code"]);
    assert!(fs::read_dir(desk.path("claude")).unwrap().count() == 3);
}

#[test]
fn the_script_that_tries_a_directory_says_what_came_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (format, directory, came) in [
        ("claude-code", "claude-code/project", "1 of 1"),
        ("claude-agents", "claude-agents", "6 of 6"),
        ("openai", "openai", "9 of 9"),
        ("langfuse", "langfuse", "11 of 11"),
        ("langsmith", "langsmith", "8 of 8"),
        ("crewai", "crewai", "13 of 13"),
        ("copilot", "copilot", "8 of 8"),
        ("opencode", "opencode", "9 of 9"),
        ("codex", "codex", "4 of 4"),
    ] {
        let script = Command::new("bash")
            .arg(root.join("scripts/import-directory.sh"))
            .arg(format)
            .arg(root.join("agentcfg-cli/tests/corpus").join(directory))
            .env("AGENTCFG", command_binary())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&script.stdout);
        assert!(
            said.ends_with(&format!("{came} agents came back as they were\n")),
            "{format}: {said}"
        );
    }
}
