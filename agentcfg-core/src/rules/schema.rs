//! The rules as JSON Schema. The limits are the constants that the checks use.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{
    AgentIds, AgentSpecs, Any, Capabilities, ChangesByPath, Color, Credential, Definition, EventTypes, HookUrl,
    KeyAgents, KeyPermissions, ModelSettings, Moment, NotBlank, Overlap, Parameters, Persona, RecordId,
    RepeatedAgentId, RequestsPerMinute, Revision, TargetLabel, Text, TextFromOne, True, UsdLimit, VariableValues,
};
use crate::body::schema::{UUID, schemas};
use crate::model;
use crate::validate::{
    DEFAULT_PERSONA_PROMPT, MAX_APPLIED, MAX_COLOR, MAX_ENTRIES, MAX_ENTRY_NAME, MAX_OVERLAP, MAX_PROMOTED,
    MAX_PROVIDER_KEY, MAX_RATE_LIMIT,
};

/// The plaintext of an API key, which the service makes.
pub(crate) struct KeyText;

/// The secret of a webhook, which the service makes.
pub(crate) struct SigningSecret;

/// A URL of the schemes http and https.
const HTTP_URL: &str = r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#\u0000][^\s\u0000]*$";
const WITHOUT_NUL: &str = r"^[^\u0000]*$";
/// A pattern: at least one character is not white space in Unicode. A schema's dialect of expressions need not know the
/// property by its name, so its characters are listed.
const NOT_BLANK: &str = concat!(
    r"^[^\u0000]*[^\u0000\u0009-\u000D\u0020\u0085\u00A0\u1680\u2000-\u200A",
    r"\u2028\u2029\u202F\u205F\u3000][^\u0000]*$"
);

schemas! {
    Text<MAX: usize>, inline true => {
        "type": "string",
        "maxLength": MAX,
        "pattern": WITHOUT_NUL,
    };
    TextFromOne<MAX: usize>, inline true => {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX,
        "pattern": WITHOUT_NUL,
    };
    NotBlank<MAX: usize>, inline true => {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX,
        "pattern": NOT_BLANK,
    };
    Persona, inline true => {
        "type": "string",
        "maxLength": DEFAULT_PERSONA_PROMPT,
        "pattern": WITHOUT_NUL,
    };
    Credential, inline true => {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_PROVIDER_KEY,
        "pattern": "^[!-~]+$",
        "writeOnly": true,
    };
    Color, inline true => {
        "type": "string",
        "maxLength": MAX_COLOR,
        "pattern": "^#(?:[0-9A-Fa-f]{3}|[0-9A-Fa-f]{4}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})$",
    };
    Capabilities, inline false => {
        "type": "array",
        "description": "Capability tags. Their order and any repetition are preserved.",
        "maxItems": MAX_ENTRIES,
        "items": {
            "type": "string",
            "description": "One tag, which may not consist of white space alone.",
            "minLength": 1,
            "maxLength": MAX_ENTRY_NAME,
            "pattern": NOT_BLANK,
        },
    };
    Parameters, inline false => {
        "type": "object",
        "description": "Personality sliders: a number under each name. Integers that fit into 64 bits stay integers.",
        "maxProperties": MAX_ENTRIES,
        "propertyNames": { "minLength": 1, "maxLength": MAX_ENTRY_NAME, "pattern": WITHOUT_NUL },
        "additionalProperties": { "type": "number" },
    };
    Definition, inline false => {
        "type": "object",
        "description": "The definition of an agent: at most 64 KiB as compact JSON, and 32 levels deep. The members that are described here are checked; every other one is kept as it is.",
        "properties": {
            "tools": { "type": "array", "description": "Names or descriptions of tools.", "maxItems": 200, "items": { "type": ["string", "object"], "minLength": 1, "maxLength": 200 } },
            "mcp_servers": { "type": "array", "description": "MCP servers, each with a url or a command, or both.", "maxItems": 50, "items": {
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "No two servers have the same.", "minLength": 1, "maxLength": 100 },
                    "url": { "type": "string", "description": "An http or https URL.", "minLength": 1, "maxLength": 1000, "pattern": HTTP_URL },
                    "command": { "type": "string", "description": "A command.", "minLength": 1, "maxLength": 1000 }
                },
                "required": ["name"],
                "additionalProperties": true
            } },
            "skills": { "type": "array", "description": "Names or descriptions of skills.", "maxItems": 100, "items": { "type": ["string", "object"], "minLength": 1, "maxLength": 200 } },
            "output_schema": { "type": "object", "description": "The schema of what the agent answers.", "additionalProperties": true },
            "model_settings": { "type": "object", "description": "Members that the body of a model call gets where it lacks them. It must not have model, messages, input, system, instructions, prompt and stream.", "additionalProperties": true },
            "fallback_models": { "type": "array", "description": "Models to ask where the agent's cannot be.", "maxItems": 5, "items": { "type": "string", "minLength": 1, "maxLength": 100 } },
            "variables": { "type": "object", "description": "The variables of the persona, by name.", "maxProperties": 100, "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$" }, "additionalProperties": {
                "type": "object",
                "properties": {
                    "description": { "type": "string", "description": "What it is for." },
                    "default": { "type": "string", "description": "The value where a call gives none." },
                    "required": { "type": "boolean", "description": "Whether a call must give a value, unless there is a default." }
                },
                "additionalProperties": true
            } },
            "metadata": { "type": "object", "description": "Texts by name.", "maxProperties": 100, "propertyNames": { "minLength": 1, "maxLength": 100 }, "additionalProperties": { "type": "string", "maxLength": 1000 } }
        },
        "additionalProperties": true,
    };
    UsdLimit, inline true => {
        "type": ["string", "number"],
        "pattern": r"^[0-9]+(?:\.[0-9]{1,9})?$",
        "minimum": 0,
        "maximum": UsdLimit::MOST,
    };
    VariableValues, inline true => {
        "type": "object",
        "additionalProperties": { "type": "string", "pattern": WITHOUT_NUL },
    };
    ModelSettings, inline true => { "type": "object", "additionalProperties": true };
    RequestsPerMinute, inline true => {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_RATE_LIMIT,
    };
    Revision, inline true => { "type": "integer", "format": "uint64", "minimum": 1 };
    AgentIds, inline true => {
        "type": "array",
        "minItems": 1,
        "maxItems": MAX_PROMOTED,
        "items": { "$ref": "#/components/schemas/AgentId" },
    };
    KeyAgents, inline true => {
        "type": "array",
        "minItems": 1,
        "items": { "$ref": "#/components/schemas/AgentId" },
    };
    Overlap, inline true => {
        "type": "integer",
        "minimum": 0,
        "maximum": MAX_OVERLAP,
    };
    RecordId, inline true => {
        "type": "string",
        "format": "uuid",
        "pattern": UUID,
    };
    KeyText, inline true => {
        "type": "string",
        "minLength": 78,
        "maxLength": 78,
        "pattern": "^svc_(?:live|test)_[0-9A-Za-z]{69}$",
    };
    SigningSecret, inline true => {
        "type": "string",
        "minLength": 50,
        "maxLength": 50,
        "pattern": "^whsec_[0-9A-Za-z+/]{43}=$",
    };
    ChangesByPath, inline true => {
        "type": "object",
        "additionalProperties": { "anyOf": [{ "$ref": "#/components/schemas/Change" }, { "type": "null" }] },
    };
    True, inline true => { "type": "boolean", "const": true };
    HookUrl, inline true => {
        "type": "string",
        "format": "uri",
        "minLength": 1,
        "maxLength": model::MAX_URL,
        "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://[^\\s#]+$",
    };
    EventTypes, inline false => {
        "type": "array",
        "description": "Types of events: actions of the audit log, or `agent.*` for all of a family.",
        "minItems": 1,
        "maxItems": MAX_ENTRIES,
        "items": {
            "type": "string",
            "maxLength": MAX_ENTRY_NAME,
            "pattern": event_type(),
        },
        "examples": [["agent.*", "agents.*", "label.*"]],
    };
    Moment, inline true => {
        "type": "string",
        "format": "date-time",
    };
}

/// The pattern of a type of events: a family, or one of the actions.
fn event_type() -> String {
    let actions = model::Action::ALL
        .iter()
        .map(|action| action.as_str().replace('.', r"\."));
    let actions: Vec<_> = actions.collect();
    format!(r"^(?:[a-z_]+\.\*|{})$", actions.join("|"))
}

impl JsonSchema for KeyPermissions {
    fn schema_name() -> Cow<'static, str> {
        "KeyPermissions".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "minItems": 1,
            "items": generator.subschema_for::<model::Permission>(),
        })
    }
}

impl JsonSchema for AgentSpecs {
    fn schema_name() -> Cow<'static, str> {
        "AgentSpecs".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "maxItems": MAX_APPLIED,
            "items": generator.subschema_for::<model::AgentSpec>(),
        })
    }
}

/// Rules whose schema is that of another type.
macro_rules! same_schema {
    ($([$($generics:tt)*] $rule:ty as $other:ty;)+) => {$(
        impl<$($generics)*> JsonSchema for $rule {
            fn schema_name() -> Cow<'static, str> {
                <$other>::schema_name()
            }

            fn schema_id() -> Cow<'static, str> {
                <$other>::schema_id()
            }

            fn inline_schema() -> bool {
                <$other>::inline_schema()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$other>::json_schema(generator)
            }
        }
    )+};
}

same_schema! {
    [T: JsonSchema] Any<T> as T;
    [] RepeatedAgentId as model::AgentId;
    [] TargetLabel as model::Label;
}
