//! Listing, showing and changing agents.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use agentcfg_client::AgentFilter;
use agentcfg_client::model::WorkspaceId;
use agentcfg_client::model::{
    Agent, AgentConfig, AgentSpec, AgentState, AsOf, Definition, NewAgent, Precondition, VersionSelector,
};
use serde_json::{Map, Value};

use super::context::Context;
use super::edit;
use crate::agent_file::{self, Fields, Markers};
use crate::args::{Agents, Create, CreateFields, Given, Reason, Selector};
use crate::failure::{Code, CommandFailure, Result};
use crate::output::{minute, or_dash, printable};
use crate::session::parse;
use crate::terminal;

pub async fn run(context: &mut Context, command: Agents) -> Result<Code> {
    match command {
        Agents::List { state, at, revision } => list(context, &state, at, revision).await,
        Agents::Get { agent, at } => get(context, &agent.agent, &at).await,
        Agents::Create(create) => self::create(context, *create).await,
        Agents::Edit { agent, reason } => edit::run(context, &agent.agent, &reason).await,
        Agents::Delete {
            agent,
            reason,
            yes,
            dry_run,
        } => delete(context, &agent.agent, &reason, yes, dry_run).await,
        Agents::Restore { agent, reason } => restore(context, &agent.agent, &reason).await,
    }
}

async fn list(context: &mut Context, state: &str, at: Option<String>, revision: Option<u64>) -> Result<Code> {
    let as_of = match at {
        Some(at) => Some(AsOf::At(parse("at", &at)?)),
        None => revision.map(AsOf::Revision),
    };
    let filter = AgentFilter::default()
        .state(parse::<AgentState>("state", state)?)
        .as_of(as_of);
    let session = context.session()?;
    let agents = session
        .client
        .list_agents(session.workspace().await?, &filter)
        .await?
        .value;
    context.output.show(&agents, |output| {
        let row = |agent: &Agent| {
            vec![
                agent.agent_id.to_string(),
                agent.display_name.clone(),
                agent.agent_type.to_string(),
                or_dash(agent.model.as_ref()),
                or_dash(agent.role.as_ref()),
                if agent.is_active { "active" } else { "inactive" }.to_owned(),
                minute(agent.updated_at),
            ]
        };
        let rows = agents.iter().map(row).collect();
        output.table(&["AGENT", "NAME", "TYPE", "MODEL", "ROLE", "STATE", "UPDATED"], rows)
    })?;
    if agents.is_empty() && !context.output.is_json() {
        context.output.note(none(filter.state, filter.as_of.is_some()));
    }
    Ok(Code::Done)
}

/// What a list without agents says.
fn none(state: AgentState, is_past: bool) -> &'static str {
    match (state, is_past) {
        (AgentState::Inactive, false) => "There are no inactive agents.",
        (AgentState::Active, false) => "There are no active agents. Create one with `agentcfg agents create`.",
        (_, false) => "There are no agents. Create one with `agentcfg agents create`.",
        (AgentState::Inactive, true) => "There were no inactive agents then.",
        (AgentState::Active, true) => "There were no active agents then.",
        (_, true) => "There were no agents then.",
    }
}

async fn get(context: &mut Context, agent_id: &str, selector: &Selector) -> Result<Code> {
    let selector = match selector {
        Selector {
            version: Some(version), ..
        } => VersionSelector::Version(*version),
        Selector { label: Some(label), .. } => VersionSelector::Label(label),
        Selector { at: Some(at), .. } => VersionSelector::At(parse("at", at)?),
        Selector {
            revision: Some(revision),
            ..
        } => VersionSelector::Revision(*revision),
        _ => VersionSelector::Current,
    };
    let session = context.session()?;
    let output = &mut context.output;
    if selector == VersionSelector::Current {
        let agent = session
            .client
            .get_agent(session.workspace().await?, agent_id)
            .await?
            .value;
        output.show(&agent, |output| output.text(&text(&agent.agent_id, &agent.config())?))?;
    } else {
        let version = session.client.get_version(session.named, agent_id, selector).await?;
        output.show(&version, |output| {
            output.text(&text(&version.agent_id, &version.config)?)
        })?;
    }
    Ok(Code::Done)
}

fn text(agent_id: &str, config: &AgentConfig) -> Result<String> {
    Ok(agent_file::write(agent_id, &Fields::of(config)?))
}

async fn create(context: &mut Context, create: Create) -> Result<Code> {
    let spec = match (&create.file, &create.agent) {
        (Some(path), _) => from_file(path, Markers::allowed_if(create.allow_conflict_markers))?,
        (None, Some(agent_id)) => from_options(agent_id, create.fields)?,
        (None, None) => return Err(CommandFailure::with_code(Code::Usage, "an agent or --file is required")),
    };
    let session = context.session()?;
    let client = session.because(&create.reason)?;
    let new = new_agent(session.workspace().await?, &spec)?;
    let agent = client.create_agent(&new).await?;
    context.output.show(&agent.value, |output| {
        output.line(format_args!(
            "created {}, version {}",
            agent.value.agent_id, agent.version
        ))
    })?;
    Ok(Code::Done)
}

fn from_file(path: &Path, markers: Markers) -> Result<AgentSpec> {
    let bytes = fs::read(path).map_err(|error| CommandFailure::io(path.display(), &error))?;
    agent_file::read(path, &bytes, markers).map_err(CommandFailure::Files)
}

/// An agent of the options, checked by the rules of the API: the fields of an agent are named as the options are.
fn from_options(agent_id: &str, fields: CreateFields) -> Result<AgentSpec> {
    let mut body = Map::new();
    body.insert("agent_id".into(), agent_id.into());
    let mut definition = None;
    for (field, given) in fields.0 {
        let value = match given {
            Given::Text(text) => text.into(),
            Given::File(path) => content(&path)?.into(),
            Given::Texts(texts) => texts.into(),
            Given::Numbers(entries) => numbers(&entries)?.into(),
            Given::Json(path) => {
                let read = Definition::from_json(content(&path)?.as_bytes());
                definition =
                    Some(read.map_err(|invalid| CommandFailure::error(format_args!("{}: {invalid}", path.display())))?);
                continue;
            }
        };
        body.insert(field.name.into(), value);
    }
    let spec = AgentSpec::from_json(&serde_json::to_vec(&body)?);
    let mut spec = spec.map_err(CommandFailure::error)?.into_inner();
    spec.definition = definition;
    Ok(spec)
}

/// The numbers of texts such as `formality=70`.
fn numbers(entries: &[String]) -> Result<Map<String, Value>> {
    let mut numbers = Map::new();
    for entry in entries {
        let wrong = || {
            CommandFailure::error(format_args!(
                "--parameter must be NAME=NUMBER, got {}",
                printable(entry)
            ))
        };
        let (name, number) = entry.split_once('=').ok_or_else(wrong)?;
        let number: Value = serde_json::from_str(number).map_err(|error| match error.to_string() {
            message if message.starts_with("number out of range") => CommandFailure::error(format_args!(
                "--parameter {}: the number is out of range",
                printable(entry)
            )),
            _ => wrong(),
        })?;
        if numbers.insert(name.to_owned(), number).is_some() {
            return Err(CommandFailure::error(format_args!(
                "--parameter must name {} once",
                printable(name)
            )));
        }
    }
    Ok(numbers)
}

/// The text in a file, or on standard input.
fn content(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        io::stdin()
            .lock()
            .read_to_string(&mut text)
            .map_err(|error| CommandFailure::io("standard input", &error))?;
        return Ok(text);
    }
    fs::read_to_string(path).map_err(|error| CommandFailure::io(path.display(), &error))
}

fn new_agent(workspace: WorkspaceId, spec: &AgentSpec) -> Result<NewAgent> {
    let Value::Object(mut body) = serde_json::to_value(spec)? else {
        return Err(CommandFailure::error("an agent must be an object"));
    };
    body.insert("workspace_id".into(), workspace.to_string().into());
    let new = NewAgent::from_json(&serde_json::to_vec(&body)?);
    Ok(new.map_err(CommandFailure::error)?.into_inner())
}

async fn delete(context: &mut Context, agent_id: &str, reason: &Reason, yes: bool, dry_run: bool) -> Result<Code> {
    let session = context.session()?;
    let client = session.because(reason)?;
    let workspace = session.workspace().await?;
    let mut condition = Precondition::None;
    if dry_run || (!yes && terminal::is_attended()) {
        let agent = client.get_agent(workspace, agent_id).await?;
        if dry_run {
            let would = format!("{agent_id} would be deleted");
            context.output.show(&agent.value, |output| output.line(would))?;
            return Ok(Code::Done);
        }
        let name = printable(&agent.value.display_name);
        terminal::confirm(&format!("Delete {agent_id} ({name}), which can be restored?"))?;
        // What the user saw is what is deleted.
        condition = Precondition::matches(agent.tag);
    }
    client.delete_agent(Some(workspace), agent_id, &condition).await?;
    let done = serde_json::json!({"success": true});
    context
        .output
        .show(&done, |output| output.line(format_args!("deleted {agent_id}")))?;
    Ok(Code::Done)
}

async fn restore(context: &mut Context, agent_id: &str, reason: &Reason) -> Result<Code> {
    let session = context.session()?;
    let client = session.because(reason)?;
    let agent = client
        .restore_agent(session.named, agent_id, &Precondition::None)
        .await?;
    context.output.show(&agent.value, |output| {
        output.line(format_args!("restored {agent_id}, version {}", agent.version))
    })?;
    Ok(Code::Done)
}

#[cfg(test)]
mod tests {
    use agentcfg_client::model::FieldValues;
    use clap::{Args, Parser};

    use super::*;
    use crate::args::{Arguments, Command};

    /// The fields of a command line.
    fn parsed(options: &[&str]) -> CreateFields {
        let line = [&["agentcfg", "agents", "create", "writer"], options].concat();
        match Arguments::try_parse_from(line).unwrap().command {
            Command::Agents(Agents::Create(create)) => create.fields,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_field_of_an_agent_has_an_option() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("text");
        fs::write(&file, "You write.\n").unwrap();
        let json = dir.path().join("json");
        fs::write(&json, r#"{"tools": ["search"]}"#).unwrap();
        let command = CreateFields::augment_args(clap::Command::new("create"));
        for (field, option) in AgentConfig::fields().iter().zip(command.get_arguments()) {
            let value = match field.values {
                FieldValues::Object { .. } => json.to_str().unwrap(),
                _ if option.get_value_names().unwrap()[0] == "FILE" => file.to_str().unwrap(),
                FieldValues::Numbers { .. } => "tone=0.5",
                FieldValues::Words(words) => words.last().unwrap(),
                _ => "#fff",
            };
            let name = option.get_long().unwrap();
            let line = [format!("--{name}"), value.to_owned()];
            let mut line: Vec<&str> = line.iter().map(String::as_str).collect();
            if name != "display-name" {
                line.extend(["--display-name", "Writer"]);
            }
            let spec = from_options("writer", parsed(&line)).unwrap();
            let written = Fields::of_spec(&spec).unwrap();
            assert!(
                !agent_file::field(field.name, written.get(field.name)).is_empty(),
                "--{name} does not set {}",
                field.name
            );
        }
        let spec = from_options(
            "writer",
            parsed(&[
                "--display-name",
                "Writer",
                "--persona-file",
                file.to_str().unwrap(),
                "--capability",
                "a",
                "--capability",
                "b",
            ]),
        );
        let spec = spec.unwrap();
        assert_eq!(spec.persona_prompt.as_deref(), Some("You write.\n"));
        assert_eq!(spec.capabilities, ["a", "b"]);
    }

    #[test]
    fn a_list_without_agents_says_which_there_are_not() {
        assert_eq!(none(AgentState::Inactive, false), "There are no inactive agents.");
        assert!(none(AgentState::Active, false).contains("agents create"));
        assert!(!none(AgentState::All, true).contains("agents create"));
    }
}
