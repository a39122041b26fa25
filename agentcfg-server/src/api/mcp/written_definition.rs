//! The argument `definition` of a tool as it was written, because a parsed object has lost the order of its members.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

#[derive(Deserialize)]
struct Message {
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    arguments: Arguments,
}

#[derive(Deserialize)]
struct Arguments {
    definition: Box<RawValue>,
}

/// The definition in a message with these parameters, if it has one.
pub(super) fn of(message: &[u8], params: &Map<String, Value>) -> Option<Box<RawValue>> {
    params.get("arguments")?.get("definition")?;
    let Message { params } = serde_json::from_slice(message).ok()?;
    Some(params.arguments.definition)
}
