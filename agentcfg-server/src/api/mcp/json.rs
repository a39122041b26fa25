//! Helpers for JSON objects.

use serde_json::{Map, Value};

/// The members of an object.
pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
