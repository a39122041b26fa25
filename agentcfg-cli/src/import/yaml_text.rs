//! Entries as YAML, in their order; texts of several lines are literal blocks.

use std::fmt::Write as _;

use super::node::{Entry, Node, Value};
use crate::agent_file::write::block::{Blocks, INDENT, block};
use crate::agent_file::write::scalar::text;

/// The entries as lines of YAML.
pub fn to_yaml(entries: &[Entry]) -> String {
    let mut yaml = String::new();
    for entry in entries {
        yaml_entry(&mut yaml, 0, &entry.key, &entry.node);
    }
    yaml
}

fn yaml_entry(yaml: &mut String, indent: usize, key: &str, node: &Node) {
    let _ = write!(yaml, "{:indent$}{}:", "", text(key));
    yaml_value(yaml, indent, node);
}

/// A value after its key or the hyphen of a list, and the line feed.
fn yaml_value(yaml: &mut String, indent: usize, node: &Node) {
    match &node.value {
        Value::Text(lines) if Blocks::All.has(lines) => block(indent, lines, yaml),
        Value::Text(value) => {
            let _ = writeln!(yaml, " {}", text(value));
        }
        Value::List(items) if !items.is_empty() => {
            yaml.push('\n');
            for item in items {
                let _ = write!(yaml, "{:width$}-", "", width = indent + INDENT);
                match &item.value {
                    Value::List(_) | Value::Map(_) => {
                        let _ = writeln!(yaml, " {}", item.json());
                    }
                    _ => yaml_value(yaml, indent + INDENT, item),
                }
            }
        }
        Value::Map(entries) if !entries.is_empty() => {
            yaml.push('\n');
            for entry in entries {
                yaml_entry(yaml, indent + INDENT, &entry.key, &entry.node);
            }
        }
        _ => {
            let _ = writeln!(yaml, " {}", node.json());
        }
    }
}
