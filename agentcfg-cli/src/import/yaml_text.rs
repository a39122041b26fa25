//! Entries as YAML, in their order, as the files of agents are written.

use super::source_tree::{Entry, Node, Value};
use crate::agent_file::write::block::Blocks;
use crate::agent_file::write::scalar::number;
use crate::agent_file::write::tree::{Lines, Shape, Tree};

/// The entries as lines of YAML.
pub fn to_yaml(entries: &[Entry]) -> String {
    let mut lines = Lines::new(Blocks::All);
    for entry in entries {
        lines.entry(0, &entry.key, &entry.node);
    }
    lines.into_text()
}

impl Tree for Node {
    fn shape(&self) -> Shape<'_, Self> {
        match &self.value {
            Value::List(items) if !items.is_empty() => Shape::List(items),
            Value::Map(entries) if !entries.is_empty() => {
                Shape::Map(entries.iter().map(|entry| (entry.key.as_str(), &entry.node)).collect())
            }
            Value::Text(text) => Shape::Text(text),
            // A number keeps its spelling.
            Value::Number(value) => Shape::Scalar(number(value)),
            _ => Shape::Scalar(self.json()),
        }
    }
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
