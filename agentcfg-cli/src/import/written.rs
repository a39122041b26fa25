//! An agent as the keys of a format, which writes its file.

use std::path::{Path, PathBuf};

use super::output_file::is_allowed;
use super::source_tree::{Entry, Node, find};
use super::table::{Format, UNNAMED};

/// An agent as the keys of a format.
#[derive(Debug)]
pub struct Written {
    pub agent_id: String,
    /// The end of the name of its file.
    pub end: &'static str,
    pub entries: Vec<Entry>,
    /// What the format keeps beside its keys.
    pub beside: Vec<Entry>,
    /// The hidden directories that may have its file.
    pub directories: &'static [&'static str],
}

impl Written {
    pub fn beside(&self, key: &str) -> Option<&Node> {
        find(&self.beside, key)
    }

    /// The keys that the tool requires and the agent does not have. An agent that had no name in its source needs none.
    pub fn missing(&self, format: &Format) -> Vec<String> {
        let has = |key: &str| {
            self.entries
                .iter()
                .any(|entry| entry.key == key && !entry.node.is_null())
        };
        let is_text = |key: &str| self.entries.iter().any(|entry| entry.key == format!("${key}"));
        // What is written of other parts.
        let stands_for = |key: &str| match key {
            "manifest" => is_text("system"),
            "prompt" => format.word == "langfuse" && has("messages"),
            _ => false,
        };
        let required = format.requires.iter().filter(|_| self.beside(UNNAMED).is_none());
        let missing = required.filter(|key| !(has(key) || is_text(key) || stands_for(key)));
        let name = find(&self.entries, "name").and_then(Node::as_text).unwrap_or_default();
        let is_refused = format.word == "claude-code" && (name.contains(':') || name.starts_with('-'));
        let other = is_refused.then(|| "a name without `:` and without `-` at its start".to_owned());
        missing.map(|key| (*key).to_owned()).chain(other).collect()
    }

    /// Where its file is written: where it was read, if that is below the directory, else by its identifier.
    pub fn path(&self, end: &str) -> PathBuf {
        let file = self.beside("$file").and_then(Node::as_text).map(Path::new);
        let has_end = |file: &Path| file.to_string_lossy().to_ascii_lowercase().ends_with(end);
        let is_below = |file: &&Path| is_allowed(file, self.directories) && has_end(file);
        match file.filter(is_below) {
            Some(file) => file.to_owned(),
            None => PathBuf::from(format!("{}{end}", self.agent_id)),
        }
    }
}
