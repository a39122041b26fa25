//! The files that an export writes.

use std::path::PathBuf;

/// What a file of an export has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Holds {
    /// One agent, or versions of it.
    Agent,
    /// Agents by their names, in YAML.
    Names,
    /// A list of prompts and their versions, in JSON.
    Prompts,
    /// The configuration of a tool in JSON. The members of this key, if there is one, are the agents of the export.
    Config(Option<&'static str>),
}

/// A file of an export.
#[derive(Debug)]
pub struct File {
    pub path: PathBuf,
    pub text: String,
    pub holds: Holds,
}

impl File {
    pub fn new(path: PathBuf, text: String, holds: Holds) -> Self {
        Self { path, text, holds }
    }
}
