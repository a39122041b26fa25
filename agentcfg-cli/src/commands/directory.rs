//! Files as agents: plan and apply.

use std::path::{Component, Path};

use agentcfg_client::model::{AppliedAgents, ApplyAgents, WorkspaceId};
use agentcfg_client::{AgentFilter, Client};

use super::context::Context;
use super::{plan, prune};
use crate::agent_file::{EXTENSION, Place, Problem, place_of_fault};
use crate::args::{self, Apply};
use crate::failure::{Code, CommandFailure, Result, count};
use crate::file::{self, Directory};
use crate::session::parse;
use crate::terminal::{self, Progress};

/// The most files that a warning names.
const MAX_NAMED: usize = 3;

/// The agents of a directory as the body of an apply. `None`: there are none, and nothing is pruned.
fn body(context: &mut Context, arguments: &args::Directory, base: Option<&str>) -> Result<Option<ApplyAgents>> {
    let base = base.map(|base| parse("base", base)).transpose()?;
    let directory = Directory::open(&arguments.dir)?;
    warn_of_windows_lines(context, &directory);
    let body = ApplyAgents::of(directory.read(arguments.conflicts.markers())?)
        .set(arguments.set.as_deref().map(|set| parse("set", set)).transpose()?)
        .prune(arguments.prune)
        .base(base);
    if directory.is_empty() && !body.prune {
        note_empty(context, &directory);
        return Ok(None);
    }
    body.validate().map_err(CommandFailure::error)?;
    Ok(Some(body))
}

/// Warns once of lines that end as on Windows, which a persona keeps.
pub(super) fn warn_of_windows_lines(context: &mut Context, directory: &Directory) {
    let files = directory.with_windows_lines();
    if files.is_empty() {
        return;
    }
    let named: Vec<_> = files
        .iter()
        .take(MAX_NAMED)
        .map(|path| path.display().to_string())
        .collect();
    let more = match files.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let have = if files.len() == 1 { "has" } else { "have" };
    context.output.note(format_args!(
        "warning: {} {have} lines that end as on Windows (CRLF), which become part of the persona: {}{more}\n         \
         If git has converted them, put this line into .gitattributes: {} -text",
        count(files.len(), "file"),
        named.join(", "),
        git_pattern(directory.path())
    ));
}

/// The files of a directory as a pattern of `.gitattributes`, which is relative to the directory of the repository.
/// Where that is not known, the pattern is one for all directories. A pattern with a space is in quotes.
fn git_pattern(dir: &Path) -> String {
    let is_special = |c: char| matches!(c, '*' | '?' | '[' | '\\' | '!' | '#' | '"') || c.is_control();
    let names = dir.components().filter(|part| *part != Component::CurDir);
    let names: Option<Vec<_>> = names
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    match names {
        Some(names) if !names.is_empty() && !names.iter().any(|name| name.contains(is_special)) => {
            let pattern = format!("{}/*.{EXTENSION}", names.join("/"));
            match pattern.contains(char::is_whitespace) {
                true => format!("\"{pattern}\""),
                false => pattern,
            }
        }
        _ => format!("*.{EXTENSION}"),
    }
}

/// Notes that a directory has no files of agents, and where they are.
pub(super) fn note_empty(context: &mut Context, directory: &Directory) {
    let dir = directory.path();
    context
        .output
        .note(format_args!("{} has no files of agents.", dir.display()));
    for ignored in prune::ignored(dir) {
        context.output.note(format_args!("warning: {ignored}"));
    }
}

/// A directory, its agents, and where they go.
struct Job<'a> {
    arguments: &'a args::Directory,
    client: Client,
    workspace: WorkspaceId,
    body: Option<ApplyAgents>,
}

impl<'a> Job<'a> {
    async fn open(
        context: &mut Context,
        arguments: &'a args::Directory,
        base: Option<&str>,
        reason: Option<&args::Reason>,
    ) -> Result<Self> {
        // Problems of the files are reported without a server too.
        let body = body(context, arguments, base)?;
        let session = context.session()?;
        Ok(Self {
            arguments,
            client: match reason {
                Some(reason) => session.because(reason)?,
                None => session.client.clone(),
            },
            workspace: session.workspace().await?,
            body,
        })
    }

    /// What an apply would do.
    async fn plan(&self) -> Result<AppliedAgents> {
        if let Some(body) = &self.body {
            let _progress = Progress::spinner("Comparing with the server");
            let planned = self.client.apply_agents(self.workspace, body, true).await;
            return planned.map_err(|error| {
                match error.is_forbidden() && error.message().contains("agents:configure") {
                    true => CommandFailure::with_code(Code::Refused, error.message()).hint(
                        "This server makes a plan only with a key of scope write. Later ones need agents:read alone.",
                    ),
                    false => in_files(error, body, self.arguments),
                }
            });
        }
        // The API takes no empty list, and this one changes nothing.
        let active = AgentFilter::default();
        let (_, cursor) = self.client.list_agents_with_cursor(self.workspace, &active).await?;
        Ok(AppliedAgents::nothing(cursor))
    }

    /// Why this plan is not applied.
    async fn refusal(&self, planned: &AppliedAgents) -> Result<Option<CommandFailure>> {
        let set = self.body.as_ref().and_then(|body| body.set.as_ref());
        let args::Directory { dir, prune_limit, .. } = self.arguments;
        prune::refusal(&self.client, self.workspace, set, planned, *prune_limit, dir).await
    }
}

/// Shows a plan: its changes, and what they come to.
fn show(context: &mut Context, planned: &AppliedAgents) -> Result<()> {
    context.output.show(planned, |output| plan::show(output, planned))?;
    if !context.output.is_json() {
        note_summary(context, planned);
    }
    Ok(())
}

fn note_summary(context: &mut Context, planned: &AppliedAgents) {
    let summary = plan::summary(planned, false);
    context.output.note(format_args!("Plan: {summary}."));
}

pub async fn plan(context: &mut Context, arguments: &args::Directory) -> Result<Code> {
    let job = Job::open(context, arguments, None, None).await?;
    let planned = job.plan().await?;
    show(context, &planned)?;
    if let Some(refusal) = job.refusal(&planned).await? {
        context.warn(&refusal);
    }
    match plan::has_changes(&planned) {
        true => Ok(Code::Differences),
        false => Ok(Code::Done),
    }
}

/// Shows what an apply would do, and fails where it would.
pub async fn dry_run(context: &mut Context, arguments: &Apply) -> Result<Code> {
    let job = Job::open(context, &arguments.directory, arguments.base.as_deref(), None).await?;
    let planned = job.plan().await?;
    show(context, &planned)?;
    match job.refusal(&planned).await? {
        Some(refusal) => Err(refusal),
        None => Ok(Code::Done),
    }
}

/// The problems of the files where the server refuses agents of them by a rule that only it knows, such as a limit of
/// its settings; else the failure of the call.
fn in_files(error: agentcfg_client::Error, body: &ApplyAgents, arguments: &args::Directory) -> CommandFailure {
    let problem = |fault| problem_in(&arguments.dir, body, fault);
    let problems: Option<Vec<_>> = match error.is_invalid() {
        true => error.message().split("; ").map(problem).collect(),
        false => None,
    };
    problems.map_or_else(|| error.into(), CommandFailure::Files)
}

/// A fault of an agent of the body, at its place in the agent's file.
fn problem_in(dir: &Path, body: &ApplyAgents, fault: &str) -> Option<Problem> {
    let (index, rule) = fault.strip_prefix("agents[")?.split_once("].")?;
    let agent = body.agents.get(index.parse::<usize>().ok()?)?;
    let file = dir.join(format!("{}.{EXTENSION}", agent.agent_id));
    let place = file::content(&file).map_or(Place::START, |bytes| place_of_fault(&file, &bytes, rule));
    Some(Problem::new(&file, place, rule))
}

pub async fn apply(context: &mut Context, arguments: &Apply) -> Result<Code> {
    let base = arguments.base.as_deref();
    let mut job = Job::open(context, &arguments.directory, base, Some(&arguments.reason)).await?;
    let asks = !arguments.yes && terminal::is_attended();
    let follows_its_plan = base.is_none() && !arguments.force;
    let mut planned = None;
    if asks || follows_its_plan || arguments.directory.prune || job.body.is_none() {
        let plan = job.plan().await.map_err(if_changed)?;
        if let Some(refusal) = job.refusal(&plan).await? {
            return Err(refusal);
        }
        planned = Some(plan);
    }
    let Some(body) = &mut job.body else {
        if let Some(nothing) = planned {
            context.output.show(&nothing, |_| Ok(()))?;
        }
        return Ok(Code::Done);
    };
    if let Some(planned) = planned {
        if asks {
            // The JSON on standard output is the one of the apply alone.
            match context.output.is_json() {
                true => note_summary(context, &planned),
                false => show(context, &planned)?,
            }
            if plan::has_changes(&planned) {
                terminal::confirm("Apply these changes?")?;
            }
        }
        if follows_its_plan {
            body.base = Some(planned.cursor);
        }
    }
    let progress = Progress::spinner("Applying");
    let applied = job.client.apply_agents(job.workspace, body, false).await;
    drop(progress);
    let applied = applied.map_err(|error| if_changed(in_files(error, body, job.arguments)))?;
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

/// A failure because agents have changed since the plan, with the way out; else the failure as it is.
fn if_changed(failure: CommandFailure) -> CommandFailure {
    match failure {
        CommandFailure::Call(error) if error.is_precondition_failed() => {
            let message = format!(
                "the agents have changed meanwhile; nothing was applied: {}",
                error.message()
            );
            CommandFailure::with_code(Code::Conflict, message).hint(
                "`agentcfg plan` shows what an apply would change now. --force, in place of --base, applies without regard to such changes.",
            )
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_file::Markers;

    #[test]
    fn a_fault_that_the_server_found_is_at_its_place_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let front = "---\nagent_id: writer\ndisplay_name: W\nparameters:\n  tone: 7\n---\n";
        std::fs::write(dir.path().join("other.md"), "---\ndisplay_name: O\n---\n").unwrap();
        std::fs::write(dir.path().join("writer.md"), format!("{front}You write.\n")).unwrap();
        let body = ApplyAgents::of(Directory::open(dir.path()).unwrap().read(Markers::Refuse).unwrap());
        let place = |fault: &str| {
            let problem = problem_in(dir.path(), &body, fault)?;
            assert!(fault.ends_with(&problem.message), "{}", problem.message);
            assert!(problem.file.ends_with("writer.md"), "{}", problem.file.display());
            Some((problem.place.line, problem.place.column))
        };
        let long = "must be at most 5 characters, got 10 (the setting max_persona_prompt is the limit)";
        for (field, at) in [
            ("persona_prompt", (7, 1)),
            ("display_name", (3, 15)),
            ("parameters.tone", (5, 9)),
            // The file does not have it.
            ("role", (1, 1)),
        ] {
            assert_eq!(place(&format!("agents[1].{field} {long}")), Some(at), "{field}");
        }
        assert_eq!(place(&format!("agents[9].persona_prompt {long}")), None);
        assert_eq!(place("base must be a cursor"), None);
        std::fs::remove_file(dir.path().join("writer.md")).unwrap();
        assert_eq!(place(&format!("agents[1].persona_prompt {long}")), Some((1, 1)));
    }

    #[test]
    fn the_pattern_for_git_names_the_directory_where_it_is_known() {
        for (dir, expected) in [
            ("agents", "agents/*.md"),
            ("./agents/", "agents/*.md"),
            ("my/agents", "my/agents/*.md"),
            (".config/agents", ".config/agents/*.md"),
            (".", "*.md"),
            ("../agents", "*.md"),
            ("/srv/agents", "*.md"),
            ("my agents", "\"my agents/*.md\""),
            ("a[b]", "*.md"),
            ("say \"hi\"", "*.md"),
        ] {
            assert_eq!(git_pattern(Path::new(dir)), expected, "{dir}");
        }
    }
}
