//! The files that an export writes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::table::Format;
use crate::failure::{CommandFailure, Result};

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
}

impl File {
    pub fn new(path: PathBuf, text: String, holds: Holds) -> Self {
        Self { path, text, holds }
    }
}

/// Moves files to where the tool reads them. An agent of a project keeps its place `.claude/agents/a.md` whether the
/// directory of the export is the project, its `.claude`, or the `agents` in it. Where the directory is that of a project or of
/// the tool, agents without a place are written to those of the tool.
///
/// # Errors
///
/// When two agents have one file, or a link leads out of the directory.
pub fn place_files(format: &Format, dir: &Path, files: &mut [File]) -> Result<()> {
    let whole = whole(dir);
    for file in &mut *files {
        file.path = below(&whole, &file.path);
    }
    if let (Some(home), Some(tool)) = (format.home, format.directories.first()) {
        let home = below(&whole, Path::new(home));
        let is_of_tool = home.components().next() != Some(Component::Normal(tool.as_ref()))
            || dir.join(tool).is_dir()
            || files.iter().any(|file| file.path.starts_with(tool));
        let has_no_place = |file: &&mut File| file.holds == Holds::Agent && file.path.components().count() == 1;
        for file in files.iter_mut().filter(|_| is_of_tool).filter(has_no_place) {
            file.path = home.join(&file.path);
        }
    }
    let mut paths = BTreeSet::new();
    for file in files {
        let path = dir.join(&file.path);
        if !paths.insert(&file.path) {
            return Err(CommandFailure::error(format_args!(
                "two agents have the file {}",
                path.display()
            )));
        }
        let real = path.ancestors().skip(1).find_map(|dir| fs::canonicalize(dir).ok());
        if fs::canonicalize(dir).is_ok_and(|dir| real.is_some_and(|real| !real.starts_with(dir))) {
            let message = format!("{}: a link on the way leads out of {}", path.display(), dir.display());
            return Err(CommandFailure::error(message));
        }
    }
    Ok(())
}

/// A directory with all its parents, also if it does not exist yet.
fn whole(dir: &Path) -> PathBuf {
    fs::canonicalize(dir)
        .or_else(|_| std::path::absolute(dir))
        .unwrap_or_else(|_| dir.to_owned())
}

/// A path without the directories at its start that the directory has at its end.
fn below(dir: &Path, path: &Path) -> PathBuf {
    let parts: Vec<Component<'_>> = path.components().collect();
    let is_shared = |count: &usize| dir.ends_with(parts[..*count].iter().collect::<PathBuf>());
    // The name of a file is none of a directory; a place may be a directory alone.
    let most = parts.len() - usize::from(path.extension().is_some());
    let shared = (1..=most).rev().find(is_shared).unwrap_or(0);
    parts[shared..].iter().collect()
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
