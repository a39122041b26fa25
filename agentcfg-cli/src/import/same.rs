//! Whether agents have the same content, apart from what a tool keeps beside it or changes without a new version.

use std::path::Path;

use agentcfg_client::model::{AgentConfig, AgentSpec};

use super::parse_tree::from_json;
use super::source_tree::{Entry, Node, take};
use super::table::{BESIDE, Format, Identity, Imported};
use crate::agent_file::Fields;
use crate::failure::{CommandFailure, Result};

/// Whether two agents are one, which is in two files.
pub fn is_repeated(format: &Format, one: &Imported, other: &Imported) -> bool {
    let without_file = |agent: &Imported| {
        let mut fields = agent.fields.clone();
        let definition = take(&mut fields, Fields::DEFINITION).unwrap_or_else(|| Node::map(Vec::new()));
        (fields, without(format, definition, &["$file", "$yaml", "$json"]))
    };
    one.version == other.version && without_file(one) == without_file(other)
}

/// The names of the fields in which an agent of the source differs from one of the workspace.
pub fn differing_fields(format: &Format, source: &AgentSpec, config: &AgentConfig) -> Result<Vec<String>> {
    let (wanted, have) = (Fields::of_spec(source)?, Fields::of(config)?);
    let mut differing = Vec::new();
    for (name, value) in wanted.iter() {
        let is_same = match name == Fields::DEFINITION {
            true => content(format, value)? == content(format, have.get(name))?,
            false => value == have.get(name),
        };
        if !is_same {
            differing.push(name.to_owned());
        }
    }
    Ok(differing)
}

/// What identifies the agent of the source that an agent of the workspace was made of, if that is another one than
/// this. Without a key that identifies it, an agent is known by its name where its tool tells agents apart by their
/// names.
pub fn other_source(format: &Format, one: &Imported, config: &AgentConfig) -> Result<Option<Identity>> {
    let have = Fields::of(config)?;
    let kept = &have.get(Fields::DEFINITION)[format.word];
    let other = match &one.identity {
        Some((key, value)) => kept[*key]
            .as_str()
            .filter(|have| have != value)
            .map(|have| (*key, have)),
        None if format.unique.is_some() => {
            let name = have.get("display_name").as_str().filter(|have| *have != one.name);
            name.map(|have| ("name", have))
        }
        None => None,
    };
    Ok(other.map(|(key, value)| (key, value.to_owned())))
}

/// The parts of a definition that a new version of the source is made for.
fn content(format: &Format, definition: &serde_json::Value) -> Result<Node> {
    let node = from_json(Path::new("agent"), &definition.to_string()).map_err(CommandFailure::error)?;
    let definition = match node.is_null() {
        true => Node::map(Vec::new()),
        false => node,
    };
    Ok(without(format, definition, &[BESIDE, format.unversioned].concat()))
}

/// A definition without these keys of the format's own part, and without a part that has nothing else.
fn without(format: &Format, mut definition: Node, keys: &[&str]) -> Node {
    if let Some(parts) = definition.entries_mut() {
        let own = parts.iter_mut().find(|entry| entry.key == format.word);
        if let Some(kept) = own.and_then(|entry| entry.node.entries_mut()) {
            kept.retain(|entry| !keys.contains(&entry.key.as_str()));
        }
        let is_empty = |entry: &Entry| entry.key == format.word && entry.node.entries().is_empty();
        parts.retain(|entry| !(is_empty(entry) && entry.node.is_map()));
    }
    definition
}
