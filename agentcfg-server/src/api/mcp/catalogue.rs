//! Resources and prompts: agents to read, and their personas to use.
//!
//! Both belong to the one workspace of the caller. A user of several workspaces has empty lists.

use std::collections::HashMap;

use agentcfg_core::model::{Agent, AgentConfig, AgentFilter, AgentId, Label, VersionSelector, WorkspaceId};
use agentcfg_core::validate::{quoted, shown};
use agentcfg_core::{AgentCfg, Caller, Error, ErrorKind};
use serde_json::{Map, Value, json};

use super::json::object;
use super::message::{Era, RpcError};

/// Agents on each page of a list.
const PAGE: u32 = 500;

const AGENTS: &str = "agentcfg://agents/";
const STATUS: &str = "agentcfg://status";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

type RpcResult = Result<Map<String, Value>, RpcError>;

/// The templates of the resources' addresses.
pub(super) fn templates() -> Map<String, Value> {
    object(json!({"resourceTemplates": [
        {"uriTemplate": "agentcfg://agents/{agent_id}", "name": "agent", "title": "Configuration of an agent", "mimeType": JSON},
        {"uriTemplate": "agentcfg://agents/{agent_id}/prompt", "name": "prompt", "title": "Persona prompt of an agent", "mimeType": TEXT},
    ]}))
}

/// Answers `resources/list`.
pub(super) async fn resources(service: &AgentCfg, caller: &Caller, params: &Map<String, Value>) -> RpcResult {
    let (offset, rows) = listed(service, caller, params).await?;
    let Some(rows) = rows else {
        return Ok(object(json!({"resources": []})));
    };
    let mut resources = Vec::new();
    if offset == 0 {
        resources
            .push(json!({"uri": STATUS, "name": "status", "title": "Live status of all agents", "mimeType": JSON}));
    }
    for Row { agent, prompted } in &rows {
        let (id, title) = (&agent.agent_id, &agent.display_name);
        resources.push(json!({"uri": format!("{AGENTS}{id}"), "name": id, "title": title, "mimeType": JSON}));
        if prompted.as_ref().and_then(persona).is_some() {
            let uri = format!("{AGENTS}{id}/prompt");
            resources.push(json!({"uri": uri, "name": format!("{id}/prompt"), "title": format!("Prompt of {title}"), "mimeType": TEXT}));
        }
    }
    Ok(paged("resources", resources, offset, rows.len()))
}

/// Answers `resources/read`.
pub(super) async fn read(service: &AgentCfg, caller: &Caller, params: &Map<String, Value>, era: Era) -> RpcResult {
    let uri = params.get("uri").and_then(Value::as_str);
    let uri = uri.ok_or_else(|| RpcError::invalid_params("uri is required and must be a string"))?;
    let unknown = || RpcError::unknown_resource(uri, era);
    let workspace = service.default_workspace(caller).await?;
    let contents = |media_type: &str, text: String| {
        object(json!({"contents": [{"uri": uri, "mimeType": media_type, "text": text}]}))
    };
    if uri == STATUS {
        let status = service.agent_status(caller, workspace).await?;
        return Ok(contents(JSON, json!(status).to_string()));
    }
    let path = uri.strip_prefix(AGENTS).ok_or_else(unknown)?;
    let (agent_id, wants_prompt) = match path.strip_suffix("/prompt") {
        Some(agent_id) => (agent_id, true),
        None => (path, false),
    };
    let found = match wants_prompt {
        true => prompted(service, caller, workspace, (agent_id, None)).await,
        false => service
            .get_agent(caller, workspace, agent_id)
            .await
            .map(|found| found.value),
    };
    let agent = match found {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(unknown()),
        other => other?,
    };
    if wants_prompt {
        let persona = persona(&agent).ok_or_else(unknown)?;
        return Ok(contents(TEXT, persona.to_owned()));
    }
    Ok(contents(JSON, json!(agent).to_string()))
}

/// Answers `prompts/list`: each agent with a persona is a prompt.
pub(super) async fn prompts(service: &AgentCfg, caller: &Caller, params: &Map<String, Value>) -> RpcResult {
    let (offset, rows) = listed(service, caller, params).await?;
    let Some(rows) = rows else {
        return Ok(object(json!({"prompts": []})));
    };
    let prompted = rows.iter().filter_map(|row| row.prompted.as_ref());
    let prompts = prompted.filter(|agent| persona(agent).is_some()).map(|agent| {
        json!({
            "name": agent.agent_id,
            "title": agent.display_name,
            "description": described(agent),
            "arguments": [{"name": "task", "description": "What the agent is to do", "required": false}],
        })
    });
    Ok(paged("prompts", prompts.collect(), offset, rows.len()))
}

/// Answers `prompts/get`. A name may end with `@` and a label: then the persona is that of the version at the label. An
/// API key that is pinned to a label gets the version at that label.
pub(super) async fn prompt(service: &AgentCfg, caller: &Caller, params: &Map<String, Value>) -> RpcResult {
    let name = params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| RpcError::invalid_params("name is required and must be a string"))?;
    let task = task(params.get("arguments"))?;
    let unknown = |why: &str| RpcError::invalid_params(format!("unknown prompt {}: {why}", quoted(name)));
    let workspace = service.default_workspace(caller).await?;
    // No identifier has this character.
    let (agent_id, label) = match name.split_once('@') {
        Some((agent_id, label)) => (agent_id, Some(label)),
        None => (name, None),
    };
    let agent = match prompted(service, caller, workspace, (agent_id, label)).await {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(unknown(error.message())),
        other => other?,
    };
    let persona = persona(&agent).ok_or_else(|| unknown("the agent has no persona prompt"))?;
    let text = match task {
        Some(task) => format!("{persona}\n\n{task}"),
        None => persona.to_owned(),
    };
    Ok(object(json!({
        "description": described(&agent),
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    })))
}

/// An agent as its prompt shows it: with the configuration of the version at the label, or of that which the API key is
/// pinned to.
async fn prompted(
    service: &AgentCfg,
    caller: &Caller,
    workspace: WorkspaceId,
    (agent_id, label): (&str, Option<&str>),
) -> Result<Agent, Error> {
    let selector = caller.select_version(label.map_or(VersionSelector::Current, VersionSelector::Label))?;
    let current = service.get_agent(caller, workspace, agent_id).await?.value;
    if selector == VersionSelector::Current {
        return Ok(current);
    }
    let version = service.get_version(caller, Some(workspace), agent_id, selector).await?;
    Ok(current.with_config(version.config))
}

/// The description of a prompt. Clients show it in their menus, so it is never empty.
fn described(agent: &Agent) -> String {
    let own = agent.description.as_ref().filter(|text| !text.is_empty());
    own.map_or_else(|| format!("The persona of {}", agent.display_name), ToString::to_string)
}

/// The argument `task`, which is the only one.
fn task(arguments: Option<&Value>) -> Result<Option<&str>, RpcError> {
    let arguments = match arguments {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(RpcError::invalid_params("arguments must be an object")),
    };
    if let Some(unknown) = arguments.keys().find(|name| *name != "task") {
        let name = shown(unknown);
        return Err(RpcError::invalid_params(format!("{name} is not a known argument")));
    }
    match arguments.get("task") {
        None => Ok(None),
        Some(Value::String(task)) => Ok(Some(task)),
        Some(_) => Err(RpcError::invalid_params("task must be a string")),
    }
}

/// The persona of an agent that has one. An empty text counts as none.
fn persona(agent: &Agent) -> Option<&str> {
    agent.persona_prompt.as_deref().filter(|persona| !persona.is_empty())
}

/// An agent of a list.
struct Row {
    agent: Agent,
    /// The agent as its prompt shows it, if it has a version for that.
    prompted: Option<Agent>,
}

/// A page of the active agents of the caller's only workspace, with its offset; no agents for a user of several.
async fn listed(
    service: &AgentCfg,
    caller: &Caller,
    params: &Map<String, Value>,
) -> Result<(u64, Option<Vec<Row>>), RpcError> {
    let no_page = || RpcError::invalid_params("there is no page with this cursor");
    let offset = match params.get("cursor") {
        None | Some(Value::Null) => 0,
        Some(Value::String(cursor)) => cursor.parse().map_err(|_| no_page())?,
        Some(_) => return Err(no_page()),
    };
    let Some(workspace) = only_workspace(service, caller).await? else {
        return Ok((offset, None));
    };
    let filter = AgentFilter::default().offset(offset).limit(PAGE);
    let agents = service.list_agents(caller, workspace, &filter).await?.value.decode()?;
    let mut released = match caller.pinned_label() {
        Some(label) => Some(released(service, caller, workspace, label).await?),
        None => None,
    };
    let row = |agent: Agent| {
        let prompted = match &mut released {
            None => Some(agent.clone()),
            Some(released) => {
                let config = released.remove(&*agent.agent_id);
                config.map(|config| agent.clone().with_config(config))
            }
        };
        Row { agent, prompted }
    };
    Ok((offset, Some(agents.into_iter().map(row).collect())))
}

/// What a label releases, by agent.
async fn released(
    service: &AgentCfg,
    caller: &Caller,
    workspace: WorkspaceId,
    label: &Label,
) -> Result<HashMap<AgentId, AgentConfig>, Error> {
    let list = service.released(caller, workspace, &**label, None).await?;
    let released = list.value.decode()?;
    Ok(released
        .into_iter()
        .map(|agent| (agent.agent_id, agent.config))
        .collect())
}

async fn only_workspace(service: &AgentCfg, caller: &Caller) -> Result<Option<WorkspaceId>, Error> {
    match service.default_workspace(caller).await {
        Ok(workspace) => Ok(Some(workspace)),
        Err(error) if error.kind() == ErrorKind::Invalid => Ok(None),
        Err(error) => Err(error),
    }
}

fn paged(name: &str, rows: Vec<Value>, offset: u64, agents: usize) -> Map<String, Value> {
    let mut page = object(json!({ name: rows }));
    if agents == PAGE as usize {
        page.insert("nextCursor".to_owned(), json!((offset + u64::from(PAGE)).to_string()));
    }
    page
}
