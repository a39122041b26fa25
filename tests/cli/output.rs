//! What programs and people read.

use serde_json::{Value, json};

use crate::fixture::Desk;

fn desk() -> Desk {
    let desk = Desk::open();
    let fields = json!({"display_name": "Writer \u{1b}[31m", "model": "gpt-5", "persona_prompt": "You write.", "parameters": {"a": 70}});
    desk.studio.create("writer", &fields).expect(201);
    desk.studio.change("writer", &json!({"model": "gpt-6"})).expect(200);
    desk.ok("label set writer production 1");
    desk.write("agents/writer.md", "---\ndisplay_name: Author\n---\n");
    desk
}

#[test]
fn json_is_that_of_the_api() {
    let desk = desk();
    assert_eq!(desk.json("agents list", 0), desk.studio.list().json());
    assert_eq!(desk.json("agents get writer", 0), desk.studio.list().json()[0]);
    assert_eq!(
        desk.json("agents get writer --version 1", 0)["config"]["model"],
        "gpt-5"
    );
    assert_eq!(desk.json("agents get writer --label production", 0)["version"], 1);
    desk.fails("agents get writer --revision 1000000", 1, &["revision"]);
}

#[test]
fn a_file_and_json_in_a_pipe_are_exact() {
    let desk = Desk::open();
    let persona = "You \u{1b}[31mwrite\u{1b}[0m.\r\u{7}\u{7f}\u{9b}1m\u{1b}]0;title\u{7}\tEnd\n\n";
    desk.studio
        .create("writer", &json!({"display_name": "Writer", "persona_prompt": persona}))
        .expect(201);
    desk.studio
        .change("writer", &json!({"persona_prompt": "Short."}))
        .expect(200);
    desk.ok("label set writer production 1");
    desk.ok("rollback writer 1");
    let expected = format!("---\nagent_id: writer\ndisplay_name: Writer\nagent_type: ai\n---\n{persona}\n");
    for line in [
        "agents get writer",
        "agents get writer --version 1",
        "agents get writer --label production --color never",
    ] {
        assert_eq!(desk.ok(line), expected, "{line}");
    }
    assert_eq!(desk.json("agents get writer", 0)["persona_prompt"], persona);
    assert_eq!(
        desk.json("agents get writer --version 1", 0)["config"]["persona_prompt"],
        persona
    );
    let watched = desk.ok("watch --after start --limit 7 --output json");
    let mut events = watched.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(
        events.any(|event| event["changes"]["persona_prompt"]["to"] == persona),
        "{watched}"
    );
}

#[test]
fn every_command_prints_json_that_parses() {
    let desk = desk();
    for (line, code) in [
        ("whoami", 0),
        ("agents list --state all", 0),
        ("agents create other --display-name Other", 0),
        ("agents delete other --yes", 0),
        ("agents restore other", 0),
        ("versions writer", 0),
        ("diff writer 1", 0),
        ("rollback writer 1", 0),
        ("label set writer staging 2", 0),
        ("label list", 0),
        ("label promote staging next", 0),
        ("label remove writer staging", 0),
        ("status", 0),
        ("keys list", 0),
        ("usage", 0),
        ("budgets set 2.50 --agent writer --period day --warn", 0),
        ("budgets list", 0),
        ("budgets settle", 0),
        ("budgets remove --agent writer --period day", 0),
        ("audit --limit 3", 0),
        ("export out", 0),
        ("plan agents", 2),
        ("apply agents", 0),
        ("watch --after start --limit 1", 0),
    ] {
        let printed = desk.json(line, code);
        assert!(printed.is_array() || printed.is_object(), "{line}: {printed}");
    }
    let events = desk.ok("watch --after start --limit 4 --output json");
    let revisions: Vec<u64> = events
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["revision"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert_eq!(revisions, [1, 2, 3, 4]);
}

#[test]
fn colours_are_for_terminals_unless_they_are_demanded() {
    let desk = desk();
    let escape = '\u{1b}';
    for (line, variable, is_colored) in [
        ("plan agents", None, false),
        ("plan agents --color always", None, true),
        ("plan agents --color never", Some(("CLICOLOR_FORCE", "1")), false),
        ("plan agents", Some(("CLICOLOR_FORCE", "1")), true),
        ("plan agents", Some(("NO_COLOR", "1")), false),
    ] {
        let mut run = desk.run(line);
        if let Some((name, value)) = variable {
            run = run.env(name, value);
        }
        let finished = run.finish().exited(2);
        assert_eq!(finished.stdout.contains(escape), is_colored, "{line}: {finished:?}");
    }
    let table = desk.ok("agents list");
    assert!(
        table.contains("Writer \\u{1b}[31m") && !table.contains(escape),
        "{table:?}"
    );
}

#[test]
fn each_exit_code_has_its_failure() {
    let desk = desk();
    desk.fails("agents get nope", 4, &["agent \"nope\" not found"]);
    desk.fails("label set writer production 9", 4, &["has no version 9"]);
    desk.fails("label set writer production 2 --expected 2", 5, &["expected_version"]);
    desk.fails(
        "label set writer production 2 --expected none",
        5,
        &["expected_version"],
    );
    desk.fails("agents create writer --display-name Writer", 5, &["writer"]);
    desk.fails(
        "agents create Bad --display-name Writer",
        1,
        &["agent_id must be 1 to 50"],
    );
    desk.fails(
        "agents create x --display-name Writer --parameter a",
        1,
        &["--parameter must be NAME=NUMBER, got a"],
    );
    desk.fails(
        "agents list --state odd",
        1,
        &["state must be one of active, inactive, all"],
    );
    desk.fails("audit --since yesterday", 1, &["since must be"]);
    desk.fails(
        "agents get writer --label production --version 1",
        64,
        &["cannot be used with"],
    );
    desk.fails("agents frobnicate", 64, &["unrecognized subcommand"]);
    desk.fails("plan", 64, &["<DIR>"]);
    let refused = desk
        .run("agents list")
        .env("AGENTCFG_API_KEY", "svc_test_x")
        .finish()
        .exited(3);
    assert!(
        refused.stderr.contains("The credential is from AGENTCFG_API_KEY"),
        "{refused:?}"
    );
    let unreachable = desk
        .run("agents list")
        .env("AGENTCFG_URL", "http://127.0.0.1:1")
        .finish()
        .exited(1);
    assert!(
        unreachable.stderr.contains("http://127.0.0.1:1 (from AGENTCFG_URL)"),
        "{unreachable:?}"
    );
}

#[test]
fn an_empty_variable_is_no_workspace_and_a_missing_certificate_is_named() {
    let desk = desk();
    desk.run("agents list").env("AGENTCFG_WORKSPACE", "").finish().exited(0);
    let missing = desk
        .run("agents list")
        .env("AGENTCFG_CA_FILE", "no/ca.pem")
        .finish()
        .exited(1);
    assert!(missing.stderr.contains("AGENTCFG_CA_FILE no/ca.pem"), "{missing:?}");
}

#[test]
fn a_list_without_agents_says_which_there_are_not() {
    let desk = Desk::open();
    let said = desk.run("agents list").finish().exited(0).stderr;
    assert!(said.contains("no active agents. Create one"), "{said}");
    let said = desk.run("agents list --state inactive").finish().exited(0).stderr;
    assert_eq!(said, "There are no inactive agents.\n");
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    use std::process::{Command, Stdio};

    let desk = desk();
    let pipe = format!(
        "{} completions bash | head -1",
        agentcfg_tests::harness::command_binary().display()
    );
    let mut shell = Command::new("bash");
    shell
        .args(["-o", "pipefail", "-c", &pipe])
        .env("XDG_CONFIG_HOME", desk.path("config"));
    shell
        .env("AGENTCFG_URL", desk.studio.server.url())
        .env("AGENTCFG_API_KEY", &desk.credential);
    let ended = shell.stdin(Stdio::null()).output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn help_completions_and_manual_pages_cover_all_commands() {
    let desk = Desk::open();
    let help = desk.bare("--help").finish().succeeded();
    for said in ["login", "agents", "Exit codes:", "AGENTCFG_API_KEY", "64"] {
        assert!(help.contains(said), "{said}: {help}");
    }
    let page = include_str!("../../docs/command-line.md");
    for name in help
        .split("Commands:")
        .nth(1)
        .unwrap()
        .split("Options:")
        .next()
        .unwrap()
        .lines()
    {
        if let Some(command) = name.strip_prefix("  ").filter(|name| !name.starts_with([' ', 'h'])) {
            let command = command.split(' ').next().unwrap();
            assert!(
                page.contains(&format!("`{command}")),
                "docs/command-line.md lacks {command}"
            );
        }
    }
    assert!(!help.contains("  man "), "the command for packages is hidden");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = desk.bare(&format!("completions {shell}")).finish().succeeded();
        assert!(script.contains("agentcfg") && script.contains("promote"), "{shell}");
    }
    desk.bare("man --out pages").finish().exited(0);
    let pages = desk.names("pages");
    for page in [
        "agentcfg.1",
        "agentcfg-agents-edit.1",
        "agentcfg-label-promote.1",
        "agentcfg-apply.1",
    ] {
        assert!(pages.iter().any(|name| name == page), "{page}: {pages:?}");
    }
}

#[test]
fn budgets_are_set_listed_and_removed() {
    let desk = Desk::open();
    let set = desk.ok("budgets set 250");
    assert_eq!(set, "the budget of the workspace is 250 USD a month\n");
    desk.ok("budgets set 2.5 --agent writer --period day --warn");
    let listed = desk.json("budgets list", 0);
    assert_eq!(listed[1]["scope_id"], "writer");
    assert_eq!(listed[1]["action"], "warn");
    let table = desk.ok("budgets list");
    for word in ["SCOPE", "UNSETTLED", "workspace", "250", "writer", "warn", "2.5"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    desk.fails("budgets set much", 1, &["limit_usd"]);
    desk.fails("budgets set 1 --agent a --key b", 64, &["--key"]);
    desk.fails("budgets set 1 --period week", 1, &["period"]);
    desk.fails(
        "budgets remove --user ada",
        4,
        &["there is no budget of the user \"ada\""],
    );
    assert_eq!(desk.ok("budgets remove --agent writer --period day"), "removed\n");
    assert_eq!(desk.json("budgets list", 0).as_array().map(Vec::len), Some(1));
}
