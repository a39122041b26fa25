//! The definition of an agent as nested YAML.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::any::any_definition;
use super::{problems, read_as, spec, written};
use crate::agent_file::fault_places::{json_object, place_of};
use crate::agent_file::yaml::{self, Entry};
use crate::agent_file::{Fields, field};

/// The lines of a definition.
pub fn lines_of(definition: &Value) -> String {
    field(Fields::DEFINITION, definition)
}

fn entries(lines: &str) -> Vec<Entry> {
    yaml::parse(lines, 1).unwrap_or_else(|malformed| panic!("{malformed:?} in\n{lines}"))
}

/// The front matter as the JSON text that the core reads.
fn json_of(lines: &str) -> String {
    json_object(&entries(lines), &[])
}

#[track_caller]
fn value_of(lines: &str) -> Value {
    let mut fields: Value = serde_json::from_str(&json_of(lines)).unwrap();
    fields[Fields::DEFINITION].take()
}

#[test]
fn a_definition_is_nested_yaml() {
    let definition = json!({
        "tools": ["search", {"name": "fetch", "input": {"type": "object", "required": []}}],
        "mcp_servers": [{"name": "docs", "url": "https://example.com/mcp"}],
        "model_settings": {"temperature": 0.2, "top_k": 1e300, "stop": ["yes", "12:30", "null", ""], "on": {}},
        "prompt": "# Task\n\nWrite notes:\n  - for users\n  - \"short\"\n\n{{team}} reads them.\n",
        "examples": ["Q: 1 + 1?\nA: 2", "\n  end\n\n"],
        "matrix": [[1, -2.5], []],
        "empty": null,
        "flag": true,
    });
    let writer = spec("writer", &json!({"display_name": "Writer", "definition": definition}));
    let file = written(&writer);
    assert_eq!(
        file,
        r#"---
agent_id: writer
display_name: Writer
agent_type: ai
definition:
  tools:
    - search
    - name: fetch
      input:
        type: object
        required: []
  mcp_servers:
    - name: docs
      url: "https://example.com/mcp"
  model_settings:
    temperature: 0.2
    top_k: 1.0e+300
    stop:
      - "yes"
      - "12:30"
      - "null"
      - ""
    "on": {}
  prompt: |
    # Task

    Write notes:
      - for users
      - "short"

    {{team}} reads them.
  examples:
    - |-
      Q: 1 + 1?
      A: 2
    - |2+

        end

  matrix:
    -
      - 1
      - -2.5
    - []
  empty: null
  flag: true
---
"#
    );
    assert_eq!(read_as("writer.md", &file), Ok(writer));
    let empty = spec("writer", &json!({"display_name": "Writer", "definition": {}}));
    assert!(written(&empty).contains("\ndefinition: {}\n"));
    assert_eq!(read_as("writer.md", &written(&empty)), Ok(empty));
}

#[test]
fn a_key_that_is_too_long_for_one_line_is_marked() {
    let definition = json!({"k".repeat(2000): {"l".repeat(1500): "text"}});
    let writer = spec("writer", &json!({"display_name": "Writer", "definition": definition}));
    assert_eq!(read_as("writer.md", &written(&writer)), Ok(writer));
}

#[test]
fn problems_within_a_definition_have_their_place_and_path() {
    let file = "---\ndisplay_name: W\ndefinition:\n  mcp_servers:\n    - name: a\n      url: https://a\n    - url: ftp://b\n      \
                command: 1\n    - {name: a, command: c}\n  metadata:\n    team: 1\n    a.b[0]: [x]\n  variables:\n    1st: {}\n---\n";
    assert_eq!(
        problems(file),
        [
            "writer.md:7:7: definition.mcp_servers[1].name is required",
            "writer.md:7:12: definition.mcp_servers[1].url must be an http or https URL",
            "writer.md:8:16: definition.mcp_servers[1].command must be a string, got a number",
            "writer.md:9:14: definition.mcp_servers[2].name must not be that of another server",
            "writer.md:11:11: definition.metadata.team must be a string, got a number",
            "writer.md:12:13: definition.metadata.a.b[0] must be a string, got an array",
            "writer.md:14:5: the name of definition.variables.1st must be a letter or _, and then up to 63 letters, digits and _",
        ]
    );
    let twice = "---\ndisplay_name: W\ndefinition:\n  tools:\n    - {a: 1, b: {c: 1, c: 2}}\n---\n";
    assert_eq!(
        problems(twice),
        ["writer.md:5:24: definition.tools[0].b.c must not appear more than once, see line 5"]
    );
    let deep = format!(
        "---\ndisplay_name: W\ndefinition: {{a: {}1{}}}\n---\n",
        "[".repeat(32),
        "]".repeat(32)
    );
    let found = problems(&deep);
    assert!(
        found[0].ends_with("must be within 32 levels of arrays and objects"),
        "{found:?}"
    );
    let most = deep.replacen('[', "", 1).replacen(']', "", 1);
    assert!(read_as("writer.md", &most).is_ok());
}

#[test]
fn texts_of_several_lines_are_blocks_if_these_keep_them() {
    for (text, expected) in [
        ("a\nb", "|-\n    a\n    b"),
        ("a\nb\n", "|\n    a\n    b"),
        ("a\nb\n\n", "|+\n    a\n    b\n"),
        ("a\n\nb\n\n\n", "|+\n    a\n\n    b\n\n"),
        ("  a\nb", "|2-\n      a\n    b"),
        (" a\nb\n", "|2\n     a\n    b"),
        ("\na\n\n", "|2+\n\n    a\n"),
        ("\n  a", "|2-\n\n      a"),
        ("a\n  # b\n- c: d", "|-\n    a\n      # b\n    - c: d"),
        ("---\n...\n", "|\n    ---\n    ..."),
        ("a\n", "\"a\\n\""),
        ("\n", "\"\\n\""),
        ("\n\n", "\"\\n\\n\""),
        ("a \nb", "\"a \\nb\""),
        ("a\n \nb", "\"a\\n \\nb\""),
        ("a\n\tb", "\"a\\n\\tb\""),
        ("a\r\nb", "\"a\\r\\nb\""),
        ("a\n\u{200b}b", "\"a\\n\\u200bb\""),
    ] {
        let lines = lines_of(&json!({"text": text, "z": 1}));
        assert_eq!(lines, format!("definition:\n  text: {expected}\n  z: 1\n"), "{text:?}");
        assert_eq!(value_of(&lines)["text"], text);
        // The last text of the front matter, and one of a list.
        assert_eq!(value_of(&lines_of(&json!([[text]]))), json!([[text]]));
    }
    // The other fields have blocks without white space at an end that is easily lost, and none in lists.
    assert_eq!(field("description", &"a\nb".into()), "description: |-\n  a\n  b\n");
    assert_eq!(field("description", &"\na\nb".into()), "description: \"\\na\\nb\"\n");
    assert_eq!(
        field("capabilities", &json!(["a\nb"])),
        "capabilities:\n  - \"a\\nb\"\n"
    );
}

#[test]
fn numbers_are_kept() {
    for (number, expected) in [
        ("0", "0"),
        ("-1", "-1"),
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1.0", "1.0"),
        ("-0.0", "-0.0"),
        ("1e3", "1000.0"),
        ("1e300", "1.0e+300"),
        ("1.5E-300", "1.5e-300"),
        ("18446744073709551616", "1.8446744073709552e+19"),
    ] {
        let definition: Value = serde_json::from_str(&format!("{{\"x\":{number}}}")).unwrap();
        let lines = lines_of(&definition);
        assert_eq!(lines, format!("definition:\n  x: {expected}\n"));
        assert_eq!(json_of(&lines), format!("{{\"definition\":{{\"x\":{expected}}}}}"));
        assert_eq!(value_of(&lines), definition);
    }
}

#[test]
fn keys_and_texts_of_another_type_are_in_quotes() {
    for text in [
        "",
        "null",
        "Yes",
        "y",
        "1",
        "1_000",
        "0o7",
        "12:30:00",
        "1e3",
        "~",
        "2024-01-01",
        "<<",
        "=",
        "a: b",
        "- x",
        "#",
        " a",
        "a ",
    ] {
        let lines = lines_of(&json!({text: text}));
        assert_eq!(lines, format!("definition:\n  \"{text}\": \"{text}\"\n"));
        assert_eq!(value_of(&lines), json!({text: text}));
    }
    for text in ["a", "name of it", "gpt-5.1", "yes, no", "é"] {
        assert_eq!(
            lines_of(&json!({text: text})),
            format!("definition:\n  {text}: {text}\n")
        );
    }
}

#[test]
fn the_order_of_keys_is_that_of_the_file() {
    let lines = "definition:\n  b: 1\n  a:\n    - {d: 1.50, c: x}\n    -\n  \"\": {}\n";
    assert_eq!(
        json_of(lines),
        r#"{"definition":{"b":1,"a":[{"d":1.50,"c":"x"},null],"":{}}}"#
    );
}

/// As deep as a definition can be: the front matter has one level more.
#[test]
fn a_definition_of_all_levels_reads_back() {
    let nested = |wrap: fn(usize, Value) -> Value| (1..32).fold(json!("a\nb"), |inner, level| wrap(level, inner));
    for inner in [
        nested(|_, inner| json!({"k": inner})),
        nested(|_, inner| json!([inner])),
        nested(|level, inner| {
            if level % 2 == 0 {
                json!([1, inner])
            } else {
                json!({"k": inner, "l": 1})
            }
        }),
    ] {
        let definition = json!({"x": inner});
        assert_eq!(value_of(&lines_of(&definition)), definition);
        let writer = spec("writer", &json!({"definition": definition}));
        assert_eq!(read_as("writer.md", &written(&writer)), Ok(writer));
    }
}

#[test]
fn a_path_leads_through_lists_and_maps() {
    let lines = "definition:\n  tools:\n    - a\n    - name: b\n      steps:\n        - - 1\n          - x: 2\n";
    let entries = entries(lines);
    for (path, line, column) in [
        ("definition", 2, 3),
        ("definition.tools", 3, 5),
        ("definition.tools[0]", 3, 7),
        ("definition.tools[1].name", 4, 13),
        ("the name of definition.tools[1].name", 4, 7),
        ("definition.tools[1].steps[0][1].x", 7, 16),
        ("the name of definition.tools[1].steps[0][1].x", 7, 13),
        // What the file does not have is at the value that lacks it.
        ("definition.tools[1].url", 4, 7),
        ("definition.tools[7].name", 3, 5),
    ] {
        let place = place_of(path, &entries).unwrap();
        assert_eq!((place.line, place.column), (line, column), "{path}");
    }
    assert_eq!(place_of("model", &entries), None);
}

#[test]
fn keys_that_are_there_twice_are_found_at_every_level() {
    let file = "---\ndisplay_name: W\ndefinition:\n  a:\n    - - b: 1\n        c: [{d: 1, d: 2}]\n        b: 2\n  e: {f: 1, f: 2}\n  a: 1\n---\n";
    assert_eq!(
        problems(file),
        [
            "writer.md:6:20: definition.a[0][0].c[0].d must not appear more than once, see line 6",
            "writer.md:7:9: definition.a[0][0].b must not appear more than once, see line 5",
            "writer.md:8:13: definition.e.f must not appear more than once, see line 8",
            "writer.md:9:3: definition.a must not appear more than once, see line 4",
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn any_definition_reads_back(definition in any_definition()) {
        let lines = lines_of(&definition);
        prop_assert_eq!(value_of(&lines), definition, "{}", lines);
    }
}
