//! An agent as the keys of a format, which writes its file.

use std::path::{Path, PathBuf};

use super::output_file::is_allowed;
use super::source_tree::{Entry, Node, find};

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
