//! Agents as files: `<agent_id>.md`, with YAML front matter for the fields and the persona as body.
//!
//! ```text
//! ---
//! agent_id: writer
//! display_name: Writer
//! agent_type: ai
//! model: gpt-5
//! ---
//! You write release notes.
//! ```
//!
//! The body is the persona byte for byte, and one line feed after it belongs to the file. A file that ends with the
//! line of the front matter has no persona, and one whose body is a single line feed has an empty one. So each agent
//! has exactly one file, and a file that was written and is read gives the same agent.

mod conflicts;
pub(crate) mod fault_places;
mod fields;
mod read;
#[cfg(test)]
mod tests;
pub(crate) mod write;
pub(crate) mod yaml;

use std::fmt;
use std::path::{Path, PathBuf};

pub use conflicts::{Markers, UNRESOLVED, conflicts_of_body};
pub use fields::Fields;
pub(crate) use read::{FrontMatter, utf8};
pub use read::{is_agent_file, looks_like_agent_file, place_of_fault, read};
pub use write::{compose, field, write};

/// The extension of agent files.
pub const EXTENSION: &str = "md";

/// The line before and after the front matter.
pub(crate) const FENCE: &str = "---";

/// A place in a file, counted from 1. Columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

impl Place {
    pub const START: Self = Self { line: 1, column: 1 };
}

/// A problem at a place of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: PathBuf,
    pub place: Place,
    pub message: String,
}

impl Problem {
    pub(crate) fn new(file: &Path, place: Place, message: impl fmt::Display) -> Self {
        Self {
            file: file.to_owned(),
            place,
            message: message.to_string(),
        }
    }

    /// A problem of the whole file.
    pub fn of(file: &Path, message: impl fmt::Display) -> Self {
        Self::new(file, Place::START, message)
    }
}

/// `file:line:column: message`, which editors and CI systems turn into a link.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        write!(f, "{}:{line}:{column}: {}", self.file.display(), self.message)
    }
}
