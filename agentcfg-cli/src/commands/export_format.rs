//! Agents to the files of another tool: export --format.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use agentcfg_client::AgentFilter;
use agentcfg_client::model::{AgentConfig, AgentVersionDetail, VersionPage, VersionSelector};
use serde::Serialize;

use super::context::Context;
use crate::agent_file::Markers;
use crate::failure::{Code, CommandFailure, Result, count};
use crate::file::{self, Directory};
use crate::import::{self, Entry, Format, Node, formats};
use crate::output::printable;
use crate::terminal::Progress;

/// The label that is always at the current version.
const LATEST: &str = "latest";

/// What an export did, by the paths of files.
#[derive(Debug, Default, Serialize)]
struct Exported {
    written: Vec<PathBuf>,
    unchanged: Vec<PathBuf>,
    /// What the format cannot hold.
    lost: Vec<Lost>,
}

#[derive(Debug, Serialize)]
struct Lost {
    agent_id: String,
    paths: Vec<String>,
}

pub async fn run(
    context: &mut Context,
    word: &str,
    dir: &Path,
    from: Option<(&Path, Markers)>,
    strict: bool,
) -> Result<Code> {
    let format = formats::format(word).ok_or_else(|| CommandFailure::with_code(Code::Usage, "unknown format"))?;
    let agents = match from {
        Some((from, markers)) => of_files(from, markers)?,
        None => of_workspace(context, format).await?,
    };
    let (mut exported, mut written) = (Exported::default(), Vec::new());
    for (agent_id, fields) in agents {
        let mut paths = Vec::new();
        written.push(import::export(format, &agent_id, fields, &mut paths));
        if !paths.is_empty() && exported.lost.last().is_none_or(|lost| lost.agent_id != agent_id) {
            exported.lost.push(Lost { agent_id, paths });
        }
    }
    if strict && !exported.lost.is_empty() {
        report(context, &exported)?;
        let agents = count(exported.lost.len(), "agent");
        let message = format!("{word} cannot hold all of {agents}; nothing was written");
        return Err(CommandFailure::error(message).hint("Leave out --strict to write what it can hold."));
    }
    let mut changed = Vec::new();
    for (path, text) in (format.write)(written) {
        let path = dir.join(path);
        match fs::read(&path) {
            Ok(bytes) if bytes == text.as_bytes() => exported.unchanged.push(path),
            _ if changed.iter().any(|(one, _)| *one == path) => {
                return Err(CommandFailure::error(format_args!(
                    "two agents have the file {}",
                    path.display()
                )));
            }
            _ => changed.push((path, text)),
        }
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

fn fields(json: &str) -> Result<Vec<Entry>> {
    let node = import::from_json(Path::new("agent"), json).map_err(CommandFailure::error)?;
    Ok(node.entries().to_vec())
}

/// The active agents of the workspace. Where a format has versions, those that were imported from it have all of theirs.
async fn of_workspace(context: &mut Context, format: &Format) -> Result<Vec<(String, Vec<Entry>)>> {
    let session = context.session()?;
    let workspace = session.workspace().await?;
    let progress = Progress::spinner("Reading the agents");
    let agents = session
        .client
        .list_agents(workspace, &AgentFilter::default())
        .await?
        .value;
    let mut all = Vec::new();
    for agent in agents {
        let current = config(&agent.config())?;
        let is_versioned = kept(&current, format).is_some_and(|kept| kept.get("version").is_some());
        if !is_versioned {
            all.push((agent.agent_id.to_string(), current));
            continue;
        }
        let page = VersionPage::default().limit(Some(1000));
        let mut versions = session
            .client
            .list_versions(Some(workspace), &agent.agent_id, page)
            .await?;
        versions.reverse();
        let mut last: Option<(Option<String>, Vec<Entry>)> = None;
        for version in versions {
            let selector = VersionSelector::Version(version.version);
            let detail = session
                .client
                .get_version(Some(workspace), &agent.agent_id, selector)
                .await?;
            let (number, fields) = one_version(&detail, format)?;
            // Of several versions with one number of the source the last one counts.
            let earlier = last.take().filter(|(before, _)| before.is_some() && *before != number);
            all.extend(earlier.map(|(_, fields)| (agent.agent_id.to_string(), fields)));
            last = Some((number, fields));
        }
        all.extend(last.map(|(_, fields)| (agent.agent_id.to_string(), fields)));
    }
    drop(progress);
    Ok(all)
}

fn config(config: &AgentConfig) -> Result<Vec<Entry>> {
    fields(&serde_json::to_string(config)?)
}

fn kept<'a>(fields: &'a [Entry], format: &Format) -> Option<&'a Node> {
    let definition = fields.iter().find(|entry| entry.key == "definition")?;
    definition.node.get(format.word)
}

/// The fields of a version, and its number in the source. Its labels are those that it has now.
fn one_version(detail: &AgentVersionDetail, format: &Format) -> Result<(Option<String>, Vec<Entry>)> {
    let mut fields = config(&detail.config)?;
    let number = kept(&fields, format)
        .and_then(|kept| kept.get("version"))
        .and_then(Node::scalar);
    let labels: BTreeSet<&str> = detail.labels.iter().map(|label| label.as_str()).collect();
    let definition = fields.iter_mut().find(|entry| entry.key == "definition");
    let kept = definition.and_then(|definition| definition.node.map_at(format.word));
    let kept_labels = kept.and_then(|kept| kept.entries_mut()?.iter_mut().find(|entry| entry.key == "labels"));
    if let Some(entry) = kept_labels {
        let before = entry.node.as_list().unwrap_or_default();
        let before: BTreeSet<&str> = before.iter().filter_map(Node::as_text).collect();
        let latest = before.get(LATEST).copied();
        // The order of the source stays where the labels are the same.
        if before.iter().filter(|label| **label != LATEST).ne(labels.iter()) {
            let labels = labels.into_iter().chain(latest).map(Node::text).collect();
            entry.node = Node::list(labels);
        }
    }
    Ok((number, fields))
}

fn report(context: &mut Context, exported: &Exported) -> Result<()> {
    context.output.show(exported, |output| {
        for path in &exported.written {
            output.line(format_args!("written   {}", path.display()))?;
        }
        for lost in &exported.lost {
            output.line(format_args!(
                "not held  {}: {}",
                lost.agent_id,
                printable(&lost.paths.join(", "))
            ))?;
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
