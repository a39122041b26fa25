//! Random agents.

use agentcfg_client::model::AgentSpec;
use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

use super::spec;

/// Any text that JSON and the store can hold.
pub fn any_text(max: usize) -> impl Strategy<Value = String> {
    let interesting = prop::sample::select(vec![
        "---", "\n", "\r", ": ", " #", "\"", "'", "\\", "\t", " ", "- ", "\u{85}", "\u{2028}", "\u{feff}", "null", "|",
        "~", "0",
    ]);
    let part = prop_oneof![
        4 => any::<char>().prop_map(String::from),
        3 => interesting.prop_map(String::from),
        2 => "[a-z]{1,8}",
    ];
    prop::collection::vec(part, 0..max / 4).prop_map(move |parts| {
        let text: String = parts.concat();
        text.chars().filter(|c| *c != '\0').take(max).collect()
    })
}

fn any_number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        any::<f64>().prop_filter_map("finite", Number::from_f64),
        (-1000..1000i32).prop_map(|n| Number::from_f64(f64::from(n) / 10.0).unwrap()),
    ]
}

/// Any text, and more often one of several lines or one that a reader of YAML can take for something else.
fn any_scalar() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "",
        "~",
        "null",
        "Null",
        "true",
        "False",
        "yes",
        "No",
        "on",
        "OFF",
        "y",
        "N",
        "1",
        "-1",
        "+1",
        "1_000",
        "0o7",
        "017",
        "0x1F",
        "0b1",
        "1e3",
        "1.5",
        ".5",
        "5.",
        ".inf",
        "-.INF",
        ".nan",
        "12:30:00",
        "1:2",
        "2024-01-01",
        "2024-01-01T00:00:00Z",
        "<<",
        "=",
        "-",
        "- x",
        "--- x",
        "...",
        "?",
        "? x",
        ":",
        "a: b",
        "a:",
        "#",
        "a #b",
        "&a",
        "*a",
        "!a",
        "!!int 1",
        "|",
        ">-",
        "%TAG",
        "@a",
        "`a`",
        "[a]",
        "{a: b}",
        "'a'",
        "\"a\"",
        "a, b",
        "\\x41",
    ]);
    let lines = prop::sample::select(vec![
        "",
        "",
        "a",
        "Text with words.",
        "  indented",
        " one",
        "\ttab",
        "end ",
        "- x",
        "a: b",
        "# x",
        "---",
        "...",
        "{",
        "|",
        "<<<<<<< a",
        "=======",
        "é日本",
        "\u{1f980}",
        "\u{200b}",
    ]);
    prop_oneof![
        3 => any_text(60),
        3 => words.prop_map(String::from),
        3 => prop::collection::vec(lines, 1..7).prop_map(|lines| lines.join("\n")),
    ]
}

/// Any JSON with at most this many levels of lists and maps.
fn any_json(levels: u32) -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any_number().prop_map(Value::Number),
        any_scalar().prop_map(Value::from),
    ];
    let levels = leaf.prop_recursive(levels, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            any_object(inner),
        ]
    });
    levels.boxed()
}

fn any_object(member: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec((any_scalar(), member), 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect()))
}

/// Any object with up to six levels below it.
pub fn any_definition() -> impl Strategy<Value = Value> {
    any_object(any_json(6))
}

prop_compose! {
    pub fn any_spec()(
        agent_id in "[a-z0-9_-]{1,50}",
        display_name in any_text(90).prop_map(|text| format!("{text}x")),
        texts in (
            prop::option::of(any_text(100)), prop::option::of(any_text(2000)),
            prop::option::of(any_text(100)), prop::option::of(any_text(5000)),
        ),
        agent_type in prop::sample::select(vec!["ai", "human"]),
        color in prop::option::of("#[0-9a-fA-F]{6}"),
        capabilities in prop::collection::vec(any_text(90).prop_map(|text| format!("{text}x")), 0..5),
        parameters in prop::collection::vec((any_text(90).prop_map(|text| format!("{text}x")), any_number()), 0..5),
        // The prefix keeps the keys apart from those that have rules.
        definition in prop::option::of(prop::collection::vec((any_text(12).prop_map(|key| format!("{key}x")), any_json(5)), 0..4)),
    ) -> AgentSpec {
        let parameters: Map<String, Value> =
            parameters.into_iter().map(|(name, number)| (name, Value::Number(number))).collect();
        let (role, description, model, persona_prompt) = texts;
        spec(&agent_id, &json!({
            "display_name": display_name, "role": role, "description": description, "agent_type": agent_type, "model": model,
            "color": color, "persona_prompt": persona_prompt, "capabilities": capabilities, "parameters": parameters,
            "definition": definition.map(|entries| entries.into_iter().collect::<Map<_, _>>()),
        }))
    }
}
