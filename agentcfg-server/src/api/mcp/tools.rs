//! The tools of agents and of the audit log, the list of all tools, and the call of one.

use agentcfg_core::model::{AgentConfig, AgentState, Permission};
use agentcfg_core::validate::{MAX_AGENT_ID, MAX_LIMIT, MAX_NAME, MAX_TASK_TITLE, quoted};
use agentcfg_core::{AgentCfg, Caller, Error};
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::calls::{ToolError, Tools};
use super::json::object;
use super::message::{Request, RpcError};
use super::releases;
use super::tool::{Effect, Tool, agent, list, message, status, text, with_fields};
use super::usage;

/// The tools of agents and of the audit log, in the order of the list.
const TOOLS: &[Tool] = &[
    Tool {
        name: "list_agents",
        description: "Lists agents with their live status, oldest first, without prompts.",
        permission: Permission::AgentsRead,
        effect: Effect::Reads,
        input: || {
            json!({
                "state": {"type": "string", "enum": AgentState::ALL, "default": AgentState::Active},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT},
                "offset": {"type": "integer", "minimum": 0},
            })
        },
        required: &[],
        output: || list("agents"),
        run: |tools, arguments| Box::pin(tools.list_agents(arguments)),
    },
    Tool {
        name: "get_agent",
        description: "Returns the configuration of an agent with its persona prompt, and the etag for update_agent; with a label \
                      or a version the one of that version, without etag.",
        permission: Permission::AgentsRead,
        effect: Effect::Reads,
        input: || {
            json!({
                "agent_id": {"type": "string"},
                "label": text(),
                "version": {"type": "integer", "minimum": 1},
                "include": {"type": "array", "items": {"type": "string", "enum": ["definition"]},
                            "description": "To have a definition beyond 16 KB"},
            })
        },
        required: &["agent_id"],
        output: agent,
        run: |tools, arguments| Box::pin(tools.get_agent(arguments)),
    },
    Tool {
        name: "list_models",
        description: "Lists the models on offer, and whose credential pays for each.",
        permission: Permission::AgentsRead,
        effect: Effect::Reads,
        input: || json!({}),
        required: &[],
        output: || list("models"),
        run: |tools, arguments| Box::pin(tools.list_models(arguments)),
    },
    Tool {
        name: "search_audit_log",
        description: "Lists the changes in the workspace, newest first, with actor and changed fields. Times are RFC 3339; before is \
                      the revision of an entry.",
        permission: Permission::AuditLogRead,
        effect: Effect::Reads,
        input: || {
            json!({
                "actor": text(),
                "action": {"type": "string", "description": "Also agent.*"},
                "target_type": text(),
                "target_id": text(),
                "since": text(),
                "until": text(),
                "before": {"type": "integer", "minimum": 1},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT},
                "offset": {"type": "integer", "minimum": 0},
            })
        },
        required: &[],
        output: || list("entries"),
        run: |tools, arguments| Box::pin(tools.search_audit_log(arguments)),
    },
    Tool {
        name: "create_agent",
        description: "Creates an agent. Its agent_id cannot change later. role is a job title, persona_prompt the system prompt, \
                      parameters are sliders of the personality, definition has tools, model_settings and the like.",
        permission: Permission::AgentsConfigure,
        effect: Effect::Adds,
        input: || {
            with_fields(json!({
                "agent_id": {"type": "string", "pattern": format!("^[a-z0-9_-]{{1,{MAX_AGENT_ID}}}$")},
                "message": message(),
            }))
        },
        required: &["agent_id", "display_name"],
        output: agent,
        run: |tools, arguments| Box::pin(tools.create_agent(arguments)),
    },
    Tool {
        name: "update_agent",
        description: "Replaces the given fields whole, parameters too, unless the agent was changed since etag was read. In \
                      persona_edits each find must occur in the persona exactly once.",
        permission: Permission::AgentsConfigure,
        effect: Effect::Replaces,
        input: || {
            with_fields(json!({
                "agent_id": {"type": "string"},
                "etag": {"type": "string", "description": "From get_agent"},
                "message": message(),
                "persona_edits": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"find": text(), "replace": text()},
                    "required": ["find", "replace"],
                }},
                "clear": {"type": "array", "items": {"type": "string", "enum": AgentConfig::nullable().collect::<Vec<_>>()},
                          "description": "Fields to empty"},
            }))
        },
        required: &["agent_id", "etag"],
        output: agent,
        run: |tools, arguments| Box::pin(tools.update_agent(arguments)),
    },
    Tool {
        name: "deactivate_agent",
        description: "Takes an agent out of use. It can be restored.",
        permission: Permission::AgentsConfigure,
        effect: Effect::Replaces,
        input: || json!({"agent_id": text(), "etag": text(), "message": message()}),
        required: &["agent_id"],
        output: || {
            json!({
                "type": "object",
                "properties": {"agent_id": {"type": "string"}, "is_active": {"type": "boolean"}},
                "required": ["agent_id", "is_active"],
            })
        },
        run: |tools, arguments| Box::pin(tools.deactivate_agent(arguments)),
    },
    Tool {
        name: "restore_agent",
        description: "Makes a deactivated agent active again.",
        permission: Permission::AgentsConfigure,
        effect: Effect::Adds,
        input: || json!({"agent_id": text(), "etag": text(), "message": message()}),
        required: &["agent_id"],
        output: agent,
        run: |tools, arguments| Box::pin(tools.restore_agent(arguments)),
    },
    Tool {
        name: "report_status",
        description: "Reports what an agent is doing. working needs both task fields, the others take none.",
        permission: Permission::TasksUpdate,
        effect: Effect::Sets,
        input: || {
            json!({
                "agent_id": {"type": "string"},
                "status": status(),
                "current_task_id": {"type": "string", "maxLength": MAX_NAME},
                "current_task_title": {"type": "string", "maxLength": MAX_TASK_TITLE},
            })
        },
        required: &["agent_id", "status"],
        output: || {
            json!({
                "type": "object",
                "properties": {"agent_id": {"type": "string"}, "status": text()},
                "required": ["agent_id", "status"],
            })
        },
        run: |tools, arguments| Box::pin(tools.report_status(arguments)),
    },
];

/// All tools, in the order of the list.
fn all() -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter().chain(releases::TOOLS).chain(usage::TOOLS)
}

/// The tools that the credential can use, in any of its workspaces.
pub(super) async fn listed(service: &AgentCfg, caller: &Caller) -> Result<Vec<Value>, Error> {
    let me = service.whoami(caller).await?;
    let may = |permission| {
        me.workspaces
            .iter()
            .any(|workspace| workspace.permissions.contains(&permission))
    };
    let tools = all().filter(|tool| may(tool.permission));
    let mut tools: Vec<Value> = tools.map(Tool::shown).collect();
    for tool in &mut tools {
        // A tool that takes the fields of an agent shows the limit in force.
        if let Some(limit) = tool.pointer_mut("/inputSchema/properties/persona_prompt/maxLength") {
            *limit = json!(service.limits().persona_prompt);
        }
    }
    Ok(tools)
}

/// Answers `tools/call`. What the API refuses is a result with `isError`, which the model can read.
///
/// # Errors
///
/// An unknown tool, or parameters that are not those of a call.
pub(super) async fn call(
    service: &AgentCfg,
    caller: &Caller,
    Request { params, definition, .. }: &Request,
) -> Result<Map<String, Value>, RpcError> {
    let name = params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| RpcError::invalid_params("name is required and must be a string"))?;
    let tool = all().find(|tool| tool.name == name);
    let tool = tool.ok_or_else(|| RpcError::invalid_params(format!("unknown tool {}", quoted(name))))?;
    let arguments = match params.get("arguments") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(arguments)) => Ok(arguments.clone()),
        Some(_) => Err(ToolError("arguments must be an object".to_owned())),
    };
    let tools = Tools { service, caller };
    let outcome = match arguments {
        Ok(arguments) => (tool.run)(&tools, Arguments::new(arguments, definition.clone())).await,
        Err(error) => Err(error),
    };
    let text = |text: String| json!([{"type": "text", "text": text}]);
    Ok(object(match outcome {
        Ok(members) => {
            let structured = Value::Object(members);
            json!({"content": text(structured.to_string()), "structuredContent": structured, "isError": false})
        }
        Err(ToolError(why)) => json!({"content": text(why), "isError": true}),
    }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use agentcfg_core::model::Agent;

    use super::*;

    /// Calls `visit` for each object within a value.
    fn walk(value: &Value, visit: &mut impl FnMut(&Map<String, Value>)) {
        match value {
            Value::Object(members) => {
                visit(members);
                members.values().for_each(|member| walk(member, visit));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
            _ => {}
        }
    }

    #[test]
    fn schemas_are_flat() {
        for tool in all() {
            walk(&tool.shown(), &mut |members| {
                for refused in ["$ref", "oneOf", "anyOf", "allOf"] {
                    assert!(!members.contains_key(refused), "{}: {refused}", tool.name);
                }
                assert!(!members.get("type").is_some_and(Value::is_array), "{}", tool.name);
            });
            let hints = &tool.shown()["annotations"];
            for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
                assert!(hints[hint].is_boolean(), "{}: {hint}", tool.name);
            }
        }
    }

    /// Every client puts the list into the context of its model.
    #[test]
    fn the_list_of_all_tools_is_short() {
        let tools: Vec<Value> = all().map(Tool::shown).collect();
        let list = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string();
        assert!(list.len() <= 11_800, "{} bytes", list.len());
    }

    #[test]
    fn each_field_of_an_agent_can_be_given_and_those_that_may_be_null_can_be_cleared() {
        let agent = json!({
            "id": "0192f0a4-10bb-7e91-8c02-5d7e9f1a2b33",
            "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
            "agent_id": "writer",
            "display_name": "Writer",
            "definition": {},
            "is_active": true,
            "created_at": "2026-11-20T09:30:00.123Z",
            "updated_at": "2026-11-20T09:30:00.123Z",
        });
        let agent: Agent = serde_json::from_value(agent).unwrap();
        let config = object(json!(agent.config()));
        let mut fields: Vec<&str> = config.keys().map(String::as_str).collect();
        fields.sort_unstable();
        let given = object(with_fields(json!({})));
        for (name, schema) in &given {
            assert!(schema["type"].is_string(), "{name} has a schema");
        }
        let mut given: Vec<&str> = given.keys().map(String::as_str).collect();
        given.sort_unstable();
        assert_eq!(given, fields);
        fields.retain(|name| config[*name].is_null() || *name == "definition");
        let mut nullable: Vec<&str> = AgentConfig::nullable().collect();
        nullable.sort_unstable();
        assert_eq!(nullable, fields);
    }
}
