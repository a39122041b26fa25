//! Agents of other tools to files or to the workspace: import.

use std::fs;
use std::path::Path;

use agentcfg_core::validate::DEFAULT_PERSONA_PROMPT;

use super::context::Context;
use super::import_apply::{self, Ready};
use super::import_report::{Report, Row, TooLong};
use crate::agent_file::{self, Fields, is_agent_file};
use crate::args::Import;
use crate::failure::{Code, CommandFailure, Result};
use crate::file::{self, Directory};
use crate::import::{self, Imported, Node, Went, formats};
use crate::session::Session;

pub async fn run(context: &mut Context, arguments: &Import) -> Result<Code> {
    if arguments.json {
        context.output.use_json();
    }
    let format =
        formats::format(&arguments.format).ok_or_else(|| CommandFailure::with_code(Code::Usage, "unknown format"))?;
    let mut went = Went::new();
    let mut reading = import::read(format, &arguments.paths)?;
    let agents = import::agents(format, &mut reading, &mut went);

    let session = match arguments.apply {
        true => Some(context.session()?),
        false => None,
    };
    let limit = match &session {
        Some(session) => persona_limit(session).await?,
        None => DEFAULT_PERSONA_PROMPT as usize,
    };
    let mut report = Report::of(format.word, &agents, went, reading);
    report.dry_run = arguments.dry_run || (arguments.out.is_none() && !arguments.apply);
    let ready = ready(agents, limit, arguments.apply, &mut report);

    if let Some(dir) = &arguments.out {
        write(dir, &ready, &mut report)?;
    }
    if let Some(session) = session {
        import_apply::run(&session, format, arguments, &ready, &mut report).await?;
    }
    report.print(context)?;
    if arguments.label.is_some() && !arguments.apply {
        context
            .output
            .note("Labels are of versions in a workspace: --apply sets --label.");
    }
    match report.problems.is_empty() {
        true => Ok(Code::Done),
        false => Ok(Code::Error),
    }
}

/// How long a persona may be in the workspace.
async fn persona_limit(session: &Session) -> Result<usize> {
    let workspace = session.workspace().await?;
    let workspaces = session.client.whoami().await?.workspaces;
    let row = workspaces.into_iter().find(|row| row.id == workspace);
    Ok(row.map_or(DEFAULT_PERSONA_PROMPT, |row| row.limits.persona_prompt) as usize)
}

/// The agents that follow the rules of the service. An agent with a problem in one of its versions is left out with all of them.
fn ready(agents: Vec<Imported>, limit: usize, is_applied: bool, report: &mut Report) -> Vec<Ready> {
    let mut ready: Vec<Ready> = Vec::new();
    let mut refused: std::collections::BTreeSet<String> = std::collections::BTreeSet::new();
    for imported in agents {
        let persona = imported.field(Fields::BODY).and_then(Node::as_text).unwrap_or_default();
        let characters = persona.chars().count();
        if characters > limit {
            report.too_long.push(TooLong {
                agent_id: imported.agent_id.clone(),
                field: Fields::BODY,
                characters,
                limit,
                setting: "max_persona_prompt",
            });
            if is_applied {
                let message = format!(
                    "the prompt has {characters} characters, and this server takes {limit}: set max_persona_prompt to at least {characters}"
                );
                let problem = crate::agent_file::Problem::new(&imported.file, imported.place, message);
                report.problems.push(Row::from(&problem));
                refused.insert(imported.agent_id.clone());
                continue;
            }
        }
        match imported.spec() {
            Ok(spec) => ready.push(Ready { imported, spec }),
            Err(problems) => {
                report.problems.extend(problems.iter().map(Row::from));
                refused.insert(imported.agent_id);
            }
        }
    }
    ready.retain(|one| !refused.contains(&one.imported.agent_id));
    report.agents.retain(|row| !refused.contains(&row.agent_id));
    ready
}

/// Writes the newest version of each agent as its file.
fn write(dir: &Path, ready: &[Ready], report: &mut Report) -> Result<()> {
    let directory = match dir.exists() {
        true => Some(Directory::open(dir)?),
        false => None,
    };
    if !report.dry_run {
        fs::create_dir_all(dir).map_err(|error| CommandFailure::io(dir.display(), &error))?;
        file::remove_leftovers(dir)?;
    }
    let newest = ready.iter().enumerate().filter(|(i, one)| {
        ready
            .get(i + 1)
            .is_none_or(|next| next.imported.agent_id != one.imported.agent_id)
    });
    let mut changed = Vec::new();
    for (_, one) in newest {
        let agent_id = one.spec.agent_id.as_str();
        let path = dir.join(format!("{agent_id}.{}", agent_file::EXTENSION));
        let text = agent_file::write(agent_id, &Fields::of_spec(&one.spec)?);
        if directory.is_some() && fs::symlink_metadata(&path).is_ok() {
            match file::content(&path) {
                Ok(bytes) if bytes == text.as_bytes() => {
                    report.unchanged += 1;
                    continue;
                }
                Ok(bytes) if is_agent_file(&path, &bytes) => {}
                _ => {
                    let message = format!("{} is not the file of an agent, and is not overwritten", path.display());
                    return Err(CommandFailure::error(message).hint("Move it, or import to another directory."));
                }
            }
        }
        changed.push((path, text));
    }
    for (path, text) in changed {
        if !report.dry_run {
            file::write_file(&path, text.as_bytes())?;
        }
        report.written.push(path);
    }
    let older = ready.len() - report.written.len() - report.unchanged;
    if older > 0 {
        let message =
            format!("{older} earlier versions are not in the files, which have the newest one: --apply makes them all");
        report.warnings.push(Row {
            file: dir.to_owned(),
            line: 1,
            column: 1,
            message,
        });
    }
    Ok(())
}
