//! Agents as files: export, plan and apply.

use std::fs;

use agentcfg_tests::harness::{Studio, command_binary};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::fixture::{Desk, said_by};
use crate::random;

const WRITER: &str = "---\nagent_id: writer\ndisplay_name: Writer\nagent_type: ai\nmodel: gpt-5\n---\nYou write.\n";

/// The agents of a workspace without what only its records have.
fn content(studio: &Studio<'_>) -> Vec<Value> {
    let mut agents = studio.list().json().as_array().unwrap().clone();
    for agent in &mut agents {
        for name in ["id", "workspace_id", "created_at", "updated_at"] {
            agent.as_object_mut().unwrap().remove(name);
        }
    }
    agents.sort_by_key(|agent| agent["agent_id"].to_string());
    agents
}

fn apply(studio: &Studio<'_>, agents: &[Value]) {
    let target = format!("/api/agents/apply?workspace_id={}", studio.id);
    let request = studio.server.post(target).bearer(&studio.owner);
    request.json(&json!({ "agents": agents })).send().expect(200);
}

#[test]
fn random_agents_make_the_round_trip_through_files() {
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(12)
    });
    let round_trip = |agents: Vec<Value>| {
        let here = Desk::open();
        apply(&here.studio, &agents);
        here.ok("export agents");
        assert_eq!(here.names("agents").len(), agents.len());
        here.run("plan agents").finish().exited(0);
        let log = here.studio.audit().len();
        here.ok("apply agents");
        assert_eq!(here.studio.audit().len(), log, "applying an export changes nothing");
        let again = here.json("export agents", 0);
        assert_eq!(again["unchanged"].as_array().unwrap().len(), agents.len());

        let there = Desk::at(here.studio.sibling());
        let copied = here.path("agents").display().to_string();
        there.run(&format!("plan {copied}")).finish().exited(2);
        there.ok(&format!("apply {copied}"));
        assert_eq!(content(&there.studio), content(&here.studio));
        there.ok("export copy");
        for name in here.names("agents") {
            assert_eq!(
                fs::read(here.path("agents").join(&name)).unwrap(),
                fs::read(there.path("copy").join(&name)).unwrap()
            );
        }
        Ok(())
    };
    runner.run(&random::agents(8), round_trip).unwrap();
}

#[test]
fn a_plan_shows_drift_and_changes_nothing() {
    let desk = Desk::open();
    desk.write("agents/writer.md", WRITER);
    let created = desk.run("plan agents").finish().exited(2);
    assert!(created.stdout.contains("+ create writer"), "{created:?}");
    assert!(
        created.stdout.contains("model: \"gpt-5\"") && !created.stdout.contains("[]"),
        "{created:?}"
    );
    assert!(desk.studio.agent_ids().is_empty());
    desk.ok("apply agents");
    desk.run("plan agents").finish().exited(0);

    desk.studio
        .change(
            "writer",
            &json!({"model": "gpt-6", "persona_prompt": "You write.\nA lot."}),
        )
        .expect(200);
    let drift = desk.run("plan agents").finish().exited(2);
    // The lines before an added one are not told as changed.
    assert!(!drift.stdout.contains("- You write."), "{drift:?}");
    for said in ["~ update writer", "model: \"gpt-6\" -> \"gpt-5\"", "- A lot."] {
        assert!(drift.stdout.contains(said), "{said}: {drift:?}");
    }
    desk.write("copy/writer.md", &format!("{WRITER}\n"));
    let planned = desk.json("plan agents", 2);
    assert_eq!(planned["results"][0]["action"], "update");
    assert_eq!(
        planned["results"][0]["changes"]["model"],
        json!({"from": "gpt-6", "to": "gpt-5"})
    );
    desk.run("apply agents --dry-run").finish().exited(0);
    assert_eq!(desk.studio.list().json()[0]["model"], "gpt-6");

    let applied = desk.json("apply agents --message back", 0);
    assert_eq!(applied["results"][0]["version"], 3);
    assert_eq!(desk.studio.list().json()[0]["persona_prompt"], "You write.");
    let ended = desk.run("plan copy").finish().exited(2);
    let lines = "        You write.\n      +\n      (a newline at end, where none was)\n";
    assert!(ended.stdout.contains(lines), "{ended:?}");
    assert_eq!(desk.studio.audit()[0]["message"], "back");
}

#[test]
fn prune_takes_out_the_agents_of_the_set_alone() {
    let desk = Desk::open();
    desk.studio.create("other", &json!({})).expect(201);
    desk.write("agents/writer.md", WRITER);
    desk.write("agents/editor.md", &WRITER.replace("writer", "editor"));
    desk.ok("apply agents --set docs");
    fs::remove_file(desk.path("agents/editor.md")).unwrap();
    desk.run("plan agents --set docs").finish().exited(0);
    let planned = desk.json("plan agents --set docs --prune", 2);
    assert_eq!(planned["results"][1]["action"], "deactivate");
    desk.ok("apply agents --set docs --prune --yes");
    assert_eq!(desk.studio.agent_ids(), ["other", "writer"]);

    fs::remove_file(desk.path("agents/writer.md")).unwrap();
    let nothing = desk.json("apply agents", 0);
    assert_eq!(nothing["results"], json!([]));
    assert_eq!(desk.json("plan agents", 0)["results"], json!([]));
    desk.ok("apply agents --set docs --prune --prune-limit all");
    assert_eq!(desk.studio.agent_ids(), ["other"]);
    desk.fails("apply agents --prune", 64, &["--set <NAME>"]);
    desk.fails("plan agents --set Docs", 1, &["set must be 1 to 50 of a-z"]);
}

#[test]
fn all_problems_of_all_files_are_reported_and_nothing_is_sent() {
    let desk = Desk::open();
    desk.write("agents/README.md", "# These are agents\n");
    desk.write("agents/README.MD", "ignored");
    desk.write("agents/notes.txt", "ignored");
    desk.write("agents/sub/deep.md", "ignored");
    desk.write("agents/a.md", WRITER);
    desk.write("agents/B.md", WRITER);
    desk.write(
        "agents/c.md",
        "---\ndisplay_name: 5\nmodle: x\nmodel: a\nmodel: b\ncolor: red\n---\n",
    );
    desk.write("agents/good.md", "---\ndisplay_name: Good\n---\n");
    let requests = desk.studio.server.stderr().len();
    let said = [
        "agents/B.md:1:1: the name of the file must be <agent_id>.md",
        "agents/a.md:2:11: agent_id must be a, the name of the file, got writer",
        "agents/c.md:2:15: display_name must be a string, got a number",
        "agents/c.md:3:8: modle is not a known field",
        "agents/c.md:5:1: model must not appear more than once, see line 4",
        "agents/c.md:6:8: color must be # and 3, 4, 6 or 8 hexadecimal digits",
        "error: 6 problems in 3 files; nothing was sent",
    ];
    desk.fails("apply agents", 1, &said);
    let planned = desk.fails("plan agents", 1, &said);
    // Each problem is at the start of its line.
    for problem in &said[..6] {
        assert!(
            planned.stderr.lines().any(|line| line.starts_with(problem)),
            "{planned:?}"
        );
    }
    // Without a server too.
    desk.bare("plan agents").finish().exited(1).failed_with(&said);
    assert!(desk.studio.agent_ids().is_empty(), "{requests}");
    desk.fails("plan nowhere", 1, &["nowhere: No such file or directory"]);
}

#[test]
fn the_rules_of_the_server_are_exit_code_1_for_files() {
    let desk = Desk::open();
    desk.write("agents/writer.md", WRITER);
    desk.ok("apply agents --set docs");
    desk.fails("apply agents --set other", 1, &["docs"]);
    desk.fails(
        "plan agents --workspace 0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
        1,
        &["error: "],
    );
    desk.bare("plan agents")
        .finish()
        .exited(1)
        .failed_with(&["you are not signed in", "agentcfg login"]);
    let reader = desk.studio.key("read").key;
    let read_only = |line: &str| desk.run(line).env("AGENTCFG_API_KEY", &reader).finish();
    read_only("plan agents").exited(0);
    desk.write("agents/writer.md", &WRITER.replace("gpt-5", "gpt-6"));
    let planned = read_only("plan agents --set docs --prune").exited(2);
    assert!(planned.stdout.contains("~ update writer"), "{planned:?}");
    read_only("apply agents --dry-run").exited(0);
    let refused = read_only("apply agents").exited(1);
    assert!(refused.stderr.contains("agents:configure"), "{refused:?}");
}

#[test]
fn an_export_touches_its_own_files_alone() {
    let desk = Desk::open();
    desk.studio
        .create(
            "writer",
            &json!({"display_name": "Writer", "model": "gpt-5", "persona_prompt": "You write."}),
        )
        .expect(201);
    desk.studio.create("gone", &json!({})).expect(201);
    desk.write("agents/README.md", "mine");
    desk.write("agents/notes.md", "# Mine\n");
    desk.write("agents/.hidden.md", "mine");
    desk.ok("export agents");
    assert_eq!(desk.read("agents/writer.md"), WRITER);
    desk.studio.remove("gone").expect(200);

    let exported = desk.json("export agents", 0);
    assert_eq!(exported["stale"], json!(["agents/gone.md"]));
    assert_eq!(exported["written"], json!([]));
    assert!(desk.path("agents/gone.md").exists());
    let told = desk.run("export agents").finish().exited(0);
    assert!(
        told.stderr
            .contains("1 file of agents that are not exported any more; `--prune` removes them"),
        "{told:?}"
    );
    assert_eq!(
        desk.json("export agents --prune", 0)["removed"],
        json!(["agents/gone.md"])
    );
    assert_eq!(
        desk.names("agents"),
        [".hidden.md", "README.md", "notes.md", "writer.md"]
    );

    desk.studio.create("notes", &json!({})).expect(201);
    desk.studio.change("writer", &json!({"model": "gpt-6"})).expect(200);
    desk.fails(
        "export agents",
        1,
        &["agents/notes.md is not the file of an agent, and is not overwritten"],
    );
    assert_eq!(desk.read("agents/notes.md"), "# Mine\n");
    assert_eq!(
        desk.read("agents/writer.md"),
        WRITER,
        "all files are checked before the first is written"
    );
}

#[test]
fn a_prune_keeps_the_files_of_agents_that_were_never_applied() {
    let desk = Desk::open();
    for agent in ["writer", "gone", "left"] {
        desk.studio.create(agent, &json!({})).expect(201);
    }
    desk.ok("export agents");
    desk.studio.remove("gone").expect(200);
    desk.write("agents/fresh.md", &WRITER.replace("writer", "fresh"));
    let told = desk.run("export agents").finish().exited(0);
    let told = said_by(
        told,
        &[
            "1 file of agents that are not exported any more; `--prune` removes them",
            "1 file of agents that the workspace does not have, not applied yet; they are kept",
        ],
    );
    assert_eq!(told.stdout, "stale     agents/gone.md\nunapplied agents/fresh.md\n");
    let pruned = desk.json("export agents --prune", 0);
    assert_eq!(pruned["removed"], json!(["agents/gone.md"]));
    assert_eq!(pruned["unapplied"], json!(["agents/fresh.md"]));
    assert_eq!(desk.names("agents"), ["fresh.md", "left.md", "writer.md"]);

    // The same with a set, which an active agent is not of.
    fs::remove_file(desk.path("agents/left.md")).unwrap();
    desk.ok("apply agents --set docs");
    desk.write("agents/left.md", &WRITER.replace("writer", "left"));
    desk.write("agents/new.md", &WRITER.replace("writer", "new"));
    let pruned = desk.json("export agents --set docs --prune", 0);
    assert_eq!(pruned["removed"], json!(["agents/left.md"]));
    assert_eq!(pruned["unapplied"], json!(["agents/new.md"]));
    assert_eq!(desk.names("agents"), ["fresh.md", "new.md", "writer.md"]);
}

#[test]
fn an_export_onto_a_file_that_it_may_not_read_says_so() {
    use std::os::unix::fs::PermissionsExt as _;

    let desk = Desk::open();
    desk.studio.create("writer", &json!({})).expect(201);
    let path = desk.write("agents/writer.md", WRITER);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let export = match fs::read(&path).is_ok() {
        // Root reads every file.
        true => {
            fs::set_permissions(desk.path("."), fs::Permissions::from_mode(0o755)).unwrap();
            desk.run("export agents").as_user(65534)
        }
        false => desk.run("export agents"),
    };
    said_by(export.finish().exited(1), &["agents/writer.md: Permission denied"]);
}

#[test]
fn a_new_file_has_the_mode_of_the_umask_and_a_replaced_one_keeps_its_own() {
    use std::os::unix::fs::PermissionsExt as _;

    let desk = Desk::open();
    desk.studio.create("editor", &json!({})).expect(201);
    desk.studio.create("writer", &json!({})).expect(201);
    let writer = desk.write("agents/writer.md", WRITER);
    fs::set_permissions(&writer, fs::Permissions::from_mode(0o600)).unwrap();
    let line = format!("umask 027; exec {} export agents", command_binary().display());
    desk.run_with(&["-c", &line]).binary("/bin/sh").finish().exited(0);
    assert_ne!(desk.read("agents/writer.md"), WRITER);
    for (name, mode) in [("agents/editor.md", 0o640), ("agents/writer.md", 0o600)] {
        let found = fs::metadata(desk.path(name)).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{name}");
    }
}

#[test]
fn a_plan_is_applied_only_to_the_state_that_it_was_made_for() {
    let desk = Desk::open();
    desk.write("agents/writer.md", WRITER);
    let cursor = desk.json("plan agents", 2)["cursor"].as_str().unwrap().to_owned();
    desk.studio.create("writer", &json!({"model": "gpt-6"})).expect(201);
    desk.fails(
        &format!("apply agents --base {cursor}"),
        5,
        &[
            "have changed meanwhile; nothing was applied",
            "since base 1 of these agents have changed: writer",
        ],
    );
    desk.fails(
        &format!("apply agents --dry-run --base {cursor}"),
        5,
        &["since base 1 of these agents have changed: writer"],
    );
    assert_eq!(desk.studio.list().json()[0]["model"], "gpt-6");
    let cursor = desk.json("plan agents", 2)["cursor"].as_str().unwrap().to_owned();
    desk.ok(&format!("apply agents --base {cursor}"));
    assert_eq!(desk.studio.list().json()[0]["model"], "gpt-5");
    desk.fails("apply agents --base x", 1, &["base must be a cursor"]);
}

#[test]
fn files_that_are_no_regular_files_are_refused_without_waiting() {
    let desk = Desk::open();
    desk.studio.create("writer", &json!({})).expect(201);
    desk.write("agents/good.md", "---\ndisplay_name: Good\n---\n");
    let pipe = desk.path("agents/writer.md");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    desk.fails("plan agents", 1, &["agents/writer.md:1:1: must be a regular file"]);
    desk.fails("export agents", 1, &["agents/writer.md is not the file of an agent"]);
    fs::remove_file(&pipe).unwrap();
    std::os::unix::fs::symlink("nowhere", &pipe).unwrap();
    desk.fails("plan agents", 1, &["agents/writer.md:1:1: No such file"]);
    desk.fails("export agents", 1, &["agents/writer.md is not the file of an agent"]);
    fs::remove_file(&pipe).unwrap();
    fs::write(&pipe, vec![b'x'; 5 * 1024 * 1024]).unwrap();
    desk.fails(
        "plan agents",
        1,
        &["agents/writer.md:1:1: must be at most 4194304 bytes, got 5242880"],
    );
    desk.fails("export agents/good.md", 1, &["agents/good.md must be a directory"]);
}

#[test]
fn a_thousand_agents_are_the_most_of_one_apply() {
    let desk = Desk::open();
    for number in 0..1000 {
        desk.write(
            &format!("agents/a{number}.md"),
            &format!("---\ndisplay_name: Agent {number}\n---\nYou write.\n"),
        );
    }
    desk.ok("apply agents");
    assert_eq!(desk.json("export copy", 0)["written"].as_array().unwrap().len(), 1000);
    desk.run("plan copy").finish().exited(0);
    desk.write("agents/b.md", WRITER.replace("writer", "b").as_str());
    desk.fails("apply agents", 1, &["agents must have at most 1000 elements, got 1001"]);
}

#[test]
fn a_set_is_exported_alone() {
    let desk = Desk::open();
    desk.studio.create("other", &json!({})).expect(201);
    desk.write("agents/writer.md", WRITER);
    desk.write("agents/editor.md", &WRITER.replace("writer", "editor"));
    desk.ok("apply agents --set docs");
    desk.ok("export docs --set docs");
    assert_eq!(desk.names("docs"), ["editor.md", "writer.md"]);
    assert_eq!(desk.read("docs/writer.md"), WRITER);
    desk.run("plan docs --set docs --prune").finish().exited(0);
    desk.studio.remove("editor").expect(200);
    assert_eq!(
        desk.json("export docs --set docs --prune", 0)["removed"],
        json!(["docs/editor.md"])
    );
    // A set without agents, which may be a mistyped name, removes nothing.
    for (dir, set) in [("none", "none"), ("docs", "dosc")] {
        let line = format!("export {dir} --set {set} --prune");
        desk.fails(&line, 1, &[&format!("the set {set} has no active agents; nothing was")]);
    }
    assert_eq!(desk.names("docs"), ["writer.md"]);
    let reader = desk.studio.key("read").key;
    for line in ["export docs --set docs", "export all"] {
        desk.run(line).env("AGENTCFG_API_KEY", &reader).finish().exited(0);
    }
    assert_eq!(desk.studio.agent_ids(), ["other", "writer"]);
    desk.fails("export docs --set Docs", 1, &["set must be"]);
}

#[test]
fn the_file_of_the_documentation_is_what_an_export_writes() {
    let desk = Desk::open();
    let page = include_str!("../../docs/command-line.md");
    let (_, file) = page.split_once("```markdown\n").unwrap();
    let (file, _) = file.split_once("```").unwrap();
    desk.write("agents/release-writer.md", file);
    desk.ok("apply agents");
    desk.ok("export copy");
    assert_eq!(desk.read("copy/release-writer.md"), file);
}

#[test]
fn an_empty_workspace_exports_no_files_and_plans_no_differences() {
    let desk = Desk::open();
    assert_eq!(
        desk.json("export new/agents", 0),
        json!({"written": [], "unchanged": [], "stale": [], "removed": [], "unapplied": []})
    );
    let planned = desk.json("plan new/agents", 0);
    assert_eq!(planned["results"], json!([]));
    assert!(planned["cursor"].is_string());
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::with_cases(20) })]

    #[test]
    fn any_file_gets_problems_or_a_plan(text in "(---\n)?(agent_id: writer\n)?(display_name: [ -~é]{0,10}\n)?[ -~\n]{0,40}(\n---\n)?[^\0]{0,20}") {
        let desk = Desk::open();
        desk.write("agents/writer.md", &text);
        let finished = desk.run("plan agents").finish();
        match finished.status.code() {
            Some(2) => prop_assert!(finished.stdout.contains("+ create writer"), "{:?}", finished),
            code => {
                prop_assert_eq!(code, Some(1));
                prop_assert!(finished.stderr.contains("agents/writer.md:"), "{:?}", finished);
            }
        }
    }
}
