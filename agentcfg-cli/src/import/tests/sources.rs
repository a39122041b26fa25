//! What is made of single sources.

use super::*;

/// Reads a text as a file of this name.
pub fn read_one(word: &str, name: &str, text: &str) -> (Vec<Imported>, Reading) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(name), text).unwrap();
    imported(format(word).unwrap(), &dir.path().join(name))
}

/// The definition of the only agent as JSON.
#[track_caller]
fn definition(word: &str, name: &str, text: &str) -> serde_json::Value {
    let (agents, reading) = read_one(word, name, text);
    assert_eq!(agents.len(), 1, "{reading:?}");
    let json = agents[0].field("definition").map_or("{}".to_owned(), Node::json);
    serde_json::from_str(&json).unwrap()
}

#[test]
fn what_a_response_says_of_its_call_is_not_sent_with_other_calls() {
    let response = r#"{"id": "resp_1", "object": "response", "model": "m", "instructions": "x", "temperature": 0.5,
        "max_output_tokens": 16, "parallel_tool_calls": true, "tool_choice": "auto", "truncation": "disabled",
        "text": {"format": {"type": "text"}}, "reasoning": {"effort": null, "summary": null}}"#;
    let kept = definition("openai", "a.json", response);
    assert_eq!(
        kept["model_settings"],
        serde_json::json!({"temperature": 0.5}),
        "{kept}"
    );
    assert_eq!(kept["openai"]["response.max_output_tokens"], 16, "{kept}");
    let request = r#"{"model": "m", "instructions": "x", "max_output_tokens": 100, "tool_choice": "required"}"#;
    let kept = definition("openai", "a.json", request);
    assert_eq!(
        kept["model_settings"],
        serde_json::json!({"max_output_tokens": 100}),
        "{kept}"
    );
    assert_eq!(kept["openai"]["tool_choice"], "required");
    let assistant = r#"{"id": "asst_1", "model": "m", "instructions": "x", "response_format": FORMAT}"#;
    let kept = definition("openai", "a.json", &assistant.replace("FORMAT", r#""auto""#));
    assert_eq!(kept["openai"]["response_format"], "auto");
    assert_eq!(kept["model_settings"], serde_json::Value::Null, "{kept}");
    let kept = definition("openai", "a.json", &assistant.replace("FORMAT", r#"{"type": "text"}"#));
    assert_eq!(kept["model_settings"]["response_format"]["type"], "text", "{kept}");
    let prompt =
        r#"{"name": "a", "type": "text", "prompt": "x", "config": {"tool_choice": "auto", "tools": [{"type": "a"}]}}"#;
    let kept = definition("langfuse", "a.json", prompt);
    assert_eq!(
        (&kept["model_settings"], &kept["tools"][0]["type"]),
        (&serde_json::Value::Null, &"a".into())
    );
}

#[test]
fn anchors_and_tags_of_front_matter_are_read() {
    let text = "---\nname: a\ndescription: !!str d\ntools: &t\n  - Read\n  - Bash\ndisallowedTools: *t\nversion: !!str 1\n---\nx\n";
    let (agents, reading) = read_one("claude-code", "a.md", text);
    assert_eq!(agents[0].field("description").unwrap().as_text(), Some("d"));
    let kept = definition("claude-code", "a.md", text);
    assert_eq!(kept["tools"], serde_json::json!(["Read", "Bash"]));
    assert_eq!(
        kept["claude-code"]["disallowedTools"],
        serde_json::json!(["Read", "Bash"])
    );
    assert_eq!(reading.warnings.len(), 1, "{reading:?}");
}

#[test]
fn a_list_or_a_map_is_never_read_as_a_text() {
    for (word, field, line) in [
        ("claude-code", "tools:\n\t- Read", 4),
        ("claude-code", "tools:\n  - *", 5),
        ("claude-code", "disallowedTools: [Read", 4),
        ("claude-code", "hooks:\n\tStop: []", 4),
        ("claude-code", "mcpServers:\n\t- desk", 4),
        ("opencode", "permission:\n\tedit: deny", 4),
        ("opencode", "permission: edit: deny", 4),
        ("claude-code", "unknown: &a [", 4),
    ] {
        let (agents, reading) = read_one(
            word,
            "a.md",
            &format!("---\nname: a\ndescription: d\n{field}\n---\nx\n"),
        );
        assert!(agents.is_empty(), "{field}: {agents:?}");
        let problem = &reading.problems[0];
        assert!(
            problem.place.line >= line && problem.message.contains("spaces"),
            "{field}: {problem:?}"
        );
    }
    for (field, text) in [
        ("description: Use when: x", "Use when: x"),
        ("description: \"Fix\" or \"Review\"", "\"Fix\" or \"Review\""),
        ("description: \"a\": b", "\"a\": b"),
    ] {
        let (agents, reading) = read_one("claude-code", "a.md", &format!("---\nname: a\n{field}\n---\nx\n"));
        assert_eq!(
            agents[0].field("description").unwrap().as_text(),
            Some(text),
            "{reading:?}"
        );
    }
}

#[test]
fn an_entry_without_a_prompt_hides_no_others() {
    let (agents, reading) = read_one(
        "claude-code",
        "a.json",
        r#"{"one": {"description": "d", "prompt": "x"}, "two": {"description": "d"}}"#,
    );
    assert_eq!((agents.len(), reading.skipped.len()), (1, 1), "{reading:?}");
    assert!(reading.skipped[0].reason.contains("two"), "{reading:?}");
    let (agents, _) = read_one("claude-code", "a.json", r#"{"prompt": {"prompt": "x"}, "list": []}"#);
    assert!(agents.is_empty());
}

#[test]
fn a_page_that_is_not_the_last_is_named() {
    let agent = r#"{"name": "a", "model": "m", "prompt": "x"}"#;
    for (word, page, is_cut) in [
        ("openai", r#""has_more": true"#, true),
        ("openai", r#""has_more": false"#, false),
        ("claude-agents", r#""next_page": "page_2""#, true),
        ("claude-agents", r#""next_page": null"#, false),
        ("langfuse", r#""meta": {"page": 1, "totalPages": 2}"#, true),
        ("langfuse", r#""meta": {"page": 2, "totalPages": 2}"#, false),
    ] {
        let (agents, reading) = read_one(word, "a.json", &format!(r#"{{"data": [{agent}], {page}}}"#));
        assert_eq!(
            (agents.len(), reading.warnings.len()),
            (1, usize::from(is_cut)),
            "{page}: {reading:?}"
        );
    }
}

#[test]
fn scalars_of_crewai_are_those_of_pyyaml() {
    let text = "a:\n  role: no\n  goal: g\n  backstory: b\n  allow_delegation: yes\n  cache: Off\n  max_iter: 1_000\n  max_rpm: 010\n  \
        max_tokens: 0x1F\n  deep:\n    on: [+5, -0b11, 1_0.5, 1e5, 08, 'yes']\n";
    let kept = definition("crewai", "agents.yaml", text);
    let expected = serde_json::json!({"allow_delegation": true, "cache": false, "max_iter": 1000, "max_rpm": 8, "max_tokens": 31,
        "deep": {"on": [5, -3, 10.5, "1e5", "08", "yes"]}});
    assert_eq!(kept["crewai"], expected);
    let (agents, _) = read_one("crewai", "agents.yaml", text);
    assert_eq!(agents[0].field("role").unwrap().as_text(), Some("no"));
    let (dir, _) = exported(format("crewai").unwrap(), &agents);
    let (_, text) = files(dir.path()).remove(0);
    assert!(
        text.contains("allow_delegation: true\n") && text.contains("max_iter: 1000\n"),
        "{text}"
    );
}

#[test]
fn integers_that_lose_digits_are_named() {
    let text = r#"{"model": "m", "instructions": "x", "seed": [123456789012345678901234567890, 18446744073709551615, -1, 1e30]}"#;
    let (_, reading) = read_one("openai", "a.json", text);
    assert_eq!(reading.warnings.len(), 1, "{reading:?}");
    assert!(
        reading.warnings[0].message.starts_with("seed is an integer"),
        "{reading:?}"
    );
    assert_eq!(reading.warnings[0].place.column, 46);
}

#[test]
fn what_is_too_large_is_named_with_its_place() {
    let large = format!(
        r#"{{"model": "m", "instructions": "x", "a": 1, "b": ["{}"]}}"#,
        "y".repeat(70_000)
    );
    let deep = format!(
        r#"{{"model": "m", "instructions": "x", "a": 1, "b": {}1{}}}"#,
        "[".repeat(40),
        "]".repeat(40)
    );
    for (text, column) in [(large, 45), (deep, 80)] {
        let (agents, _) = read_one("openai", "a.json", &text);
        let problem = &agents[0].spec().unwrap_err()[0];
        assert!(problem.message.contains("definition.openai.b"), "{}", problem.message);
        assert_eq!(
            (problem.place.line, problem.place.column),
            (1, column),
            "{}",
            problem.message
        );
    }
}

#[test]
fn labels_and_places_are_no_content_of_a_version() {
    let prompt = |text: &str, label: &str, model: &str| {
        format!(
            r#"[{{"name": "a", "version": 1, "prompt": "{text}", "labels": ["{label}"], "tags": ["{label}"],
            "config": {{"model": "{model}", "top_k": {}}}, "updatedAt": "{label}"}}]"#,
            model.len()
        )
    };
    let spec = |text: &str| read_one("langfuse", "a.json", text).0[0].spec().unwrap();
    let one = spec(&prompt("x", "production", "m"));
    let config = serde_json::from_value(serde_json::to_value(&one).unwrap()).unwrap();
    for (text, differing) in [
        (prompt("x", "production", "m"), vec![]),
        (prompt("x", "staging", "m"), vec![]),
        (prompt("y", "production", "m"), vec!["persona_prompt"]),
        (prompt("x", "staging", "m2"), vec!["model", "definition"]),
    ] {
        let found = differing_fields(format("langfuse").unwrap(), &spec(&text), &config).unwrap();
        assert_eq!(found, differing, "{text}");
    }
}

#[test]
fn another_agent_of_the_source_is_told_by_its_id_or_its_name() {
    let assistant = |id: &str| format!(r#"{{"id": "{id}", "name": "Triage", "model": "m"}}"#);
    let owned = |owner: &str| {
        let manifest = r#"{"lc": 1, "type": "constructor", "id": ["ChatPromptTemplate"], "kwargs": {}}"#;
        format!(r#"{{"repo_handle": "triage", "owner": "{owner}", "manifest": {manifest}}}"#)
    };
    let named = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nx\n");
    for (word, file, before, now, other) in [
        (
            "openai",
            "a.json",
            assistant("asst_A"),
            assistant("asst_B"),
            Some(("id", "asst_A")),
        ),
        ("openai", "a.json", assistant("asst_A"), assistant("asst_A"), None),
        // Each response has another one.
        ("openai", "a.json", assistant("resp_A"), assistant("resp_B"), None),
        (
            "claude-agents",
            "a.json",
            assistant("agent_A"),
            assistant("agent_B"),
            Some(("id", "agent_A")),
        ),
        (
            "langsmith",
            "a.json",
            owned("one"),
            owned("two"),
            Some(("owner", "one")),
        ),
        ("langsmith", "a.json", owned("one"), owned("-"), None),
        (
            "claude-code",
            "a.md",
            named("Code Triage"),
            named("code-triage"),
            Some(("name", "Code Triage")),
        ),
        (
            "copilot",
            "a.agent.md",
            named("Code Triage"),
            named("code-triage"),
            None,
        ),
    ] {
        let before = read_one(word, file, &before).0[0].spec().unwrap();
        let config = serde_json::from_value(serde_json::to_value(before).unwrap()).unwrap();
        let now = read_one(word, file, &now).0.remove(0);
        let found = other_source(format(word).unwrap(), &now, &config).unwrap();
        let other = other.map(|(key, value)| (key, value.to_owned()));
        assert_eq!(found, other, "{word}: {now:?}");
    }
}

#[test]
fn a_label_that_a_workspace_cannot_have_is_told() {
    let prompt = r#"[{"name": "a", "version": 1, "prompt": "x", "labels": ["Prod EU", "latest", "staging", "_x"]}]"#;
    let (agents, reading) = read_one("langfuse", "a.json", prompt);
    assert_eq!(agents[0].labels, ["staging"]);
    let warnings: Vec<_> = reading.warnings.iter().map(|warning| &*warning.message).collect();
    assert!(
        warnings.len() == 2
            && warnings[0].starts_with(r#"the label "Prod EU" is kept in the definition alone: "#)
            && warnings[1].starts_with(r#"the label "_x" is"#),
        "{warnings:?}"
    );
    let kept = definition("langfuse", "a.json", prompt);
    assert_eq!(kept["langfuse"]["labels"].as_array().unwrap().len(), 4);
}

#[test]
fn a_label_at_two_versions_is_a_problem() {
    let prompts = r#"[{"name": "m", "version": 1, "prompt": "a", "labels": ["production"]},
        {"name": "m", "version": 2, "prompt": "b", "labels": ["latest", "production"]}]"#;
    let (agents, reading) = read_one("langfuse", "a.json", prompts);
    let [problem] = &reading.problems[..] else {
        panic!("{reading:?}")
    };
    assert!(agents.is_empty() && problem.place.line == 2, "{problem}");
    assert!(problem.message.contains("the label production") && problem.message.contains("a.json:1;"));
}

#[test]
fn what_is_no_agent_in_the_json_of_an_option_is_told() {
    let option = r#"{"rev": {"description": "d", "prompt": "p"}, "bad": 5, "prompt": "x"}"#;
    let (agents, reading) = read_one("claude-code", "a.json", option);
    assert_eq!(agents[0].agent_id, "rev");
    let reasons: Vec<_> = reading.skipped.iter().map(|skipped| &skipped.reason).collect();
    assert!(
        reasons.len() == 2 && reasons[0].contains("bad is no agent"),
        "{reasons:?}"
    );
    // Settings of something else are no agents.
    let (agents, _) = read_one(
        "claude-code",
        "a.json",
        r#"{"hooks": {"prompt": "p"}, "theme": "dark"}"#,
    );
    assert!(agents.is_empty());
}

#[test]
fn a_server_that_the_definition_does_not_take_leaves_the_others_in() {
    let dir = tempfile::tempdir().unwrap();
    let servers = r#"{"mcpServers": {"desk": {"type": "http", "url": "${DESK}"}, "std": {"command": "npx"}}}"#;
    fs::write(dir.path().join(".mcp.json"), servers).unwrap();
    fs::write(dir.path().join("a.md"), "---\nname: a\ndescription: d\n---\nx\n").unwrap();
    let format = format("claude-code").unwrap();
    let (agents, reading) = imported(format, dir.path());
    let definition = agents[0].field("definition").unwrap();
    let named = definition.get("mcp_servers").and_then(Node::as_list).unwrap();
    assert_eq!(
        named.iter().map(|server| server.text_of("name")).collect::<Vec<_>>(),
        [Some("std")]
    );
    let [warning] = &reading.warnings[..] else {
        panic!("{reading:?}")
    };
    let said = "the server desk is kept for claude-code alone: definition.mcp_servers[0].url must";
    assert!(warning.message.starts_with(said), "{warning}");
    // The file has both again.
    let (exported, _) = exported(format, &agents);
    let written = fs::read_to_string(exported.path().join(".mcp.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&written).unwrap(),
        serde_json::from_str::<serde_json::Value>(servers).unwrap()
    );
}

#[test]
fn settings_of_crewai_count_before_what_is_beside_them() {
    let agent = r#"{"role": "R", "goal": "G", "backstory": "B", "llm": "top", "settings": {"llm": "inner", "role": "RS", "x": 1}}"#;
    let (agents, _) = read_one("crewai", "s.json", agent);
    let field = |name: &str| agents[0].field(name).and_then(Node::as_text);
    assert_eq!((field("role"), field("model")), (Some("RS"), Some("inner")));
}

#[test]
fn what_settings_overrule_is_written_again() {
    let source = r#"{"role": "R", "goal": "TOP", "backstory": "B", "llm": {"model": "x"}, "settings": {"goal": "S", "llm": "y"}}"#;
    let (agents, reading) = read_one("crewai", "a.json", source);
    assert_eq!(agents[0].field("description").unwrap().as_text(), Some("S"));
    assert_eq!(reading.warnings.len(), 2, "{reading:?}");
    let (dir, _) = exported(format("crewai").unwrap(), &agents);
    let text = fs::read_to_string(dir.path().join("a.json")).unwrap();
    let json: [serde_json::Value; 2] = [source, &text].map(|text| serde_json::from_str(text).unwrap());
    assert_eq!(json[0], json[1]);
}

#[test]
fn numbers_of_crewai_are_those_of_its_reader() {
    let kept = definition(
        "crewai",
        "a.yaml",
        "a:\n  role: R\n  goal: G\n  backstory: B\n  t: .5\n  n: 12:30\n  v: 1:2:3.x\n  s: -.5\n  c: 0:10\n",
    );
    let kept = &kept["crewai"];
    assert_eq!((&kept["t"], &kept["n"]), (&0.5.into(), &750.into()), "{kept}");
    assert_eq!((&kept["v"], &kept["s"]), (&"1:2:3.x".into(), &"-.5".into()), "{kept}");
    assert_eq!(kept["c"], "0:10", "{kept}");
    for text in ["- a\n- b\n", "a: 1\n---\nb: 2\n"] {
        let (_, reading) = read_one("crewai", "toc.yml", text);
        assert!(
            reading.problems[0].message.contains("agents by their names"),
            "{reading:?}"
        );
    }
}

#[test]
fn messages_of_the_system_in_several_parts() {
    let parts = r#"{"model": "m", "instructions": [{"role": "system",
        "content": [{"type": "input_text", "text": "One."}, {"type": "input_text", "text": "Two."}]}]}"#;
    let (agents, _) = read_one("openai", "a.json", parts);
    assert_eq!(agents[0].field("persona_prompt").unwrap().as_text(), Some("One.\nTwo."));
    let (dir, _) = exported(format("openai").unwrap(), &agents);
    let file = fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("One.") && !text.contains("One.\\nTwo."), "{text}");

    let of = |kwargs: &str, class: &str| {
        format!(r#"{{"lc": 1, "type": "constructor", "id": ["langchain_core", "{class}"], "kwargs": {kwargs}}}"#)
    };
    let template = |text: &str| {
        of(
            &format!(r#"{{"template": "{text}", "input_variables": []}}"#),
            "PromptTemplate",
        )
    };
    let two = format!(r#"{{"prompt": [{}, {}]}}"#, template("One."), template("Two."));
    for (message, persona, warnings) in [
        (of(&two, "SystemMessagePromptTemplate"), "One.", 1),
        (of(r#"{"content": "Fixed."}"#, "SystemMessage"), "Fixed.", 0),
    ] {
        let manifest = of(&format!(r#"{{"messages": [{message}]}}"#), "ChatPromptTemplate");
        let (agents, reading) = read_one("langsmith", "a.json", &manifest);
        assert_eq!(agents[0].field("persona_prompt").unwrap().as_text(), Some(persona));
        assert_eq!(reading.warnings.len(), warnings, "{reading:?}");
        let (dir, _) = exported(format("langsmith").unwrap(), &agents);
        let text = fs::read_to_string(dir.path().join("a.json")).unwrap();
        let json: [serde_json::Value; 2] = [&manifest, &text].map(|text| serde_json::from_str(text).unwrap());
        assert_eq!(json[0], json[1]);
    }
}
