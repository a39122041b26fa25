//! Agents of other tools: reading their files, and writing them again.
//!
//! `source_tree` is a value of a source and `parse_tree` reads one. A table of `formats` says where each key goes:
//! `table` follows it for an import and `export` back, with the kinds of values of `convert` and the paths of
//! `definition`. `same` compares agents. `front_matter` reads Markdown, `yaml_text` writes YAML, `secrets` finds what
//! must not be stored, and `name` makes identifiers. `servers` has the words of each tool for MCP servers. `written` is
//! an agent of an export, `output_file` a file of one, and `places` says where it goes; `existing` and `yaml_file` keep
//! what is in the file that it replaces.

mod convert;
mod definition;
pub mod existing;
mod export;
pub mod formats;
mod front_matter;
mod name;
pub mod output_file;
mod parse_tree;
pub mod places;
mod same;
mod secrets;
mod servers;
mod source_tree;
mod table;
#[cfg(test)]
mod tests;
mod written;
mod yaml_file;
mod yaml_text;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

pub use self::export::{export, make_unique, missing};
pub use self::parse_tree::from_json;
pub use self::same::{differing_fields, is_repeated, other_source};
pub use self::source_tree::{Entry, Node};
pub use self::table::{Format, Identity, Imported, Record, UNNAMED, Went, import};
use crate::agent_file::{Markers, Place, Problem, UNRESOLVED, conflicts_of_body, utf8};
use crate::failure::{CommandFailure, Result};
use crate::file;

/// The greatest number of files that are read.
const MAX_FILES: usize = 100_000;

/// The greatest depth of directories.
const MAX_LEVELS: usize = 32;

/// Directories that have no agents of their own.
const LEFT_OUT: &[&str] = &[".git", ".venv", "__pycache__"];

/// Directories that mostly have none. What is left out is told, and below those of agents they are read.
const MOSTLY_LEFT_OUT: &[&str] = &["node_modules", "target"];

/// A file of a source.
pub struct Source<'a> {
    pub format: &'a Format,
    /// What the user named.
    pub root: &'a Path,
    pub path: &'a Path,
    /// The path below the root, with `/`.
    pub relative: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// The name of the file without its end.
    pub fn stem(&self) -> &str {
        self.format.stem(self.relative)
    }

    /// Whether its name has this end, in capitals too.
    pub fn has_end(&self, end: &str) -> bool {
        self.file_name().to_ascii_lowercase().ends_with(end)
    }

    pub fn file_name(&self) -> &str {
        self.relative.rsplit('/').next().unwrap_or(self.relative)
    }
}

/// A source, or a part of one, that is no agent.
#[derive(Debug, serde::Serialize)]
pub struct Skipped {
    pub file: PathBuf,
    pub reason: String,
}

/// What was read.
#[derive(Debug, Default)]
pub struct Reading {
    pub records: Vec<Record>,
    pub warnings: Vec<Problem>,
    pub problems: Vec<Problem>,
    pub skipped: Vec<Skipped>,
    /// How many files have another end than those of the format.
    pub other_files: usize,
    /// The files of a format that stand beside those of its agents, by their paths.
    pub beside: BTreeMap<PathBuf, Beside>,
    /// What to do about conflict markers.
    pub markers: Markers,
    /// Whether every file may be that of an agent, whatever its directory is.
    pub takes_all: bool,
}

/// A file beside those of agents.
#[derive(Debug)]
pub struct Beside {
    pub node: Node,
    /// Whether an agent has it.
    pub is_used: bool,
}

impl Reading {
    pub fn skip(&mut self, source: &Source<'_>, reason: impl Into<String>) {
        self.skipped.push(Skipped {
            file: source.path.to_owned(),
            reason: reason.into(),
        });
    }
}

/// Reads files and directories of a format.
pub fn read(format: &Format, paths: &[PathBuf], markers: Markers) -> Result<Reading> {
    let mut reading = Reading {
        markers,
        ..Reading::default()
    };
    let mut sources: Vec<(&Path, PathBuf)> = Vec::new();
    for root in paths {
        let found = fs::metadata(root).map_err(|error| CommandFailure::io(root.display(), &error))?;
        let mut files = Vec::new();
        match found.is_dir() {
            true => list(root, 0, &mut BTreeSet::new(), &mut files, &mut reading),
            false => files.push(root.clone()),
        }
        files.sort();
        let is_of_format = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            format.files.iter().any(|end| name.to_ascii_lowercase().ends_with(end))
        };
        if found.is_dir() {
            let before = files.len();
            files.retain(|path| is_of_format(path));
            reading.other_files += before - files.len();
        }
        leave_out_second_files(format, &mut files, &mut reading);
        sources.extend(files.into_iter().map(|path| (root.as_path(), path)));
    }
    // Files beside those of agents are read first, wherever they are named.
    let is_beside = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        [".mcp.json", "opencode.json", "opencode.jsonc"]
            .iter()
            .any(|beside| name == *beside)
    };
    sources.sort_by_key(|(_, path)| !is_beside(path));
    for (root, path) in sources {
        one(format, root, &path, &mut reading);
    }
    for (file, _) in reading.beside.iter().filter(|(_, beside)| !beside.is_used) {
        reading.skipped.push(Skipped {
            file: file.clone(),
            reason: "no agents below its directory".to_owned(),
        });
    }
    Ok(reading)
}

/// Leaves out `x.json` where `x.jsonc` is beside it, as a tool that reads the second alone.
fn leave_out_second_files(format: &Format, files: &mut Vec<PathBuf>, reading: &mut Reading) {
    if !format.prefers_jsonc {
        return;
    }
    let has_end = |path: &Path, end: &str| path.extension().is_some_and(|found| found == end);
    let first: BTreeSet<PathBuf> = files.iter().filter(|path| has_end(path, "jsonc")).cloned().collect();
    files.retain(|path| {
        let is_second = has_end(path, "json") && first.contains(&path.with_extension("jsonc"));
        if is_second {
            let message = "is not read: the file with the end .jsonc beside it counts";
            reading.warnings.push(Problem::of(path, message));
        }
        !is_second
    });
}

fn one(format: &Format, root: &Path, path: &Path, reading: &mut Reading) {
    let bytes = match file::source(path) {
        Ok(bytes) => bytes,
        Err(problems) => return reading.problems.extend(problems),
    };
    let text = match utf8(path, &bytes) {
        Ok(text) => text,
        Err(problem) => return reading.problems.push(problem),
    };
    let without_mark = text.strip_prefix('\u{feff}');
    if without_mark.is_some() {
        reading
            .warnings
            .push(Problem::of(path, "a byte order mark at the start is left out"));
    }
    let mut text = without_mark.unwrap_or(text).to_owned();
    if text.contains("\r\n") {
        reading
            .warnings
            .push(Problem::of(path, "line ends of Windows are read as line feeds"));
        text = text.replace("\r\n", "\n");
    }
    let conflicts = match reading.markers {
        Markers::Refuse => conflicts_of_body(&text),
        Markers::Allow => Vec::new(),
    };
    if !conflicts.is_empty() {
        let problem = |line: &usize| {
            let place = Place {
                line: line + 1,
                column: 1,
            };
            let message = format!("{UNRESOLVED}. If they belong to the text, use --allow-conflict-markers");
            Problem::new(path, place, message)
        };
        return reading.problems.extend(conflicts.iter().map(problem));
    }
    read_text(format, root, path, &text, reading);
}

/// The path of a file below what the user named, with `/`. A file that is named itself, or lies elsewhere, has its name alone.
pub fn relative_to(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).ok();
    let below = below.filter(|below| *below != Path::new(""));
    let relative = below.or(path.file_name().map(Path::new)).unwrap_or(path);
    relative.to_string_lossy().replace('\\', "/")
}

/// Reads the text of a file.
fn read_text(format: &Format, root: &Path, path: &Path, text: &str, reading: &mut Reading) {
    let relative = relative_to(root, path);
    let source = Source {
        format,
        root,
        path,
        relative: &relative,
        text,
    };
    (format.read)(&source, reading);
}

/// The files below a directory. A directory that was read already, which links can lead to, is not read again.
fn list(dir: &Path, level: usize, read: &mut BTreeSet<PathBuf>, files: &mut Vec<PathBuf>, reading: &mut Reading) {
    let problems = &mut reading.problems;
    let entries = fs::canonicalize(dir).and_then(|path| match read.insert(path) {
        true => fs::read_dir(dir).map(Some),
        false => Ok(None),
    });
    let entries = match entries {
        Ok(Some(entries)) => entries,
        Ok(None) => return,
        Err(error) => return problems.push(Problem::of(dir, error)),
    };
    if level > MAX_LEVELS {
        return problems.push(Problem::of(
            dir,
            format!("directories are read {MAX_LEVELS} levels deep"),
        ));
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => paths.push(entry.path()),
            Err(error) => problems.push(Problem::of(dir, error)),
        }
    }
    paths.sort();
    for path in paths {
        if files.len() >= MAX_FILES {
            let message = format!("at most {MAX_FILES} files are read");
            return reading.problems.push(Problem::of(dir, message));
        }
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if LEFT_OUT.contains(&name.as_str()) {
                    continue;
                }
                let is_of_agents = dir.iter().any(|part| part == "agents" || part == "agent");
                if MOSTLY_LEFT_OUT.contains(&name.as_str()) && !is_of_agents {
                    reading.skipped.push(Skipped {
                        file: path,
                        reason: "a directory of packages or of a build: name it itself to import its files".to_owned(),
                    });
                    continue;
                }
                list(&path, level + 1, read, files, reading);
            }
            Ok(_) => files.push(path),
            Err(error) => reading.problems.push(Problem::of(&path, error)),
        }
    }
}

/// The agents of what was read, in the order of the sources; versions of an agent follow each other.
pub fn agents(format: &Format, reading: &mut Reading, went: &mut Went) -> Vec<Imported> {
    let mut agents: Vec<Imported> = Vec::new();
    for record in std::mem::take(&mut reading.records) {
        match import(format, record, &mut reading.warnings, went) {
            Ok(agent) => agents.push(agent),
            Err(problems) => reading.problems.extend(problems),
        }
    }
    let mut by_id: BTreeMap<String, Vec<Imported>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for agent in agents {
        let same = by_id.entry(agent.agent_id.clone()).or_default();
        if same.is_empty() {
            order.push(agent.agent_id.clone());
        }
        match same.iter().find(|one| is_repeated(format, one, &agent)) {
            Some(first) => reading.skipped.push(Skipped {
                file: agent.file.clone(),
                reason: format!("line {}: the same agent as {}", agent.place.line, place_of(first)),
            }),
            None => same.push(agent),
        }
    }
    let mut kept = Vec::new();
    for agent_id in order {
        let mut versions = by_id.remove(&agent_id).unwrap_or_default();
        let collisions: Vec<Problem> = collisions(&agent_id, &versions);
        if collisions.is_empty() {
            versions.sort_by_key(|version| version.version);
            kept.extend(versions);
        }
        reading.problems.extend(collisions);
    }
    kept
}

/// Why agents with one identifier are not the versions of one agent.
fn collisions(agent_id: &str, agents: &[Imported]) -> Vec<Problem> {
    let problem = |(i, second): (usize, &Imported)| {
        let is_same_source = |first: &Imported| match (&first.identity, &second.identity) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        let is_other = |first: &&Imported| {
            first.name != second.name
                || !is_same_source(first)
                || first.version.is_none()
                || first.version == second.version
        };
        let first = agents[..i].iter().find(is_other)?;
        let what = match (first.name == second.name, second.version) {
            (true, _) if !is_same_source(first) => format!("another agent has the name {:?}, too", second.name),
            (true, Some(version)) => format!("version {version} of {agent_id} is here a second time"),
            (true, None) => format!("the agent {agent_id} is here a second time"),
            (false, _) => {
                format!(
                    "the name {:?} gives the identifier {agent_id} of {:?}, too",
                    second.name, first.name
                )
            }
        };
        let message = format!("{what}: see {}; rename one of them", place_of(first));
        Some(Problem::new(&second.file, second.place, message))
    };
    let label = |(i, second): (usize, &Imported)| {
        let earlier = agents[..i].iter();
        let mut labels = earlier.flat_map(|first| first.labels.iter().map(move |label| (first, label)));
        let (first, label) = labels.find(|(_, label)| second.labels.contains(label))?;
        let message = format!(
            "the label {label} is at another version, too: see {}; remove one of them",
            place_of(first)
        );
        Some(Problem::new(&second.file, second.place, message))
    };
    let problem = |at: (usize, &Imported)| problem(at).or_else(|| label(at));
    agents.iter().enumerate().filter_map(problem).collect()
}

fn place_of(agent: &Imported) -> String {
    format!("{}:{}", agent.file.display(), agent.place.line)
}
