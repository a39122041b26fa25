//! Formats of Markdown files with front matter: Claude Code, GitHub Copilot, OpenCode.

use std::path::{Path, PathBuf, absolute};

use super::super::convert::As;
use super::super::front_matter;
use super::super::output_file::{File, Holds, NotHeld};
use super::super::parse_tree::from_json;
use super::super::servers::{CLAUDE, COPILOT as COPILOT_SERVERS};
use super::super::source_tree::{Entry, Node, take};
use super::super::table::To::{Definition, Field, Kept};
use super::super::table::{Format, Record};
use super::super::written::Written;
use super::super::yaml_text::to_yaml;
use super::super::{Reading, Source};
use super::beside::{
    AGENTS, CONFIG, SERVERS, add_beside, add_members, add_shared, add_to_config, keep_beside, place_in_json,
};
use super::directories::Directories;
use crate::agent_file::{FENCE, Place, Problem};

/// The key of the text after the front matter.
pub const BODY: &str = "prompt";

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
        ("mcpServers", Definition("mcp_servers"), As::ServerList(&CLAUDE)),
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
    directories: &[".claude", ".claude-plugin"],
    home: Some(".claude/agents"),
    unique: Some("name"),
    unversioned: &[],
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
        (
            "mcp-servers",
            Definition("mcp_servers"),
            As::ServerMap(&COPILOT_SERVERS),
        ),
        ("metadata", Definition("metadata"), As::Any),
        (BODY, Field("persona_prompt"), As::Text),
    ],
    requires: &["description"],
    prefers_jsonc: false,
    files: &[".agent.md", ".chatmode.md", ".md"],
    directories: &[".github"],
    home: Some(".github/agents"),
    unique: None,
    unversioned: &[],
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
        ("tools", Kept, As::Ordered),
        ("hidden", Kept, As::Any),
        ("disable", Kept, As::Any),
        ("color", Kept, As::Text),
        ("options", Kept, As::Any),
        (BODY, Field("persona_prompt"), As::Text),
    ],
    requires: &["description"],
    prefers_jsonc: false,
    files: &[".md", ".json", ".jsonc"],
    directories: &[".opencode"],
    home: Some(".opencode/agents"),
    unique: None,
    unversioned: &[],
    read: opencode,
    write,
};

const OF_CLAUDE: Directories = Directories {
    agents: &["agents"],
    others: &["commands", "skills", "output-styles"],
    tool: ".claude",
};

const OF_COPILOT: Directories = Directories {
    agents: &["agents", "chatmodes"],
    others: &["prompts", "instructions", "skills", "ISSUE_TEMPLATE"],
    tool: ".github",
};

const OF_OPENCODE: Directories = Directories {
    agents: &["agent", "agents", "mode", "modes"],
    others: &["command", "commands", "skill", "skills"],
    tool: ".opencode",
};

/// Whether a file can be that of an agent by its directory. If not, it is skipped.
fn is_of_agents(directories: &Directories, source: &Source<'_>, reading: &mut Reading) -> bool {
    let reason = directories.reason(source, reading);
    let is_one = reason.is_none();
    if let Some(reason) = reason {
        reading.skip(source, reason);
    }
    is_one
}

fn claude_code(source: &Source<'_>, reading: &mut Reading) {
    match source.file_name() {
        ".mcp.json" => {
            if let Some(node) = json(source, reading) {
                keep_beside(source, reading, node);
            }
        }
        "SKILL.md" => reading.skip(source, "a skill, which is no agent"),
        _ if source.has_end(".json") => {
            if let Some(node) = json(source, reading) {
                objects(source, reading, &node, "agents", true);
            }
        }
        _ if source.has_end(".md") && !is_of_agents(&OF_CLAUDE, source, reading) => {}
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

/// Whether a file is an agent of a plugin, which needs neither a name nor a description.
pub fn is_of_plugin(path: &Path) -> bool {
    let whole = absolute(path).unwrap_or_else(|_| path.to_owned());
    let dir = whole
        .ancestors()
        .skip(1)
        .find(|dir| dir.file_name().is_some_and(|name| name == "agents"));
    dir.and_then(Path::parent)
        .is_some_and(|plugin| plugin.join(".claude-plugin").is_dir())
}

fn copilot(source: &Source<'_>, reading: &mut Reading) {
    let others = [
        (source.file_name() == "SKILL.md", "a skill"),
        (source.has_end(".prompt.md"), "a prompt file"),
        (source.has_end(".instructions.md"), "a file of instructions"),
    ];
    if let Some((_, what)) = others.iter().find(|(is_one, _)| *is_one) {
        return reading.skip(source, format!("{what}, which is no agent"));
    }
    let is_agent = source.has_end(".agent.md") || source.has_end(".chatmode.md");
    if !is_agent && !is_of_agents(&OF_COPILOT, source, reading) {
        return;
    }
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
    if !source.has_end(".md") {
        return configuration(source, reading);
    }
    let from = reading.records.len();
    if source.file_name() == "SKILL.md" {
        return reading.skip(source, "a skill, which is no agent");
    }
    if !is_of_agents(&OF_OPENCODE, source, reading) {
        return;
    }
    let name = &source.relative[..source.relative.len() - ".md".len()];
    let below = ["agents/", "agent/", "modes/", "mode/"].iter().find_map(|dir| {
        let at = name.rfind(dir)?;
        (at == 0 || name[..at].ends_with('/')).then(|| &name[at + dir.len()..])
    });
    let name = below.unwrap_or(name).to_owned();
    markdown(source, reading, &|entries| match entries.is_empty() {
        true => Err("no front matter".to_owned()),
        false => Ok(name.clone()),
    });
    add_beside(source, reading, from, CONFIG);
    merge_configured(reading, from);
}

/// Reads the agents of a configuration of OpenCode. A JSON file of another name is one if it has agents, or is named itself.
fn configuration(source: &Source<'_>, reading: &mut Reading) {
    let from = reading.records.len();
    let is_named = CONFIG.1.contains(&source.file_name());
    let is_required = is_named || source.path == source.root;
    let node = match from_json(source.path, source.text) {
        Ok(node) => node,
        Err(problem) if is_required => return reading.problems.push(problem),
        Err(problem) => return reading.skip(source, format!("no opencode.json, and {}", problem.message)),
    };
    let has_agents = node
        .get(AGENTS)
        .is_some_and(|agents| agents.entries().iter().any(|agent| agent.node.is_map()));
    if !has_agents && !is_required {
        return reading.skip(source, "no opencode.json, and no agents in it");
    }
    if !keep_config(source, reading, &node) || has_agents {
        objects(source, reading, &node, AGENTS, false);
    }
    let file = if is_named { source.relative } else { CONFIG.1[0] };
    for record in &mut reading.records[from..] {
        let place = Node::map(vec![
            Entry::new("file", Node::text(file)),
            Entry::new("name", Node::text(&*record.default_name)),
        ]);
        record.beside.push(Entry::new("$json", place));
    }
    add_beside(source, reading, from, CONFIG);
}

/// Merges agents of Markdown files with what the configuration above them says of the same agents, as OpenCode does: what
/// the Markdown file says counts.
fn merge_configured(reading: &mut Reading, from: usize) {
    if reading.records.len() == from {
        return;
    }
    let Some(mut record) = reading.records.pop() else {
        return;
    };
    let is_above = |other: &Record| other.file.parent().is_some_and(|dir| record.file.starts_with(dir));
    let is_same = |other: &Record| {
        let is_configured = other.beside.iter().any(|entry| entry.key == "$json");
        is_configured && other.default_name == record.default_name && is_above(other)
    };
    if let Some(at) = reading.records.iter().position(is_same) {
        let mut other = reading.records.remove(at);
        take_if_same(&mut other.entries, "name", &record.default_name);
        let mut entries = Node::map(std::mem::take(&mut record.entries));
        let differing = add_members(&mut entries, &Node::map(other.entries), usize::MAX);
        record.entries = entries.entries().to_vec();
        let overruled = match differing.is_empty() {
            true => String::new(),
            false => format!("; it overrules {} there", differing.join(", ")),
        };
        let message = format!(
            "is one agent with that of {}:{}{overruled}",
            other.file.display(),
            other.place.line
        );
        reading.warnings.push(Problem::new(&record.file, record.place, message));
    }
    reading.records.push(record);
}

/// Keeps what a configuration of OpenCode has beside its agents, such as its servers, for all agents below its
/// directory. A schema alone is not kept.
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

/// The content of a JSON file; one that cannot be read is a problem.
fn json(source: &Source<'_>, reading: &mut Reading) -> Option<Node> {
    from_json(source.path, source.text)
        .map_err(|problem| reading.problems.push(problem))
        .ok()
}

fn has(entries: &[Entry], key: &str) -> bool {
    entries
        .iter()
        .any(|entry| entry.key == key && entry.node.scalar().is_some_and(|text| !text.trim().is_empty()))
}

/// Reads a Markdown file. The name where the keys have none, or why it is no agent, depends on the keys.
fn markdown(source: &Source<'_>, reading: &mut Reading, name: &dyn Fn(&[Entry]) -> Result<String, String>) {
    let read = front_matter::read(source.path, source.text, source.format.rows, &mut reading.warnings);
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

/// Reads agents by their names from JSON: those below a key, or all of the file. An agent that is defined there has a
/// prompt; one that only changes an agent of the tool need not have one.
fn objects(source: &Source<'_>, reading: &mut Reading, node: &Node, below: &str, is_defined: bool) {
    let is_agent = |entry: &Entry| entry.node.is_map() && (!is_defined || entry.node.text_of(BODY).is_some());
    let of_key = node.get(below).filter(|node| node.entries().iter().any(is_agent));
    // Without a key around them, an agent has all that the tool requires, or nothing else is in the file.
    let is_complete = |entry: &Entry| is_agent(entry) && entry.node.text_of("description").is_some();
    let has_agents = node.entries().iter().any(is_complete)
        || node.entries().iter().any(is_agent) && node.entries().iter().all(|entry| entry.node.is_map());
    let is_whole = is_defined && has_agents;
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

/// A file for each agent, and those that stood beside them.
fn write(agents: Vec<Written>, not_held: &mut NotHeld) -> Vec<File> {
    let mut files: Vec<File> = Vec::new();
    let mut configured: Vec<(PathBuf, Entry)> = Vec::new();
    for mut agent in agents {
        let end = match agent.beside("$file").and_then(Node::as_text) {
            Some(file) if file.to_ascii_lowercase().ends_with(".md") => ".md",
            _ => agent.end,
        };
        let path = agent.path(end);
        for kind in [SERVERS, CONFIG] {
            let Some(shared) = agent.beside(kind.0) else { continue };
            let differing = add_shared(&mut files, shared, kind, agent.directories);
            not_held.extend(differing.into_iter().map(|path| {
                (
                    agent.agent_id.clone(),
                    format!("another value of {path} in {}", kind.1[0]),
                )
            }));
        }
        if let Some((path, name)) = agent
            .beside("$json")
            .and_then(|place| place_in_json(place, agent.directories))
        {
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
        files.push(File {
            agent_id: Some(agent.agent_id),
            ..File::new(path, text, Holds::Agent)
        });
    }
    for (path, agent) in configured {
        add_to_config(&mut files, path, agent);
    }
    files
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
