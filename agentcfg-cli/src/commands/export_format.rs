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
use crate::import::{self, Entry, Format, UNNAMED, formats};
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
        add(&mut self.lost, agent_id, paths);
    }

    /// Takes back what agents of plugins need not have: Claude Code loads them under the names of their files.
    fn forgive_plugins(&mut self, format: &Format, dir: &Path, files: &[File]) {
        let is_of_plugin = |file: &&File| formats::is_of_plugin(&dir.join(&file.path));
        let of_plugins = files
            .iter()
            .filter(|_| format.word == "claude-code")
            .filter(is_of_plugin);
        for agent_id in of_plugins.filter_map(|file| file.agent_id.as_ref()) {
            for row in self.missing.iter_mut().filter(|row| row.agent_id == *agent_id) {
                row.paths.retain(|path| !format.requires.contains(&path.as_str()));
            }
        }
        self.missing.retain(|row| !row.paths.is_empty());
    }
}

/// Adds paths of an agent that its row does not have.
fn add(rows: &mut Vec<Lost>, agent_id: &str, paths: Vec<String>) {
    if paths.is_empty() {
        return;
    }
    let at = match rows.iter().position(|row| row.agent_id == agent_id) {
        Some(at) => at,
        None => {
            let (agent_id, paths) = (agent_id.to_owned(), Vec::new());
            rows.push(Lost { agent_id, paths });
            rows.len() - 1
        }
    };
    let known = &mut rows[at].paths;
    for path in paths {
        if !known.contains(&path) {
            known.push(path);
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
    let mut exported = Exported::default();
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
    let files = files(format, dir, agents, &mut exported)?;
    if strict && exported.lost.is_empty() && !exported.missing.is_empty() {
        report(context, format, &exported)?;
        let agents = count(exported.missing.len(), "agent");
        let message = format!("{agents} without what {word} requires; nothing was written");
        return Err(CommandFailure::error(message).hint("Set these fields, or leave out --strict."));
    }
    if strict && !exported.lost.is_empty() {
        report(context, format, &exported)?;
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
    report(context, format, &exported)?;
    Ok(Code::Done)
}

/// The files of agents in their places. What they cannot hold, and what they lack, is noted.
fn files(format: &Format, dir: &Path, agents: Vec<(String, Vec<Entry>)>, exported: &mut Exported) -> Result<Vec<File>> {
    let mut written = Vec::new();
    for (agent_id, fields) in agents {
        let mut paths = Vec::new();
        let one = import::export(format, &agent_id, fields, &mut paths);
        add(&mut exported.missing, &agent_id, import::missing(format, &one));
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
    exported.forgive_plugins(format, dir, &files);
    Ok(files)
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

fn report(context: &mut Context, format: &Format, exported: &Exported) -> Result<()> {
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
        // Each agent has a display_name, but one that is the name of its file is not written back.
        if exported
            .missing
            .iter()
            .any(|row| row.paths.iter().any(|path| path == "name"))
        {
            context.output.note(format_args!(
                "A file that had no name gets none back. To write the display_name, remove {UNNAMED} from \
                 definition.{}.",
                format.word
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::Went;

    /// Imports the agents of a directory and exports them to another. Returns the files, and what each agent lacks.
    fn through(word: &str, from: &Path, to: &Path) -> (Vec<File>, Vec<Lost>) {
        let format = formats::format(word).unwrap();
        let mut reading = import::read(format, &[from.to_owned()], Markers::Refuse).unwrap();
        let agents = import::agents(format, &mut reading, &mut Went::new()).into_iter();
        let agents = agents.map(|agent| (agent.agent_id, agent.fields)).collect();
        let mut exported = Exported::default();
        let files = files(format, to, agents, &mut exported).unwrap();
        (files, exported.missing)
    }

    #[test]
    fn an_agent_of_a_plugin_lacks_a_name_wherever_there_is_no_plugin() {
        let dir = tempfile::tempdir().unwrap();
        let [plugin, other, unrelated] = ["desk", "other", "unrelated"].map(|name| dir.path().join(name));
        for plugin in [&plugin, &other] {
            fs::create_dir_all(plugin.join(".claude-plugin")).unwrap();
        }
        fs::create_dir_all(plugin.join("agents")).unwrap();
        let texts = [
            ("described", "---\ndescription: d\n---\n\nYou sort.\n"),
            ("plain", "You sort.\n"),
            ("whole", "---\nname: whole\ndescription: d\n---\n\nYou sort.\n"),
        ];
        for (name, text) in texts {
            fs::write(plugin.join(format!("agents/{name}.md")), text).unwrap();
        }
        let expected = texts.map(|(name, text)| (format!("agents/{name}.md"), text.to_owned()));
        let lacks = |agent_id: &str, keys: &[&str]| {
            let keys = keys.iter().map(|key| (*key).to_owned());
            (agent_id.to_owned(), keys.collect::<Vec<_>>())
        };
        for (to, missing) in [
            (&plugin, Vec::new()),
            (&other, Vec::new()),
            (
                &unrelated,
                vec![lacks("described", &["name"]), lacks("plain", &["name", "description"])],
            ),
        ] {
            let (files, found) = through("claude-code", &plugin, to);
            // The files are the same in each place.
            let files = files
                .into_iter()
                .map(|file| (file.path.display().to_string(), file.text));
            assert_eq!(files.collect::<Vec<_>>(), expected, "{}", to.display());
            let found = found.into_iter().map(|row| (row.agent_id, row.paths));
            assert_eq!(found.collect::<Vec<_>>(), missing, "{}", to.display());
        }
    }

    #[test]
    fn what_any_version_of_an_agent_lacks_is_named_once() {
        let mut rows = Vec::new();
        for paths in [&["model"][..], &[], &["name", "model"]] {
            add(&mut rows, "a", paths.iter().map(|path| (*path).to_owned()).collect());
        }
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].paths, ["model", "name"]);
    }
}
