//! Agents with random content.

use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

/// Any text of this many characters at most.
fn text(max: usize) -> impl Strategy<Value = String> {
    let awkward = prop::sample::select(vec![
        "---\n", "\n", "\r\n", ": ", " #", "\"", "\\", "\t", " ", "\u{2028}", "\u{85}", "null", "é",
    ]);
    let part = prop_oneof![
        any::<char>().prop_map(String::from),
        awkward.prop_map(String::from),
        "[a-z]{1,8}"
    ];
    prop::collection::vec(part, 0..max / 8).prop_map(move |parts| {
        let text = parts.concat();
        text.chars().filter(|c| *c != '\0').take(max).collect()
    })
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        any::<f64>().prop_filter_map("finite", Number::from_f64),
    ]
}

prop_compose! {
    fn agent()(
        display_name in text(90).prop_map(|text| format!("{text}x")),
        texts in prop::collection::vec(prop::option::of(text(100)), 3),
        persona in prop::option::of(text(4000)),
        agent_type in prop::sample::select(vec!["ai", "human"]),
        color in prop::option::of("#[0-9a-f]{8}"),
        capabilities in prop::collection::vec(text(90).prop_map(|text| format!("{text}x")), 0..4),
        parameters in prop::collection::vec((text(90).prop_map(|text| format!("{text}x")), number()), 0..4),
    ) -> Value {
        let parameters: Map<String, Value> =
            parameters.into_iter().map(|(name, number)| (name, Value::Number(number))).collect();
        json!({
            "display_name": display_name, "role": texts[0], "description": texts[1], "model": texts[2], "agent_type": agent_type,
            "color": color, "persona_prompt": persona, "capabilities": capabilities, "parameters": parameters,
        })
    }
}

/// Up to so many agents with different identifiers, as an apply takes them.
pub fn agents(max: usize) -> impl Strategy<Value = Vec<Value>> {
    prop::collection::btree_map("[a-z0-9_-]{1,50}", agent(), 1..max).prop_map(|agents| {
        let with_id = |(agent_id, mut agent): (String, Value)| {
            agent["agent_id"] = agent_id.into();
            agent
        };
        agents.into_iter().map(with_id).collect()
    })
}
