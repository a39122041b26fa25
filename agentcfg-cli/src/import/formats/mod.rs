//! The formats, each a table and the shape of its files.

mod beside;
mod claude_agents;
mod codex;
mod crewai;
mod directories;
mod json;
mod langfuse;
mod langsmith;
mod markdown;
mod openai;

pub use self::crewai::SCALARS as YAML;
pub use self::markdown::{BODY, is_of_plugin};
use super::table::Format;

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
