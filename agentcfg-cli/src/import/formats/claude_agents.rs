//! Agents of the Managed Agents API of Anthropic: JSON with versions.

use super::super::convert::As;
use super::super::output_file::{File, NotHeld};
use super::super::source_tree::{Node, find};
use super::super::table::To::{Definition, Field, Kept};
use super::super::table::{Format, Record};
use super::super::written::Written;
use super::super::{Reading, Source};
use super::json::{files, number, objects};

pub const FORMAT: Format = Format {
    word: "claude-agents",
    rows: &[
        ("id", Kept, As::Text),
        ("type", Kept, As::Text),
        ("version", Kept, As::Any),
        ("name", Field("display_name"), As::Text),
        ("description", Field("description"), As::Text),
        ("model", Field("model"), As::Model("id")),
        ("system", Field("persona_prompt"), As::Text),
        (
            "tools",
            Definition("tools"),
            As::Objects(&["agent_toolset", "mcp_toolset", "custom"]),
        ),
        ("mcp_servers", Definition("mcp_servers"), As::Objects(&["url"])),
        ("skills", Definition("skills"), As::Objects(&["anthropic", "custom"])),
        ("multiagent", Kept, As::Any),
        ("metadata", Definition("metadata"), As::Any),
    ],
    requires: &["name", "model"],
    prefers_jsonc: false,
    files: &[".json"],
    directories: &[],
    home: None,
    unique: Some("name"),
    unversioned: &["created_at", "updated_at", "archived_at"],
    read,
    write,
};

fn read(source: &Source<'_>, reading: &mut Reading) {
    for object in objects(source, reading) {
        let entries = object.entries().to_vec();
        if object.text_of("name").is_none() || find(&entries, "model").is_none() {
            reading.skip(
                source,
                format!("line {}: no agent, which has a name and a model", object.place.line),
            );
            continue;
        }
        let mut record = Record::new(source.path, object.place, entries, source.stem());
        record.identity = object.text_of("id").map(|id| ("id", id.to_owned()));
        record.version = number(&record.entries, "version");
        reading.records.push(record);
    }
}

fn write(agents: Vec<Written>, _: &mut NotHeld) -> Vec<File> {
    files(agents, |agent| Node::map(agent.entries.clone()))
}
