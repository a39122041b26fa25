//! Assistants and Responses of OpenAI as JSON that was saved.

use super::super::convert::As;
use super::super::output_file::File;
use super::super::source_tree::{Entry, Node};
use super::super::table::To::{Definition, Field, Kept};
use super::super::table::{Format, Record, Written};
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
        ("tool_choice", Definition("model_settings.tool_choice"), As::Any),
        (
            "parallel_tool_calls",
            Definition("model_settings.parallel_tool_calls"),
            As::Any,
        ),
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
        ("response_format", Definition("model_settings.response_format"), As::Any),
    ],
    requires: &["model"],
    prefers_jsonc: false,
    files: &[".json"],
    read,
    write,
};

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
        let entries: Vec<Entry> = object.entries().to_vec();
        // A response has no name; one file is one agent.
        let name = match (is_one, object.text_of("id")) {
            (true, _) | (false, None) => source.stem().to_owned(),
            (false, Some(id)) => id.to_owned(),
        };
        reading
            .records
            .push(Record::new(source.path, object.place, entries, name));
    }
}

/// Whether an object is a reference to a prompt of the dashboard.
fn is_reference(object: &Node) -> bool {
    object.text_of("id").is_some_and(|id| id.starts_with("pmpt_")) && object.get("instructions").is_none()
}

fn write(agents: Vec<Written>) -> Vec<File> {
    files(agents, |agent| Node::map(agent.entries.clone()))
}
