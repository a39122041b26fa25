//! A directory of agents' files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use agentcfg_client::model::AgentSpec;

use crate::agent_file::{EXTENSION, Markers, Problem, is_agent_file, read};
use crate::failure::{CommandFailure, Result};

/// The name, without its end, of the file that may explain a directory to people. It is no agent: identifiers have no
/// capital letters.
const README: &str = "README";

/// The greatest size of a file in bytes. The texts of an agent have far less.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// The greatest size of a file of another tool.
const MAX_SOURCE: u64 = 64 * 1024 * 1024;

/// The files of a directory that are, or look like, files of agents: all that end in `.md`, in small or capital
/// letters, but `README.md` and hidden ones. Other files and directories are ignored.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    files: BTreeMap<String, PathBuf>,
}

impl Directory {
    /// Lists a directory.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |error: &io::Error| CommandFailure::io(path.display(), error);
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(path).map_err(|error| failed(&error))? {
            let entry = entry.map_err(|error| failed(&error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if may_be_agent(&name) && !entry.path().is_dir() {
                files.insert(name, entry.path());
            }
        }
        Ok(Self {
            path: path.to_owned(),
            files,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The path of an agent's file, which need not exist.
    pub fn file_of(&self, agent_id: &str) -> PathBuf {
        self.path.join(format!("{agent_id}.{EXTENSION}"))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all agents, in the order of the names of their files.
    ///
    /// # Errors
    ///
    /// All problems of all files.
    pub fn read(&self, markers: Markers) -> Result<Vec<AgentSpec>> {
        let (mut specs, mut problems) = (Vec::new(), Vec::new());
        for path in self.files.values() {
            let read = content(path).and_then(|bytes| read(path, &bytes, markers));
            match read {
                Ok(spec) => specs.push(spec),
                Err(more) => problems.extend(more),
            }
        }
        match problems.is_empty() {
            true => Ok(specs),
            false => Err(CommandFailure::Files(problems)),
        }
    }

    /// The files with a line that ends as on Windows.
    pub fn with_windows_lines(&self) -> Vec<&Path> {
        let has_windows_line =
            |path: &Path| content(path).is_ok_and(|bytes| bytes.windows(2).any(|pair| pair == b"\r\n"));
        let paths = self.files.values().map(PathBuf::as_path);
        paths.filter(|path| has_windows_line(path)).collect()
    }

    /// The files of agents other than these, by what is in the files, and their agents.
    pub fn others(&self, is_kept: impl Fn(&str) -> bool) -> Vec<(String, PathBuf)> {
        let others = self.files.iter().filter_map(|(name, path)| {
            let agent_id = name.strip_suffix(EXTENSION)?.strip_suffix('.')?;
            let is_other = !is_kept(agent_id) && content(path).is_ok_and(|bytes| is_agent_file(path, &bytes));
            is_other.then(|| (agent_id.to_owned(), path.clone()))
        });
        others.collect()
    }
}

/// Whether a file of this name is one of an agent, or looks like one. `WRITER.MD` is reported and not ignored.
pub(super) fn may_be_agent(name: &str) -> bool {
    let path = Path::new(name);
    let extension = path.extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case(EXTENSION))
        && !name.starts_with('.')
        && path.file_stem().is_some_and(|stem| stem != README)
}

/// The content of what may be the file of an agent: of a regular file of a bounded size.
pub fn content(path: &Path) -> std::result::Result<Vec<u8>, Vec<Problem>> {
    content_up_to(path, MAX_FILE)
}

/// The content of a file of another tool, which may have many agents.
pub fn source(path: &Path) -> std::result::Result<Vec<u8>, Vec<Problem>> {
    content_up_to(path, MAX_SOURCE)
}

fn content_up_to(path: &Path, max: u64) -> std::result::Result<Vec<u8>, Vec<Problem>> {
    let failed = |rule: &dyn std::fmt::Display| vec![Problem::of(path, rule)];
    let found = fs::metadata(path).map_err(|error| failed(&error))?;
    if !found.is_file() {
        return Err(failed(&"must be a regular file"));
    }
    let too_long = |length| failed(&format_args!("must be at most {max} bytes, got {length}"));
    if found.len() > max {
        return Err(too_long(found.len()));
    }
    let file = fs::File::open(path).map_err(|error| failed(&error))?;
    let mut bytes = Vec::new();
    // A file that grows meanwhile is bounded too.
    let read = file.take(max + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(&error))?;
    match bytes.len() as u64 > max {
        true => Err(too_long(bytes.len() as u64)),
        false => Ok(bytes),
    }
}

/// Why a regular file cannot be read.
pub fn unreadable(path: &Path) -> Option<io::Error> {
    // To open a pipe would wait for a writer.
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    is_file.then(|| fs::File::open(path).err()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_capital_letters_are_looked_at_and_a_readme_is_not() {
        for name in ["writer.md", "WRITER.MD", "writer.Md", "readme.md", "notes.md"] {
            assert!(may_be_agent(name), "{name}");
        }
        for name in [
            "README.md",
            "README.MD",
            ".hidden.md",
            "writer.txt",
            "writer",
            "md",
            "writer.md.bak",
        ] {
            assert!(!may_be_agent(name), "{name}");
        }
    }
}
