//! Agents of Codex: a TOML file for each.

use super::super::convert::As;
use super::super::output_file::{File, Holds, NotHeld};
use super::super::parse_tree::from_toml;
use super::super::servers::CODEX;
use super::super::source_tree::{Node, Value};
use super::super::table::To::{Definition, Field, Kept};
use super::super::table::{Format, Record};
use super::super::written::Written;
use super::super::{Entry, Reading, Source};

pub const FORMAT: Format = Format {
    word: "codex",
    rows: &[
        ("name", Field("display_name"), As::Text),
        ("description", Field("description"), As::Text),
        ("nickname_candidates", Kept, As::Any),
        ("model", Field("model"), As::Text),
        (
            "model_reasoning_effort",
            Definition("model_settings.reasoning_effort"),
            As::Any,
        ),
        ("sandbox_mode", Kept, As::Any),
        ("developer_instructions", Field("persona_prompt"), As::Text),
        ("mcp_servers", Definition("mcp_servers"), As::ServerMap(&CODEX)),
    ],
    requires: &["name", "description", "developer_instructions"],
    prefers_jsonc: false,
    files: &[".toml"],
    directories: &[".codex"],
    home: Some(".codex/agents"),
    unique: Some("name"),
    unversioned: &[],
    read,
    write,
};

fn read(source: &Source<'_>, reading: &mut Reading) {
    let entries = match from_toml(source.path, source.text, &mut reading.warnings) {
        Ok(entries) => entries,
        Err(problem) => return reading.problems.push(problem),
    };
    let is_named = |key: &str| {
        entries
            .iter()
            .any(|entry| entry.key == key && entry.node.scalar().is_some())
    };
    if !is_named("name") {
        return reading.skip(source, "no name");
    }
    let place = entries
        .first()
        .map_or(crate::agent_file::Place::START, |entry| entry.place);
    let mut record = Record::new(source.path, place, entries, source.stem());
    record.beside.push(Entry::new("$file", Node::text(source.relative)));
    reading.records.push(record);
}

fn write(agents: Vec<Written>, not_held: &mut NotHeld) -> Vec<File> {
    let mut files = Vec::new();
    for agent in &agents {
        let mut nulls = Vec::new();
        let table = table(&agent.entries, "", &mut nulls);
        not_held.extend(
            nulls
                .into_iter()
                .map(|path| (agent.agent_id.clone(), format!("null in {path}"))),
        );
        match toml::to_string(&table) {
            Ok(text) => files.push(File::new(agent.path(".toml"), text, Holds::Agent)),
            Err(error) => not_held.push((agent.agent_id.clone(), format!("the whole agent: {error}"))),
        }
    }
    files
}

fn table(entries: &[Entry], path: &str, nulls: &mut Vec<String>) -> toml::Table {
    let member = |entry: &Entry| {
        let path = match path {
            "" => entry.key.clone(),
            path => format!("{path}.{}", entry.key),
        };
        Some((entry.key.clone(), value(&entry.node, &path, nulls)?))
    };
    entries.iter().filter_map(member).collect()
}

/// A value of TOML, which has no null. The paths of those are noted.
fn value(node: &Node, path: &str, nulls: &mut Vec<String>) -> Option<toml::Value> {
    Some(match &node.value {
        Value::Null => {
            nulls.push(path.to_owned());
            return None;
        }
        Value::Bool(value) => toml::Value::Boolean(*value),
        Value::Number(number) => match (number.parse(), number.parse()) {
            (Ok(integer), _) => toml::Value::Integer(integer),
            (_, Ok(float)) => toml::Value::Float(float),
            _ => toml::Value::String(number.clone()),
        },
        Value::Text(text) => toml::Value::String(text.clone()),
        Value::List(items) => {
            let items = items.iter().filter_map(|item| value(item, path, nulls));
            toml::Value::Array(items.collect())
        }
        Value::Map(entries) => toml::Value::Table(table(entries, path, nulls)),
    })
}
