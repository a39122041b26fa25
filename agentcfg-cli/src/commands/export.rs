//! Agents to files: export.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentcfg_client::AgentFilter;
use agentcfg_client::model::{Agent, AgentState, SetName, WorkspaceId};
use serde::Serialize;

use super::context::Context;
use super::prune;
use crate::agent_file::{self, Fields, is_agent_file};
use crate::failure::{Code, CommandFailure, Result, count};
use crate::file::{self, Directory};
use crate::session::{Session, parse};
use crate::signals;
use crate::terminal::Progress;

/// What an export did, by the paths of files.
#[derive(Debug, Default, Serialize)]
struct Exported {
    written: Vec<PathBuf>,
    unchanged: Vec<PathBuf>,
    /// Files of agents of the workspace that are not exported any more.
    stale: Vec<PathBuf>,
    /// Stale files that were removed.
    removed: Vec<PathBuf>,
    /// Files of agents that the workspace has never had. They are always kept: nothing else has what is in them.
    unapplied: Vec<PathBuf>,
}

pub async fn run(context: &mut Context, path: &Path, set: Option<&str>, prune: bool) -> Result<Code> {
    let set = set.map(|set| parse("set", set)).transpose()?;
    let session = context.session()?;
    let workspace = session.workspace().await?;
    let progress = Progress::spinner("Reading the agents");
    let agents = match &set {
        None => {
            session
                .client
                .list_agents(workspace, &AgentFilter::default())
                .await?
                .value
        }
        Some(set) => members(&session, workspace, set).await?,
    };
    drop(progress);
    fs::create_dir_all(path).map_err(|error| CommandFailure::io(path.display(), &error))?;
    signals::end_after(|| {})?;
    file::remove_leftovers(path)?;
    let directory = Directory::open(path)?;

    let (mut exported, changed) = compare(&directory, &agents)?;
    let progress = Progress::steps("Writing files", changed.len());
    for (path, text) in changed {
        file::write_file(&path, text.as_bytes())?;
        exported.written.push(path);
        progress.step();
    }
    drop(progress);

    let kept: BTreeSet<&str> = agents.iter().map(|agent| agent.agent_id.as_str()).collect();
    let others = directory.others(|agent_id| kept.contains(agent_id));
    let known = match others.is_empty() {
        true => BTreeSet::new(),
        false => known(&session, workspace).await?,
    };
    for (agent_id, path) in others {
        match known.contains(&agent_id) {
            false => exported.unapplied.push(path),
            true if prune => {
                fs::remove_file(&path).map_err(|error| CommandFailure::io(path.display(), &error))?;
                exported.removed.push(path);
            }
            true => exported.stale.push(path),
        }
    }
    report(context, &exported)?;
    Ok(Code::Done)
}

/// What is to be written, and which files have it already. All files are checked before the first is written.
fn compare(directory: &Directory, agents: &[Agent]) -> Result<(Exported, Vec<(PathBuf, String)>)> {
    let (mut exported, mut changed, mut others) = (Exported::default(), Vec::new(), Vec::new());
    for agent in agents {
        let path = directory.file_of(&agent.agent_id);
        let text = agent_file::write(&agent.agent_id, &Fields::of(&agent.config())?);
        if !exists(&path)? {
            changed.push((path, text));
            continue;
        }
        match file::content(&path) {
            Ok(bytes) if bytes == text.as_bytes() => exported.unchanged.push(path),
            Ok(bytes) if is_agent_file(&path, &bytes) => changed.push((path, text)),
            content => {
                if let Some(error) = content.err().and_then(|_| file::unreadable(&path)) {
                    return Err(CommandFailure::io(path.display(), &error));
                }
                others.push(path.display().to_string());
            }
        }
    }
    let are = if others.len() == 1 { "is" } else { "are" };
    let which = match others.len() {
        1 => "the file of an agent, and is not overwritten",
        _ => "files of agents, and are not overwritten",
    };
    match others.is_empty() {
        true => Ok((exported, changed)),
        false => {
            let message = format!("{} {are} not {which}", others.join(", "));
            Err(CommandFailure::error(message).hint("Move it, or export to another directory."))
        }
    }
}

fn exists(path: &Path) -> Result<bool> {
    // A link to nothing is there too.
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(CommandFailure::io(path.display(), &error)),
    }
}

/// The active agents of a set, of which there is at least one.
async fn members(session: &Session, workspace: WorkspaceId, set: &SetName) -> Result<Vec<Agent>> {
    let members = prune::members(&session.client, workspace, set).await?;
    if members.is_empty() {
        let message = format!("the set {set} has no active agents; nothing was written or removed");
        return Err(CommandFailure::error(message).hint("`agentcfg apply DIR --set NAME` puts agents into a set."));
    }
    let active = AgentFilter::default();
    let mut agents = session.client.list_agents(workspace, &active).await?.value;
    agents.retain(|agent| members.contains(&agent.agent_id));
    Ok(agents)
}

/// The agents that the workspace has or had.
async fn known(session: &Session, workspace: WorkspaceId) -> Result<BTreeSet<String>> {
    let all = AgentFilter::default().state(AgentState::All);
    let agents = session.client.list_agents(workspace, &all).await?.value;
    Ok(agents.into_iter().map(|agent| agent.agent_id.to_string()).collect())
}

fn report(context: &mut Context, exported: &Exported) -> Result<()> {
    let Exported {
        written,
        unchanged,
        stale,
        removed,
        unapplied,
    } = exported;
    context.output.show(exported, |output| {
        for (what, paths) in [
            ("written", written),
            ("removed", removed),
            ("stale", stale),
            ("unapplied", unapplied),
        ] {
            for path in paths {
                output.line(format_args!("{what:9} {}", path.display()))?;
            }
        }
        Ok(())
    })?;
    if context.output.is_json() {
        return Ok(());
    }
    let removed = match removed.len() {
        0 => String::new(),
        removed => format!(", {removed} removed"),
    };
    context.output.note(format_args!(
        "{} written, {} unchanged{removed}.",
        count(written.len(), "file"),
        unchanged.len()
    ));
    if !stale.is_empty() {
        let files = count(stale.len(), "file");
        context.output.note(format_args!(
            "{files} of agents that are not exported any more; `--prune` removes them."
        ));
    }
    if !unapplied.is_empty() {
        let files = count(unapplied.len(), "file");
        context.output.note(format_args!(
            "{files} of agents that the workspace does not have, not applied yet; they are kept."
        ));
    }
    Ok(())
}
