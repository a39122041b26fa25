//! Agents to the files of another tool: export --format.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::context::Context;
use super::export_versions::{fields, of_workspace};
use crate::agent_file::Markers;
use crate::failure::{Code, CommandFailure, Result, count};
use crate::file::{self, Directory};
use crate::import::existing::{Outcome, outcome};
use crate::import::output_file::File;
use crate::import::places::{leads_out, place_files};
use crate::import::{self, Entry, Format, formats};
use crate::output::printable;

/// What an export did, by the paths of files.
#[derive(Debug, Default, Serialize)]
struct Exported {
    written: Vec<PathBuf>,
    unchanged: Vec<PathBuf>,
    /// What the format cannot hold.
    lost: Vec<Lost>,
    /// The keys that its tool requires, and an agent does not have.
    missing: Vec<Lost>,
}

#[derive(Debug, Serialize)]
struct Lost {
    agent_id: String,
    paths: Vec<String>,
}

impl Exported {
    /// Notes what the format cannot hold of an agent, in any of its versions.
    fn lose(&mut self, agent_id: &str, paths: Vec<String>) {
        if paths.is_empty() {
            return;
        }
        let at = match self.lost.iter().position(|lost| lost.agent_id == agent_id) {
            Some(at) => at,
            None => {
                let agent_id = agent_id.to_owned();
                self.lost.push(Lost {
                    agent_id,
                    paths: Vec::new(),
                });
                self.lost.len() - 1
            }
        };
        let known = &mut self.lost[at].paths;
        for path in paths {
            if !known.contains(&path) {
                known.push(path);
            }
        }
    }
}

/// What the command line says about an export.
pub struct Arguments<'a> {
    pub format: &'a str,
    pub dir: &'a Path,
    /// Files in place of the workspace.
    pub from: Option<(&'a Path, Markers)>,
    pub strict: bool,
    pub overwrite: bool,
}

pub async fn run(context: &mut Context, arguments: Arguments<'_>) -> Result<Code> {
    let Arguments {
        format: word,
        dir,
        from,
        strict,
        overwrite,
    } = arguments;
    let format = formats::format(word).ok_or_else(|| CommandFailure::with_code(Code::Usage, "unknown format"))?;
    let (mut exported, mut written) = (Exported::default(), Vec::new());
    let agents = match from {
        Some((from, markers)) => of_files(from, markers)?,
        None => {
            let found = of_workspace(context, format).await?;
            for (agent_id, versions) in found.not_held {
                exported.lose(&agent_id, versions);
            }
            found.agents
        }
    };
    for (agent_id, fields) in agents {
        let mut paths = Vec::new();
        let one = import::export(format, &agent_id, fields, &mut paths);
        let missing = import::missing(format, &one);
        let is_new = |rows: &[Lost]| rows.last().is_none_or(|row| row.agent_id != agent_id);
        if !missing.is_empty() && is_new(&exported.missing) {
            exported.missing.push(Lost {
                agent_id: agent_id.clone(),
                paths: missing,
            });
        }
        written.push(one);
        exported.lose(&agent_id, paths);
    }
    for (agent_id, name) in import::make_unique(format, &mut written) {
        exported.lose(&agent_id, vec![name]);
    }
    let mut not_held = Vec::new();
    let mut files = (format.write)(written, &mut not_held);
    place_files(format, dir, &mut files)?;
    for (agent_id, path) in not_held {
        exported.lose(&agent_id, vec![path]);
    }
    if strict && exported.lost.is_empty() && !exported.missing.is_empty() {
        report(context, &exported)?;
        let agents = count(exported.missing.len(), "agent");
        let message = format!("{agents} without what {word} requires; nothing was written");
        return Err(CommandFailure::error(message).hint("Set these fields, or leave out --strict."));
    }
    if strict && !exported.lost.is_empty() {
        report(context, &exported)?;
        let agents = count(exported.lost.len(), "agent");
        let message = format!("{word} cannot hold all of {agents}; nothing was written");
        return Err(CommandFailure::error(message).hint("Leave out --strict to write what it can hold."));
    }
    let changed = changed(format, dir, files, overwrite, &mut exported)?;
    if let Some((path, _)) = changed.iter().find(|(path, _)| leads_out(dir, path)) {
        let message = format_args!("{}: a link on the way leads out of {}", path.display(), dir.display());
        return Err(CommandFailure::error(message).hint("Export to the directory that the link leads to."));
    }
    for (path, text) in changed {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| CommandFailure::io(parent.display(), &error))?;
        }
        file::write_file(&path, text.as_bytes())?;
        exported.written.push(path);
    }
    report(context, &exported)?;
    Ok(Code::Done)
}

/// The files that differ from those that are there. All are compared before the first is written.
fn changed(
    format: &Format,
    dir: &Path,
    files: Vec<File>,
    overwrite: bool,
    exported: &mut Exported,
) -> Result<Vec<(PathBuf, String)>> {
    let (mut changed, mut refused): (Vec<(PathBuf, String)>, Vec<String>) = (Vec::new(), Vec::new());
    for file in files {
        let path = dir.join(&file.path);
        if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            changed.push((path, file.text));
            continue;
        }
        let bytes = match file::source(&path) {
            Ok(bytes) => bytes,
            Err(problems) => {
                refused.extend(
                    problems
                        .iter()
                        .map(|problem| format!("{}: {}", path.display(), problem.message)),
                );
                continue;
            }
        };
        match outcome(format, dir, &file, &bytes) {
            Outcome::Unchanged => exported.unchanged.push(path),
            Outcome::Write(text) => changed.push((path, text)),
            Outcome::Refused { text, .. } if overwrite => changed.push((path, text)),
            Outcome::Refused { reason, .. } => refused.push(format!("{}: {reason}", path.display())),
        }
    }
    match refused.is_empty() {
        true => Ok(changed),
        false => {
            let message = format!(
                "{} would lose what the export does not have; nothing was written:\n       {}",
                count(refused.len(), "file"),
                refused.join("\n       ")
            );
            Err(CommandFailure::error(message)
                .hint("Move them, export to another directory, or overwrite them with --overwrite."))
        }
    }
}

/// The agents of files.
fn of_files(dir: &Path, markers: Markers) -> Result<Vec<(String, Vec<Entry>)>> {
    let specs = Directory::open(dir)?.read(markers)?;
    let agents = specs.iter().map(|spec| {
        let fields = fields(&serde_json::to_string(spec)?)?;
        Ok((
            spec.agent_id.to_string(),
            fields.into_iter().filter(|entry| entry.key != "agent_id").collect(),
        ))
    });
    agents.collect()
}

fn report(context: &mut Context, exported: &Exported) -> Result<()> {
    context.output.show(exported, |output| {
        for path in &exported.written {
            output.line(format_args!("written   {}", path.display()))?;
        }
        for (what, rows) in [("not held", &exported.lost), ("warning", &exported.missing)] {
            let of_tool = if what == "warning" { "its tool requires " } else { "" };
            for row in rows {
                output.line(format_args!(
                    "{what:9} {}: {of_tool}{}",
                    row.agent_id,
                    printable(&row.paths.join(", "))
                ))?;
            }
        }
        Ok(())
    })?;
    if !context.output.is_json() {
        let (written, unchanged) = (count(exported.written.len(), "file"), exported.unchanged.len());
        context
            .output
            .note(format_args!("{written} written, {unchanged} unchanged."));
    }
    Ok(())
}
