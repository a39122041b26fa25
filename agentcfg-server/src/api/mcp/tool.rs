//! What a tool is, and the parts that the schemas of tools share.
//!
//! Schemas are flat and short, because every client puts all of them into the context of its model: no references, no
//! combinations and no unions of types. A field that is null in the API is left out.

use std::pin::Pin;

use agentcfg_core::model::{AgentConfig, FieldValues, LiveStatus, Permission};
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::calls::{ToolResult, Tools};
use super::json::object;

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// The permission that the credential must have.
    pub(super) permission: Permission,
    pub(super) effect: Effect,
    pub(super) input: fn() -> Value,
    pub(super) required: &'static [&'static str],
    pub(super) output: fn() -> Value,
    pub(super) run: Run,
}

/// The implementation of a tool.
pub(super) type Run = for<'a> fn(&'a Tools<'a>, Arguments) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;

/// The effect of a call on the store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// The call changes nothing.
    Reads,
    /// The call adds something.
    Adds,
    /// The call replaces or removes something.
    Replaces,
    /// The call sets a state, and a second call changes nothing more.
    Sets,
}

impl Effect {
    fn hints(self) -> Value {
        json!({
            "readOnlyHint": self == Self::Reads,
            "destructiveHint": self == Self::Replaces,
            "idempotentHint": matches!(self, Self::Reads | Self::Sets),
            "openWorldHint": false,
        })
    }
}

pub(super) fn text() -> Value {
    json!({"type": "string"})
}

/// The argument for the message of a change.
pub(super) fn message() -> Value {
    json!({"type": "string", "description": "Why"})
}

pub(super) fn status() -> Value {
    json!({"type": "string", "enum": LiveStatus::ALL})
}

/// An object with a list of objects.
pub(super) fn list(name: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "array", "items": {"type": "object"}}}})
}

/// The output schema of an agent.
pub(super) fn agent() -> Value {
    json!({
        "type": "object",
        "properties": {
            "agent_id": {"type": "string"},
            "version": {"type": "integer"},
            "etag": {"type": "string"},
        },
        "required": ["agent_id", "version"],
    })
}

/// A tool's own arguments, together with the configurable fields of an agent.
pub(super) fn with_fields(own: Value) -> Value {
    let mut all = object(own);
    for field in AgentConfig::fields() {
        let schema = match field.values {
            FieldValues::Words(words) => json!({"type": "string", "enum": words}),
            FieldValues::Texts { max_items } => json!({"type": "array", "items": text(), "maxItems": max_items}),
            FieldValues::Numbers { .. } => json!({"type": "object", "additionalProperties": {"type": "number"}}),
            FieldValues::Object { .. } => json!({"type": "object"}),
            FieldValues::Text { max_length } => json!({"type": "string", "maxLength": max_length}),
            _ => json!({}),
        };
        all.insert(field.name.to_owned(), schema);
    }
    Value::Object(all)
}

impl Tool {
    pub(super) fn shown(&self) -> Value {
        let mut properties = object((self.input)());
        // Only users of several workspaces need it. Its absence is an error that says so.
        properties.insert("workspace_id".to_owned(), text());
        let mut input = Map::new();
        input.insert("type".to_owned(), json!("object"));
        input.insert("properties".to_owned(), Value::Object(properties));
        if !self.required.is_empty() {
            input.insert("required".to_owned(), json!(self.required));
        }
        input.insert("additionalProperties".to_owned(), json!(false));
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": input,
            "outputSchema": (self.output)(),
            "annotations": self.effect.hints(),
        })
    }
}
