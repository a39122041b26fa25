//! The format of the files.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Fields, Markers, is_agent_file, read, write};
use agentcfg_client::model::AgentSpec;

mod any;
mod definition;
mod places;
mod pyyaml;

use self::any::{any_spec, any_text};

fn spec(agent_id: &str, fields: &Value) -> AgentSpec {
    let mut spec = fields.as_object().unwrap().clone();
    spec.insert("agent_id".into(), agent_id.into());
    spec.entry("display_name").or_insert("Writer".into());
    AgentSpec::from_json(Value::Object(spec).to_string().as_bytes())
        .unwrap()
        .into_inner()
}

fn fields(spec: &AgentSpec) -> Fields {
    Fields::of_spec(spec).unwrap()
}

fn written(spec: &AgentSpec) -> String {
    write(&spec.agent_id, &fields(spec))
}

fn read_as(name: &str, file: &str) -> Result<AgentSpec, Vec<String>> {
    let problems = |problems: Vec<super::Problem>| problems.iter().map(ToString::to_string).collect();
    read(Path::new(name), file.as_bytes(), Markers::Allow).map_err(problems)
}

fn problems(file: &str) -> Vec<String> {
    read_as("writer.md", file).unwrap_err()
}

#[track_caller]
fn reads_back(spec: &AgentSpec) {
    let file = written(spec);
    let name = format!("{}.md", spec.agent_id);
    assert_eq!(read_as(&name, &file).as_ref(), Ok(spec), "{file}");
    assert!(is_agent_file(Path::new(&name), file.as_bytes()), "{file}");
}

#[test]
fn a_file_has_the_fields_in_order_and_the_persona_as_body() {
    let writer = spec(
        "writer",
        &json!({
            "display_name": "Release writer",
            "role": "No: 1",
            "description": "Two lines\nof text\n",
            "model": "gpt-5",
            "color": "#7c3aed",
            "persona_prompt": "You write.\n\n---\nShort.",
            "capabilities": ["writing", "yes", "42"],
            "parameters": {"creativity": 0.7, "formality": 70, "a b": -0.0},
        }),
    );
    let expected = "\
---
agent_id: writer
display_name: Release writer
role: \"No: 1\"
description: |
  Two lines
  of text
agent_type: ai
model: gpt-5
color: \"#7c3aed\"
capabilities:
  - writing
  - \"yes\"
  - \"42\"
parameters:
  a b: -0.0
  creativity: 0.7
  formality: 70
---
You write.

---
Short.
";
    assert_eq!(written(&writer), expected);
    reads_back(&writer);
}

#[test]
fn a_persona_is_kept_byte_for_byte() {
    let personas = [
        "",
        "\n",
        "\n\n",
        " ",
        "a",
        "a\n",
        "\na",
        "---",
        "---\n",
        "---\n---\n",
        "\r\n",
        "a\r\nb\r",
        "\r",
        "  a  \n ",
        "\u{2028}",
        "\u{feff}",
        "\u{85}\u{a0}",
        "a: [b",
        "<<<<<<< yours\n",
        "\t\t\n",
        "...\n",
        "%YAML 1.2",
    ];
    for persona in personas {
        reads_back(&spec("writer", &json!({ "persona_prompt": persona })));
    }
    let without = spec("writer", &json!({}));
    assert!(written(&without).ends_with("\n---\n"));
    reads_back(&without);
    let no_line_feed = read_as("writer.md", "---\ndisplay_name: W\n---\nYou write.").unwrap();
    assert_eq!(no_line_feed.persona_prompt.as_deref(), Some("You write."));
}

#[test]
fn texts_that_yaml_takes_for_something_else_are_quoted() {
    let texts = [
        "null",
        "~",
        "true",
        "No",
        "1",
        "1.5",
        "0x1f",
        ".inf",
        "- a",
        "a: b",
        "a #b",
        "#a",
        "'a'",
        "\"a\"",
        "a ",
        " a",
        "[a]",
        "{a}",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "%a",
        "@a",
        "`a`",
        "a\nb",
        "a\n\nb\n",
        "a\nb\n\n",
        "\na",
        "a\r\nb",
        "a\tb",
        "a \nb",
        "é",
        "日本",
        "\u{1f980}",
        "\u{200b}",
        "\u{202e}x",
        "\u{1}",
        "\u{7f}",
        "\u{fffe}",
        "...",
        "---",
        "a\n---\nb",
        "a\n  b\nc",
        "=",
        "<<",
        "?",
        "? a",
    ];
    for text in texts {
        reads_back(&spec(
            "writer",
            &json!({"display_name": format!("x{text}"), "description": text, "capabilities": [format!("{text}x")], "parameters": {text: 1}}),
        ));
    }
}

#[test]
fn what_a_file_leaves_out_is_absent_and_its_name_names_the_agent() {
    let read = read_as(
        "dir/writer.md",
        "---\n# a comment\ndisplay_name: Writer # another\nrole: ~\nmodel:\n---\n",
    )
    .unwrap();
    assert_eq!(read, spec("writer", &json!({})));
    assert_eq!(
        read_as("writer.md", "---\r\ndisplay_name: Writer\r\n--- \t\r\n"),
        Ok(read)
    );
}

#[test]
fn numbers_of_yaml_are_numbers() {
    let file = "---\ndisplay_name: W\nparameters: {a: +5, b: .5, c: 5., d: 0x1F, e: 0o17, f: 007, g: -1e3, h: 18446744073709551615}\n---\n";
    let expected = json!({"a": 5, "b": 0.5, "c": 5.0, "d": 31, "e": 15, "f": 7, "g": -1000.0, "h": u64::MAX});
    let read = read_as("writer.md", file).unwrap();
    assert_eq!(serde_json::to_value(read.parameters).unwrap(), expected);
    for text in [".inf", ".nan", "1_000", "0x", "1e", "--1", "1.2.3", "0b1", "e5", "'5'"] {
        let file = format!("---\ndisplay_name: W\nparameters:\n  a: {text}\n---\n");
        assert_eq!(
            problems(&file),
            ["writer.md:4:6: parameters.a must be a number, got a string"],
            "{text}"
        );
    }
}

#[test]
fn each_problem_has_its_line_and_column() {
    let file = "\
---
agent_id: writer
display_name: \" \"
role: 12
nickname: W
agent_type: robot
color: red
capabilities:
  - a
  - ''
  - 7
role: author
parameters:
  a: x
  a: 1
  \"\": 2
id: 5
persona_prompt: no
workspace_id: x
---
";
    let expected = [
        "writer.md:3:15: display_name must not be blank",
        "writer.md:4:7: role must be a string, got a number",
        "writer.md:5:11: nickname is not a known field",
        "writer.md:6:13: agent_type must be one of ai, human",
        "writer.md:7:8: color must be # and 3, 4, 6 or 8 hexadecimal digits",
        "writer.md:10:5: capabilities[1] must be 1 to 100 characters, got 0",
        "writer.md:11:5: capabilities[2] must be a string, got a number",
        "writer.md:12:1: role must not appear more than once, see line 4",
        "writer.md:14:6: parameters.a must be a number, got a string",
        "writer.md:15:3: parameters.a must not appear more than once, see line 14",
        "writer.md:16:3: the name of parameters.\"\" must be 1 to 100 characters, got 0",
        "writer.md:17:5: id is read-only",
        "writer.md:18:1: persona_prompt is the text after the front matter, not a field in it",
        "writer.md:19:1: workspace_id is no field of a file: the credential or --workspace names the workspace",
    ];
    assert_eq!(problems(file), expected);
}

#[test]
fn values_that_break_a_rule_are_located_too() {
    let file = "---\ndisplay_name: W\ncapabilities: [a, ' ']\nparameters: {\"\": 1, b: 1e999}\n---\n";
    assert_eq!(
        problems(file),
        [
            "writer.md:3:19: capabilities[1] must not be blank",
            "writer.md:4:14: the name of parameters.\"\" must be 1 to 100 characters, got 0",
            "writer.md:4:24: parameters.b must be a number that a finite double can hold",
        ]
    );
    let long = format!("---\n---\n{}\n", "x".repeat(200_001));
    assert_eq!(
        problems(&long),
        [
            "writer.md:1:1: display_name is required",
            "writer.md:3:1: persona_prompt must be at most 200000 characters, got 200001 \
             (the setting max_persona_prompt is the limit)",
        ]
    );
    assert_eq!(
        problems("---\ndisplay_name: W\n---\na\0b\n"),
        ["writer.md:4:1: persona_prompt must not contain a NUL character"]
    );
    assert_eq!(
        problems("---\nagent_id: other\ndisplay_name: W\nroel: x\n---\n").len(),
        2,
        "the wrong identifier and the unknown field"
    );
}

#[test]
fn files_that_are_no_agents_are_refused() {
    for (name, file, expected) in [
        (
            "Writer.md",
            "---\ndisplay_name: W\n---\n",
            "Writer.md:1:1: the name of the file must be <agent_id>.md",
        ),
        (
            ".md",
            "---\ndisplay_name: W\n---\n",
            ".md:1:1: the name of the file must be",
        ),
        (
            "writer.md",
            "",
            "writer.md:1:1: must start with a line of three hyphens",
        ),
        (
            "writer.md",
            "# Notes\n",
            "writer.md:1:1: must start with a line of three hyphens",
        ),
        (
            "writer.md",
            "\u{feff}---\n",
            "writer.md:1:1: must not start with a byte order mark",
        ),
        (
            "writer.md",
            "---\ndisplay_name: W\n",
            "writer.md:3:1: the front matter must end",
        ),
        (
            "writer.md",
            "---\n- a\n---\n",
            "writer.md:2:1: the front matter must be fields",
        ),
        (
            "writer.md",
            "---\ntext\n---\n",
            "writer.md:2:1: the front matter must be fields",
        ),
        (
            "writer.md",
            "---\nrole: \"a\n---\n",
            "writer.md:3:1: must be valid YAML",
        ),
        ("writer.md", "---\nrole: [a\n---\n", "writer.md:"),
        (
            "writer.md",
            "---\nrole: &a b\n---\n",
            "writer.md:2:10: anchors and aliases of YAML are not supported",
        ),
        ("writer.md", "---\nrole: !x b\n---\n", "writer.md:2:"),
        ("writer.md", "---\n[a]: b\n---\n", "writer.md:2:1: a key must be a text"),
        (
            "writer.md",
            "---\na: 1\n...\nb: 2\n---\n",
            "writer.md:4:1: the front matter must be one YAML document",
        ),
        (
            "writer.md",
            "---\na: b\n<<<<<<< yours\n---\n",
            "writer.md:3:1: a conflict is not resolved",
        ),
        (
            "writer.md",
            "---\nagent_id: other\ndisplay_name: W\n---\n",
            "writer.md:2:11: agent_id must be writer, the name",
        ),
    ] {
        let found = read_as(name, file).unwrap_err();
        assert!(found[0].starts_with(expected), "{file:?}: {found:?}");
        assert_eq!(found.len(), 1, "{file:?}: {found:?}");
    }
    let not_utf8 = read(Path::new("writer.md"), b"---\na: \xff\n", Markers::Allow).unwrap_err();
    assert_eq!(not_utf8[0].to_string(), "writer.md:2:4: must be UTF-8");
}

#[test]
fn only_files_with_front_matter_belong_to_an_export() {
    let is_agent = |name: &str, file: &str| is_agent_file(Path::new(name), file.as_bytes());
    assert!(is_agent("writer.md", "---\nagent_id: writer\nbroken: [\"x\"]\n---\n"));
    assert!(!is_agent("writer.md", "# Notes on the writer\n"));
    assert!(!is_agent("writer.md", "---\nagent_id: other\n---\n"));
    assert!(!is_agent("writer.md", "---\n---\n"));
    assert!(!is_agent("Writer.md", "---\nagent_id: writer\n---\n"));
}

#[test]
fn deep_nesting_is_refused_without_a_crash() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    for deep in [
        open.clone(),
        format!("{open}{close}"),
        "{a: ".repeat(10_000),
        format!("\n  {}", "- ".repeat(10_000)),
    ] {
        let found = problems(&format!("---\nrole: {deep}\n---\n"));
        assert!(found.len() == 1 && found[0].contains("must be valid YAML"), "{found:?}");
    }
}

proptest! {
    #[test]
    fn any_agent_reads_back_from_its_file(spec in any_spec()) {
        let file = written(&spec);
        let name = format!("{}.md", spec.agent_id);
        prop_assert_eq!(read_as(&name, &file), Ok(spec.clone()), "{}", file);
        prop_assert_eq!(written(&spec), file);
    }

    #[test]
    fn the_problems_of_a_damaged_file_are_within_it(
        spec in any_spec(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any_text(12)), 1..4),
    ) {
        let mut file = written(&spec);
        for (at, text) in damage {
            let places: Vec<usize> = file.char_indices().map(|(at, _)| at).collect();
            file.insert_str(places[at.index(places.len())], &text);
        }
        for problem in read(Path::new("writer.md"), file.as_bytes(), Markers::Allow).err().unwrap_or_default() {
            let super::Place { line, column } = problem.place;
            // YAML ends a line at a carriage return too.
            let lines = file.matches(['\n', '\r']).count() + 2;
            prop_assert!((1..=lines).contains(&line), "{}", problem);
            prop_assert!((1..=file.chars().count() + 1).contains(&column), "{}", problem);
        }
    }

    #[test]
    fn any_bytes_are_an_agent_or_problems(front in any_text(200), body in any_text(50), noise: Vec<u8>) {
        let _ = read_as("writer.md", &format!("---\n{front}\n---\n{body}"));
        let _ = read(Path::new("writer.md"), &noise, Markers::Allow);
        let _ = read(Path::new("writer.md"), &[b"---\n".as_slice(), &noise, b"\n---\n"].concat(), Markers::Allow);
    }
}

#[test]
fn a_comment_where_a_value_is_expected_is_a_problem() {
    for (line, column) in [("color: #7c3aed", 8), ("model:   # later", 10), ("agent_type: #ai", 13)] {
        let file = format!("---\ndisplay_name: Writer\n{line}\n---\n");
        let found = problems(&file);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("writer.md:3:{column}: ")), "{found:?}");
        assert!(found[0].contains("has no value: the # begins a comment"), "{found:?}");
    }
    let nested = "---\ndisplay_name: Writer\ndefinition:\n  theme:\n    color: #7c3aed\n  tools:\n    - name: x\n      id: #1\n---\n";
    let found = problems(nested);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("writer.md:5:12: definition.theme.color has no value"),
        "{found:?}"
    );
    assert!(
        found[1].starts_with("writer.md:8:11: definition.tools[0].id has no value"),
        "{found:?}"
    );
    for line in [
        "model: gpt-5 # fast",
        "definition:\n  color: # none\n    a: 1",
        "color:",
        "capabilities: # many\n  - a",
        "description: # comment\n  Text.",
        "# color: #fff",
    ] {
        let file = format!("---\ndisplay_name: Writer\n{line}\n---\n");
        assert!(read_as("writer.md", &file).is_ok(), "{line}");
    }
}
