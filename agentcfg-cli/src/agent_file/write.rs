//! Writes an agent's file: the same agent always gives the same bytes.

pub(crate) mod block;
pub(crate) mod scalar;

use std::fmt::Write as _;

use serde_json::Value;

use self::block::{Blocks, INDENT, block};
use self::scalar::{scalar, text};
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
    let mut field = Lines {
        blocks,
        text: String::new(),
    };
    field.entry(0, name, value);
    field.text
}

/// The longest key that a reader takes without the sign of a key in front of it.
pub(crate) const LONG_KEY: usize = 1000;

/// The lines of a field.
struct Lines {
    blocks: Blocks,
    text: String,
}

impl Lines {
    /// A key and its value.
    fn entry(&mut self, indent: usize, key: &str, value: &Value) {
        let key = text(key);
        let _ = match key.len() > LONG_KEY {
            true => write!(self.text, "{:indent$}? {key}\n{:indent$}:", "", ""),
            false => write!(self.text, "{:indent$}{key}:", ""),
        };
        match value {
            Value::Array(items) if !items.is_empty() => {
                self.text.push('\n');
                self.list(indent + INDENT, items);
            }
            Value::Object(entries) if !entries.is_empty() => {
                self.text.push('\n');
                for (key, value) in entries {
                    self.entry(indent + INDENT, key, value);
                }
            }
            value => self.leaf(indent, value),
        }
    }

    fn list(&mut self, indent: usize, items: &[Value]) {
        for item in items {
            let _ = write!(self.text, "{:indent$}-", "");
            match item {
                Value::Array(items) if !items.is_empty() => {
                    self.text.push('\n');
                    self.list(indent + INDENT, items);
                }
                Value::Object(entries) if !entries.is_empty() => {
                    let start = self.text.len();
                    for (key, value) in entries {
                        self.entry(indent + INDENT, key, value);
                    }
                    // The first key stands beside the hyphen.
                    self.text.replace_range(start..start + indent + 1, "");
                }
                item => self.leaf(indent, item),
            }
        }
    }

    /// What follows a key or a hyphen on its line: a scalar, or the lines of a long text.
    fn leaf(&mut self, indent: usize, value: &Value) {
        match value {
            Value::String(text) if self.blocks.has(text) => block(indent, text, &mut self.text),
            value => {
                let _ = writeln!(self.text, " {}", scalar(value));
            }
        }
    }
}
