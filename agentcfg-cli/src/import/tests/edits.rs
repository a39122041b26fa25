//! An edit of one field keeps the rest of the value that the source had, or says what is lost.

use super::*;

/// Imports a text, changes fields, and exports it. A field of null is taken away.
pub fn edited(word: &str, name: &str, text: &str, changes: &str) -> (String, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(name), text).unwrap();
    let format = format(word).unwrap();
    let (agents, reading) = imported(format, &dir.path().join(name));
    assert_eq!(agents.len(), 1, "{reading:?}");
    let mut fields = agents[0].fields.clone();
    for change in from_json(Path::new("changes"), changes).unwrap().entries() {
        let place = match change.key.strip_prefix("definition.") {
            None => &mut fields,
            Some(_) => {
                let definition = fields.iter_mut().find(|entry| entry.key == "definition").unwrap();
                definition.node.entries_mut().unwrap()
            }
        };
        let key = change.key.strip_prefix("definition.").unwrap_or(&change.key);
        match change.node.is_null() {
            true => drop(super::super::source_tree::take(place, key)),
            false => super::super::source_tree::put(place, key, change.node.clone()),
        }
    }
    let (mut lost, mut not_held) = (Vec::new(), Vec::new());
    let written = export(format, &agents[0].agent_id, fields, &mut lost);
    let files = (format.write)(vec![written], &mut not_held);
    lost.extend(not_held.into_iter().map(|(_, path)| path));
    (files[0].text.split_whitespace().collect::<Vec<_>>().join(" "), lost)
}

#[test]
fn other_messages_servers_and_models_stay() {
    let shots = r#"{"model": "m", "instructions": [{"role": "system", "content": [{"type": "input_text", "text": "Old"}]},
        {"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]}"#;
    let (text, lost) = edited("openai", "a.json", shots, r#"{"persona_prompt": "New"}"#);
    assert!(
        text.contains(r#""text": "New" } ] }, { "role": "user", "content": "Q""#) && lost.is_empty(),
        "{text} {lost:?}"
    );
    let (text, _) = edited("openai", "a.json", shots, r#"{"persona_prompt": null}"#);
    assert!(text.contains(r#""instructions": [ { "role": "user""#), "{text}");
    let users = r#"{"model": "m", "instructions": [{"role": "user", "content": "Q"}]}"#;
    let (text, _) = edited("openai", "a.json", users, r#"{"persona_prompt": "New"}"#);
    assert!(text.contains(r#""content": "New" }, { "role": "user""#), "{text}");

    let servers = "---\nname: a\ndescription: d\nmcpServers:\n  - github\n  - desk:\n      command: old\n  - other:\n      command: o\n---\nx\n";
    let (text, lost) = edited(
        "claude-code",
        "a.md",
        servers,
        r#"{"definition.mcp_servers": [{"name": "new", "command": "run"}, {"name": "desk", "command": "changed"}]}"#,
    );
    assert!(
        text.contains("mcpServers: - github - desk: command: changed - new: command: run"),
        "{text}"
    );
    assert_eq!(lost, [""; 0]);
    let (text, _) = edited("claude-code", "a.md", servers, r#"{"definition.mcp_servers": null}"#);
    assert!(text.contains("mcpServers: - github ---"), "{text}");

    let models = "---\ndescription: d\nmodel: [A, B]\n---\nx\n";
    let (text, _) = edited("copilot", "a.agent.md", models, r#"{"model": "C"}"#);
    assert!(text.contains("model: - C - B"), "{text}");
}

#[test]
fn a_manifest_has_no_marks_and_says_what_it_cannot_hold() {
    let read = |name: &str| fs::read_to_string(corpus("langsmith").join(name)).unwrap();
    let modelled = read("with-model.json");
    let (text, lost) = edited(
        "langsmith",
        "a.json",
        &modelled,
        r#"{"persona_prompt": null, "model": null}"#,
    );
    assert!(!text.contains("$system") && !text.contains("$model"), "{text}");
    assert_eq!(lost, ["model"]);
    let (text, lost) = edited(
        "langsmith",
        "a.json",
        &read("human-only.json"),
        r#"{"persona_prompt": "New", "model": "m"}"#,
    );
    assert!(!text.contains("New"), "{text}");
    assert_eq!(lost, ["persona_prompt", "model"]);
    let few = r#"{"lc": 1, "type": "constructor", "id": ["FewShotPromptTemplate"], "kwargs": {"prefix": "Sort.", "examples": [],
        "example_prompt": {"lc": 1, "type": "constructor", "id": ["PromptTemplate"], "kwargs": {"template": "{q}"}}}}"#;
    let (text, lost) = edited("langsmith", "a.json", few, r#"{"persona_prompt": "New"}"#);
    assert!(
        text.contains(r#""prefix": "New""#) && text.contains(r#""template": "{q}""#),
        "{text}"
    );
    assert_eq!(lost, [""; 0]);
}

#[test]
fn servers_of_several_states_of_a_file_are_all_written() {
    let agent = |name: &str, servers: &str, file: &str| {
        let json = format!(
            r#"{{"display_name": "{name}", "definition": {{"mcp_servers": {servers}, "claude-code": {{"$mcp": {{"file": ".mcp.json",
            "content": {file}}}}}}}}}"#
        );
        (
            name.to_owned(),
            from_json(Path::new("a"), &json).unwrap().entries().to_vec(),
        )
    };
    let agents = [
        agent(
            "one",
            r#"[{"name": "a", "command": "a"}]"#,
            r#"{"mcpServers": {"a": {"command": "a"}}}"#,
        ),
        agent(
            "two",
            r#"[{"name": "a", "command": "other"}, {"name": "b", "command": "b"}]"#,
            r#"{"mcpServers": {"a": {"command": "other"}, "b": {"command": "b"}}}"#,
        ),
    ];
    let claude = format("claude-code").unwrap();
    let agents = agents
        .into_iter()
        .map(|(id, fields)| export(claude, &id, fields, &mut Vec::new()));
    let mut not_held = Vec::new();
    let files = (claude.write)(agents.collect(), &mut not_held);
    let servers = files.iter().find(|file| file.path.ends_with(".mcp.json")).unwrap();
    let servers: serde_json::Value = serde_json::from_str(&servers.text).unwrap();
    assert_eq!(
        servers,
        serde_json::json!({"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}})
    );
    assert_eq!(
        not_held,
        [(
            "two".to_owned(),
            "another value of mcpServers.a in .mcp.json".to_owned()
        )]
    );
}

/// Exports an agent of these fields. Returns the text of its file, and what is not held.
pub fn written(word: &str, fields: &str) -> (String, Vec<String>) {
    let fields = from_json(Path::new("a"), fields).unwrap().entries().to_vec();
    let (mut lost, mut not_held) = (Vec::new(), Vec::new());
    let format = format(word).unwrap();
    let agent = export(format, "one", fields, &mut lost);
    lost.extend(missing(format, &agent));
    let files = (format.write)(vec![agent], &mut not_held);
    lost.extend(not_held.into_iter().map(|(_, path)| path));
    (files[0].text.clone(), lost)
}

#[test]
fn what_a_format_or_its_tool_does_not_take_is_named() {
    let fields = r#"{"display_name": "one", "description": "d", "persona_prompt": "x", "definition": DEFINITION}"#;
    let of = |definition: &str| fields.replace("DEFINITION", definition);
    let (text, lost) = written("codex", &of(r#"{"codex": {"a": {"b": null, "c": [null, 1]}}}"#));
    assert_eq!(lost, ["null in a.b", "null in a.c"], "{text}");
    let tables = r#"{"codex": {"zeta": {"command": "z"}, "x": 1, "alpha": {"command": "a"}}}"#;
    let (text, _) = written("codex", &of(tables));
    assert!(
        text.find("zeta") < text.find("alpha"),
        "the order of the source: {text}"
    );
    let (_, lost) = written("codex", &of(r#"{"codex": "x"}"#));
    assert_eq!(lost, ["definition.codex"]);
    for (name, number) in [("a:b", 1), ("-lead", 1), ("a-b", 0)] {
        let (_, lost) = written("claude-code", &of("{}").replace("one", name));
        assert_eq!(lost.len(), number, "{name}: {lost:?}");
    }
}

#[test]
fn orders_and_lists_of_opencode_come_back() {
    for value in [
        "permission: []",
        "permission: {}",
        "permission:\n  - edit: deny",
        "permission:\n  bash:\n    \"*\": ask\n    \"git *\": allow",
        "tools:\n  z: true\n  a: false",
        "tools: []",
    ] {
        let text = format!("---\ndescription: d\n{value}\n---\n\nx\n");
        let (written, lost) = edited("opencode", "a.md", &text, "{}");
        let expected = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!((written.replace('"', ""), lost.len()), (expected.replace('"', ""), 0));
    }
    let text = "---\ndescription: d\ntools:\n  z: true\n  a: false\n---\nx\n";
    let (agents, _) = {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.md"), text).unwrap();
        imported(format("opencode").unwrap(), &dir.path().join("a.md"))
    };
    let kept = agents[0].field("definition").unwrap().get("opencode").unwrap();
    assert_eq!(kept.get("tools").unwrap().json(), r#"[{"z":true},{"a":false}]"#);
}

#[test]
fn comments_and_line_ends_of_the_file_that_is_replaced_stay() {
    use super::super::existing::{Outcome, outcome};
    use super::super::output_file::{File, Holds};
    let dir = Path::new("dir");
    let file = |name: &str, text: &str| File::new(PathBuf::from(name), text.to_owned(), Holds::Agent);
    let crewai = format("crewai").unwrap();
    let before = "// ours\n{\"role\": \"r\"}\n";
    let new = file("a.jsonc", "{\"role\": \"new\"}\n");
    assert!(
        matches!(outcome(crewai, dir, &new, before.as_bytes()), Outcome::Refused { reason, .. } if reason.contains("comments"))
    );
    let same = file("a.jsonc", "{\n  \"role\": \"r\"\n}\n");
    assert_eq!(outcome(crewai, dir, &same, before.as_bytes()), Outcome::Unchanged);
    let claude = format("claude-code").unwrap();
    let before = "---\r\nname: a\r\ndescription: d\r\n---\r\nx\r\n";
    let same = file("a.md", "---\nname: a\ndescription: d\n---\n\nx\n");
    assert_eq!(outcome(claude, dir, &same, before.as_bytes()), Outcome::Unchanged);
    let new = file("a.md", "---\nname: a\ndescription: d\n---\n\ny\n");
    let expected = Outcome::Write(new.text.replace('\n', "\r\n"));
    assert_eq!(outcome(claude, dir, &new, before.as_bytes()), expected);
}

#[test]
fn settings_of_crewai_and_servers_that_are_kept_stay_where_they_are() {
    let agent = r#"{"role": "R", "goal": "G", "backstory": "B", "llm": "top", "max_iter": 5, "settings": {"llm": "inner", "max_iter": 25}}"#;
    let (text, lost) = edited("crewai", "s.json", agent, r#"{"model": "new"}"#);
    assert!(
        text.contains(r#""max_iter": 5, "settings": { "llm": "new", "max_iter": 25 }"#),
        "{text}"
    );
    // What the settings overrule stays beside them.
    assert!(text.contains(r#""llm": "top""#) && lost.is_empty(), "{text} {lost:?}");

    let servers = "---\nname: a\ndescription: d\nmcpServers:\n  - desk:\n      url: ${DESK}\n  - std:\n      command: o\n---\nx\n";
    let changed = r#"{"definition.mcp_servers": [{"name": "std", "command": "changed"}]}"#;
    let (text, _) = edited("claude-code", "a.md", servers, changed);
    assert!(
        text.contains(r#"- desk: url: "${DESK}" - std: command: changed"#),
        "{text}"
    );
}

#[test]
fn a_name_that_an_agent_got_since_is_written() {
    let copilot = "---\ndescription: d\n---\nx\n";
    let assistant = r#"{"model": "m", "instructions": "x"}"#;
    for (word, file, text, given) in [
        ("copilot", "triage.agent.md", copilot, "triage"),
        ("copilot", "Code Triage.agent.md", copilot, "Code Triage"),
        ("opencode", "triage.md", copilot, "triage"),
        ("openai", "Triage of mail.json", assistant, "Triage of mail"),
    ] {
        let name = |name: &str| format!(r#"{{"display_name": "{name}"}}"#);
        let (text_before, _) = edited(word, file, text, &name(given));
        assert!(!text_before.contains("name"), "{word}: {text_before}");
        // Also one that gives the same identifier.
        for new in ["Desk", &given.to_uppercase()] {
            let (text, lost) = edited(word, file, text, &name(new));
            let text = text.replace('"', "");
            assert!(
                text.contains(&format!("name: {new}")) && lost.is_empty(),
                "{word}: {text} {lost:?}"
            );
        }
    }
}

#[test]
fn what_a_tool_requires_and_the_source_has_not_is_named() {
    let only_model = "---\nmodel: m\n---\nx\n";
    let blank = "---\ndescription: \" \"\n---\nx\n";
    for (word, file, text, keys) in [
        ("copilot", "a.agent.md", only_model, &["description"][..]),
        ("copilot", "a.agent.md", blank, &["description"]),
        ("opencode", "a.md", only_model, &["description"]),
        ("openai", "a.json", r#"{"instructions": "x"}"#, &["model"]),
        ("openai", "a.json", r#"{"model": "m", "instructions": "x"}"#, &[]),
        ("claude-agents", "a.json", r#"{"name": "a", "model": ""}"#, &["model"]),
        ("langfuse", "a.json", r#"{"name": "a", "prompt": ""}"#, &["prompt"]),
        (
            "crewai",
            "agents.yaml",
            "a:\n  role: r\n  goal: \"\"\n",
            &["goal", "backstory"],
        ),
        (
            "codex",
            "a.toml",
            "name = \"a\"\ndescription = \"\"\n",
            &["description", "developer_instructions"],
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(file);
        fs::write(&path, text).unwrap();
        let format = format(word).unwrap();
        let (agents, reading) = imported(format, &path);
        assert_eq!(agents.len(), 1, "{word}: {reading:?}");
        let agent = export(format, &agents[0].agent_id, agents[0].fields.clone(), &mut Vec::new());
        assert_eq!(missing(format, &agent), keys, "{word}: {text}");
    }
}

#[test]
fn agents_of_one_name_get_names_of_their_own() {
    for word in ["crewai", "langfuse", "claude-code", "codex", "claude-agents"] {
        let format = format(word).unwrap();
        let fields = |name: &str| {
            let json = format!(
                r#"{{"display_name": "{name}", "role": "r", "description": "d", "persona_prompt": "p", "model": "m"}}"#
            );
            from_json(Path::new("agent"), &json).unwrap().entries().to_vec()
        };
        let mut written: Vec<_> = [("one", "Same"), ("two", "Same"), ("three", "two")]
            .into_iter()
            .map(|(id, name)| export(format, id, fields(name), &mut Vec::new()))
            .collect();
        let lost = super::super::make_unique(format, &mut written);
        let names: Vec<_> = written
            .iter()
            .map(|agent| {
                super::super::source_tree::find(&agent.entries, format.unique.unwrap())
                    .unwrap()
                    .json()
            })
            .collect();
        assert_eq!(names, [r#""Same""#, r#""two-2""#, r#""two""#], "{word}");
        assert_eq!(
            lost[0],
            ("two".to_owned(), r#"the name "Same", which one has, too"#.to_owned())
        );
        assert_eq!(lost.len(), 1);
    }
}
