//! What the formats in JSON share.

use std::path::PathBuf;

use super::super::output_file::{File, Holds};
use super::super::parse_tree::from_json;
use super::super::source_tree::{Entry, Node, Value, find, put, take};
use super::super::written::Written;
use super::super::{Reading, Source};
use crate::agent_file::Problem;

/// The objects of a JSON file: the object itself, those of a list, or those of a page of a list.
pub fn objects(source: &Source<'_>, reading: &mut Reading) -> Vec<Node> {
    let node = match from_json(source.path, source.text) {
        Ok(node) => node,
        Err(problem) => {
            reading.problems.push(problem);
            return Vec::new();
        }
    };
    if let Some(message) = is_cut_off(&node) {
        reading.warnings.push(Problem::new(source.path, node.place, message));
    }
    let page = node.get("data").filter(|data| data.as_list().is_some()).cloned();
    let items = match page.unwrap_or(node) {
        Node {
            value: Value::List(items),
            ..
        } => items,
        node => vec![node],
    };
    if items.is_empty() {
        reading.skip(source, "the list is empty");
    }
    let (objects, others): (Vec<_>, Vec<_>) = items.into_iter().partition(Node::is_map);
    for other in others {
        reading.skip(source, format!("line {}: not an object", other.place.line));
    }
    objects
}

/// What to do about a list that goes on in another page.
fn is_cut_off(page: &Node) -> Option<&'static str> {
    let number = |key: &str| page.get("meta")?.get(key)?.scalar()?.parse::<u64>().ok();
    let has_more = page.get("has_more").and_then(Node::scalar).as_deref() == Some("true")
        || page
            .get("next_page")
            .is_some_and(|next| next.scalar().is_some_and(|next| next != "false"))
        || number("totalPages").is_some_and(|all| all > number("page").unwrap_or(1));
    let is_page = page.get("data").is_some_and(|data| data.as_list().is_some());
    (has_more && is_page).then_some("a page of a list that has more: save the other pages as well, see docs/import.md")
}

/// Takes these members out of an object among the entries, as entries with the path as key, such as `config.model`.
pub fn flatten(entries: &mut Vec<Entry>, object: &str, members: &[&str]) {
    let Some(outer) = entries.iter_mut().find(|entry| entry.key == object) else {
        return;
    };
    let Some(inner) = outer.node.entries_mut() else { return };
    let taken: Vec<Entry> = members
        .iter()
        .filter_map(|name| {
            let place = inner.iter().find(|entry| entry.key == *name)?.place;
            let node = take(inner, name)?;
            Some(Entry {
                key: format!("{object}.{name}"),
                place,
                node,
            })
        })
        .collect();
    entries.extend(taken);
}

/// Puts the entries of [`flatten`] back.
pub fn unflatten(entries: &mut Vec<Entry>, object: &str) {
    let prefix = format!("{object}.");
    let (mut inner, mut rest): (Vec<Entry>, Vec<Entry>) = std::mem::take(entries)
        .into_iter()
        .partition(|entry| entry.key.starts_with(&prefix));
    for entry in &mut inner {
        entry.key = entry.key[prefix.len()..].to_owned();
    }
    if !inner.is_empty() {
        let mut outer = match find(&rest, object) {
            Some(node) if node.is_map() => node.clone(),
            _ => Node::map(Vec::new()),
        };
        if let Some(members) = outer.entries_mut() {
            members.extend(inner);
        }
        put(&mut rest, object, outer);
    }
    *entries = rest;
}

/// A JSON file for each agent; several versions of one are a list in it.
pub fn files(agents: Vec<Written>, mut object: impl FnMut(&Written) -> Node) -> Vec<File> {
    let mut files: Vec<(String, Vec<Node>)> = Vec::new();
    for agent in agents {
        let node = object(&agent);
        match files.last_mut() {
            Some((agent_id, nodes)) if *agent_id == agent.agent_id => nodes.push(node),
            _ => files.push((agent.agent_id, vec![node])),
        }
    }
    let file = |(agent_id, mut nodes): (String, Vec<Node>)| {
        let node = if nodes.len() == 1 {
            nodes.remove(0)
        } else {
            Node::list(nodes)
        };
        let path = PathBuf::from(format!("{agent_id}.json"));
        File::new(path, node.pretty(), Holds::Agent)
    };
    files.into_iter().map(file).collect()
}

/// The number in an entry.
pub fn number(entries: &[Entry], key: &str) -> Option<u64> {
    find(entries, key)?.scalar()?.parse().ok()
}
