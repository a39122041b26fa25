//! Formats of Markdown files with front matter: Claude Code, GitHub Copilot, OpenCode.

use std::path::{Path, PathBuf};

use super::super::convert::{As, servers_of};
use super::super::front_matter;
use super::super::output_file::{File, Holds};
use super::super::parse_tree::from_json;
use super::super::source_tree::{Entry, Node, put, take};
use super::super::table::To::{Definition, Field, Kept};
use super::super::table::{Format, Record, Written, secret_problems};
use super::super::yaml_text::to_yaml;
use super::super::{Beside, Reading, Source};
use crate::agent_file::{FENCE, Place, Problem};

/// The key of the text after the front matter.
pub const BODY: &str = "prompt";

/// The key of the agents in `opencode.json`.
const AGENTS: &str = "agent";

pub const CLAUDE_CODE: Format = Format {
    word: "claude-code",
    rows: &[
        ("name", Field("display_name"), As::Text),
        ("description", Field("description"), As::Text),
        ("tools", Definition("tools"), As::Words),
        ("disallowedTools", Kept, As::Any),
        ("model", Field("model"), As::Model("id")),
        ("effort", Kept, As::Any),
        ("permissionMode", Kept, As::Text),
        ("mcpServers", Definition("mcp_servers"), As::ServerList),
        ("skills", Definition("skills"), As::WordList),
        ("memory", Kept, As::Text),
        ("maxTurns", Kept, As::Any),
        ("background", Kept, As::Any),
        ("omitClaudeMd", Kept, As::Any),
        ("isolation", Kept, As::Text),
        ("color", Kept, As::Text),
        ("initialPrompt", Kept, As::Text),
        ("hooks", Kept, As::Any),
        ("experimental", Kept, As::Any),
        ("version", Kept, As::Text),
        (BODY, Field("persona_prompt"), As::Text),
    ],
    requires: &["name", "description"],
    prefers_jsonc: false,
    files: &[".md", ".json"],
    read: claude_code,
    write,
};

pub const COPILOT: Format = Format {
    word: "copilot",
    rows: &[
        ("name", Field("display_name"), As::Text),
        ("description", Field("description"), As::Text),
        ("target", Kept, As::Text),
        ("tools", Definition("tools"), As::WordList),
        ("model", Field("model"), As::Model("id")),
        ("agents", Kept, As::Any),
        ("handoffs", Kept, As::Any),
        ("argument-hint", Kept, As::Text),
        ("disable-model-invocation", Kept, As::Any),
        ("user-invocable", Kept, As::Any),
        ("user-invokable", Kept, As::Any),
        ("infer", Kept, As::Any),
        ("mode", Kept, As::Text),
        ("mcp-servers", Definition("mcp_servers"), As::ServerMap),
        ("metadata", Definition("metadata"), As::Any),
        (BODY, Field("persona_prompt"), As::Text),
    ],
    requires: &["description"],
    prefers_jsonc: false,
    files: &[".agent.md", ".chatmode.md", ".md"],
    read: copilot,
    write,
};

pub const OPENCODE: Format = Format {
    word: "opencode",
    rows: &[
        ("name", Field("display_name"), As::Text),
        ("description", Field("description"), As::Text),
        ("mode", Kept, As::Text),
        ("model", Field("model"), As::Model("id")),
        ("variant", Kept, As::Text),
        ("temperature", Definition("model_settings.temperature"), As::Any),
        ("top_p", Definition("model_settings.top_p"), As::Any),
        ("steps", Kept, As::Any),
        ("maxSteps", Kept, As::Any),
        ("permission", Kept, As::Ordered),
        ("tools", Kept, As::Any),
        ("hidden", Kept, As::Any),
        ("disable", Kept, As::Any),
        ("color", Kept, As::Text),
        ("options", Kept, As::Any),
        (BODY, Field("persona_prompt"), As::Text),
    ],
    requires: &["description"],
    prefers_jsonc: false,
    files: &[".md", ".json", ".jsonc"],
    read: opencode,
    write,
};

fn claude_code(source: &Source<'_>, reading: &mut Reading) {
    match source.file_name() {
        ".mcp.json" => {
            if let Some(node) = json(source, reading) {
                keep_beside(source, reading, node);
            }
        }
        "SKILL.md" => reading.skip(source, "a skill, which is no agent"),
        name if name.ends_with(".json") => {
            if let Some(node) = json(source, reading) {
                objects(source, reading, &node, "agents", true);
            }
        }
        _ => {
            let is_plugin = is_of_plugin(source.path);
            let before = reading.records.len();
            markdown(
                source,
                reading,
                &|entries| match (is_plugin, has(entries, "name"), has(entries, "description")) {
                    (true, ..) | (_, true, true) => Ok(source.stem().to_owned()),
                    (_, false, _) => Err("no name in the front matter".to_owned()),
                    (_, true, false) => Ok(source.stem().to_owned()),
                },
            );
            for record in &mut reading.records[before..] {
                if !is_plugin && !has(&record.entries, "description") {
                    let message = "no description: Claude Code does not load this agent";
                    reading.warnings.push(Problem::new(&record.file, record.place, message));
                }
            }
        }
    }
    let from = reading
        .records
        .iter()
        .rposition(|record| record.file != source.path)
        .map_or(0, |at| at + 1);
    add_beside(source, reading, from, SERVERS);
}

/// Gives the new agents the nearest file of these names that stands beside those of agents: as Claude Code gives the servers of
/// `.mcp.json` to all agents of a project.
fn add_beside(source: &Source<'_>, reading: &mut Reading, from: usize, (key, names): (&str, &[&str])) {
    let dirs = source
        .path
        .ancestors()
        .skip(1)
        .take_while(|dir| dir.starts_with(source.root) || source.root.starts_with(dir));
    let paths: Vec<_> = dirs.flat_map(|dir| names.iter().map(|name| dir.join(name))).collect();
    let Some(path) = paths.into_iter().find(|path| reading.beside.contains_key(path)) else {
        return;
    };
    let records = &mut reading.records[from..];
    let Some(Beside { node, is_used }) = reading.beside.get_mut(&path).filter(|_| !records.is_empty()) else {
        return;
    };
    *is_used = true;
    let file = path
        .strip_prefix(source.root)
        .unwrap_or(&path)
        .to_string_lossy()
        .into_owned();
    let beside = beside(&file, node);
    let servers = servers_of(node.get("mcpServers"));
    for record in records {
        record.beside.push(Entry::new(key, beside.clone()));
        record.servers.clone_from(&servers);
    }
}

/// Whether a file is an agent of a plugin, which needs no name.
fn is_of_plugin(path: &Path) -> bool {
    let dir = path
        .ancestors()
        .skip(1)
        .find(|dir| dir.file_name().is_some_and(|name| name == "agents"));
    dir.and_then(Path::parent)
        .is_some_and(|plugin| plugin.join(".claude-plugin").is_dir())
}

fn copilot(source: &Source<'_>, reading: &mut Reading) {
    let is_agent = source.file_name().ends_with(".agent.md") || source.file_name().ends_with(".chatmode.md");
    markdown(source, reading, &|entries| {
        let of_copilot = ["description", "tools", "name", "model", "target"]
            .iter()
            .any(|key| has(entries, key));
        match is_agent || of_copilot {
            true => Ok(source.stem().to_owned()),
            false => Err("no front matter with the keys of an agent".to_owned()),
        }
    });
}

fn opencode(source: &Source<'_>, reading: &mut Reading) {
    let from = reading.records.len();
    if !source.file_name().ends_with(".md") {
        if let Some(node) = json(source, reading) {
            if !keep_config(source, reading, &node) || node.get(AGENTS).is_some() {
                objects(source, reading, &node, AGENTS, false);
            }
            for record in &mut reading.records[from..] {
                let place = Node::map(vec![
                    Entry::new("file", Node::text(source.relative)),
                    Entry::new("name", Node::text(&*record.default_name)),
                ]);
                record.beside.push(Entry::new("$json", place));
            }
            add_beside(source, reading, from, CONFIG);
        }
        return;
    }
    let name = source.relative.strip_suffix(".md").unwrap_or(source.relative);
    let below = ["agents/", "agent/"].iter().find_map(|dir| {
        let at = name.rfind(dir)?;
        (at == 0 || name[..at].ends_with('/')).then(|| &name[at + dir.len()..])
    });
    let name = below.unwrap_or(name).to_owned();
    markdown(source, reading, &|entries| match entries.is_empty() {
        true => Err("no front matter".to_owned()),
        false => Ok(name.clone()),
    });
    add_beside(source, reading, from, CONFIG);
}

/// Keeps what a configuration of OpenCode has beside its agents, such as its servers, for all agents below its directory. A schema
/// alone is not kept.
fn keep_config(source: &Source<'_>, reading: &mut Reading, node: &Node) -> bool {
    let rest: Vec<_> = node
        .entries()
        .iter()
        .filter(|entry| entry.key != AGENTS)
        .cloned()
        .collect();
    if rest.iter().all(|entry| entry.key == "$schema") {
        return false;
    }
    keep_beside(source, reading, Node::map(rest));
    true
}

/// Keeps a file for the agents below its directory, unless it has literal secrets.
fn keep_beside(source: &Source<'_>, reading: &mut Reading, node: Node) {
    let secrets = secret_problems(source.path, node.entries(), &[]);
    if secrets.is_empty() {
        let beside = Beside { node, is_used: false };
        reading.beside.insert(source.path.to_owned(), beside);
    }
    reading.problems.extend(secrets);
}

/// The content of a JSON file; one that cannot be read is a problem.
fn json(source: &Source<'_>, reading: &mut Reading) -> Option<Node> {
    from_json(source.path, source.text)
        .map_err(|problem| reading.problems.push(problem))
        .ok()
}

/// A file that stands beside those of agents, as it is kept with each of them.
fn beside(file: &str, content: &Node) -> Node {
    Node::map(vec![
        Entry::new("file", Node::text(file)),
        Entry::new("content", Node::text(content.pretty())),
    ])
}

fn has(entries: &[Entry], key: &str) -> bool {
    entries
        .iter()
        .any(|entry| entry.key == key && entry.node.scalar().is_some_and(|text| !text.trim().is_empty()))
}

/// Reads a Markdown file. The name where the keys have none, or why it is no agent, depends on the keys.
fn markdown(source: &Source<'_>, reading: &mut Reading, name: &dyn Fn(&[Entry]) -> Result<String, String>) {
    let known: Vec<&str> = source.format.rows.iter().map(|(key, ..)| *key).collect();
    let read = front_matter::read(source.path, source.text, &known, &mut reading.warnings);
    let document = match read {
        Ok(Some(document)) => document,
        Ok(None) => front_matter::Document {
            entries: Vec::new(),
            body: source.text.trim().to_owned(),
            body_place: Place::START,
        },
        Err(problem) => return reading.problems.push(problem),
    };
    if ["agent_id", "display_name"]
        .iter()
        .all(|key| has(&document.entries, key))
    {
        return reading.skip(source, "a file of agentcfg, which `agentcfg apply` reads");
    }
    let name = match name(&document.entries) {
        Ok(name) => name,
        Err(reason) => return reading.skip(source, reason),
    };
    let mut entries = document.entries;
    if entries.iter().any(|entry| entry.key == BODY) {
        let message =
            "the key prompt of the front matter has no meaning in this format: the text after it is the prompt";
        return reading.problems.push(Problem::of(source.path, message));
    }
    if !document.body.is_empty() {
        let mut body = Node::text(document.body);
        body.place = document.body_place;
        entries.push(Entry::new(BODY, body));
    }
    let place = entries.first().map_or(Place::START, |entry| entry.place);
    let mut record = Record::new(source.path, place, entries, name);
    record.beside.push(Entry::new("$file", Node::text(source.relative)));
    reading.records.push(record);
}

/// Reads agents by their names from JSON: those below a key, or all of the file. An agent that is defined there has a prompt; one that
/// only changes an agent of the tool need not have one.
fn objects(source: &Source<'_>, reading: &mut Reading, node: &Node, below: &str, is_defined: bool) {
    let is_agent = |entry: &Entry| entry.node.is_map() && (!is_defined || entry.node.text_of(BODY).is_some());
    let of_key = node.get(below).filter(|node| node.entries().iter().any(is_agent));
    let is_whole = is_defined && !node.entries().is_empty() && node.entries().iter().all(is_agent);
    let agents: Vec<Entry> = match of_key {
        Some(agents) => agents.entries().to_vec(),
        None if is_whole => node.entries().to_vec(),
        None => Vec::new(),
    };
    if agents.is_empty() {
        return reading.skip(source, "no agents in it");
    }
    for agent in agents {
        if !is_agent(&agent) {
            reading.skip(
                source,
                format!(
                    "line {}: {} is no agent, which has a prompt",
                    agent.place.line, agent.key
                ),
            );
            continue;
        }
        let mut entries = agent.node.entries().to_vec();
        if !has(&entries, "name") {
            entries.retain(|entry| entry.key != "name");
            entries.insert(0, Entry::new("name", Node::text(&*agent.key)));
        }
        reading
            .records
            .push(Record::new(source.path, agent.place, entries, agent.key));
    }
}

/// The files that stand beside those of agents: the key under which an agent keeps one, and the names that it may have.
const SERVERS: (&str, &[&str]) = ("$mcp", &[".mcp.json"]);
const CONFIG: (&str, &[&str]) = ("$config", &["opencode.json", "opencode.jsonc"]);

/// The path and the text of a file that an agent keeps. A path that leads elsewhere is replaced by the name of the file.
fn written_beside(shared: &Node, names: &[&str]) -> Option<(PathBuf, String)> {
    let (path, content) = shared.text_of("file").map(PathBuf::from).zip(shared.get("content"))?;
    let name = *names.iter().find(|name| path.ends_with(name))?;
    let is_below = |part| matches!(part, std::path::Component::Normal(_));
    let path = match path.components().all(is_below) {
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

/// A file for each agent, and those that stood beside them.
fn write(agents: Vec<Written>) -> Vec<File> {
    let mut files: Vec<File> = Vec::new();
    let mut configured: Vec<(PathBuf, Entry)> = Vec::new();
    for mut agent in agents {
        let end = match agent.beside("$file").and_then(Node::as_text) {
            Some(file) if file.ends_with(".md") => ".md",
            _ => agent.end,
        };
        let path = agent.path(end);
        for (key, names) in [SERVERS, CONFIG] {
            let shared = agent.beside(key).and_then(|shared| written_beside(shared, names));
            if let Some((path, text)) = shared.filter(|(path, _)| files.iter().all(|file| file.path != *path)) {
                files.push(File::new(
                    path,
                    text,
                    Holds::Config((key == CONFIG.0).then_some(AGENTS)),
                ));
            }
        }
        if let Some((path, name)) = agent.beside("$json").and_then(place_in_json) {
            take_if_same(&mut agent.entries, "name", &name);
            configured.push((path, Entry::new(name, Node::map(agent.entries))));
            continue;
        }
        let body = take(&mut agent.entries, BODY)
            .and_then(|node| node.scalar())
            .unwrap_or_default();
        let yaml = to_yaml(&agent.entries);
        let text = match (yaml.is_empty(), body.is_empty()) {
            (_, true) => format!("{FENCE}\n{yaml}{FENCE}\n"),
            (true, false) if end == ".md" => format!("{body}\n"),
            (_, false) => format!("{FENCE}\n{yaml}{FENCE}\n\n{body}\n"),
        };
        files.push(File::new(path, text, Holds::Agent));
    }
    for (path, agent) in configured {
        add_to_config(&mut files, path, agent);
    }
    files
}

/// The file and the name of an agent that was in `opencode.json`.
fn place_in_json(place: &Node) -> Option<(PathBuf, String)> {
    let path = place.text_of("file").map(PathBuf::from)?;
    let is_below = path
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)));
    is_below.then_some((path, place.text_of("name")?.to_owned()))
}

/// Removes a name that is the key of the agent, too.
fn take_if_same(entries: &mut Vec<Entry>, key: &str, text: &str) {
    if entries
        .iter()
        .any(|entry| entry.key == key && entry.node.as_text() == Some(text))
    {
        take(entries, key);
    }
}

/// Adds an agent to the configuration of OpenCode among the files.
fn add_to_config(files: &mut Vec<File>, path: PathBuf, agent: Entry) {
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
