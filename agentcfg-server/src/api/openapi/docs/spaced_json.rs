//! JSON for people: with spaces between the members, on one line or on several.

use serde_json::Value;

use crate::api::openapi::json_tree::JsonTree;

/// The value on one line.
pub(super) fn line(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, None);
    text
}

/// The value with a line for each member of an object and for each object in an array.
pub(super) fn lines(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, Some(0));
    text
}

/// Writes the value. With an indentation, what has a line of its own is indented by two more.
fn write(text: &mut String, value: &Value, indent: Option<usize>) {
    let (open, close, is_spread) = match value {
        Value::Object(members) => ('{', '}', !members.is_empty()),
        Value::Array(items) => ('[', ']', items.iter().any(Value::is_object)),
        scalar => return text.push_str(&scalar.to_string()),
    };
    let inner = indent.filter(|_| is_spread).map(|indent| indent + 2);
    let members = value.members().map(|(name, value)| (Some(name), value));
    let items = value.items().iter().map(|item| (None, item));
    text.push(open);
    for (at, (name, value)) in members.chain(items).enumerate() {
        match (at, inner) {
            (0, None) => {}
            (_, None) => text.push_str(", "),
            (0, Some(inner)) => new_line(text, inner),
            (_, Some(inner)) => {
                text.push(',');
                new_line(text, inner);
            }
        }
        if let Some(name) = name {
            text.push_str(&Value::from(name).to_string());
            text.push_str(": ");
        }
        write(text, value, inner.or(indent));
    }
    if let (Some(_), Some(indent)) = (inner, indent) {
        new_line(text, indent);
    }
    text.push(close);
}

fn new_line(text: &mut String, indent: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n(' ', indent));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_and_objects_have_lines_of_their_own() {
        let value = json!({"b": 1, "a": [{"c": null}, {}], "d": ["x", true], "e": {}, "\"": -0.5});
        assert_eq!(
            line(&value),
            r#"{"b": 1, "a": [{"c": null}, {}], "d": ["x", true], "e": {}, "\"": -0.5}"#
        );
        let expected = "{\n  \"b\": 1,\n  \"a\": [\n    {\n      \"c\": null\n    },\n    {}\n  ],\n  \"d\": [\"x\", true],\n  \"e\": {},\n  \"\\\"\": -0.5\n}";
        assert_eq!(lines(&value), expected);
    }
}
