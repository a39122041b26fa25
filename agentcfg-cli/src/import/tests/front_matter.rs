//! Front matter that is not quite YAML.

use super::sources::read_one;

/// Reads front matter of Claude Code after a name, and returns the description and the lines of the warnings.
#[track_caller]
fn described(fields: &str) -> (String, Vec<usize>) {
    let text = format!("---\nname: a\n{fields}\nmodel: sonnet\n---\nx\n");
    let (agents, reading) = read_one("claude-code", "a.md", &text);
    assert!(
        reading.problems.is_empty() && agents.len() == 1,
        "{fields}: {reading:?}"
    );
    assert_eq!(agents[0].field("model").unwrap().as_text(), Some("sonnet"), "{fields}");
    let lines = reading.warnings.iter().map(|warning| warning.place.line).collect();
    let description = agents[0].field("description").unwrap().as_text().unwrap();
    (description.to_owned(), lines)
}

#[test]
fn examples_without_indentation_are_a_part_of_the_description() {
    for examples in [
        "\nExamples:\n<example>\nuser: 'Please review'\n</example>",
        "\nExamples:\n- Context: ...\n- Context: more: stuff",
        "\nExamples:\nuser: 'a'\nassistant: 'b'\n\n<commentary>\nwhy\n</commentary>",
        "Context: x\nuser: \"y\"\nassistant: \"z\" <commentary>",
        "Context: x\nuser: \"y\"\nassistant: \"z\" <commentary>\nwhy\n</commentary>",
        "user: 'it's'\nassistant: b",
        "Context: x\nuser: a\n\nContext: y\nuser: b",
        "<example>\nContext: x\n</example>",
        "Use it often.\n<example>\nuser: x",
        "- Context: a: b",
    ] {
        let first = 4 + examples.chars().take_while(|c| *c == '\n').count();
        for (head, text) in [
            ("Use this agent.", "Use this agent."),
            ("\"Use this: \\\"agent\\\".\"", "Use this: \"agent\"."),
            ("'Use this agent.'", "Use this agent."),
            ("Use this\n  agent.", "Use this agent."),
            ("|\n  Use this\n  agent.", "Use this\nagent."),
            (">-\n  Use this\n  agent.", "Use this agent."),
        ] {
            let (description, warnings) = described(&format!("description: {head}\n{examples}"));
            assert_eq!(description, format!("{text}\n{examples}"), "{head}");
            assert_eq!(warnings, [first + head.matches('\n').count()], "{head}\n{examples}");
        }
    }
    let (description, warnings) = described("description: |\n<example>\nuser: x\n</example>");
    assert_eq!(
        (&*description, &*warnings),
        ("<example>\nuser: x\n</example>", &[4][..])
    );
    let (description, _) = described("description: Fixes #1 and #2\n<example>\nuser: x");
    assert_eq!(description, "Fixes #1 and #2\n<example>\nuser: x");
}

#[test]
fn fields_that_a_format_does_not_know_are_no_examples() {
    let of = |field: &str| {
        let text = format!("---\nname: a\ndescription: d\n{field}\nmodel: m\n---\nx\n");
        read_one("claude-code", "a.md", &text)
    };
    let kept = |field: &str, key: &str| {
        let (agents, reading) = of(field);
        let definition = agents
            .first()
            .unwrap_or_else(|| panic!("{reading:?}"))
            .field("definition");
        let description = agents[0].field("description").unwrap().as_text().unwrap();
        assert_eq!(description.lines().next(), Some("d"), "{field}");
        assert!(!description.contains(key), "{field}");
        definition.unwrap().get("claude-code").unwrap().get(key).unwrap().json()
    };
    assert_eq!(kept("note: Use when: x", "note"), r#""Use when: x""#);
    assert_eq!(kept("Examples:\n  - a\nnote: Use when: x", "note"), r#""Use when: x""#);
    assert_eq!(
        kept("owner: me\nExamples:\n<example>\nuser: x", "owner").as_str(),
        r#""me""#
    );
}

#[test]
fn what_a_comment_ends_or_empties_is_told() {
    for (fields, lines) in [
        ("description: Fixes issue #12 fast\ncolor: #6B46C1", vec![3, 4]),
        ("description: d\n  Fixes issue #12 fast", vec![3]),
        ("description: d\nhooks:\n  Stop:\n    - command: run #1", vec![6]),
        ("description: d\ntools: [Read, Grep #1\n  ]", vec![4]),
        ("description: Use when: x\ncolor: #6B46C1", vec![3, 4]),
        ("description: 'a' # b\ncolor: \"#6B46C1\" # c", vec![]),
        ("description: issue#12 in C#\nmaxTurns: 5 # five\n# all", vec![]),
        ("description: d\nhooks: # our own\n  Stop: []", vec![]),
        ("description: |\n  Fixes #12\ncolor: red", vec![]),
        ("description: d\ncolor: ~ # none\nhooks: null # none", vec![]),
        ("description: d\nmaxTurns: 0x10", vec![4]),
    ] {
        let (_, mut warnings) = described(fields);
        warnings.sort_unstable();
        assert_eq!(warnings, lines, "{fields}");
    }
}

#[test]
fn a_page_that_begins_with_a_rule_is_no_agent() {
    for page in ["---\n\n# Notes\n\nNote: x\n", "---\nSome notes.\n---\nMore.\n"] {
        let (agents, reading) = read_one("claude-code", "a.md", page);
        assert!(agents.is_empty() && reading.problems.is_empty(), "{page}: {reading:?}");
        assert_eq!(reading.skipped.len(), 1, "{page}: {reading:?}");
    }
    for broken in [
        "---\nname: a\ndescription: d\nx\n",
        "---\nname\n  description: d\n---\nx\n",
    ] {
        let (agents, reading) = read_one("claude-code", "a.md", broken);
        assert!(
            agents.is_empty() && reading.problems.len() == 1,
            "{broken}: {reading:?}"
        );
    }
}
