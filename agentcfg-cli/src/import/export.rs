//! The way back through the table of a format: from the fields of an agent to the keys of the format.

use std::collections::BTreeMap;
use std::iter;
use std::path::Path;

use super::convert;
use super::definition::{place_in, take_at};
use super::formats;
use super::parse_tree::from_json;
use super::servers::{all_are_servers, servers_of};
use super::source_tree::{Entry, Node, Value, find, take};
use super::table::{BESIDE, Format, PLACES, To, given_name, value_in};
use super::written::Written;

/// The keys of an agent in a format. What the format cannot hold is added to `lost` by its path.
pub fn export(format: &Format, agent_id: &str, mut fields: Vec<Entry>, lost: &mut Vec<String>) -> Written {
    let mut definition = take(&mut fields, "definition")
        .map(|node| node.entries().to_vec())
        .unwrap_or_default();
    let kept = take(&mut definition, format.word);
    if kept.as_ref().is_some_and(|kept| !kept.is_map()) {
        lost.push(format!("definition.{}", format.word));
    }
    let kept = kept.map(|node| node.entries().to_vec()).unwrap_or_default();
    let (beside, mut kept): (Vec<_>, Vec<_>) = kept.into_iter().partition(|entry| BESIDE.contains(&entry.key.as_str()));
    let mut definition = Node::map(definition);
    remove_shared(&mut definition, &beside);
    let given_name = given_name(format, agent_id, &beside);
    let mut entries = Vec::new();
    for row in format.rows {
        let (key, to, kind) = row;
        let original = take(&mut kept, key).map(|node| convert::of_kept(*kind, node));
        let value = match to {
            // A name that was given to the agent is not written, but one that it got since is.
            To::Field("display_name") => take(&mut fields, "display_name")
                .filter(|node| !node.is_null() && (given_name.is_none() || node.as_text() != given_name.as_deref())),
            To::Field(field) => take(&mut fields, field).filter(|node| !node.is_null()),
            To::Definition(path) => take_at(&mut definition, path),
            To::Kept => None,
        };
        let was = original.as_ref().and_then(|node| value_in(row, node));
        let written = match (value, original) {
            (Some(value), original) => match original {
                Some(original) if was.as_ref() == Some(&value) => Some(original),
                original => {
                    let out = convert::value_out(*kind, &value, original.as_ref());
                    match out {
                        Some(_) => {
                            let parts = convert::not_held(*kind, &value, original.as_ref());
                            lost.extend(parts.iter().map(|part| format!("{}.{part}", to.path())));
                        }
                        None => lost.push(to.path()),
                    }
                    out.or(original)
                }
            },
            // A value that was taken away since is not written again, but one that never had a place is.
            (None, Some(original)) => match was.is_none() || *to == To::Kept || !is_placed(to, was.as_ref()) {
                true => Some(original),
                false => convert::rest(*kind, &original),
            },
            (None, None) => None,
        };
        entries.extend(written.map(|node| Entry::new(*key, node)));
    }
    entries.extend(kept);
    lost.extend(
        fields
            .iter()
            .filter(|entry| !is_default(entry))
            .map(|entry| entry.key.clone()),
    );
    lost.extend(
        definition
            .entries()
            .iter()
            .filter(|entry| !is_of_places(entry))
            .map(|entry| format!("definition.{}", entry.key)),
    );
    Written {
        agent_id: agent_id.to_owned(),
        end: format.files[0],
        entries,
        beside,
        directories: format.directories,
    }
}

/// Whether an entry of a definition is what another format keeps of the places and the writing of its values alone.
fn is_of_places(entry: &Entry) -> bool {
    let Some(other) = formats::format(&entry.key).filter(|_| entry.node.is_map()) else {
        return false;
    };
    entry.node.entries().iter().all(|kept| match kept.key.as_str() {
        key if PLACES.contains(&key) => true,
        // The servers of the file are those of the agent, too.
        "$mcp" => content_of(&kept.node).is_some_and(|content| {
            let is_of_servers = |entry: &Entry| entry.key == "mcpServers" && all_are_servers(&entry.node);
            content.entries().iter().all(is_of_servers)
        }),
        key => {
            let row = other.rows.iter().find(|(row, ..)| *row == key);
            row.is_some_and(|row| row.1 != To::Kept && convert::is_form(row.2, &kept.node))
        }
    })
}

/// The keys that the tool requires, and of which the agent has no value.
pub fn missing(format: &Format, agent: &Written) -> Vec<String> {
    let is_value = |node: &Node| !node.is_null() && node.as_text().is_none_or(|text| !text.trim().is_empty());
    let has = |key: &str| find(&agent.entries, key).is_some_and(is_value);
    let is_text = |key: &str| agent.entries.iter().any(|entry| entry.key == format!("${key}"));
    // What is written of other parts.
    let stands_for = |key: &str| match key {
        "manifest" => is_text("system"),
        "prompt" => format.word == "langfuse" && has("messages"),
        _ => false,
    };
    let missing = format
        .requires
        .iter()
        .filter(|key| !(has(key) || is_text(key) || stands_for(key)));
    let name = find(&agent.entries, "name").and_then(Node::as_text).unwrap_or_default();
    let is_refused = format.word == "claude-code" && (name.contains(':') || name.starts_with('-'));
    let other = is_refused.then(|| "a name without `:` and without `-` at its start".to_owned());
    missing.map(|key| (*key).to_owned()).chain(other).collect()
}

/// Gives each agent a name of its own where the tool identifies agents by it: of several with one name, the first keeps
/// it, and the others have their identifiers. Returns the others, with what they lose.
pub fn make_unique(format: &Format, agents: &mut [Written]) -> Vec<(String, String)> {
    let is_name = |entry: &&mut Entry| Some(&*entry.key) == format.unique;
    let named = agents.iter_mut().filter_map(|agent| {
        let entry = agent.entries.iter_mut().find(is_name)?;
        Some((&agent.agent_id, entry.node.scalar()?, entry))
    });
    let named: Vec<_> = named.collect();
    let mut owners: BTreeMap<String, &String> = BTreeMap::new();
    for (id, name, _) in &named {
        owners.entry(name.clone()).or_insert(id);
    }
    let mut lost = Vec::new();
    for (id, name, entry) in named {
        let others = iter::once(id.clone()).chain((2..).map(|number| format!("{id}-{number}")));
        let is_free = |name: &String| owners.get(name).is_none_or(|owner| *owner == id);
        let own = iter::once(name.clone()).chain(others).find(is_free).unwrap_or_default();
        if own != name {
            lost.push((
                id.clone(),
                format!("the name {name:?}, which {} has, too", owners[&name]),
            ));
            entry.node = Node::text(&*own);
            owners.insert(own, id);
        }
    }
    lost
}

/// Whether a value has its place outside the format's own part.
fn is_placed(to: &To, value: Option<&Node>) -> bool {
    match (to, value) {
        (To::Definition(path), Some(value)) => place_in(&mut Node::map(Vec::new()), path, value.clone()),
        (To::Field(_), Some(_)) => true,
        _ => false,
    }
}

/// The content of a file that an agent keeps.
fn content_of(file: &Node) -> Option<Node> {
    let content = file.get("content")?;
    let read = content.as_text().map(|text| from_json(Path::new(".mcp.json"), text));
    Some(match read {
        Some(Ok(read)) => read,
        _ => content.clone(),
    })
}

/// Takes the servers of a shared file out of those of the agent.
fn remove_shared(definition: &mut Node, beside: &[Entry]) {
    let Some(shared) = find(beside, "$mcp").and_then(content_of) else {
        return;
    };
    let shared = servers_of(shared.get("mcpServers"));
    let Some(entries) = definition.entries_mut() else {
        return;
    };
    let Some(servers) = take(entries, "mcp_servers") else {
        return;
    };
    let own: Vec<_> = servers
        .as_list()
        .unwrap_or_default()
        .iter()
        .filter(|server| !shared.contains(server))
        .cloned()
        .collect();
    if !own.is_empty() {
        entries.push(Entry::new("mcp_servers", Node::list(own)));
    }
}

/// Whether a field has the value of an absent one.
fn is_default(entry: &Entry) -> bool {
    match &entry.node.value {
        Value::Null => true,
        Value::List(items) => items.is_empty(),
        Value::Map(entries) => entries.is_empty(),
        Value::Text(text) => entry.key == "agent_type" && text == "ai",
        _ => false,
    }
}
