//! Paths of the definition, such as `model_settings.temperature`: a value is put there if the service takes it.

use agentcfg_client::model::AgentSpec;

use super::source_tree::{Entry, Node, put, take};
use crate::agent_file::Place;

/// Puts a value at a path of the definition, if the rules of the service allow it there.
pub fn place_in(definition: &mut Node, path: &str, value: Node) -> bool {
    let before = definition.clone();
    let (outer, key) = path.rsplit_once('.').unwrap_or(("", path));
    let mut node = &mut *definition;
    for name in outer.split('.').filter(|name| !name.is_empty()) {
        let Some(inner) = node.map_at(name) else { return false };
        node = inner;
    }
    if let Some(entries) = node.entries_mut() {
        put(entries, key, value);
    }
    let top = path.split('.').next().unwrap_or(path);
    let is_allowed = definition
        .get(top)
        .is_some_and(|value| refusal_of(top, value).is_none());
    if !is_allowed {
        *definition = before;
    }
    is_allowed
}

/// Why the service does not take this value under a key of the definition.
pub fn refusal_of(key: &str, value: &Node) -> Option<String> {
    let definition = Node::map(vec![Entry::new(key, value.clone())]);
    let agent = Node::map(vec![
        Entry::new("agent_id", Node::text("x")),
        Entry::new("display_name", Node::text("x")),
        Entry::new("definition", definition),
    ]);
    let refused = AgentSpec::from_json(agent.json().as_bytes()).err()?;
    Some(refused.to_string())
}

/// Takes the value at a path out, and the maps that it leaves empty.
pub fn take_at(node: &mut Node, path: &str) -> Option<Node> {
    match path.split_once('.') {
        None => take(node.entries_mut()?, path),
        Some((outer, rest)) => {
            let entries = node.entries_mut()?;
            let at = entries.iter().position(|entry| entry.key == outer)?;
            let value = take_at(&mut entries[at].node, rest);
            if value.is_some() && entries[at].node.entries().is_empty() {
                entries.remove(at);
            }
            value
        }
    }
}

/// The largest part of a definition: its path, its place, and its length as JSON.
pub fn largest(definition: &Node) -> Option<(String, Place, usize)> {
    // What a format keeps is one level further in.
    let parts = definition.entries().iter().flat_map(|outer| {
        let inner = outer.node.entries().iter();
        let inner = inner.map(|entry| (format!("{}.{}", outer.key, entry.key), entry));
        let whole = inner.clone().next().is_none().then(|| (outer.key.clone(), outer));
        inner.chain(whole)
    });
    let parts = parts.map(|(path, entry)| (format!("definition.{path}"), entry.place, entry.node.json().len()));
    parts.max_by_key(|(.., length)| *length)
}

/// The place of the value at a path such as `.openai.tools[0].name`, or of the nearest value around it.
pub fn place_of(node: &Node, path: &str) -> Place {
    let inner = match path.strip_prefix('[').and_then(|path| path.split_once(']')) {
        Some((number, rest)) => {
            let number: Option<usize> = number.parse().ok();
            number.and_then(|number| Some((node.as_list()?.get(number)?, rest)))
        }
        // A key may have dots.
        None => node
            .entries()
            .iter()
            .filter_map(|entry| Some((&entry.node, path.strip_prefix('.')?.strip_prefix(entry.key.as_str())?)))
            .filter(|(_, rest)| rest.is_empty() || rest.starts_with(['.', '[']))
            .min_by_key(|(_, rest)| rest.len()),
    };
    match inner {
        Some((inner, rest)) => place_of(inner, rest).max(node.place),
        None => node.place,
    }
}
