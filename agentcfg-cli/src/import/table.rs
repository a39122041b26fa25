//! The machinery of the formats: a table says where each key of a source goes, and the same table leads back.
//!
//! A key without a place is kept under `definition.<format>`. So is the original of a key whose place cannot give it
//! back exactly, and it is written again as long as the place has what was made of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agentcfg_client::model::{AgentSpec, Label};
use agentcfg_core::validate::{MAX_DESCRIPTION, MAX_DISPLAY_NAME, MAX_MODEL, MAX_ROLE, shown};

use super::convert::{self, As};
use super::definition::{largest, place_in, place_of};
use super::name::identifier;
use super::output_file::{File, NotHeld};
use super::secrets::{Secret, secrets};
use super::servers::refused_servers;
use super::source_tree::{Entry, Node, Value, find};
use super::written::Written;
use crate::agent_file::{Place, Problem};

/// Where a key of a source goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum To {
    /// A field of the agent.
    Field(&'static str),
    /// A path in the definition, `model_settings.temperature`.
    Definition(&'static str),
    /// The format's own part of the definition.
    Kept,
}

impl To {
    /// The path of the place in an agent.
    pub fn path(&self) -> String {
        match self {
            Self::Field(field) => (*field).to_owned(),
            Self::Definition(path) => format!("definition.{path}"),
            Self::Kept => String::new(),
        }
    }
}

/// A row of a table: a key of the source, where it goes, and what it is.
pub type Row = (&'static str, To, As);

/// That the source had no name: true, or the name that the agent was given where that is not the one of its file.
pub const UNNAMED: &str = "$unnamed";

/// What a format keeps beside the keys of the source: the file, whether there was no name, the shared file of servers
/// and that of other settings, the file and the name in a file of several agents, and whether a manifest had nothing
/// around it.
pub const BESIDE: &[&str] = &[
    "$file",
    UNNAMED,
    "$mcp",
    "$config",
    "$json",
    "$overruled",
    "$yaml",
    "$bare",
];

/// Those that are places alone, which another format does not need.
pub const PLACES: &[&str] = &["$file", UNNAMED, "$json", "$yaml", "$bare"];

/// A format: its table, and what its files are.
pub struct Format {
    /// The word of the command line, and the key in the definition.
    pub word: &'static str,
    pub rows: &'static [Row],
    /// The keys that its tool requires.
    pub requires: &'static [&'static str],
    /// Whether `x.jsonc` counts in place of `x.json`.
    pub prefers_jsonc: bool,
    /// The ends of the names of its files.
    pub files: &'static [&'static str],
    /// The hidden directories that its tool reads.
    pub directories: &'static [&'static str],
    /// Where its tool keeps agents in a project.
    pub home: Option<&'static str>,
    /// The key whose values its tool identifies agents by.
    pub unique: Option<&'static str>,
    /// The keys whose values its tool changes without a new version.
    pub unversioned: &'static [&'static str],
    pub read: fn(&super::Source<'_>, &mut super::Reading),
    /// The files of agents. What has no place in them is added to the second.
    pub write: fn(Vec<Written>, &mut NotHeld) -> Vec<File>,
}

/// A key that identifies agents of a source, and its value.
pub type Identity = (&'static str, String);

impl Format {
    /// The name of a file without its end.
    pub fn stem<'a>(&self, file: &'a str) -> &'a str {
        let name = file.rsplit('/').next().unwrap_or(file);
        let small = name.to_ascii_lowercase();
        let ends = self.files.iter().filter(|end| small.ends_with(**end));
        let length = ends.map(|end| end.len()).max().unwrap_or(0);
        name.get(..name.len() - length).unwrap_or(name)
    }
}

/// What a source has of one agent, or of one version of it.
#[derive(Debug)]
pub struct Record {
    pub file: PathBuf,
    pub place: Place,
    pub entries: Vec<Entry>,
    /// The name where the source has none in its keys.
    pub default_name: String,
    /// The number of the version in the source.
    pub version: Option<u64>,
    /// The key that the source identifies the agent by, whatever its name is, and its value.
    pub identity: Option<Identity>,
    pub labels: Vec<String>,
    /// What the format keeps beside the keys of the source; the names begin with `$`.
    pub beside: Vec<Entry>,
    /// MCP servers of a file beside that of the agent.
    pub servers: Vec<Node>,
}

impl Record {
    pub fn new(file: impl Into<PathBuf>, place: Place, entries: Vec<Entry>, default_name: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            place,
            entries,
            default_name: default_name.into(),
            version: None,
            identity: None,
            labels: Vec::new(),
            beside: Vec::new(),
            servers: Vec::new(),
        }
    }
}

/// An agent of a source, or a version of one.
#[derive(Debug, Clone)]
pub struct Imported {
    pub agent_id: String,
    pub name: String,
    pub file: PathBuf,
    pub place: Place,
    /// The fields of the agent, of which the definition is one.
    pub fields: Vec<Entry>,
    pub version: Option<u64>,
    pub identity: Option<Identity>,
    pub labels: Vec<String>,
}

impl Imported {
    /// The agent, checked by the rules of the service.
    pub fn spec(&self) -> Result<AgentSpec, Vec<Problem>> {
        let mut members = vec![Entry::new("agent_id", Node::text(&*self.agent_id))];
        members.extend(self.fields.iter().cloned());
        let spec = AgentSpec::from_json(Node::map(members).json().as_bytes());
        spec.map(agentcfg_core::validate::Valid::into_inner).map_err(|invalid| {
            let problem = |fault: &agentcfg_core::validate::Fault| {
                let (field, path) = fault
                    .field()
                    .split_at(fault.field().find(['.', '[']).unwrap_or(fault.field().len()));
                let node = find(&self.fields, field);
                let whole = node.filter(|_| fault.field() == "definition").and_then(largest);
                if let Some((path, place, length)) = whole {
                    let message = format!("{fault}: the largest part is {path} with {length}");
                    return Problem::new(&self.file, place.max(self.place), message);
                }
                let place = node.map_or(self.place, |node| place_of(node, path));
                Problem::new(&self.file, place.max(self.place), fault)
            };
            invalid.faults().iter().map(problem).collect()
        })
    }

    pub fn field(&self, name: &str) -> Option<&Node> {
        find(&self.fields, name)
    }
}

/// What became of the keys of all sources: how often a key went to a place.
pub type Went = BTreeMap<(String, String), usize>;

/// The greatest number of characters of a field that is cut off, because the whole text is kept beside it.
fn limit(field: &str) -> Option<usize> {
    match field {
        "display_name" => Some(MAX_DISPLAY_NAME),
        "role" => Some(MAX_ROLE),
        "description" => Some(MAX_DESCRIPTION),
        "model" => Some(MAX_MODEL),
        _ => None,
    }
}

/// What a row makes of a value of the source.
pub fn value_in(row: &Row, node: &Node) -> Option<Node> {
    let (_, to, kind) = row;
    let value = convert::value_in(*kind, node)?;
    let To::Field(field) = to else { return Some(value) };
    let Some(max) = limit(field) else { return Some(value) };
    let text = value.as_text()?.trim();
    if text.is_empty() {
        return None;
    }
    let cut = match text.chars().count() > max {
        // A cut name of a model would name another one.
        true if *field == "model" => return None,
        true => text.chars().take(max - 1).chain(['…']).collect(),
        false => text.to_owned(),
    };
    Some(Node::at(node.place, Value::Text(cut)))
}

/// Makes an agent of a record. Texts that were cut off are told in `notes`.
pub fn import(
    format: &Format,
    record: Record,
    notes: &mut Vec<Problem>,
    went: &mut Went,
) -> Result<Imported, Vec<Problem>> {
    let Record {
        file,
        place,
        entries,
        default_name,
        version,
        identity,
        labels,
        beside,
        servers,
    } = record;
    let mut problems = secret_problems(&file, &entries, &prose(format));
    let labels = labels_to_set(&file, place, labels, notes);
    let mut fields: Vec<Entry> = Vec::new();
    let mut definition = Node::map(Vec::new());
    let mut kept: Vec<Entry> = beside;
    for entry in &entries {
        tell_large(&file, &entry.node, &entry.key, notes);
    }
    for entry in entries {
        let row = format.rows.iter().find(|(key, ..)| *key == entry.key);
        if let Some((.., As::ServerMap(_) | As::ServerList(_))) = row {
            tell_refused(&file, &entry.node, format, notes);
        }
        let value = row.and_then(|row| value_in(row, &entry.node));
        let Some((row, value)) = row.zip(value) else {
            tell(went, &entry.key, &format!("definition.{}", format.word));
            // What is a text by the table is one in the definition, too.
            let node = match row.and_then(|(.., kind)| convert::as_kept(*kind, &entry.node)) {
                Some(node) => node,
                None => entry.node.clone(),
            };
            kept.push(Entry { node, ..entry });
            continue;
        };
        let (_, to, kind) = row;
        if let Some(message) = convert::ambiguity(*kind, &entry) {
            notes.push(Problem::new(&file, entry.node.place, message));
        }
        let placed = match to {
            To::Field(field) => {
                tell_long(&file, field, &entry, &value, notes);
                fields.push(Entry {
                    key: (*field).to_owned(),
                    place: entry.place,
                    node: value.clone(),
                });
                tell(went, &entry.key, field);
                true
            }
            To::Definition(path) => {
                let is_placed = place_in(&mut definition, path, value.clone());
                if is_placed {
                    tell(went, &entry.key, &format!("definition.{path}"));
                }
                is_placed
            }
            To::Kept => false,
        };
        let back = convert::value_out(*kind, &value, None);
        if !placed {
            tell(went, &entry.key, &format!("definition.{}", format.word));
        }
        if !placed || back.as_ref() != Some(&entry.node) {
            // A scalar that stands for a text is given back as that text.
            let same = convert::as_kept(*kind, &entry.node);
            if !(placed && same.is_some() && same == back) {
                kept.push(Entry {
                    node: same.unwrap_or(entry.node),
                    ..entry
                });
            }
        }
    }
    if !servers.is_empty() {
        let mut all = definition
            .get("mcp_servers")
            .and_then(Node::as_list)
            .unwrap_or_default()
            .to_vec();
        all.extend(
            servers
                .iter()
                .filter(|server| !all.iter().any(|one| one.text_of("name") == server.text_of("name")))
                .cloned()
                .collect::<Vec<_>>(),
        );
        place_in(&mut definition, "mcp_servers", Node::list(all));
    }
    let given = find(&fields, "display_name").and_then(Node::as_text).map(str::to_owned);
    let is_unnamed = given.is_none();
    let name = given.unwrap_or_else(|| cut_name(&default_name));
    if is_unnamed {
        fields.insert(0, Entry::new("display_name", Node::text(&*name)));
    }
    let whole = find(&kept, "name").and_then(Node::as_text).unwrap_or(&name);
    let agent_id = [whole, &default_name]
        .into_iter()
        .map(identifier)
        .find(|id| !id.is_empty());
    let agent_id = agent_id.unwrap_or_default();
    if agent_id.is_empty() {
        let message = format!("no identifier can be made from the name {}", shown(&name));
        problems.push(Problem::new(&file, place, message));
    }
    kept.retain(|entry| {
        entry.key != "$file" || entry.node.as_text() != Some(&*format!("{agent_id}{}", format.files[0]))
    });
    if is_unnamed {
        let is_of_file = default_name_of(format, &agent_id, &kept) == name;
        let value = if is_of_file {
            Value::Bool(true)
        } else {
            Value::Text(name.clone())
        };
        kept.push(Entry::new(UNNAMED, Node::at(place, value)));
    }
    if let (false, Some(entries)) = (kept.is_empty(), definition.entries_mut()) {
        entries.push(Entry::new(format.word, Node::map(kept)));
    }
    if !definition.entries().is_empty() {
        fields.push(Entry::new("definition", Node::at(place, definition.value)));
    }
    match problems.is_empty() {
        true => Ok(Imported {
            agent_id,
            name,
            file,
            place,
            fields,
            version,
            identity,
            labels,
        }),
        false => Err(problems),
    }
}

/// The labels that a workspace can have. The others are kept in the definition alone, and told.
fn labels_to_set(file: &Path, place: Place, labels: Vec<String>, notes: &mut Vec<Problem>) -> Vec<String> {
    let mut known = Vec::new();
    for label in labels {
        match label.parse::<Label>() {
            Ok(_) => known.push(label),
            Err(error) => {
                let message = format!("the label {label:?} is kept in the definition alone: {error}");
                notes.push(Problem::new(file, place, message));
            }
        }
    }
    known
}

fn cut_name(name: &str) -> String {
    name.chars().take(MAX_DISPLAY_NAME).collect()
}

/// The name that an agent without one in its source has by its file.
fn default_name_of(format: &Format, agent_id: &str, beside: &[Entry]) -> String {
    let file = find(beside, "$file").and_then(Node::as_text);
    cut_name(file.map_or(agent_id, |file| format.stem(file)))
}

/// The name that was given to an agent without one in its source.
pub fn given_name(format: &Format, agent_id: &str, beside: &[Entry]) -> Option<String> {
    let unnamed = find(beside, UNNAMED)?;
    let given = unnamed.as_text().map(str::to_owned);
    Some(given.unwrap_or_else(|| default_name_of(format, agent_id, beside)))
}

/// A problem for each literal secret in entries.
pub fn secret_problems(file: &Path, entries: &[Entry], prose: &[&str]) -> Vec<Problem> {
    let problem = |secret: Secret| {
        let message = format!(
            "{} has a literal secret: put the name of a variable in its place, such as ${{NAME}}, and revoke the secret",
            secret.path
        );
        Problem::new(file, secret.place, message)
    };
    secrets(entries, prose).into_iter().map(problem).collect()
}

/// The keys that are texts for people or models.
fn prose(format: &Format) -> Vec<&'static str> {
    let is_prose = |(_, to, _): &&Row| {
        matches!(
            to,
            To::Field("persona_prompt" | "description" | "role" | "display_name")
        )
    };
    format
        .rows
        .iter()
        .filter(is_prose)
        .map(|(key, ..)| *key)
        .chain(["messages", "manifest.messages"])
        .collect()
}

fn tell(went: &mut Went, key: &str, to: &str) {
    *went.entry((key.to_owned(), to.to_owned())).or_default() += 1;
}

/// Warns of integers that the service keeps with fewer digits.
fn tell_large(file: &Path, node: &Node, path: &str, notes: &mut Vec<Problem>) {
    match &node.value {
        Value::Number(number) => {
            let is_integer = !number.contains(['.', 'e', 'E']);
            if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                let message = format!(
                    "{path} is an integer of more than 64 bits, and loses digits: put it into quotes to keep them"
                );
                notes.push(Problem::new(file, node.place, message));
            }
        }
        Value::List(items) => items.iter().for_each(|item| tell_large(file, item, path, notes)),
        Value::Map(entries) => {
            for entry in entries {
                tell_large(file, &entry.node, &format!("{path}.{}", entry.key), notes);
            }
        }
        _ => {}
    }
}

/// Warns of servers that are kept for the format alone.
pub fn tell_refused(file: &Path, servers: &Node, format: &Format, notes: &mut Vec<Problem>) {
    for (server, reason) in refused_servers(servers) {
        let message = format!("the server {} is kept for {} alone: {reason}", server.key, format.word);
        notes.push(Problem::new(file, server.place, message));
    }
}

fn tell_long(file: &Path, field: &str, entry: &Entry, value: &Node, notes: &mut Vec<Problem>) {
    let (Some(max), Some(text)) = (limit(field), entry.node.as_text()) else {
        return;
    };
    let length = text.trim().chars().count();
    if length > max && value.as_text().is_some_and(|cut| cut.ends_with('…')) {
        let message = format!(
            "{} has {length} characters, and {field} at most {max}: it is cut off there, and kept whole in the definition",
            entry.key
        );
        notes.push(Problem::new(file, entry.node.place, message));
    }
}
