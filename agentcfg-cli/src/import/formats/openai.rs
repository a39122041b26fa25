//! Assistants and Responses of OpenAI as JSON that was saved.

use super::super::convert::As;
use super::super::output_file::{File, NotHeld};
use super::super::source_tree::{Entry, Node};
use super::super::table::To::{Definition, Field, Kept};
use super::super::table::{Format, Record};
use super::super::written::Written;
use super::super::{Reading, Source};
use super::json::{files, objects};

/// The types of tools of the two APIs.
const TOOLS: &[&str] = &[
    "function",
    "file_search",
    "code_interpreter",
    "web_search",
    "mcp",
    "image_generation",
    "local_shell",
    "shell",
    "computer",
    "custom",
    "apply_patch",
];

pub const FORMAT: Format = Format {
    word: "openai",
    rows: &[
        ("id", Kept, As::Text),
        ("object", Kept, As::Text),
        ("created_at", Kept, As::Any),
        ("name", Field("display_name"), As::Text),
        ("description", Field("description"), As::Text),
        ("model", Field("model"), As::Text),
        ("instructions", Field("persona_prompt"), As::Instructions),
        ("tools", Definition("tools"), As::Objects(TOOLS)),
        // Without the tools, which model calls do not get, a provider refuses these two.
        ("tool_choice", Kept, As::Any),
        ("parallel_tool_calls", Kept, As::Any),
        ("metadata", Definition("metadata"), As::Any),
        ("temperature", Definition("model_settings.temperature"), As::Any),
        ("top_p", Definition("model_settings.top_p"), As::Any),
        (
            "reasoning_effort",
            Definition("model_settings.reasoning_effort"),
            As::Any,
        ),
        ("reasoning", Definition("model_settings.reasoning"), As::Any),
        ("text", Definition("model_settings.text"), As::Any),
        ("truncation", Definition("model_settings.truncation"), As::Any),
        (
            "max_output_tokens",
            Definition("model_settings.max_output_tokens"),
            As::Any,
        ),
        // `auto` is no setting of a model call.
        (
            "response_format",
            Definition("model_settings.response_format"),
            As::Object,
        ),
    ],
    requires: &["model"],
    prefers_jsonc: false,
    files: &[".json"],
    directories: &[],
    home: None,
    unique: None,
    unversioned: &[],
    read,
    write,
};

/// What a response says of the call that made it, such as its limit of tokens. Other calls of the agent must not have
/// it, so it is kept under names that begin with `response.`.
const OF_CALL: &[&str] = &["text", "truncation", "max_output_tokens"];
const RESPONSE: &str = "response.";

fn read(source: &Source<'_>, reading: &mut Reading) {
    let objects = objects(source, reading);
    let is_one = objects.len() == 1;
    for object in objects {
        let line = object.place.line;
        if is_reference(&object)
            || (object.get("instructions").is_none_or(Node::is_null) && object.get("prompt").is_some_and(is_reference))
        {
            let reason = format!(
                "line {line}: a prompt object is only a reference, without text and settings: save the text from the dashboard or a \
                 response with its instructions, see docs/import.md"
            );
            reading.skip(source, reason);
            continue;
        }
        if object.get("model").is_none() && object.get("instructions").is_none() {
            reading.skip(
                source,
                format!("line {line}: neither an assistant nor a response, which have a model or instructions"),
            );
            continue;
        }
        let mut entries: Vec<Entry> = object.entries().to_vec();
        if object.text_of("object") == Some("response") {
            for entry in entries.iter_mut().filter(|entry| is_of_call(entry)) {
                entry.key.insert_str(0, RESPONSE);
            }
        }
        // A response has no name; one file is one agent.
        let name = match (is_one, object.text_of("id")) {
            (true, _) | (false, None) => source.stem().to_owned(),
            (false, Some(id)) => id.to_owned(),
        };
        let mut record = Record::new(source.path, object.place, entries, name);
        // Each response has an id of its own.
        let id = object.text_of("id").filter(|id| id.starts_with("asst_"));
        record.identity = id.map(|id| ("id", id.to_owned()));
        reading.records.push(record);
    }
}

fn is_of_call(entry: &Entry) -> bool {
    let is_empty = entry.node.is_map() && entry.node.entries().iter().all(|member| member.node.is_null());
    OF_CALL.contains(&entry.key.as_str()) || (entry.key == "reasoning" && is_empty)
}

/// Whether an object is a reference to a prompt of the dashboard.
fn is_reference(object: &Node) -> bool {
    object.text_of("id").is_some_and(|id| id.starts_with("pmpt_")) && object.get("instructions").is_none()
}

fn write(agents: Vec<Written>, _: &mut NotHeld) -> Vec<File> {
    files(agents, |agent| {
        let mut entries = agent.entries.clone();
        for entry in &mut entries {
            if let Some(key) = entry.key.strip_prefix(RESPONSE) {
                entry.key = key.to_owned();
            }
        }
        Node::map(entries)
    })
}
