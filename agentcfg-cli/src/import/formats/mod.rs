//! The formats, each a table and the shape of its files.

mod claude_agents;
mod codex;
mod crewai;
mod json;
mod langfuse;
mod langsmith;
mod markdown;
mod openai;

use std::path::{Component, Path, PathBuf};

use super::node::Node;
use super::table::{Format, Written};

/// All formats, in the order in which they are listed.
pub const FORMATS: [&Format; 9] = [
    &markdown::CLAUDE_CODE,
    &claude_agents::FORMAT,
    &openai::FORMAT,
    &langfuse::FORMAT,
    &langsmith::FORMAT,
    &crewai::FORMAT,
    &markdown::COPILOT,
    &markdown::OPENCODE,
    &codex::FORMAT,
];

/// The format of this name.
pub fn format(word: &str) -> Option<&'static Format> {
    FORMATS.into_iter().find(|format| format.word == word)
}

/// Where an agent's file is written: where it was read, if that is below the directory, else by its identifier.
fn path_of(agent: &Written, end: &str) -> PathBuf {
    let file = agent.beside("$file").and_then(Node::as_text).map(Path::new);
    let is_below = |file: &&Path| {
        file.components().all(|part| matches!(part, Component::Normal(_))) && file.to_string_lossy().ends_with(end)
    };
    match file.filter(is_below) {
        Some(file) => file.to_owned(),
        None => PathBuf::from(format!("{}{end}", agent.agent_id)),
    }
}
