//! The tool of usage.

use agentcfg_core::model::{Permission, UsageColumn, UsageFilter};
use serde_json::json;

use super::arguments::Arguments;
use super::calls::{ToolResult, Tools, filled};
use super::json::object;
use super::tool::{Effect, Tool, list, text};

/// How many values are shown where the caller does not say.
const TOP: u32 = 20;

/// The tools, in the order of the list.
pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "get_usage",
    description: "Adds up model calls, tokens and cost, of 30 days unless from and to (RFC 3339) say otherwise.",
    permission: Permission::AnalyticsRead,
    effect: Effect::Reads,
    input: || {
        json!({
            "by": {"type": "array", "items": {"type": "string", "enum": UsageColumn::ALL}, "maxItems": 4},
            "from": text(),
            "to": text(),
            "agent_id": text(),
            "model": text(),
            "top": {"type": "integer", "minimum": 1, "maximum": 50, "default": TOP},
        })
    },
    required: &[],
    output: || list("rows"),
    run: |tools, arguments| Box::pin(tools.get_usage(arguments)),
}];

impl Tools<'_> {
    pub(super) async fn get_usage(&self, mut arguments: Arguments) -> ToolResult {
        let named = arguments.workspace();
        let mut by = Vec::new();
        for word in arguments.texts("by") {
            match word.parse::<UsageColumn>() {
                Ok(column) => by.push(column),
                Err(rule) => arguments.fault(format!("by {rule}")),
            }
        }
        let is_ranked = by
            .iter()
            .any(|column| !matches!(column, UsageColumn::Hour | UsageColumn::Day));
        let top = arguments.integer("top", 1..=50).and_then(|top| u32::try_from(top).ok());
        let filter = UsageFilter::default()
            .by(by)
            .from(arguments.word("from"))
            .to(arguments.word("to"))
            .agent_id(arguments.text("agent_id"))
            .model(arguments.text("model"))
            .top(top.or(Some(TOP).filter(|_| is_ranked)));
        arguments.finish()?;
        let workspace = self.workspace(named).await?;
        let rows = self.service.usage(self.caller, workspace, &filter).await?;
        let rows = rows.iter().map(filled).collect::<Result<Vec<_>, _>>()?;
        Ok(object(json!({ "rows": rows })))
    }
}
