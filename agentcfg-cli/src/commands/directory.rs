//! Files as agents: plan and apply.

use agentcfg_client::AgentFilter;
use agentcfg_client::model::{AppliedAgents, ApplyAgents, WorkspaceId};

use super::context::Context;
use super::plan;
use crate::agent_file::{EXTENSION, Problem};
use crate::args::{self, Reason};
use crate::failure::{Code, CommandFailure, Result};
use crate::file::Directory;
use crate::session::{Session, parse};
use crate::terminal::{self, Progress};

/// The agents of a directory as the body of an apply. `None`: there are none, and nothing is pruned.
fn body(arguments: &args::Directory, base: Option<&str>) -> Result<Option<ApplyAgents>> {
    let base = base.map(|base| parse("base", base)).transpose()?;
    let directory = Directory::open(&arguments.dir)?;
    let body = ApplyAgents::of(directory.read()?)
        .set(arguments.set.as_deref().map(|set| parse("set", set)).transpose()?)
        .prune(arguments.prune)
        .base(base);
    if directory.is_empty() && !body.prune {
        return Ok(None);
    }
    body.validate().map_err(CommandFailure::error)?;
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
        let planned = session.client.apply_agents(workspace, body, true).await;
        return planned.map_err(|error| in_files(error, body, arguments));
    }
    // The API takes no empty list, and this one changes nothing.
    context
        .output
        .note(format_args!("{} has no files of agents.", arguments.dir.display()));
    let (_, cursor) = session
        .client
        .list_agents_with_cursor(workspace, &AgentFilter::default())
        .await?;
    Ok(AppliedAgents::nothing(cursor))
}

/// The problems of the files where the server refuses agents of them by a rule that only it knows, such as a limit of its
/// settings; else the failure of the call.
fn in_files(error: agentcfg_client::Error, body: &ApplyAgents, arguments: &args::Directory) -> CommandFailure {
    let file_of = |fault: &str| {
        let (index, rule) = fault.strip_prefix("agents[")?.split_once("].")?;
        let agent = body.agents.get(index.parse::<usize>().ok()?)?;
        let file = arguments.dir.join(format!("{}.{EXTENSION}", agent.agent_id));
        Some(Problem::of(&file, rule))
    };
    let problems: Option<Vec<_>> = match error.is_invalid() {
        true => error.message().split("; ").map(file_of).collect(),
        false => None,
    };
    problems.map_or_else(|| error.into(), CommandFailure::Files)
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
        true => CommandFailure::with_code(Code::Conflict, "the agents have changed meanwhile; nothing was applied")
            .hint("Run the command again to see what it would change now."),
        false => in_files(error, &body, arguments),
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
