//! Imported agents to a directory of files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::import_report::{Report, Row};
use super::importer::Ready;
use crate::agent_file::{self, Fields, Markers, Problem, conflicts_of_body, is_agent_file};
use crate::failure::{CommandFailure, Result};
use crate::file;

/// What becomes of the file of an agent.
enum Outcome {
    Create,
    Unchanged,
    /// Why the file is not overwritten, and the fields that differ.
    Refused(String, Vec<String>),
}

/// Writes the newest version of each agent as its file. A file with another content may have been changed by hand, and
/// is only overwritten on request.
pub fn write(dir: &Path, ready: &[Ready], overwrite: bool, report: &mut Report) -> Result<()> {
    let newest = ready.iter().enumerate().filter(|(i, one)| {
        ready
            .get(i + 1)
            .is_none_or(|next| next.imported.agent_id != one.imported.agent_id)
    });
    let newest: Vec<_> = newest.map(|(_, one)| one).collect();
    let path_of = |one: &Ready| dir.join(format!("{}.{}", one.spec.agent_id, agent_file::EXTENSION));
    refuse_sources(newest.iter().map(|one| path_of(one)), ready, report)?;

    let mut changed = Vec::new();
    for one in &newest {
        let agent_id = one.spec.agent_id.as_str();
        let (path, fields) = (path_of(one), Fields::of_spec(&one.spec)?);
        let text = agent_file::write(agent_id, &fields);
        if !conflicts_of_body(&text).is_empty() {
            let message = "the prompt has lines like the conflict markers of git: `agentcfg apply --allow-conflict-markers` takes them";
            let warning = Problem::new(&one.imported.file, one.imported.place, message);
            report.warnings.push(Row::from(&warning));
        }
        let (action, fields) = match outcome(&path, &text, &fields)? {
            Outcome::Unchanged => {
                report.unchanged += 1;
                report.did(agent_id, "unchanged", Vec::new());
                continue;
            }
            Outcome::Refused(reason, fields) if !overwrite => {
                report.problems.push(Row::from(&Problem::of(&path, reason)));
                report.did(agent_id, "refused", fields);
                continue;
            }
            Outcome::Create => ("create", Vec::new()),
            Outcome::Refused(_, fields) => ("change", fields),
        };
        report.did(agent_id, action, fields);
        changed.push((path, text));
    }
    if !report.dry_run && !changed.is_empty() {
        fs::create_dir_all(dir).map_err(|error| CommandFailure::io(dir.display(), &error))?;
        file::remove_leftovers(dir)?;
    }
    for (path, text) in changed {
        if !report.dry_run {
            file::write_file(&path, text.as_bytes())?;
        }
        report.written.push(path);
    }
    let older = ready.len() - newest.len();
    if older > 0 {
        let message =
            format!("{older} earlier versions are not in the files, which have the newest one: --apply makes them all");
        report.warnings.push(Row::from(&Problem::of(dir, message)));
    }
    Ok(())
}

/// Fails where a file to write is one that was read.
fn refuse_sources(paths: impl Iterator<Item = PathBuf>, ready: &[Ready], report: &Report) -> Result<()> {
    let read = ready.iter().map(|one| &one.imported.file);
    let read = read.chain(report.problems.iter().map(|row| &row.file));
    // Files that an import wrote may be among those that were skipped.
    let is_other = |path: &&PathBuf| !file::content(path).is_ok_and(|bytes| is_agent_file(path, &bytes));
    let others = report.skipped.iter().map(|one| &one.file);
    let others = others.chain(report.warnings.iter().map(|row| &row.file));
    let read = read.chain(others.filter(is_other));
    let sources: BTreeSet<PathBuf> = read.filter_map(|path| fs::canonicalize(path).ok()).collect();
    let is_source = |path: &PathBuf| fs::canonicalize(path).is_ok_and(|path| sources.contains(&path));
    let written: Vec<String> = paths.filter(is_source).map(|path| path.display().to_string()).collect();
    match written.is_empty() {
        true => Ok(()),
        false => {
            let message = format!(
                "files that are read would be overwritten, and nothing was written: {}",
                written.join(", ")
            );
            Err(CommandFailure::error(message).hint("Name another directory with --out."))
        }
    }
}

fn outcome(path: &Path, text: &str, fields: &Fields) -> Result<Outcome> {
    if fs::symlink_metadata(path).is_err() {
        return Ok(Outcome::Create);
    }
    let not_of_agent = || {
        let reason = "it is not the file of an agent, and is not overwritten: move it, or add --overwrite";
        Ok(Outcome::Refused(reason.to_owned(), Vec::new()))
    };
    let Ok(bytes) = file::content(path) else {
        return not_of_agent();
    };
    if bytes == text.as_bytes() {
        return Ok(Outcome::Unchanged);
    }
    if !is_agent_file(path, &bytes) {
        return not_of_agent();
    }
    let Ok(spec) = agent_file::read(path, &bytes, Markers::Allow) else {
        let reason = "it has problems, see `agentcfg validate`, and is not overwritten: mend it, or add --overwrite";
        return Ok(Outcome::Refused(reason.to_owned(), Vec::new()));
    };
    let before = Fields::of_spec(&spec)?;
    let differing: Vec<String> = fields
        .iter()
        .filter(|(name, value)| before.get(name) != *value)
        .map(|(name, _)| name.to_owned())
        .collect();
    // Comments and the layout may differ.
    if differing.is_empty() {
        return Ok(Outcome::Unchanged);
    }
    let reason = format!(
        "it has another {}, and is not overwritten: keep it, or add --overwrite",
        differing.join(", ")
    );
    Ok(Outcome::Refused(reason, differing))
}
