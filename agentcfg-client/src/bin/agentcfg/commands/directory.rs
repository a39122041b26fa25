//! Agents as files: export, plan and apply. (Decisions, chapter 19.)

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentcfg_client::AgentFilter;
use agentcfg_client::model::{Agent, AppliedAgents, ApplyAgents, SetName, WorkspaceId};
use serde::Serialize;

use super::context::Context;
use super::plan;
use crate::args::{self, Reason};
use crate::failure::{Code, Failure, Result, count};
use crate::file::{self, Directory, Fields, is_agent_file};
use crate::session::{Session, parse};
use crate::terminal::{self, Progress};

/// What an export did, by the paths of files.
#[derive(Debug, Default, Serialize)]
struct Exported {
    written: Vec<PathBuf>,
    unchanged: Vec<PathBuf>,
    /// Files of agents that are not exported any more.
    stale: Vec<PathBuf>,
    /// Those of them that were removed.
    removed: Vec<PathBuf>,
}

pub async fn export(context: &mut Context, path: &Path, set: Option<&str>, prune: bool) -> Result<Code> {
    let set = set.map(|set| parse("set", set)).transpose()?;
    let session = context.session()?;
    let progress = Progress::spinner("Reading the agents");
    let agents = agents(&session, set).await?;
    drop(progress);
    fs::create_dir_all(path).map_err(|error| Failure::io(path.display(), &error))?;
    let directory = Directory::open(path)?;

    let mut files = Vec::new();
    for agent in &agents {
        let path = directory.file_of(&agent.agent_id);
        let text = file::write(&agent.agent_id, &Fields::of(&agent.config())?);
        files.push((path, text));
    }
    let (mut exported, mut changed) = (Exported::default(), Vec::new());
    // All files are checked before the first is written.
    for (path, text) in files {
        if !exists(&path)? {
            changed.push((path, text));
            continue;
        }
        match file::content(&path) {
            Ok(bytes) if bytes == text.as_bytes() => exported.unchanged.push(path),
            Ok(bytes) if is_agent_file(&path, &bytes) => changed.push((path, text)),
            _ => {
                let message = format!("{} is not the file of an agent, and is not overwritten", path.display());
                return Err(Failure::error(message).hint("Move it, or export to another directory."));
            }
        }
    }
    let progress = Progress::steps("Writing files", changed.len());
    for (path, text) in changed {
        file::write_file(&path, text.as_bytes())?;
        exported.written.push(path);
        progress.step();
    }
    drop(progress);

    let kept: BTreeSet<&str> = agents.iter().map(|agent| agent.agent_id.as_str()).collect();
    exported.stale = directory.others(|agent_id| kept.contains(agent_id));
    if prune {
        for path in std::mem::take(&mut exported.stale) {
            fs::remove_file(&path).map_err(|error| Failure::io(path.display(), &error))?;
            exported.removed.push(path);
        }
    }
    report(context, &exported)?;
    Ok(Code::Done)
}

fn exists(path: &Path) -> Result<bool> {
    // A link to nothing is there too.
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Failure::io(path.display(), &error)),
    }
}

/// The active agents of the workspace or of a set.
async fn agents(session: &Session, set: Option<SetName>) -> Result<Vec<Agent>> {
    let workspace = session.workspace().await?;
    let filter = AgentFilter::default();
    let all = session.client.list_agents(workspace, &filter);
    let Some(set) = set else {
        return Ok(all.await?.value);
    };
    // The active agents of a set are those that an apply of nothing would take out of it.
    let nothing = ApplyAgents {
        set: Some(set),
        prune: true,
        ..ApplyAgents::default()
    };
    let pruned = session.client.apply_agents(workspace, &nothing, true).await?.results;
    let members: BTreeSet<_> = pruned
        .into_iter()
        .filter(plan::is_deactivated)
        .map(|agent| agent.agent_id)
        .collect();
    let mut agents = all.await?.value;
    agents.retain(|agent| members.contains(&agent.agent_id));
    Ok(agents)
}

fn report(context: &mut Context, exported: &Exported) -> Result<()> {
    context.output.show(exported, |output| {
        for (what, paths) in [
            ("written", &exported.written),
            ("removed", &exported.removed),
            ("stale", &exported.stale),
        ] {
            for path in paths {
                output.line(format_args!("{what:8} {}", path.display()))?;
            }
        }
        Ok(())
    })?;
    if context.output.is_json() {
        return Ok(());
    }
    let Exported {
        written,
        unchanged,
        stale,
        removed,
    } = exported;
    let removed = if removed.is_empty() {
        String::new()
    } else {
        format!(", {} removed", removed.len())
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
    Ok(())
}

/// The agents of a directory as the body of an apply. `None`: there are none, and nothing is pruned.
fn body(arguments: &args::Directory, base: Option<&str>) -> Result<Option<ApplyAgents>> {
    let base = base.map(|base| parse("base", base)).transpose()?;
    let directory = Directory::open(&arguments.dir)?;
    let body = ApplyAgents {
        set: arguments.set.as_deref().map(|set| parse("set", set)).transpose()?,
        prune: arguments.prune,
        base,
        ..ApplyAgents::of(directory.read()?)
    };
    if directory.is_empty() && !body.prune {
        return Ok(None);
    }
    body.validate().map_err(Failure::error)?;
    Ok(Some(body))
}

pub async fn plan(context: &mut Context, arguments: &args::Directory, base: Option<&str>) -> Result<Code> {
    let body = body(arguments, base)?;
    let session = context.session()?;
    let workspace = session.workspace().await?;
    let planned = planned(context, &session, workspace, body.as_ref(), arguments).await?;
    context.output.show(&planned, |output| plan::show(output, &planned))?;
    if !context.output.is_json() {
        context
            .output
            .note(format_args!("Plan: {}.", plan::summary(&planned, false)));
    }
    match plan::has_changes(&planned) {
        true => Ok(Code::Differences),
        false => Ok(Code::Done),
    }
}

/// What an apply would do.
async fn planned(
    context: &mut Context,
    session: &Session,
    workspace: WorkspaceId,
    body: Option<&ApplyAgents>,
    arguments: &args::Directory,
) -> Result<AppliedAgents> {
    if let Some(body) = body {
        let _progress = Progress::spinner("Comparing with the server");
        return Ok(session.client.apply_agents(workspace, body, true).await?);
    }
    // The API takes no empty list, and this one changes nothing.
    context
        .output
        .note(format_args!("{} has no files of agents.", arguments.dir.display()));
    let (_, cursor) = session
        .client
        .list_agents_with_cursor(workspace, &AgentFilter::default())
        .await?;
    Ok(AppliedAgents {
        cursor,
        results: Vec::new(),
    })
}

pub async fn apply(
    context: &mut Context,
    arguments: &args::Directory,
    base: Option<&str>,
    reason: &Reason,
    yes: bool,
) -> Result<Code> {
    let body = body(arguments, base)?;
    let session = context.session()?;
    let client = session.because(reason)?;
    let workspace = session.workspace().await?;
    let asks = !yes && !context.output.is_json() && terminal::is_attended();
    let mut body = match body {
        Some(body) => body,
        None => {
            let unchanged = planned(context, &session, workspace, None, arguments).await?;
            context.output.show(&unchanged, |_| Ok(()))?;
            return Ok(Code::Done);
        }
    };
    if asks {
        let planned = planned(context, &session, workspace, Some(&body), arguments).await?;
        plan::show(&mut context.output, &planned)?;
        context
            .output
            .note(format_args!("Plan: {}.", plan::summary(&planned, false)));
        if plan::has_changes(&planned) {
            terminal::confirm("Apply these changes?")?;
        }
        // What is applied is what was shown.
        body.base = body.base.or(Some(planned.cursor));
    }
    let progress = Progress::spinner("Applying");
    let applied = client.apply_agents(workspace, &body, false).await;
    drop(progress);
    let applied = applied.map_err(|error| match error.is_precondition_failed() {
        true => Failure::with_code(Code::Conflict, "the agents have changed meanwhile; nothing was applied")
            .hint("Run the command again to see what it would change now."),
        false => error.into(),
    })?;
    context.output.show(
        &applied,
        |output| if asks { Ok(()) } else { plan::show(output, &applied) },
    )?;
    if !context.output.is_json() {
        context
            .output
            .note(format_args!("Applied: {}.", plan::summary(&applied, true)));
    }
    Ok(Code::Done)
}
