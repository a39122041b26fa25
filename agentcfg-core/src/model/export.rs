//! The lines of an export.

use serde::{Deserialize, Deserializer, Serialize, de};

use super::{
    Actor, Agent, AgentConfig, AgentId, AgentLabel, AgentSet, ApiKey, AuditEntry, Budget, LiveStatus, Member, Message,
    ProviderKeyInfo, Timestamp, UsageRow, Webhook, Workspace,
};
use crate::body::record;
use crate::rules;
use crate::validate::{MAX_NAME, MAX_TASK_TITLE};

record! {
    /// The last report of an agent, with its time. It may be too old to be live.
    ///
    /// ```
    /// use agentcfg_core::model::ReportedStatus;
    /// fn line(report: &ReportedStatus) -> String {
    ///     format!("{} was {} at {}", report.agent_id, report.status, report.reported_at)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    ReportedStatus {
        /// Identifier within the workspace, fixed at creation.
        agent_id: required AgentId,
        /// What the agent was doing.
        status: required LiveStatus,
        /// Identifier of the task. Null unless the status is `working`.
        current_task_id: nullable String as rules::TextFromOne<MAX_NAME>,
        /// Title of that task. Null unless the status is `working`.
        current_task_title: nullable String as rules::TextFromOne<MAX_TASK_TITLE>,
        /// Time of the report.
        reported_at: required Timestamp,
    }
    examples: [{
        "agent_id": "release-writer",
        "status": "working",
        "current_task_id": "TASK-118",
        "current_task_title": "Draft the notes for 2.4",
        "reported_at": "2026-11-20T10:05:41.007Z",
    }],
}

record! {
    /// A version of an agent, as an export has it.
    ///
    /// ```
    /// use agentcfg_core::model::ExportedVersion;
    /// fn line(version: &ExportedVersion) -> String {
    ///     format!("{} {}: {}", version.agent_id, version.version, version.config.display_name)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    ExportedVersion {
        /// Identifier within the workspace, fixed at creation.
        agent_id: required AgentId,
        /// The number of the version: 1, 2, 3, … for each agent.
        version: required u64,
        /// When the version was made.
        created_at: required Timestamp,
        /// Who made it. Null for a version from before versions were kept.
        actor: nullable Actor,
        /// Why, as the request gave it.
        message: nullable Message,
        /// The number of the version whose content a rollback restored.
        restored_from: nullable u64,
        /// The content.
        config: required AgentConfig,
    }
    examples: [{
        "agent_id": "release-writer",
        "version": 1,
        "created_at": "2026-11-20T10:05:41.007Z",
        "actor": { "type": "user", "id": "user_71" },
        "message": null,
        "restored_from": null,
        "config": AgentConfig::example(),
    }],
}

/// Declares [`ExportLine`]: the types and the schema follow from a line. `service/export.rs` writes the records of each kind.
macro_rules! export_lines {
    ($($(#[doc = $doc:literal])+ $variant:ident($record:ty) = $kind:literal,)+) => {
        /// One line of the export of a workspace: `{"kind": …, "record": …}`.
        ///
        /// ```
        /// use agentcfg_core::model::ExportLine;
        /// let line: ExportLine = serde_json::from_str(r#"{"kind":"set","record":{"set":"docs","agents":[]}}"#)?;
        /// assert!(matches!(line, ExportLine::Set(set) if set.agents.is_empty()));
        /// # Ok::<(), serde_json::Error>(())
        /// ```
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(tag = "kind", content = "record")]
        #[non_exhaustive]
        pub enum ExportLine {
            $(
                $(#[doc = $doc])+
                #[serde(rename = $kind)]
                $variant($record),
            )+
            /// A record of a kind that this release does not know. It can be read, but not written.
            #[serde(skip_serializing)]
            Unknown,
        }

        impl<'de> Deserialize<'de> for ExportLine {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(Deserialize)]
                struct Line {
                    kind: String,
                    record: serde_json::Value,
                }
                let Line { kind, record } = Line::deserialize(deserializer)?;
                match &*kind {
                    $($kind => serde_json::from_value(record).map(Self::$variant).map_err(de::Error::custom),)+
                    _ => Ok(Self::Unknown),
                }
            }
        }

        impl ExportLine {
            /// The kinds of records that this release writes, in the order in which an export has them.
            ///
            /// ```
            /// use agentcfg_core::model::ExportLine;
            /// assert_eq!(ExportLine::KINDS.first(), Some(&"workspace"));
            /// ```
            pub const KINDS: &'static [&'static str] = &[$($kind,)+];
        }

        $crate::model::with_schema::with_schema! {
            impl schemars::JsonSchema for ExportLine {
                fn schema_name() -> std::borrow::Cow<'static, str> {
                    "ExportLine".into()
                }

                fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                    let kinds = [$(($kind, generator.subschema_for::<$record>())),+];
                    let lines = kinds.map(|(kind, record)| schemars::json_schema!({
                        "type": "object",
                        "properties": { "kind": { "type": "string", "const": kind }, "record": record },
                        "required": ["kind", "record"],
                        "additionalProperties": false,
                    }));
                    schemars::json_schema!({ "description": "One record of a workspace, with its kind.", "oneOf": lines })
                }
            }
        }
    };
}

export_lines! {
    /// The workspace itself.
    Workspace(Workspace) = "workspace",
    /// A member.
    Member(Member) = "member",
    /// An agent, active or not.
    Agent(Agent) = "agent",
    /// A version of an agent.
    Version(ExportedVersion) = "version",
    /// A label of an agent.
    Label(AgentLabel) = "label",
    /// A set of agents.
    Set(AgentSet) = "set",
    /// The last report of an agent.
    Status(ReportedStatus) = "status",
    /// An API key without its hash; revoked ones too.
    ApiKey(ApiKey) = "api_key",
    /// That a provider key is saved.
    ProviderKey(ProviderKeyInfo) = "provider_key",
    /// A webhook, without its secret.
    Webhook(Webhook) = "webhook",
    /// A budget, with what is spent of it.
    Budget(Budget) = "budget",
    /// The sum of the model calls of an agent with a model on one day.
    Usage(UsageRow) = "usage",
    /// An entry of the audit log.
    Audit(AuditEntry) = "audit",
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_and_one_of_a_later_release_is_unknown() {
        let text = r#"{"kind":"set","record":{"set":"docs","agents":["a"]}}"#;
        let line: ExportLine = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&line).unwrap(), text);
        let later: ExportLine = serde_json::from_str(r#"{"kind":"tool","record":{"x":1}}"#).unwrap();
        assert_eq!(later, ExportLine::Unknown);
        assert!(serde_json::to_string(&later).is_err());
        for wrong in [
            r#"{"kind":"set","record":{}}"#,
            r#"{"kind":"set"}"#,
            r#"{"record":{}}"#,
            "[]",
        ] {
            assert!(serde_json::from_str::<ExportLine>(wrong).is_err(), "{wrong}");
        }
    }
}
