//! Files that stand beside those of agents and are of all of them: `.mcp.json` of Claude Code, and `opencode.json`,
//! which may have agents too.

use std::path::{Path, PathBuf};

use super::super::output_file::{File, Holds, is_allowed};
use super::super::parse_tree::from_json;
use super::super::servers::servers_of;
use super::super::source_tree::{Entry, Node, put};
use super::super::table::{secret_problems, tell_refused};
use super::super::{Beside, Reading, Source, relative_to};

/// The key of the agents in `opencode.json`.
pub const AGENTS: &str = "agent";

/// The key under which an agent keeps such a file, and the names that it may have.
pub type Kind = (&'static str, &'static [&'static str]);
pub const SERVERS: Kind = ("$mcp", &[".mcp.json"]);
pub const CONFIG: Kind = ("$config", &["opencode.json", "opencode.jsonc"]);

/// Gives the new agents the nearest file of these names that stands beside those of agents: as Claude Code gives the
/// servers of `.mcp.json` to all agents of a project.
pub fn add_beside(source: &Source<'_>, reading: &mut Reading, from: usize, (key, names): Kind) {
    let dirs = source
        .path
        .ancestors()
        .skip(1)
        .take_while(|dir| dir.starts_with(source.root) || source.root.starts_with(dir));
    let beside_it = dirs.flat_map(|dir| names.iter().map(|name| dir.join(name)));
    let paths: Vec<_> = [source.path.to_owned()].into_iter().chain(beside_it).collect();
    let Some(path) = paths.into_iter().find(|path| reading.beside.contains_key(path)) else {
        return;
    };
    let records = &mut reading.records[from..];
    let Some(Beside { node, is_used }) = reading.beside.get_mut(&path).filter(|_| !records.is_empty()) else {
        return;
    };
    *is_used = true;
    let mut file = relative_to(source.root, &path);
    // The tool reads it under this name alone.
    if !names.iter().any(|name| Path::new(&file).ends_with(name)) {
        file = names[0].to_owned();
    }
    let beside = beside(&file, node);
    let servers = servers_of(node.get("mcpServers"));
    for record in records {
        record.beside.push(Entry::new(key, beside.clone()));
        record.servers.clone_from(&servers);
    }
}

/// Keeps a file for the agents below its directory, unless it has literal secrets.
pub fn keep_beside(source: &Source<'_>, reading: &mut Reading, node: Node) {
    let secrets = secret_problems(source.path, node.entries(), &[]);
    if secrets.is_empty() {
        if let Some(servers) = node.get("mcpServers") {
            tell_refused(source.path, servers, source.format, &mut reading.warnings);
        }
        let beside = Beside { node, is_used: false };
        reading.beside.insert(source.path.to_owned(), beside);
    }
    reading.problems.extend(secrets);
}

/// A file that stands beside those of agents, as it is kept with each of them.
fn beside(file: &str, content: &Node) -> Node {
    Node::map(vec![
        Entry::new("file", Node::text(file)),
        Entry::new("content", Node::text(content.pretty())),
    ])
}

/// Adds the file of this kind that an agent keeps to those of the export. Agents may keep several states of one file:
/// the members of all are written, and of those with two values the first. Returns the paths of the others.
pub fn add_shared(files: &mut Vec<File>, shared: &Node, (key, names): Kind, own: &[&str]) -> Vec<String> {
    let Some((path, text)) = written_beside(shared, names, own) else {
        return Vec::new();
    };
    let Some(file) = files.iter_mut().find(|file| file.path == path) else {
        let holds = Holds::Config((key == CONFIG.0).then_some(AGENTS));
        files.push(File::new(path, text, holds));
        return Vec::new();
    };
    match (from_json(&path, &file.text), from_json(&path, &text)) {
        (Ok(mut first), Ok(other)) => {
            let differing = add_members(&mut first, &other, 2);
            file.text = first.pretty();
            differing
        }
        _ => Vec::new(),
    }
}

/// Adds members of maps to this depth that are absent. Returns the paths of those with another value.
pub fn add_members(node: &mut Node, other: &Node, depth: usize) -> Vec<String> {
    let Some(entries) = node.entries_mut() else {
        return Vec::new();
    };
    let mut differing = Vec::new();
    for Entry { key, node, .. } in other.entries() {
        match entries.iter_mut().find(|entry| entry.key == *key) {
            None => entries.push(Entry::new(key.as_str(), node.clone())),
            Some(entry) if entry.node == *node => {}
            Some(entry) if depth > 1 && entry.node.is_map() && node.is_map() => {
                let inner = add_members(&mut entry.node, node, depth - 1);
                differing.extend(inner.into_iter().map(|path| format!("{key}.{path}")));
            }
            Some(_) => differing.push(key.clone()),
        }
    }
    differing
}

/// The path and the text of a file that an agent keeps. A path that leads elsewhere is replaced by the name of the
/// file.
fn written_beside(shared: &Node, names: &[&str], own: &[&str]) -> Option<(PathBuf, String)> {
    let (path, content) = shared.text_of("file").map(PathBuf::from).zip(shared.get("content"))?;
    let name = *names.iter().find(|name| path.ends_with(name))?;
    let path = match path.parent().is_some_and(|dir| is_allowed(dir, own)) {
        true => path,
        false => PathBuf::from(name),
    };
    // A text keeps the order of its members through every file.
    let text = match content.as_text() {
        Some(text) => text.to_owned(),
        None => content.pretty(),
    };
    Some((path, text))
}

/// The file and the name of an agent that was in `opencode.json`.
pub fn place_in_json(place: &Node, own: &[&str]) -> Option<(PathBuf, String)> {
    let path = place.text_of("file").map(PathBuf::from)?;
    let is_config = CONFIG.1.iter().any(|name| path.ends_with(name));
    (is_config && is_allowed(&path, own)).then_some((path, place.text_of("name")?.to_owned()))
}

/// Adds an agent to the configuration of OpenCode among the files.
pub fn add_to_config(files: &mut Vec<File>, path: PathBuf, agent: Entry) {
    let at = match files.iter().position(|file| file.path == path) {
        Some(at) => at,
        None => {
            let text = Node::map(Vec::new()).pretty();
            files.push(File::new(path, text, Holds::Config(Some(AGENTS))));
            files.len() - 1
        }
    };
    let file = &mut files[at];
    let Ok(mut config) = from_json(&file.path, &file.text) else {
        return;
    };
    if let Some(agents) = config.map_at(AGENTS).and_then(Node::entries_mut) {
        put(agents, &agent.key, agent.node);
    }
    file.text = config.pretty();
}
