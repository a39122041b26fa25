//! The files that an export writes.

use std::path::{Component, Path, PathBuf};

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

/// What could not be written into the files, as the identifier of an agent and the path.
pub type NotHeld = Vec<(String, String)>;

/// A file of an export.
#[derive(Debug)]
pub struct File {
    pub path: PathBuf,
    pub text: String,
    pub holds: Holds,
    /// The agent that the file is of alone, where its format tells.
    pub agent_id: Option<String>,
}

impl File {
    pub fn new(path: PathBuf, text: String, holds: Holds) -> Self {
        Self {
            path,
            text,
            holds,
            agent_id: None,
        }
    }
}

/// Whether an export may write a path that an agent names: below its directory, and in no hidden file or directory but
/// these.
pub fn is_allowed(path: &Path, hidden: &[&str]) -> bool {
    path.components().all(|part| match part {
        Component::Normal(name) => {
            let name = name.to_string_lossy();
            !name.starts_with('.') || hidden.contains(&&*name)
        }
        _ => false,
    })
}
