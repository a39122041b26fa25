//! Entries as YAML, in their order, as the files of agents are written.

use std::fmt::Write as _;

use super::source_tree::{Entry, Node, Value};
use crate::agent_file::write::LONG_KEY;
use crate::agent_file::write::block::{Blocks, INDENT, block};
use crate::agent_file::write::scalar::{number, text};

/// The entries as lines of YAML.
pub fn to_yaml(entries: &[Entry]) -> String {
    let mut yaml = String::new();
    for entry in entries {
        yaml_entry(&mut yaml, 0, entry);
    }
    yaml
}

fn yaml_entry(yaml: &mut String, indent: usize, entry: &Entry) {
    let key = text(&entry.key);
    let _ = match key.len() > LONG_KEY {
        true => write!(yaml, "{:indent$}? {key}\n{:indent$}:", "", ""),
        false => write!(yaml, "{:indent$}{key}:", ""),
    };
    match &entry.node.value {
        Value::List(items) if !items.is_empty() => {
            yaml.push('\n');
            list(yaml, indent + INDENT, items);
        }
        Value::Map(entries) if !entries.is_empty() => {
            yaml.push('\n');
            for entry in entries {
                yaml_entry(yaml, indent + INDENT, entry);
            }
        }
        _ => leaf(yaml, indent, &entry.node),
    }
}

fn list(yaml: &mut String, indent: usize, items: &[Node]) {
    for item in items {
        let _ = write!(yaml, "{:indent$}-", "");
        match &item.value {
            Value::List(items) if !items.is_empty() => {
                yaml.push('\n');
                list(yaml, indent + INDENT, items);
            }
            Value::Map(entries) if !entries.is_empty() => {
                let start = yaml.len();
                for entry in entries {
                    yaml_entry(yaml, indent + INDENT, entry);
                }
                // The first key stands beside the hyphen.
                yaml.replace_range(start..start + indent + 1, "");
            }
            _ => leaf(yaml, indent, item),
        }
    }
}

/// What follows a key or a hyphen on its line: a scalar, or the lines of a long text.
fn leaf(yaml: &mut String, indent: usize, node: &Node) {
    let _ = match &node.value {
        Value::Text(lines) if Blocks::All.has(lines) => {
            block(indent, lines, yaml);
            Ok(())
        }
        Value::Text(value) => writeln!(yaml, " {}", text(value)),
        Value::Number(value) => writeln!(yaml, " {}", number(value)),
        _ => writeln!(yaml, " {}", node.json()),
    };
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::super::parse_tree::{Scalars, from_json, from_shared_yaml};
    use super::*;

    const JSON: &str = r#"{"small": 1e-7, "large": 1.5E300, "list": [{"a": 1e5, "b": ["x\u007fy", "n\u0085m"]}, [1, "\ufffe"], {}],
        "map": {"\u007f": "a\u2028b", "lines": "one\ntwo\n", "key : #": "yes"}, "LONG": [["deep"]]}"#;

    #[test]
    fn what_is_written_is_read_again_by_two_readers() {
        let json = JSON.replace("LONG", &"k".repeat(1500));
        let node = from_json(Path::new("a"), &json).unwrap();
        let yaml = to_yaml(node.entries());
        let again = from_shared_yaml(Path::new("a"), &yaml, (1, Scalars::Core), &mut Vec::new()).unwrap();
        assert_eq!(again, node.entries(), "{yaml}");
        assert!(yaml.contains("small: 1.0e-7\n") && yaml.contains("? kkk"), "{yaml}");
        let script = "import sys, yaml, json; a, b = sys.stdin.read().split('\\0'); sys.exit(yaml.safe_load(a) != json.loads(b))";
        let python = Command::new("python3").args(["-c", "import yaml"]).output();
        if !python.is_ok_and(|output| output.status.success()) {
            eprintln!("NOT RUN: PyYAML is missing");
            return;
        }
        let mut child = Command::new("python3")
            .args(["-X", "utf8", "-c", script])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let input = format!("{yaml}\0{json}");
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{yaml}");
    }
}
