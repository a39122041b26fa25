//! Agents of other tools to files or to the workspace: import.

use agentcfg_client::AgentFilter;
use agentcfg_client::model::{AgentState, Label, Permission};
use agentcfg_core::validate::{DEFAULT_PERSONA_PROMPT, MAX_PERSONA_PROMPT};

use super::context::Context;
use super::import_apply;
use super::import_files;
use super::import_report::{Report, Row, Target, TooLong};
use super::importer::{Known, Ready};
use crate::agent_file::{Fields, Problem};
use crate::args::Import;
use crate::failure::{Code, CommandFailure, Result};
use crate::import::{self, Imported, Node, Went, formats};
use crate::session::{Session, parse};
use crate::terminal::Progress;

pub async fn run(context: &mut Context, arguments: &Import) -> Result<Code> {
    if arguments.json {
        context.output.use_json();
    }
    let format =
        formats::format(&arguments.format).ok_or_else(|| CommandFailure::with_code(Code::Usage, "unknown format"))?;
    if let Some(label) = &arguments.label {
        parse::<Label>("label", label)?;
        if label == "latest" {
            return Err(CommandFailure::error(
                "the label latest is always at the current version",
            ));
        }
    }
    let mut went = Went::new();
    let mut reading = import::read(format, &arguments.paths, arguments.conflicts.markers())?;
    let agents = import::agents(format, &mut reading, &mut went);

    let session = match arguments.apply {
        true => Some(context.session()?),
        false => None,
    };
    let (limit, known) = match &session {
        Some(session) => {
            let is_labelled = arguments.label.is_some() || agents.iter().any(|agent| !agent.labels.is_empty());
            let limit = workspace_limit(session, is_labelled && !arguments.dry_run).await?;
            (limit, known(session).await?)
        }
        None => (DEFAULT_PERSONA_PROMPT as usize, Known::new()),
    };
    let mut report = Report::of(format.word, &agents, went, reading);
    report.dry_run = arguments.dry_run || (arguments.out.is_none() && !arguments.apply);
    report.target = match (&arguments.out, arguments.apply) {
        (Some(_), _) => Target::Files,
        (None, true) => Target::Workspace,
        (None, false) => Target::Report,
    };
    let ready = ready(agents, limit, arguments.apply, &known, &mut report);

    if let Some(dir) = &arguments.out {
        import_files::write(dir, &ready, arguments.overwrite, &mut report)?;
    }
    if let Some(session) = session {
        import_apply::run(&session, format, arguments, (&known, &ready), &mut report).await?;
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

/// How long a persona may be in the workspace. Fails where labels are to be set that the credential may not set.
async fn workspace_limit(session: &Session, is_labelled: bool) -> Result<usize> {
    let workspace = session.workspace().await?;
    let workspaces = session.client.whoami().await?.workspaces;
    let row = workspaces.into_iter().find(|row| row.id == workspace);
    if is_labelled
        && row
            .as_ref()
            .is_some_and(|row| !row.permissions.contains(&Permission::AgentsRelease))
    {
        let message = "the credential may not set labels, which needs agents:release; nothing was changed";
        return Err(CommandFailure::with_code(Code::Refused, message));
    }
    Ok(row.map_or(DEFAULT_PERSONA_PROMPT, |row| row.limits.persona_prompt) as usize)
}

fn persona(agent: &Imported) -> &str {
    agent.field(Fields::BODY).and_then(Node::as_text).unwrap_or_default()
}

/// The agents of the workspace.
async fn known(session: &Session) -> Result<Known> {
    let workspace = session.workspace().await?;
    let filter = AgentFilter::default().state(AgentState::All);
    let _progress = Progress::spinner("Reading the agents");
    let agents = session.client.list_agents(workspace, &filter).await?.value;
    Ok(agents
        .into_iter()
        .map(|agent| (agent.agent_id.to_string(), agent))
        .collect())
}

/// Whether an agent of the workspace has this persona. One that stays as it is may be longer than a limit that is lower
/// now, also if the agent is deactivated.
fn is_stored(known: &Known, agent_id: &str, persona: &str) -> bool {
    let agent = known.get(agent_id);
    agent.is_some_and(|agent| agent.persona_prompt.as_deref() == Some(persona))
}

/// The agents that follow the rules of the service. An agent with a problem in one of its versions is left out with all
/// of them.
fn ready(agents: Vec<Imported>, limit: usize, is_applied: bool, known: &Known, report: &mut Report) -> Vec<Ready> {
    let mut ready: Vec<Ready> = Vec::new();
    let mut refused: std::collections::BTreeSet<String> = std::collections::BTreeSet::new();
    for imported in agents {
        let persona = persona(&imported);
        let characters = persona.chars().count();
        if characters > limit && !is_stored(known, &imported.agent_id, persona) {
            report.too_long.push(TooLong {
                agent_id: imported.agent_id.clone(),
                field: Fields::BODY,
                characters,
                limit,
                setting: "max_persona_prompt",
            });
            if is_applied {
                let way = match characters > MAX_PERSONA_PROMPT as usize {
                    true => format!("no setting allows more than {MAX_PERSONA_PROMPT}, so shorten it"),
                    false => format!("set max_persona_prompt to at least {characters}"),
                };
                let message = format!("the prompt has {characters} characters, and this server takes {limit}: {way}");
                let place = imported.field(Fields::BODY).map_or(imported.place, |node| node.place);
                let problem = Problem::new(&imported.file, place.max(imported.place), message);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_file::Markers;

    #[test]
    fn a_prompt_that_the_workspace_has_may_be_longer_than_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.md");
        std::fs::write(&path, "---\nname: a\ndescription: d\n---\nYou sort.\n").unwrap();
        let format = formats::format("claude-code").unwrap();
        let read = |stored: &[(&str, &str, bool)]| {
            let mut reading = import::read(format, std::slice::from_ref(&path), Markers::Refuse).unwrap();
            let agents = import::agents(format, &mut reading, &mut Went::new());
            let stored = stored.iter().map(|(id, persona, is_active)| {
                let agent = serde_json::json!({
                    "id": "018f2d7c-0000-7000-8000-000000000002",
                    "workspace_id": "018f2d7c-0000-7000-8000-000000000001",
                    "agent_id": id,
                    "display_name": id,
                    "role": null,
                    "description": null,
                    "agent_type": "ai",
                    "model": null,
                    "persona_prompt": persona,
                    "capabilities": [],
                    "parameters": {},
                    "is_active": is_active,
                    "created_at": "2026-01-01T00:00:00Z",
                    "updated_at": "2026-01-01T00:00:00Z",
                });
                ((*id).to_owned(), serde_json::from_value(agent).unwrap())
            });
            let mut report = Report::default();
            let number = ready(agents, 5, true, &stored.collect(), &mut report).len();
            (number, report.too_long.len(), report.problems.len())
        };
        assert_eq!(read(&[("a", "You sort.", true)]), (1, 0, 0));
        assert_eq!(read(&[("a", "You sort.", false)]), (1, 0, 0));
        assert_eq!(
            read(&[("a", "You sort mail.", true), ("b", "You sort.", true)]),
            (0, 1, 1)
        );
        assert_eq!(read(&[]), (0, 1, 1));
    }

    #[test]
    fn a_prompt_that_is_too_long_is_named_at_its_place() {
        let dir = tempfile::tempdir().unwrap();
        for (word, name, text, place) in [
            (
                "claude-code",
                "a.md",
                "---\nname: a\ndescription: d\n---\n\nYou sort.\n",
                (5, 1),
            ),
            (
                "codex",
                "a.toml",
                "name = \"a\"\ndeveloper_instructions = \"You sort.\"\n",
                (2, 26),
            ),
            (
                "openai",
                "a.json",
                "{\n  \"model\": \"m\",\n  \"instructions\": \"You sort.\"\n}\n",
                (3, 19),
            ),
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            let format = formats::format(word).unwrap();
            let mut reading = import::read(format, &[path], Markers::Refuse).unwrap();
            let agents = import::agents(format, &mut reading, &mut Went::new());
            let mut report = Report::default();
            ready(agents, 5, true, &Known::new(), &mut report);
            let problems: Vec<_> = report.problems.iter().map(|row| (row.line, row.column)).collect();
            assert_eq!(problems, [place], "{word}");
        }
    }
}
