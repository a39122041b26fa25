//! A directory of agents' files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use agentcfg_client::model::AgentSpec;

use super::{EXTENSION, Problem, is_agent_file, read};
use crate::failure::{Failure, Result};

/// The file that may explain a directory to people. It is no agent: identifiers have no capital letters.
const README: &str = "README.md";

/// The greatest size of a file in bytes. The texts of an agent have far less.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// The files of a directory that are, or look like, files of agents: all that end in `.md` but `README.md` and hidden ones. Other
/// files and directories are ignored.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    files: BTreeMap<String, PathBuf>,
}

impl Directory {
    /// Lists a directory.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |error: &io::Error| Failure::io(path.display(), error);
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(path).map_err(|error| failed(&error))? {
            let entry = entry.map_err(|error| failed(&error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let extension = Path::new(&name).extension();
            if extension.is_some_and(|extension| extension.eq_ignore_ascii_case(EXTENSION))
                && !name.starts_with('.')
                && name != README
                && !entry.path().is_dir()
            {
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

    /// Reads all agents, in the order of the names of their files.
    ///
    /// # Errors
    ///
    /// All problems of all files.
    pub fn read(&self) -> Result<Vec<AgentSpec>> {
        let (mut specs, mut problems) = (Vec::new(), Vec::new());
        for path in self.files.values() {
            let read = content(path).and_then(|bytes| read(path, &bytes));
            match read {
                Ok(spec) => specs.push(spec),
                Err(more) => problems.extend(more),
            }
        }
        match problems.is_empty() {
            true => Ok(specs),
            false => Err(Failure::Files(problems)),
        }
    }

    /// The files of agents other than these, by what is in the files.
    pub fn others(&self, is_kept: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let stem = |name: &str| {
            name.strip_suffix(EXTENSION)
                .and_then(|stem| stem.strip_suffix('.'))
                .map(str::to_owned)
        };
        let files = self.files.iter();
        files
            .filter(|(name, _)| !stem(name).is_some_and(|stem| is_kept(&stem)))
            .filter(|(_, path)| content(path).is_ok_and(|bytes| is_agent_file(path, &bytes)))
            .map(|(_, path)| path.clone())
            .collect()
    }
}

/// The content of what may be the file of an agent: of a regular file of a bounded size.
pub fn content(path: &Path) -> std::result::Result<Vec<u8>, Vec<Problem>> {
    let failed = |rule: &dyn std::fmt::Display| vec![Problem::of(path, rule)];
    let found = fs::metadata(path).map_err(|error| failed(&error))?;
    if !found.is_file() {
        return Err(failed(&"must be a regular file"));
    }
    if found.len() > MAX_FILE {
        return Err(failed(&format_args!(
            "must be at most {MAX_FILE} bytes, got {}",
            found.len()
        )));
    }
    fs::read(path).map_err(|error| failed(&error))
}

/// Writes a file in one step: a reader finds the old content or the new one.
pub fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        let mut file = new_file(dir)?;
        file.write_all(content)?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::error(format_args!(
            "{}: the directory {} does not exist",
            path.display(),
            dir.display()
        )),
        _ => Failure::io(path.display(), &error),
    })
}

/// A temporary file with the permissions of a file that an editor would make.
fn new_file(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".agentcfg-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(dir)
}
