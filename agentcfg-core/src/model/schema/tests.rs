//! The generated definitions against the description that the server publishes.

use serde_json::{Map, Value, json};

use super::definitions;

/// The definitions of the server's description, as long as it is written by hand.
fn written() -> Map<String, Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../agentcfg-server/src/openapi.json");
    let Ok(text) = std::fs::read(path) else {
        return Map::new();
    };
    let mut document: Value = serde_json::from_slice(&text).unwrap();
    serde_json::from_value(document["components"]["schemas"].take()).unwrap()
}

/// Whether the generated part says all that the written one says. Descriptions may be added, `default` has moved into them.
fn compare(place: &str, written: &Value, generated: &Value, faults: &mut Vec<String>) {
    let (Value::Object(written), Value::Object(generated)) = (written, generated) else {
        let order = |value: &Value| match value.as_array() {
            Some(items) if place.ends_with("/required") || place.ends_with("/type") => {
                let mut items: Vec<String> = items.iter().map(Value::to_string).collect();
                items.sort();
                json!(items)
            }
            _ => value.clone(),
        };
        if order(written) != order(generated) {
            faults.push(format!("{place}: {written} became {generated}"));
        }
        return;
    };
    let is_schema = !place.ends_with("/properties") && !place.contains("/examples");
    for (name, value) in written {
        match generated.get(name) {
            _ if is_schema && name == "default" => {
                let text = generated["description"].as_str().unwrap();
                assert!(text.contains("eft out: "), "{place}: {text}");
            }
            Some(other) if is_schema && name == "description" && value != other => {
                let (text, other) = (value.as_str().unwrap(), other.as_str().unwrap());
                if !other.starts_with(text) {
                    faults.push(format!("{place}: {text:?} became {other:?}"));
                }
            }
            Some(other) => compare(&format!("{place}/{name}"), value, other, faults),
            None => faults.push(format!("{place}/{name} is missing")),
        }
    }
    for name in generated.keys().filter(|name| !written.contains_key(*name)) {
        if !is_schema || name != "description" {
            faults.push(format!("{place}/{name} is new"));
        }
    }
}

#[test]
fn the_definitions_say_all_that_the_description_says() {
    let generated = definitions();
    let mut faults = Vec::new();
    for (name, mut schema) in written() {
        // It refuses a blank name of an API key, which the server has always accepted.
        if name.ends_with("ApiKey") {
            schema["properties"]["name"]["pattern"] = json!(r"^[^\u0000]*$");
        }
        // Two bodies of the server itself.
        if name == "Health" || name == "Readiness" {
            continue;
        }
        match generated.get(&name) {
            Some(other) => compare(&name, &schema, other, &mut faults),
            None => faults.push(format!("{name} is missing")),
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}

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
