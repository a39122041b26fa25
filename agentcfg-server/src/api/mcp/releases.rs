//! The tools of versions and labels.

use agentcfg_core::model::{LabelTarget, Patch, Permission, Promotion, Rollback, VersionPage, VersionSelector};
use agentcfg_core::validate::MAX_LIMIT;
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::calls::{LEAVE_OUT, Longest, ToolResult, Tools, condition, filled, list as with_rows, shown};
use super::tool::{Effect, Tool, agent, list, message, text};

/// The tools, in the order of the list.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "list_versions",
        description: "Lists the versions of an agent, newest first, with author, message and labels.",
        permission: Permission::AgentsRead,
        effect: Effect::Reads,
        input: || {
            json!({
                "agent_id": text(),
                "before": {"type": "integer", "minimum": 1},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT},
            })
        },
        required: &["agent_id"],
        output: || list("versions"),
        run: |tools, arguments| Box::pin(tools.list_versions(arguments)),
    },
    Tool {
        name: "diff_versions",
        description: "Shows which fields differ between two versions of an agent, and the persona as a unified diff.",
        permission: Permission::AgentsRead,
        effect: Effect::Reads,
        input: || {
            json!({
                "agent_id": text(),
                "from": {"type": "string", "description": "A version number or a label"},
                "to": {"type": "string", "description": "Left out: the current one"},
            })
        },
        required: &["agent_id", "from"],
        output: || {
            json!({
                "type": "object",
                "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}, "changes": {"type": "object"}},
                "required": ["from", "to", "changes"],
            })
        },
        run: |tools, arguments| Box::pin(tools.diff_versions(arguments)),
    },
    Tool {
        name: "rollback_agent",
        description: "Gives an agent the content of an earlier version again, as a new version.",
        permission: Permission::AgentsConfigure,
        effect: Effect::Replaces,
        input: || {
            json!({
                "agent_id": text(),
                "version": {"type": "integer", "minimum": 1},
                "label": text(),
                "etag": text(),
                "message": message(),
            })
        },
        required: &["agent_id"],
        output: agent,
        run: |tools, arguments| Box::pin(tools.rollback_agent(arguments)),
    },
    Tool {
        name: "set_label",
        description: "Points a label of an agent at a version, or at the version of another label.",
        permission: Permission::AgentsRelease,
        effect: Effect::Sets,
        input: || {
            json!({
                "agent_id": text(),
                "label": text(),
                "version": {"type": "integer", "minimum": 1},
                "from": {"type": "string", "description": "In place of version: a label, or latest"},
                "expected_version": {"type": "integer", "minimum": 1, "description": "Only if it points there now"},
                "message": message(),
            })
        },
        required: &["agent_id", "label"],
        output: || labelled(json!({"agent_id": text(), "label": text(), "version": {"type": "integer"}})),
        run: |tools, arguments| Box::pin(tools.set_label(arguments)),
    },
    Tool {
        name: "promote_label",
        description: "Points the label to at the versions of the label from, in one change, for all agents that have it, those \
                      of a set, or those named.",
        permission: Permission::AgentsRelease,
        effect: Effect::Sets,
        input: || {
            json!({
                "from": {"type": "string", "description": "A label, or latest"},
                "to": text(),
                "agent_ids": {"type": "array", "items": text()},
                "set": text(),
                "dry_run": {"type": "boolean", "description": "Only tell what would move"},
                "message": message(),
            })
        },
        required: &["from", "to"],
        output: || list("labels"),
        run: |tools, arguments| Box::pin(tools.promote_label(arguments)),
    },
];

/// The output schema of an object with these members, all of them there.
fn labelled(properties: Value) -> Value {
    let names: Vec<&String> = properties.as_object().map(Map::keys).into_iter().flatten().collect();
    json!({"type": "object", "properties": properties, "required": names})
}

impl Tools<'_> {
    async fn list_versions(&self, mut arguments: Arguments) -> ToolResult {
        let (named, agent_id) = (arguments.workspace(), arguments.required("agent_id"));
        let before = arguments.integer("before", 1..=u64::MAX);
        let limit = arguments.integer("limit", 1..=MAX_LIMIT);
        arguments.finish()?;
        let page = VersionPage::default()
            .before(before)
            .limit(limit.and_then(|limit| u32::try_from(limit).ok()));
        let versions = self.service.list_versions(self.caller, named, &*agent_id, page).await?;
        let rows = versions.iter().map(filled).collect::<Result<Vec<_>, _>>()?;
        Ok(with_rows("versions", rows, None))
    }

    async fn diff_versions(&self, mut arguments: Arguments) -> ToolResult {
        let (named, agent_id) = (arguments.workspace(), arguments.required("agent_id"));
        let (from, to) = (arguments.required("from"), arguments.text("to"));
        arguments.finish()?;
        let to = to
            .as_deref()
            .map_or(VersionSelector::Current, VersionSelector::from_text);
        let diff = self
            .service
            .diff_versions(self.caller, named, &*agent_id, VersionSelector::from_text(&from), to)
            .await?;
        filled(&diff)
    }

    async fn rollback_agent(&self, mut arguments: Arguments) -> ToolResult {
        let (named, agent_id) = (arguments.workspace(), arguments.required("agent_id"));
        let (etag, message) = (arguments.text("etag"), arguments.message());
        let body = arguments.body();
        let to = arguments.finish_with(body, &[], LEAVE_OUT, Rollback::from_json)?;
        let condition = condition(etag.as_deref());
        let rolled_back = self
            .service
            .roll_back_agent(&self.because(message), named, &*agent_id, to, &condition)
            .await?;
        shown(&rolled_back, Longest::InAnAnswer)
    }

    async fn set_label(&self, mut arguments: Arguments) -> ToolResult {
        let (named, agent_id) = (arguments.workspace(), arguments.required("agent_id"));
        let (label, message) = (arguments.required("label"), arguments.message());
        let version = arguments.integer("version", 1..=u64::MAX);
        let from = arguments.word("from");
        let expected = arguments.integer("expected_version", 1..=u64::MAX);
        let target = match (version, from) {
            (Some(version), None) => Some(LabelTarget::new(version)),
            (None, Some(from)) => Some(LabelTarget::of_label(from)),
            (Some(_), Some(_)) => {
                arguments.fault("version and from must not both be given".to_owned());
                None
            }
            (None, None) => {
                arguments.fault("version or from is required".to_owned());
                None
            }
        };
        arguments.finish()?;
        let Some(target) = target else { return Ok(Map::new()) };
        let target = target.expected_version(expected.map_or(Patch::Absent, Patch::Set));
        let set = self
            .service
            .set_label(&self.because(message), named, &*agent_id, &*label, target)
            .await?;
        filled(&set)
    }

    async fn promote_label(&self, mut arguments: Arguments) -> ToolResult {
        let (named, message) = (arguments.workspace(), arguments.message());
        let dry_run = arguments.flag("dry_run");
        let body = arguments.body();
        let promotion = arguments.finish_with(body, &[], LEAVE_OUT, Promotion::from_json)?;
        let workspace = self.workspace(named).await?;
        let promoted = self
            .service
            .promote_labels(&self.because(message), workspace, promotion, dry_run)
            .await?;
        let rows = promoted.iter().map(filled).collect::<Result<Vec<_>, _>>()?;
        Ok(with_rows("labels", rows, None))
    }
}
