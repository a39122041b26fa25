//! What an import or an export finds in its way: it is named, and stays.

use agentcfg_tests::harness::Finished;
use serde_json::{Value, json};

use crate::fixture::{Desk, said_by};

const TRIAGE: &str = "---\nname: triage\ndescription: Sorts.\n---\n\nYou sort.\n";
const AGENT: &str = "---\nagent_id: triage\ndisplay_name: triage\ndescription: Sorts.\nmodel: haiku\n---\nYou sort.\n";

/// Runs a command with `--json`, and returns the report.
#[track_caller]
fn report(desk: &Desk, line: &str, code: i32) -> Value {
    let finished: Finished = desk.run(&format!("{line} --json")).finish().exited(code);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

/// Changes the model of an agent in the workspace.
fn change_model(desk: &Desk, agent_id: &str, model: &str) {
    desk.ok("export workspace");
    let name = format!("workspace/{agent_id}.md");
    let text = desk.read(&name);
    let lines = text.split_inclusive('\n').filter(|line| !line.starts_with("model:"));
    let text: String = lines.collect();
    desk.write(&name, &text.replacen("---\n", &format!("---\nmodel: {model}\n"), 1));
    desk.ok("apply workspace");
}

#[test]
fn an_export_keeps_files_that_are_not_of_its_agents() {
    let desk = Desk::open();
    desk.write("agents/triage.md", AGENT);
    for (format, path, text) in [
        ("claude-code", "triage.md", "# My notes\n"),
        ("claude-code", "triage.md", "---\nname: other\ndescription: d\n---\nx\n"),
        (
            "claude-code",
            "triage.md",
            "---\nname: triage\ndescription: d\nowner: me\n---\nx\n",
        ),
        ("opencode", "triage.md", "---\ntitle: My page\nlayout: post\n---\nx\n"),
        (
            "copilot",
            "triage.agent.md",
            "---\ndescription: My page\nlayout: post\n---\nx\n",
        ),
        ("claude-agents", "triage.json", "{\"settings\": true}\n"),
        ("codex", "triage.toml", "title = \"x\"\n"),
        ("langfuse", "prompts.json", "{\"prompts\": []}\n"),
        ("crewai", "agents.yaml", "- a\n- b\n"),
    ] {
        let name = format!("out-{format}/{path}");
        desk.write(&name, text);
        let line = format!("export --format {format} --from agents out-{format}");
        let refused = desk.bare(&line).finish().exited(1);
        said_by(refused, &[path, "nothing was written", "--overwrite"]);
        assert_eq!(desk.read(&name), text, "{format}");
        desk.bare(&format!("{line} --overwrite")).finish().exited(0);
        assert_ne!(desk.read(&name), text, "{format}");
        let again = desk.bare(&line).finish().exited(0);
        said_by(again, &["0 files written, 1 unchanged"]);
    }
    // All of them are named, before the first is written.
    desk.write("agents/other.md", "---\ndisplay_name: other\ndescription: d\n---\nx\n");
    desk.write("two/triage.md", "# a\n");
    desk.write("two/other.md", "# b\n");
    let refused = desk
        .bare("export --format claude-code --from agents two")
        .finish()
        .exited(1);
    said_by(refused, &["2 files", "two/triage.md", "two/other.md"]);
    // The file of the agent itself is replaced.
    desk.write("own/triage.md", TRIAGE);
    desk.bare("export --format claude-code --from agents own")
        .finish()
        .exited(0);
    desk.write("agents/other.md", "---\ndisplay_name: other\ndescription: d\n---\nx\n");
    assert!(desk.read("own/triage.md").contains("model: haiku"));
}

#[test]
fn files_of_several_agents_keep_what_is_not_of_the_export() {
    let desk = Desk::open();
    let yaml = "# Our crew\ntriage:\n  role: Old\n  goal: g\n  backstory: b\n\n# Not ready.\nbad:\n  rolle: x\n";
    desk.write("config/agents.yaml", yaml);
    desk.bare("import crewai config --out agents").finish().exited(0);
    desk.bare("export --format crewai --from agents config")
        .finish()
        .exited(0);
    assert_eq!(desk.read("config/agents.yaml"), yaml, "nothing has changed");
    let agent = desk.read("agents/triage.md").replace("role: Old", "role: New");
    desk.write("agents/triage.md", &agent);
    desk.bare("export --format crewai --from agents config")
        .finish()
        .exited(0);
    assert_eq!(desk.read("config/agents.yaml"), yaml.replace("Old", "New"));

    let prompts = r#"[{"name": "mine", "version": 1, "type": "text", "prompt": "x"}]"#;
    desk.write("prompts/prompts.json", prompts);
    desk.write("none/README.md", "no agents\n");
    desk.bare("export --format langfuse --from none prompts")
        .finish()
        .exited(0);
    assert_eq!(desk.read("prompts/prompts.json"), prompts);
    desk.bare("export --format langfuse --from agents prompts")
        .finish()
        .exited(0);
    let names: Value = serde_json::from_str(&desk.read("prompts/prompts.json")).unwrap();
    assert_eq!(
        (&names[0]["name"], &names[1]["name"]),
        (&json!("mine"), &json!("triage"))
    );

    desk.write("claude/triage.md", TRIAGE);
    desk.write("claude/.mcp.json", r#"{"mcpServers": {"desk": {"command": "desk"}}}"#);
    desk.bare("import claude-code claude --out with").finish().exited(0);
    let own = r#"{"mcpServers": {"mine": {"command": "mine"}}, "note": 1}"#;
    desk.write("to/.mcp.json", own);
    desk.bare("export --format claude-code --from with to")
        .finish()
        .exited(0);
    let merged: Value = serde_json::from_str(&desk.read("to/.mcp.json")).unwrap();
    let both = json!({"mcpServers": {"mine": {"command": "mine"}, "desk": {"command": "desk"}}, "note": 1});
    assert_eq!(merged, both);
    let other = r#"{"mcpServers": {"desk": {"command": "other"}}}"#;
    desk.write("to/.mcp.json", other);
    let refused = desk
        .bare("export --format claude-code --from with to")
        .finish()
        .exited(1);
    said_by(refused, &["to/.mcp.json", "mcpServers.desk"]);
    assert_eq!(desk.read("to/.mcp.json"), other);
}

#[test]
fn settings_of_opencode_keep_their_order_and_their_agents() {
    let desk = Desk::open();
    let config = r#"{
  "permission": {
    "bash": {
      "*": "ask",
      "git status": "allow",
      "a *": "deny"
    },
    "edit": "deny"
  },
  "agent": {
    "triage": {
      "description": "Sorts.",
      "prompt": "You sort."
    }
  }
}
"#;
    desk.write("source/opencode.json", config);
    desk.bare("import opencode source --out agents").finish().exited(0);
    desk.bare("export --format opencode --from agents back")
        .finish()
        .exited(0);
    assert_eq!(desk.names("back"), ["opencode.json"]);
    assert_eq!(desk.read("back/opencode.json"), config);
    desk.ok("import opencode source --apply");
    desk.ok("export --format opencode from-server");
    assert_eq!(desk.read("from-server/opencode.json"), config);
}

#[test]
fn pages_and_agents_of_other_tools_are_not_files_of_agents() {
    let desk = Desk::open();
    desk.write("agents/triage.md", AGENT);
    desk.ok("apply agents");
    for text in ["---\ntitle: My page\nlayout: post\n---\nx\n", TRIAGE] {
        desk.write("agents/triage.md", text);
        let refused = desk.run("export agents").finish().exited(1);
        said_by(refused, &["agents/triage.md", "not the file of an agent"]);
        assert_eq!(desk.read("agents/triage.md"), text);
        desk.write("claude/triage.md", TRIAGE);
        let refused = desk.bare("import claude-code claude --out agents").finish().exited(1);
        assert!(
            refused
                .stdout
                .contains("agents/triage.md:1:1: it is not the file of an agent"),
            "{refused:?}"
        );
        assert_eq!(desk.read("agents/triage.md"), text);
    }
}

#[test]
fn an_import_does_not_overwrite_its_sources() {
    let desk = Desk::open();
    desk.write(".claude-plugin/plugin.json", "{}");
    desk.write("agents/triage.md", TRIAGE);
    let refused = desk.bare("import claude-code . --out agents").finish().exited(1);
    said_by(refused, &["agents/triage.md", "nothing was written", "--out"]);
    let refused = desk
        .bare("import claude-code . --out agents --overwrite")
        .finish()
        .exited(1);
    said_by(refused, &["nothing was written"]);
    assert_eq!(desk.read("agents/triage.md"), TRIAGE);
    // What the import itself has written is no source of another tool.
    desk.bare("import claude-code agents --out agents/own")
        .finish()
        .exited(0);
    let again = report(&desk, "import claude-code agents --out agents/own", 0);
    assert_eq!(
        (&again["unchanged"], &again["agents"][0]["agent_id"]),
        (&json!(1), &json!("triage"))
    );
    assert!(again["skipped"].to_string().contains("a file of agentcfg"), "{again}");
}

#[test]
fn an_import_keeps_files_and_agents_that_were_changed_since() {
    let desk = Desk::open();
    desk.write("claude/triage.md", TRIAGE);
    desk.bare("import claude-code claude --out agents").finish().exited(0);
    let edited = desk.read("agents/triage.md").replace("You sort.", "You sort well.");
    desk.write("agents/triage.md", &edited);
    let refused = report(&desk, "import claude-code claude --out agents", 1);
    let row = &refused["agents"][0];
    assert_eq!(
        (&row["action"], &row["changes"]),
        (&json!("refused"), &json!(["persona_prompt"]))
    );
    assert_eq!(desk.read("agents/triage.md"), edited);
    desk.bare("import claude-code claude --out agents --overwrite")
        .finish()
        .exited(0);
    assert!(desk.read("agents/triage.md").contains("You sort.\n"));

    // A newer source makes a new version, and a second run changes nothing.
    let planned = report(&desk, "import claude-code claude --apply --dry-run", 0);
    assert_eq!(planned["agents"][0]["action"], "create");
    desk.ok("import claude-code claude --apply");
    desk.write("claude/triage.md", &TRIAGE.replace("You sort.", "You sort more."));
    let planned = desk
        .run("import claude-code claude --apply --dry-run")
        .finish()
        .exited(0);
    assert!(
        planned
            .stdout
            .contains("agent    triage (triage): change persona_prompt"),
        "{planned:?}"
    );
    assert_eq!(
        report(&desk, "import claude-code claude --apply", 0)["versions_made"],
        1
    );
    let again = desk.run("import claude-code claude --apply").finish().exited(0);
    said_by(again, &["0 versions made, 1 agent unchanged, 0 labels set."]);

    // A change in the workspace stays.
    change_model(&desk, "triage", "opus");
    let planned = report(&desk, "import claude-code claude --apply --dry-run", 1);
    assert_eq!(planned["agents"][0]["action"], "refused");
    let refused = desk.run("import claude-code claude --apply").finish().exited(1);
    assert!(
        refused
            .stdout
            .contains("triage of the workspace was changed since its import"),
        "{refused:?}"
    );
    assert!(refused.stdout.contains("another model"), "{refused:?}");
    assert_eq!(desk.json("agents get triage", 0)["model"], "opus");
    assert_eq!(
        report(&desk, "import claude-code claude --apply --overwrite", 0)["versions_made"],
        1
    );
    assert_eq!(desk.json("agents get triage", 0)["model"], Value::Null);

    // So does a deactivation, and an agent of another tool or by hand.
    desk.ok("agents delete triage --yes");
    let refused = desk.run("import claude-code claude --apply").finish().exited(1);
    assert!(refused.stdout.contains("triage is deactivated"), "{refused:?}");
    let restored = report(&desk, "import claude-code claude --apply --overwrite", 0);
    assert_eq!(restored["agents"][0]["action"], "restore");
    desk.write(
        "copilot/triage.agent.md",
        "---\nname: triage\ndescription: Other.\n---\n\nx\n",
    );
    let refused = report(&desk, "import copilot copilot --apply", 1);
    assert_eq!(refused["agents"][0]["action"], "refused");
}

#[test]
fn another_agent_of_the_source_with_the_same_name_replaces_none() {
    let desk = Desk::open();
    let agent = |id: &str, version: usize| json!({"id": id, "type": "agent", "name": "Triage", "model": "m", "system": id, "version": version});
    let assistant =
        |id: &str| json!({"id": id, "object": "assistant", "name": "Writer", "model": "m", "instructions": id});
    desk.write("a.json", &json!([agent("agent_A", 2)]).to_string());
    desk.write("b.json", &json!([agent("agent_B", 1)]).to_string());
    desk.write("c.json", &assistant("asst_A").to_string());
    desk.write("d.json", &assistant("asst_B").to_string());
    for (format, first, second, agent_id, id) in [
        ("claude-agents", "a.json", "b.json", "triage", "agent_A"),
        ("openai", "c.json", "d.json", "writer", "asst_A"),
    ] {
        desk.ok(&format!("import {format} {first} --apply"));
        for dry in ["", " --dry-run"] {
            let refused = report(&desk, &format!("import {format} {second} --apply{dry}"), 1);
            let message = refused["problems"][0]["message"].as_str().unwrap();
            assert!(
                message.contains(&format!("imported from another agent, with the id {id:?}")),
                "{message}"
            );
            assert_eq!(refused["agents"][0]["action"], "refused");
        }
        assert_eq!(desk.json(&format!("agents get {agent_id}"), 0)["persona_prompt"], id);
        let replaced = report(&desk, &format!("import {format} {second} --apply --overwrite"), 0);
        assert_eq!(replaced["versions_made"], 1, "{replaced}");
        let again = report(&desk, &format!("import {format} {second} --apply"), 0);
        assert_eq!((&again["versions_made"], &again["unchanged"]), (&json!(0), &json!(1)));
    }
}

#[test]
fn a_label_at_a_version_of_other_means_stays() {
    let desk = Desk::open();
    let version = |number: usize, labels: &[&str]| json!({"name": "triage", "type": "text", "prompt": format!("V{number}"), "version": number, "labels": labels});
    desk.write("prompts.json", &json!([version(1, &["production"])]).to_string());
    desk.ok("import langfuse prompts.json --apply");
    change_model(&desk, "triage", "opus");
    desk.ok("label set triage production 2");
    desk.write(
        "prompts.json",
        &json!([version(1, &[]), version(2, &["production"])]).to_string(),
    );
    let refused = report(&desk, "import langfuse prompts.json --apply", 1);
    assert_eq!(refused["versions_made"], 0);
    desk.ok("rollback triage 1");
    assert_eq!(
        report(&desk, "import langfuse prompts.json --apply", 1)["versions_made"],
        0
    );
    assert_eq!(desk.json("agents get triage --label production", 0)["version"], 2);
    let made = report(&desk, "import langfuse prompts.json --apply --overwrite", 0);
    assert_eq!(made["labels_set"], json!(["triage:production"]));
    // A label is checked before anything is made.
    desk.write(
        "new.json",
        &json!([{"name": "fresh", "type": "text", "prompt": "x", "version": 1}]).to_string(),
    );
    desk.fails("import langfuse new.json --apply --label latest", 1, &["latest"]);
    assert_eq!(desk.studio.agent_ids(), ["triage"]);
}

#[test]
fn what_a_tool_requires_is_named() {
    let desk = Desk::open();
    desk.write("agents/bare.md", "---\ndisplay_name: bare\n---\n");
    for (format, key) in [
        ("claude-agents", "model"),
        ("claude-code", "description"),
        ("codex", "description, developer_instructions"),
        ("openai", "model"),
        ("langsmith", "manifest"),
    ] {
        let refused = desk.bare(&format!("export --format {format} --from agents strict --strict"));
        let refused = refused.finish().exited(1);
        assert!(
            refused.stdout.contains(&format!("bare: its tool requires {key}")),
            "{refused:?}"
        );
        assert!(!desk.path("strict").exists());
        let written = desk.bare(&format!("export --format {format} --from agents {format}"));
        let written = written.finish().exited(0);
        assert!(
            written
                .stdout
                .contains(&format!("warning   bare: its tool requires {key}")),
            "{written:?}"
        );
    }
}

#[test]
fn conflict_markers_and_an_empty_directory_are_named() {
    let desk = Desk::open();
    desk.write(
        "claude/triage.md",
        "---\nname: triage\ndescription: d\n---\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n",
    );
    let refused = desk.bare("import claude-code claude").finish().exited(1);
    assert!(
        refused.stdout.contains("triage.md:5:1: a conflict is not resolved"),
        "{refused:?}"
    );
    desk.bare("import claude-code claude --allow-conflict-markers")
        .finish()
        .exited(0);
    desk.write("none/README", "x");
    let none = desk.bare("import claude-code none --out agents").finish().exited(0);
    said_by(
        none,
        &["No agents of claude-code were found.", "0 files written, 0 unchanged."],
    );
}
