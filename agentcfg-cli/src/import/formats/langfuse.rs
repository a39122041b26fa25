//! Prompts of Langfuse: JSON of its API and of the export of its pages, with versions and labels.

use std::path::PathBuf;

use super::super::convert::As;
use super::super::output_file::{File, Holds, NotHeld};
use super::super::source_tree::{Entry, Node, find, put, take};
use super::super::table::To::{Definition, Field, Kept};
use super::super::table::{Format, Record};
use super::super::written::Written;
use super::super::{Reading, Source};
use super::json::{flatten, number, objects, unflatten};

/// The members of `config` that have a place of their own.
const CONFIG: &[&str] = &[
    "model",
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "stop",
    "reasoning_effort",
    "verbosity",
    "tool_choice",
    "response_format",
    "tools",
];

/// Labels move, tags are of all versions, and the API tells more of a prompt than the export of the page.
const UNVERSIONED: &[&str] = &[
    "id",
    "labels",
    "tags",
    "commitMessage",
    "isActive",
    "projectId",
    "createdBy",
    "createdAt",
    "updatedAt",
    "lastUpdatedAt",
    "lastConfigUpdatedAt",
    "lastUsedAt",
    "resolutionGraph",
];

pub const FORMAT: Format = Format {
    word: "langfuse",
    rows: &[
        ("id", Kept, As::Text),
        ("name", Field("display_name"), As::Text),
        ("type", Kept, As::Text),
        ("prompt", Field("persona_prompt"), As::Text),
        ("messages", Kept, As::Any),
        ("config", Kept, As::Any),
        ("config.model", Field("model"), As::Text),
        ("config.temperature", Definition("model_settings.temperature"), As::Any),
        ("config.top_p", Definition("model_settings.top_p"), As::Any),
        ("config.max_tokens", Definition("model_settings.max_tokens"), As::Any),
        (
            "config.max_completion_tokens",
            Definition("model_settings.max_completion_tokens"),
            As::Any,
        ),
        (
            "config.frequency_penalty",
            Definition("model_settings.frequency_penalty"),
            As::Any,
        ),
        (
            "config.presence_penalty",
            Definition("model_settings.presence_penalty"),
            As::Any,
        ),
        ("config.seed", Definition("model_settings.seed"), As::Any),
        ("config.stop", Definition("model_settings.stop"), As::Any),
        (
            "config.reasoning_effort",
            Definition("model_settings.reasoning_effort"),
            As::Any,
        ),
        ("config.verbosity", Definition("model_settings.verbosity"), As::Any),
        // Without the tools, which model calls do not get, a provider refuses it.
        ("config.tool_choice", Kept, As::Any),
        (
            "config.response_format",
            Definition("model_settings.response_format"),
            As::Object,
        ),
        ("config.tools", Definition("tools"), As::Any),
        ("version", Kept, As::Any),
        ("labels", Kept, As::Any),
        ("tags", Kept, As::Any),
        ("commitMessage", Kept, As::Any),
    ],
    requires: &["name", "prompt"],
    prefers_jsonc: false,
    files: &[".json"],
    directories: &[],
    home: None,
    unique: Some("name"),
    unversioned: UNVERSIONED,
    read,
    write,
};

fn read(source: &Source<'_>, reading: &mut Reading) {
    for object in objects(source, reading) {
        let line = object.place.line;
        let Some(prompt) = object.get("prompt").filter(|_| object.text_of("name").is_some()) else {
            let reason = match object.text_of("name") {
                Some(name) => format!(
                    "line {line}: {name} has no prompt: a list of the API names prompts only, save each with its text"
                ),
                None => format!("line {line}: no prompt, which has a name and a prompt"),
            };
            reading.skip(source, reason);
            continue;
        };
        let prompt = prompt.clone();
        let mut entries: Vec<Entry> = object.entries().to_vec();
        if let Some(messages) = prompt.as_list() {
            take(&mut entries, "prompt");
            let (system, rest) = split(messages);
            entries.extend(system.map(|text| Entry::new("prompt", text)));
            entries.push(Entry::new("messages", Node::list(rest)));
        }
        flatten(&mut entries, "config", CONFIG);
        let mut record = Record::new(source.path, object.place, entries, source.stem());
        record.version = number(&record.entries, "version");
        let labels = find(&record.entries, "labels")
            .and_then(Node::as_list)
            .unwrap_or_default();
        record.labels = labels
            .iter()
            .filter_map(Node::as_text)
            .filter(|label| *label != "latest")
            .map(str::to_owned)
            .collect();
        reading.records.push(record);
    }
}

/// The text of the first message, if that is the system's, and the other messages. A first message with other members
/// stays, without its text.
fn split(messages: &[Node]) -> (Option<Node>, Vec<Node>) {
    let Some((first, others)) = messages.split_first() else {
        return (None, Vec::new());
    };
    let content = first.get("content").filter(|content| content.as_text().is_some());
    let Some(content) = content.filter(|_| first.text_of("role") == Some("system")).cloned() else {
        return (None, messages.to_vec());
    };
    let mut rest = others.to_vec();
    if *first != system(content.clone()) {
        let members = first.entries().iter().filter(|entry| entry.key != "content").cloned();
        rest.insert(0, Node::map(members.collect()));
    }
    (Some(content), rest)
}

fn system(content: Node) -> Node {
    Node::map(vec![
        Entry::new("role", Node::text("system")),
        Entry::new("content", content),
    ])
}

/// The messages of a chat again.
fn join(text: Option<Node>, mut messages: Vec<Node>) -> Node {
    if let Some(text) = text {
        let is_without = |first: &&mut Node| first.text_of("role") == Some("system") && first.get("content").is_none();
        match messages.first_mut().filter(is_without).and_then(Node::entries_mut) {
            Some(members) => put(members, "content", text),
            None => messages.insert(0, system(text)),
        }
    }
    Node::list(messages)
}

/// One list of all prompts and versions, as the page of Langfuse imports it.
fn write(agents: Vec<Written>, _: &mut NotHeld) -> Vec<File> {
    let prompt = |agent: Written| {
        let mut entries = agent.entries;
        if let Some(messages) = take(&mut entries, "messages") {
            let at = entries
                .iter()
                .position(|entry| entry.key == "prompt")
                .unwrap_or(2)
                .min(entries.len());
            let text = take(&mut entries, "prompt");
            let prompt = join(text, messages.as_list().unwrap_or_default().to_vec());
            entries.insert(at, Entry::new("prompt", prompt));
        }
        unflatten(&mut entries, "config");
        if find(&entries, "type").is_none() && find(&entries, "prompt").is_none() {
            put(&mut entries, "prompt", Node::text(""));
        }
        Node::map(entries)
    };
    let prompts: Vec<Node> = agents.into_iter().map(prompt).collect();
    if prompts.is_empty() {
        return Vec::new();
    }
    let text = Node::list(prompts).pretty();
    vec![File::new(PathBuf::from("prompts.json"), text, Holds::Prompts)]
}
