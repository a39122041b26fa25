//! Versions and labels of a prompt store that come in late, or move.

use agentcfg_tests::harness::Finished;
use serde_json::{Value, json};

use crate::fixture::Desk;

/// Runs a command with `--json`, and returns the report.
#[track_caller]
fn report(desk: &Desk, line: &str, code: i32) -> Value {
    let finished: Finished = desk.run(&format!("{line} --json")).finish().exited(code);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

/// Writes versions of prompts to a file.
fn write(desk: &Desk, name: &str, prompts: &[(&str, usize, &[&str])]) {
    let prompt = |(name, version, labels): &(&str, usize, &[&str])| json!({"name": name, "type": "text", "prompt": format!("V{version}"), "version": version, "labels": labels});
    let prompts: Vec<Value> = prompts.iter().map(prompt).collect();
    desk.write(name, &json!(prompts).to_string());
}

const IMPORT: &str = "import langfuse prompts.json --apply";

#[test]
fn an_older_version_that_is_missing_is_a_problem_with_its_labels() {
    let desk = Desk::open();
    write(&desk, "prompts.json", &[("triage", 5, &[])]);
    assert_eq!(report(&desk, IMPORT, 0)["versions_made"], 1);
    write(&desk, "prompts.json", &[("triage", 4, &["production"])]);
    for line in [&format!("{IMPORT} --dry-run"), IMPORT, &format!("{IMPORT} --overwrite")] {
        let refused = report(&desk, line, 1);
        let message = refused["problems"][0]["message"].as_str().unwrap();
        assert!(
            message.starts_with("version 4 of triage with the labels production is not in the workspace"),
            "{message}"
        );
        assert!(message.contains("name the files of the newer versions"), "{message}");
    }
    write(
        &desk,
        "prompts.json",
        &[("triage", 5, &[]), ("triage", 4, &["production"])],
    );
    let refused = report(&desk, IMPORT, 1);
    assert_eq!(
        (&refused["versions_made"], &refused["labels_set"]),
        (&json!(0), &json!([]))
    );
    // What is newer comes in all the same.
    write(
        &desk,
        "prompts.json",
        &[("triage", 4, &["production"]), ("triage", 6, &["staging"])],
    );
    let newer = report(&desk, IMPORT, 1);
    assert_eq!(
        (&newer["versions_made"], &newer["labels_set"]),
        (&json!(1), &json!(["triage:staging"]))
    );
    let all = report(&desk, &format!("{IMPORT} --overwrite"), 0);
    assert_eq!(
        (&all["versions_made"], &all["labels_set"]),
        (&json!(2), &json!(["triage:production", "triage:staging"]))
    );
    assert_eq!(
        desk.json("agents get triage --label production", 0)["config"]["persona_prompt"],
        "V4"
    );
    let again = report(&desk, IMPORT, 0);
    assert_eq!((&again["versions_made"], &again["unchanged"]), (&json!(0), &json!(1)));
}

/// Prompts with a text for each version.
fn write_texts(desk: &Desk, prompts: &[(usize, &str, &[&str])]) {
    let prompt = |(version, text, labels): &(usize, &str, &[&str])| json!({"name": "triage", "type": "text", "prompt": text, "version": version, "labels": labels});
    let prompts: Vec<Value> = prompts.iter().map(prompt).collect();
    desk.write("prompts.json", &json!(prompts).to_string());
}

#[test]
fn a_version_with_another_text_under_its_number_is_a_problem() {
    let desk = Desk::open();
    write_texts(&desk, &[(1, "OLD", &[])]);
    desk.ok(IMPORT);
    write_texts(&desk, &[(1, "NEW", &["production"])]);
    for line in [&format!("{IMPORT} --dry-run"), IMPORT] {
        let refused = report(&desk, line, 1);
        assert_eq!(
            refused["problems"][0]["message"],
            "version 1 of triage with the labels production has another persona_prompt in the workspace: --overwrite \
             makes it again"
        );
        assert_eq!(
            (&refused["agents"][0]["action"], &refused["agents"][0]["changes"]),
            (&json!("refused"), &json!(["persona_prompt"]))
        );
        assert_eq!(refused["labels_set"], json!([]));
    }
    desk.fails("agents get triage --label production", 4, &["production"]);
    let made = report(&desk, &format!("{IMPORT} --overwrite"), 0);
    assert_eq!(
        (&made["versions_made"], &made["labels_set"]),
        (&json!(1), &json!(["triage:production"]))
    );
    let released = desk.json("agents get triage --label production", 0);
    assert_eq!(released["config"]["persona_prompt"], "NEW");
    let again = report(&desk, IMPORT, 0);
    assert_eq!((&again["versions_made"], &again["unchanged"]), (&json!(0), &json!(1)));

    // So is an older version, and what is newer comes in all the same.
    write_texts(&desk, &[(1, "NEWER", &["production"]), (2, "SECOND", &[])]);
    let refused = report(&desk, IMPORT, 1);
    assert_eq!(
        (&refused["versions_made"], &refused["labels_set"]),
        (&json!(1), &json!([]))
    );
    let refused = report(&desk, IMPORT, 1);
    let message = refused["problems"][0]["message"].as_str().unwrap();
    assert!(message.contains("which also has the newer version 2"), "{message}");
    let released = desk.json("agents get triage --label production", 0);
    assert_eq!(released["config"]["persona_prompt"], "NEW");
    let made = report(&desk, &format!("{IMPORT} --overwrite"), 0);
    assert_eq!(
        (&made["versions_made"], &made["labels_set"]),
        (&json!(2), &json!(["triage:production"]))
    );
    let released = desk.json("agents get triage --label production", 0);
    assert_eq!(released["config"]["persona_prompt"], "NEWER");
    assert_eq!(desk.json("agents get triage", 0)["persona_prompt"], "SECOND");
    assert_eq!(report(&desk, IMPORT, 0)["versions_made"], 0);
}

#[test]
fn old_versions_of_many_prompts_are_found_in_the_past() {
    let desk = Desk::open();
    let names: Vec<String> = (0..8).map(|i| format!("p{i}")).collect();
    let all: Vec<(&str, usize, &[&str])> = names
        .iter()
        .flat_map(|name| (1..4).map(|version| (&**name, version, &[] as &[&str])))
        .collect();
    write(&desk, "prompts.json", &all);
    assert_eq!(report(&desk, IMPORT, 0)["versions_made"], 24);
    assert_eq!(report(&desk, IMPORT, 0)["unchanged"], 8);
    // One of them is missing for one prompt.
    let other: Vec<(&str, usize, &[&str])> = [2, 4, 3].map(|version| ("q", version, &[] as &[&str])).to_vec();
    write(&desk, "prompts.json", &[&all[..], &other[1..2]].concat());
    assert_eq!(report(&desk, IMPORT, 0)["versions_made"], 1);
    write(&desk, "prompts.json", &[all, other].concat());
    let refused = report(&desk, IMPORT, 1);
    let problems = refused["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 2, "{refused}");
    assert!(
        problems[0]["message"]
            .as_str()
            .unwrap()
            .starts_with("version 2 of q is not"),
        "{refused}"
    );
}

#[test]
fn a_label_that_moved_back_at_the_source_is_followed() {
    let desk = Desk::open();
    write(
        &desk,
        "prompts.json",
        &[("triage", 1, &[]), ("triage", 2, &["production"])],
    );
    report(&desk, IMPORT, 0);
    write(
        &desk,
        "prompts.json",
        &[("triage", 1, &["production"]), ("triage", 2, &[])],
    );
    let planned = report(&desk, &format!("{IMPORT} --dry-run"), 0);
    assert_eq!(planned["labels_set"], json!(["triage:production"]));
    assert_eq!(report(&desk, IMPORT, 0)["labels_set"], json!(["triage:production"]));
    assert_eq!(desk.json("agents get triage --label production", 0)["version"], 1);
    assert_eq!(report(&desk, IMPORT, 0)["labels_set"], json!([]));

    // A label at a version of other means stays, and that is a problem.
    desk.ok("export workspace");
    let text = desk.read("workspace/triage.md").replace("V2", "By hand");
    desk.write("workspace/triage.md", &text);
    desk.ok("apply workspace");
    report(&desk, &format!("{IMPORT} --overwrite"), 0);
    desk.ok("label set triage production 3");
    for line in [&format!("{IMPORT} --dry-run"), IMPORT] {
        let refused = report(&desk, line, 1);
        assert!(
            refused["problems"]
                .to_string()
                .contains("production of triage is at version 3"),
            "{refused}"
        );
        assert_eq!(refused["labels_set"], json!([]));
    }
    let moved = report(&desk, &format!("{IMPORT} --overwrite"), 0);
    assert_eq!(moved["labels_set"], json!(["triage:production"]));
}

#[test]
fn an_agent_that_is_restored_as_it_was_has_no_new_version() {
    let desk = Desk::open();
    write(&desk, "prompts.json", &[("triage", 1, &[]), ("writer", 1, &[])]);
    report(&desk, IMPORT, 0);
    desk.ok("agents delete triage --yes");
    write(&desk, "prompts.json", &[("triage", 1, &[]), ("writer", 2, &[])]);
    let restored = report(&desk, &format!("{IMPORT} --overwrite"), 0);
    assert_eq!(restored["versions_made"], 1, "{restored}");
    assert_eq!(restored["agents"][0]["action"], "restore");
}

#[test]
fn a_file_that_was_skipped_is_not_overwritten() {
    let desk = Desk::open();
    desk.write("claude/a.md", "---\nname: notes\ndescription: d\n---\nx\n");
    desk.write("claude/notes.md", "# Notes\n");
    let refused = desk
        .bare("import claude-code claude --out claude --overwrite")
        .finish()
        .exited(1);
    assert!(refused.stderr.contains("nothing was written"), "{refused:?}");
    assert_eq!(desk.read("claude/notes.md"), "# Notes\n");
}

#[test]
fn a_strict_export_counts_what_the_files_cannot_hold() {
    let desk = Desk::open();
    let prompt = json!({"lc": 1, "type": "constructor", "id": ["HumanMessagePromptTemplate"], "kwargs": {}});
    let manifest = json!({"repo_handle": "triage", "manifest": {"lc": 1, "type": "constructor", "id": ["ChatPromptTemplate"], "kwargs": {"messages": [prompt]}}});
    desk.write("triage.json", &manifest.to_string());
    desk.bare("import langsmith triage.json --out agents")
        .finish()
        .exited(0);
    let text = desk.read("agents/triage.md").replacen("---\n", "---\nmodel: opus\n", 1);
    desk.write("agents/triage.md", &text);
    let refused = desk
        .bare("export --format langsmith --from agents out --strict")
        .finish()
        .exited(1);
    assert!(refused.stdout.contains("not held  triage: model"), "{refused:?}");
    assert!(!desk.path("out").exists());
}

#[test]
fn labels_that_a_workspace_cannot_have_come_back_in_their_order() {
    let desk = Desk::open();
    write(
        &desk,
        "prompts.json",
        &[("triage", 1, &["9", "staging", "0", "latest", "production"])],
    );
    report(&desk, IMPORT, 0);
    desk.ok("label remove triage staging");
    desk.ok("label set triage fresh 1");
    desk.ok("export --format langfuse out");
    let back: Value = serde_json::from_str(&desk.read("out/prompts.json")).unwrap();
    assert_eq!(back[0]["labels"], json!(["9", "0", "latest", "production", "fresh"]));
}

#[test]
fn markers_of_conflicts_in_a_prompt_are_told_with_its_file() {
    let desk = Desk::open();
    let prompt = json!([{"name": "triage", "type": "text", "prompt": "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> x\n", "version": 1}]);
    desk.write("prompts.json", &prompt.to_string());
    let written = report(&desk, "import langfuse prompts.json --out agents", 0);
    assert!(
        written["warnings"].to_string().contains("--allow-conflict-markers"),
        "{written}"
    );
}

#[test]
fn an_export_reads_the_versions_of_many_prompts_at_once() {
    let desk = Desk::open();
    let names: Vec<String> = (0..8).map(|i| format!("p{i}")).collect();
    let all: Vec<(&str, usize, &[&str])> = (1..4)
        .flat_map(|version| names.iter().map(move |name| (&**name, version, &[] as &[&str])))
        .collect();
    write(&desk, "prompts.json", &all);
    report(&desk, IMPORT, 0);
    desk.ok("export --format langfuse out");
    let back: Value = serde_json::from_str(&desk.read("out/prompts.json")).unwrap();
    let back: Vec<(&str, u64, &str)> = back
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["name"].as_str().unwrap(),
                one["version"].as_u64().unwrap(),
                one["prompt"].as_str().unwrap(),
            )
        })
        .collect();
    let expected: Vec<String> = (1..4).map(|version| format!("V{version}")).collect();
    let expected: Vec<(&str, u64, &str)> = names
        .iter()
        .flat_map(|name| {
            (1..4)
                .zip(&expected)
                .map(move |(version, text)| (&**name, version, &**text))
        })
        .collect();
    assert_eq!(back, expected);
}

/// The versions of an export with their texts and labels.
fn exported(desk: &Desk, dir: &str) -> Vec<(u64, String, Vec<String>)> {
    let back: Vec<Value> = serde_json::from_str(&desk.read(&format!("{dir}/prompts.json"))).unwrap();
    let row = |prompt: &Value| {
        let labels = prompt["labels"].as_array().unwrap().iter();
        (
            prompt["version"].as_u64().unwrap(),
            prompt["prompt"].as_str().unwrap().to_owned(),
            labels.map(|label| label.as_str().unwrap().to_owned()).collect(),
        )
    };
    back.iter().map(row).collect()
}

#[test]
fn an_export_has_what_is_released_beside_later_edits_and_rollbacks() {
    let desk = Desk::open();
    write(&desk, "prompts.json", &[("p", 1, &[]), ("p", 2, &["production"])]);
    desk.ok(IMPORT);
    desk.studio
        .change("p", &json!({"persona_prompt": "V2, edited"}))
        .expect(200);
    desk.ok("rollback p 1");
    desk.ok("export --format langfuse out --strict");
    let row = |number: u64, text: &str, labels: &[&str]| {
        (
            number,
            text.to_owned(),
            labels.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>(),
        )
    };
    let expected = [
        row(1, "V1", &[]),
        row(2, "V2", &["production"]),
        row(3, "V2, edited", &[]),
        row(4, "V1", &[]),
    ];
    assert_eq!(exported(&desk, "out"), expected);
    // It comes in elsewhere as it is.
    let other = Desk::open();
    other.write("prompts.json", &desk.read("out/prompts.json"));
    assert_eq!(report(&other, IMPORT, 0)["versions_made"], 4);
    other.ok("export --format langfuse out --strict");
    assert_eq!(exported(&other, "out"), expected);
}

#[test]
fn versions_that_were_imported_again_take_the_place_of_those_before() {
    let desk = Desk::open();
    write(&desk, "prompts.json", &[("p", 1, &[]), ("p", 3, &["production"])]);
    desk.ok(IMPORT);
    let all: &[(&str, usize, &[&str])] = &[("p", 1, &[]), ("p", 2, &[]), ("p", 3, &["production"])];
    write(&desk, "prompts.json", all);
    desk.ok(&format!("{IMPORT} --overwrite"));
    desk.ok("export --format langfuse out --strict");
    let numbers: Vec<u64> = exported(&desk, "out").iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    // An earlier version with a label is listed as not held.
    desk.ok("label set p old 2");
    let refused = desk.run("export --format langfuse other --strict").finish().exited(1);
    assert!(refused.stdout.contains("version 2 with the labels old"), "{refused:?}");
}

#[test]
fn a_prompt_with_too_many_labels_is_a_problem_and_the_others_come_in() {
    let desk = Desk::open();
    let labels: Vec<String> = (0..25).map(|number| format!("l{number}")).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    write(
        &desk,
        "prompts.json",
        &[("many", 1, &labels), ("zz", 1, &["production"])],
    );
    let report = report(&desk, IMPORT, 1);
    assert_eq!(report["problems"].as_array().unwrap().len(), 5, "{report}");
    assert!(
        report["problems"][0]["message"].as_str().unwrap().contains("20 labels"),
        "{report}"
    );
    assert_eq!(desk.json("agents get zz --label production", 0)["version"], 1);
}
