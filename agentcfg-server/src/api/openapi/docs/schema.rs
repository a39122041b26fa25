//! What a JSON Schema allows, in words.

use serde_json::Value;

use crate::api::openapi::json_tree::JsonTree;

/// Where the section of a type is, as a link.
pub(super) fn link(name: &str) -> String {
    format!("[{name}](#{})", name.to_lowercase())
}

/// The name of the component that a reference leads to.
pub(super) fn referred(schema: &Value) -> Option<&str> {
    schema.text("$ref").rsplit('/').next().filter(|name| !name.is_empty())
}

/// The type of a value, with links to the types of the document.
pub(super) fn type_of(schema: &Value) -> String {
    if let Some(name) = referred(schema) {
        return link(name);
    }
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    let options = ["oneOf", "anyOf"].iter().find_map(|name| schema.get(name));
    if let Some(options) = options {
        let options: Vec<_> = options.items().iter().map(type_of).collect();
        return options.join(" or ");
    }
    let format = schema.text("format");
    let named = |name: &str| match name {
        "array" => format!("array of {}", schema.get("items").map_or("any".to_owned(), type_of)),
        "object" => match schema.get("additionalProperties").filter(|values| is_schema(values)) {
            Some(values) => format!("object of {}", type_of(values)),
            None => "object".to_owned(),
        },
        "string" if !format.is_empty() => format!("string ({format})"),
        name => name.to_owned(),
    };
    match schema.get("type") {
        Some(Value::Array(names)) => {
            let names: Vec<_> = names.iter().filter_map(Value::as_str).map(named).collect();
            names.join(" or ")
        }
        Some(name) => named(name.as_str().unwrap_or_default()),
        None => "any JSON".to_owned(),
    }
}

/// Whether this is a schema that names a type, rather than `false` or the schema of anything.
fn is_schema(node: &Value) -> bool {
    node.members().next().is_some()
}

/// The limits of a value, those of the type that it refers to included.
pub(super) fn limits(document: &Value, schema: &Value) -> String {
    let target = document.resolve(schema.text("$ref")).unwrap_or(schema);
    let mut limits = Vec::new();
    if let Some(words) = target.get("enum") {
        let words: Vec<_> = words.items().iter().map(|word| format!("`{}`", plain(word))).collect();
        limits.push(words.join(", "));
    }
    for (least, most, unit) in [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
        ("minProperties", "maxProperties", " entries"),
    ] {
        limits.extend(range(target.get(least), target.get(most), unit));
    }
    if let Some(pattern) = pattern(target) {
        limits.push(format!("`{pattern}`"));
    }
    if let Some(items) = target.get("items").filter(|items| referred(items).is_none()) {
        limits.extend(range(
            items.get("minLength"),
            items.get("maxLength"),
            " characters each",
        ));
    }
    if let Some(names) = target.get("propertyNames") {
        limits.extend(range(
            names.get("minLength"),
            names.get("maxLength"),
            " characters a name",
        ));
    }
    if let Some(default) = schema.get("default") {
        limits.push(format!("default `{}`", plain(default)));
    }
    limits.join("; ")
}

fn range(least: Option<&Value>, most: Option<&Value>, unit: &str) -> Option<String> {
    // Every count is at least 0.
    let least = least.map(Value::to_string).filter(|least| least != "0");
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least}–{most}{unit}")),
        (Some(least), None) => Some(format!("at least {least}{unit}")),
        (None, Some(most)) => Some(format!("at most {most}{unit}")),
        (None, None) => None,
    }
}

/// The pattern of a text, where it says more than the format, or more than that no character is U+0000.
fn pattern(schema: &Value) -> Option<&str> {
    let pattern = schema.get("pattern")?.as_str()?;
    (schema.get("format").is_none() && !pattern.contains(r"\u0000")).then_some(pattern)
}

/// A value without the quotes of a string.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
