//! Writes an agent's file: the same agent always gives the same bytes.

pub(crate) mod block;
pub(crate) mod scalar;
pub(crate) mod tree;

use serde_json::Value;

use self::block::Blocks;
use self::scalar::scalar;
use self::tree::{Lines, Shape, Tree};
use super::{FENCE, Fields};

/// The content of an agent's file.
pub fn write(agent_id: &str, fields: &Fields) -> String {
    let lines: String = fields.in_front().map(|(name, value)| field(name, value)).collect();
    compose(agent_id, &lines, fields.get(Fields::BODY).as_str())
}

/// The content of a file with these lines of fields and this persona.
pub fn compose(agent_id: &str, lines: &str, persona: Option<&str>) -> String {
    let head = field("agent_id", &agent_id.into());
    let body = persona.map(|persona| format!("{persona}\n")).unwrap_or_default();
    format!("{FENCE}\n{head}{lines}{FENCE}\n{body}")
}

/// The lines of one field. A null, an empty list and an empty map have none, because that is the value of an absent
/// field; an empty definition is none that is absent.
pub fn field(name: &str, value: &Value) -> String {
    let is_absent = match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty() && name != Fields::DEFINITION,
        _ => false,
    };
    if is_absent {
        return String::new();
    }
    let blocks = match value {
        _ if name == Fields::DEFINITION => Blocks::All,
        Value::String(_) => Blocks::Trimmed,
        _ => Blocks::None,
    };
    let mut field = Lines::new(blocks);
    field.entry(0, name, value);
    field.into_text()
}

impl Tree for Value {
    fn shape(&self) -> Shape<'_, Self> {
        match self {
            Self::Array(items) if !items.is_empty() => Shape::List(items),
            Self::Object(entries) if !entries.is_empty() => {
                Shape::Map(entries.iter().map(|(key, value)| (key.as_str(), value)).collect())
            }
            Self::String(text) => Shape::Text(text),
            value => Shape::Scalar(scalar(value)),
        }
    }
}
