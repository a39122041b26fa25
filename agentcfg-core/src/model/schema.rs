//! The types of the API as JSON Schema (draft 2020-12), as an OpenAPI 3.1 document wants it.
//!
//! The summary of a type and of a field, up to the first blank line, is its description. Limits and patterns come from
//! the rules that requests are checked with.
//!
//! ```
//! use agentcfg_core::model::{Agent, schema};
//! let mut generator = schema::generator();
//! let reference = generator.subschema_for::<Agent>();
//! assert_eq!(reference.get("$ref").unwrap(), "#/components/schemas/Agent");
//! let definitions = generator.take_definitions(true);
//! assert_eq!(definitions["Agent"]["properties"]["role"]["maxLength"], 100);
//! // What `Agent` refers to is among them.
//! assert!(definitions.contains_key("AgentType"));
//! ```

mod extended;

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use super::{
    Agent, AgentDiff, AgentId, AgentLabel, AgentSet, AgentVersion, AgentVersionDetail, ApiKey, ApiKeyId, Cursor,
    ExportLine, ExportedVersion, Label, Member, NoFields, ReportedStatus, SetName,
};
use super::{
    AgentPatch, AgentSpec, AgentStatus, AppliedAgents, ApplyAgents, AuditEntry, Change, CreatedApiKey, ErrorBody,
    ModelInfo, NewAgent, NewApiKey, NewWorkspace, ProviderKeyInfo, RoleChange, StatusReport, Success, Timestamp,
    WorkspaceId, WorkspacePatch, WorkspaceView,
};
use super::{Budget, BudgetLimit, CallId, Price, UsageCall, UsageRow, Usd};
use super::{
    Comparison, LabelDiff, LabelTarget, Message, PromotedLabel, Promotion, Provider, Rollback, UserId, Workspace,
};
use super::{
    NewWebhook, ReplayFrom, Webhook, WebhookDelivery, WebhookId, WebhookPatch, WebhookReplay, WebhookWithSecret,
};
use crate::body::schema::{UUID, create, object, schemas, summary};
use crate::rules;
use crate::secret::ProviderCredential;
use crate::validate::{MAX_AGENT_ID, MAX_LABEL, MAX_MESSAGE, MAX_SET_NAME, MAX_USER_ID};

/// A generator of schemas that refer to each other by `#/components/schemas/…`.
///
/// `subschema_for::<T>()` gives the schema of a type or a reference to it; `take_definitions(true)` gives all that was
/// referred to, by name. Types of one's own can be added in the same way.
///
/// ```
/// use agentcfg_core::model::{Plan, schema};
/// let mut generator = schema::generator();
/// let reference = generator.subschema_for::<Plan>();
/// assert_eq!(reference.get("$ref").unwrap(), "#/components/schemas/Plan");
/// ```
pub fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    settings.with_transform(Summaries).into_generator()
}

/// The schemas of the records and bodies of the API, with those that they refer to, by their names.
///
/// ```
/// let schemas = agentcfg_core::model::schema::definitions();
/// assert_eq!(schemas["NewAgent"]["required"][1], "agent_id");
/// ```
pub fn definitions() -> Map<String, Value> {
    macro_rules! all {
        ($($name:ty),+ $(,)?) => {{
            let mut generator = generator();
            $(generator.subschema_for::<$name>();)+
            generator.take_definitions(true)
        }};
    }
    all!(
        ErrorBody,
        Success,
        Agent,
        NewAgent,
        AgentPatch,
        AgentStatus,
        StatusReport,
        AgentVersion,
        AgentVersionDetail,
        AgentDiff,
        Rollback,
        AgentLabel,
        LabelTarget,
        Promotion,
        PromotedLabel,
        Workspace,
        WorkspaceView,
        NewWorkspace,
        WorkspacePatch,
        Member,
        RoleChange,
        ApiKey,
        NewApiKey,
        CreatedApiKey,
        AuditEntry,
        Change,
        ModelInfo,
        UsageRow,
        UsageCall,
        Budget,
        BudgetLimit,
        ProviderKeyInfo,
        ProviderCredential,
        AgentSpec,
        ApplyAgents,
        AppliedAgents,
        AgentSet,
        ReportedStatus,
        ExportedVersion,
        ExportLine,
        Webhook,
        NewWebhook,
        WebhookPatch,
        WebhookReplay,
        WebhookDelivery,
        WebhookWithSecret,
    )
}

/// Keeps the first paragraph of each description, as one line. The others are for users of the library.
#[derive(Debug, Clone)]
struct Summaries;

impl Transform for Summaries {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = summary(text);
        }
        transform_subschemas(self, schema);
    }
}

const MOMENT: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$";

schemas! {
    AgentId, inline false => {
        "type": "string",
        "description": "Identifier of an agent within its workspace.",
        "minLength": 1,
        "maxLength": MAX_AGENT_ID,
        "pattern": "^[a-z0-9_-]+$",
        "examples": ["release-writer"],
    };
    Provider, inline false => {
        "type": "string",
        "description": "A model provider: `openai`, `anthropic`, or one that the deployment has configured.",
        "pattern": "^[a-z][a-z0-9-]{0,31}$",
    };
    Label, inline false => {
        "type": "string",
        "description": "A name that points at a version of an agent.",
        "minLength": 1,
        "maxLength": MAX_LABEL,
        "pattern": "^(?![0-9]+$)[a-z0-9][a-z0-9._-]*$",
        "examples": ["production"],
    };
    Message, inline true => { "type": "string", "maxLength": MAX_MESSAGE, "pattern": r"^[^\u0000]*$" };
    UserId, inline true => {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_USER_ID,
        "pattern": r"^[^\u0000-\u001F\u007F-\u009F]*$",
    };
    ApiKeyId, inline true => {
        "type": "string",
        "minLength": 20,
        "maxLength": 20,
        "pattern": "^[0-9A-Za-z]{20}$",
    };
    SetName, inline true => {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_SET_NAME,
        "pattern": "^[a-z0-9][a-z0-9._-]*$",
    };
    WorkspaceId, inline true => { "type": "string", "format": "uuid", "pattern": UUID };
    CallId, inline true => { "type": "string", "format": "uuid", "pattern": UUID };
    WebhookId, inline true => { "type": "string", "format": "uuid", "pattern": UUID };
    ReplayFrom, inline true => { "type": "string" };
    Timestamp, inline false => {
        "type": "string",
        "description": "A moment in UTC with milliseconds.",
        "format": "date-time",
        "pattern": MOMENT,
        "examples": ["2026-11-20T09:30:00.123Z"],
    };
    Price, inline true => { "type": "number", "minimum": 0, "maximum": 1_000_000 };
    Usd, inline true => { "type": "string", "pattern": r"^[0-9]+(?:\.[0-9]{1,9})?$" };
    Cursor, inline true => {
        "type": "string",
        "description": "Position in the log of a workspace, an opaque text.",
    };
    NoFields, inline false => {
        "type": "object",
        "description": "An object without fields.",
        "additionalProperties": false,
        "examples": [{}],
    };
}

impl JsonSchema for ProviderCredential {
    fn schema_name() -> Cow<'static, str> {
        "NewProviderKey".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let documentation = "The provider's key: visible ASCII characters.";
        let key = create::required::<rules::Credential>(generator, documentation);
        object("A credential to save.", [("api_key", key)], serde_json::json!([]))
    }
}

impl JsonSchema for Comparison {
    fn schema_name() -> Cow<'static, str> {
        "Comparison".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A comparison: of two versions of an agent, or of two labels of all agents.",
            "anyOf": [generator.subschema_for::<AgentDiff>(), generator.subschema_for::<Vec<LabelDiff>>()],
        })
    }
}

#[cfg(test)]
mod tests;
