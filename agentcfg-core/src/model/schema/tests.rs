//! Invariants of all generated definitions.

use serde_json::{Value, json};

use super::definitions;
use crate::model::DEFAULT_KEY_RATE_LIMIT;

#[test]
fn every_reference_leads_to_a_definition() {
    fn references<'a>(value: &'a Value, all: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                all.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|value| references(value, all));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, all)),
            _ => {}
        }
    }
    let generated = definitions();
    let mut all = Vec::new();
    generated.values().for_each(|schema| references(schema, &mut all));
    assert!(!all.is_empty());
    for reference in all {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        assert!(generated.contains_key(name), "{reference}");
    }
}

#[test]
fn a_default_is_in_the_description_alone() {
    fn defaults(value: &Value) -> usize {
        match value {
            Value::Object(members) => members
                .iter()
                .map(|(name, member)| match (name.as_str(), member) {
                    // These are the names of fields.
                    ("properties", Value::Object(fields)) => fields.values().map(defaults).sum(),
                    ("default", _) => 1,
                    _ => defaults(member),
                })
                .sum(),
            Value::Array(items) => items.iter().map(defaults).sum(),
            _ => 0,
        }
    }
    let generated = definitions();
    assert_eq!(generated.values().map(defaults).sum::<usize>(), 0);
    for (schema, field, text) in [
        ("NewAgent", "agent_type", "Left out: `ai`.".to_owned()),
        ("NewAgent", "capabilities", "Left out: `[]`.".to_owned()),
        ("NewAgent", "parameters", "Left out: `{}`.".to_owned()),
        (
            "NewApiKey",
            "rate_limit",
            format!("left out: {DEFAULT_KEY_RATE_LIMIT}."),
        ),
    ] {
        let description = generated[schema]["properties"][field]["description"].as_str().unwrap();
        assert!(description.ends_with(&text), "{schema}.{field}: {description}");
    }
}

#[test]
fn a_type_with_a_name_that_may_be_null_is_referred_to() {
    let reason = &definitions()["Webhook"]["properties"]["disabled_reason"];
    let reference = json!({"$ref": "#/components/schemas/DisabledReason"});
    assert_eq!(reason["anyOf"], json!([reference, {"type": "null"}]), "{reason}");
    // A field that may be null must not have an enumeration without null.
    fn check(value: &Value) {
        match value {
            Value::Object(members) => {
                let types = members.get("type").and_then(Value::as_array);
                assert!(types.is_none() || !members.contains_key("enum"), "{value}");
                members.values().for_each(check);
            }
            Value::Array(items) => items.iter().for_each(check),
            _ => {}
        }
    }
    definitions().values().for_each(check);
}

#[cfg(feature = "engine")]
#[test]
fn the_plaintext_of_a_key_has_its_length() {
    let generated = definitions();
    let key = &generated["CreatedApiKey"]["properties"]["key"];
    assert_eq!(
        (&key["minLength"], &key["maxLength"]),
        (&json!(crate::token::LENGTH), &json!(crate::token::LENGTH))
    );
}
