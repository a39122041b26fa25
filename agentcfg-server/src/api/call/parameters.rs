//! Every parameter of the API, each declared once.

mod changes;
mod history;
mod pages;

use std::borrow::Cow;

use agentcfg_core::model::{self, AgentState, Precondition, Tag};
use agentcfg_core::validate::Faults;
use hyper::header::HeaderMap;

pub use self::changes::*;
pub use self::history::*;
pub use self::pages::*;
use super::{Parameter, ParameterDoc, Received, Shape};
use crate::api::model_calls::Target;
use crate::http::conditions::{if_match, if_none_match};
use crate::http::errors::Failure;

const WORKSPACE: Shape = Shape::Field("Agent", "workspace_id");
const WORKSPACE_EXAMPLE: &str = r#""0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05""#;
const AGENT_EXAMPLE: &str = r#""release-writer""#;

/// The workspace, which must be named.
pub struct WorkspaceId;

impl Parameter for WorkspaceId {
    type Value<'a> = model::WorkspaceId;

    const DOC: ParameterDoc = ParameterDoc::query(
        "WorkspaceId",
        "workspace_id",
        WORKSPACE,
        "The workspace, as a hyphenated UUID in either case.",
    )
    .required()
    .example(WORKSPACE_EXAMPLE);

    fn read(request: &Received<'_>, _: &mut Faults) -> Result<model::WorkspaceId, Failure> {
        workspace_id(request.query.required(Self::DOC.name)?)
    }
}

/// The name of the workspace to delete, which shows that the caller means this one.
pub struct Confirm;

impl Parameter for Confirm {
    type Value<'a> = &'a str;

    const DOC: ParameterDoc = ParameterDoc::query(
        "Confirm",
        "confirm",
        Shape::Field("Workspace", "name"),
        "The exact name of the workspace; any other text is answered with 400.",
    )
    .required()
    .example(r#""Studio North""#);

    fn read<'a>(request: &'a Received<'_>, _: &mut Faults) -> Result<&'a str, Failure> {
        request.required(&Self::DOC)
    }
}

/// Whether to decide only.
pub struct DryRun;

impl DryRun {
    const NO: &str = "false";
    const YES: &str = "true";
}

impl Parameter for DryRun {
    type Value<'a> = bool;

    const DOC: ParameterDoc = ParameterDoc::query(
        "DryRun",
        "dry_run",
        Shape::Word {
            words: &[Self::NO, Self::YES],
            default: Self::NO,
        },
        "With `true` the answer is the same, and nothing is changed.",
    )
    .example(r#""true""#);

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<bool, Failure> {
        match request.optional(&Self::DOC) {
            None | Some(Self::NO) => Ok(false),
            Some(Self::YES) => Ok(true),
            Some(_) => {
                let rule = format_args!("must be {} or {}", Self::YES, Self::NO);
                faults.push(format_args!("the query parameter {}", Self::DOC.name), rule);
                Ok(true)
            }
        }
    }
}

/// The workspace. It may be left out where the credential names one.
pub struct WorkspaceIdOptional;

impl Parameter for WorkspaceIdOptional {
    type Value<'a> = Option<model::WorkspaceId>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "WorkspaceIdOptional",
        "workspace_id",
        WORKSPACE,
        "The workspace, as a hyphenated UUID in either case. Left out, it is that of the API key, or the only one that \
         the session's user is a member of; a user with none or several gets 400. A key's own workspace is the only \
         one that it may name.",
    )
    .example(WORKSPACE_EXAMPLE);

    fn read(request: &Received<'_>, _: &mut Faults) -> Result<Option<model::WorkspaceId>, Failure> {
        request.optional(&Self::DOC).map(workspace_id).transpose()
    }
}

fn workspace_id(text: &str) -> Result<model::WorkspaceId, Failure> {
    text.parse()
        .map_err(|rule| Failure::bad_request(format!("the query parameter {} {rule}", WorkspaceId::DOC.name)))
}

/// The agent to act on.
pub struct AgentId;

impl Parameter for AgentId {
    type Value<'a> = &'a str;

    const DOC: ParameterDoc = ParameterDoc::query(
        "AgentId",
        "agent_id",
        Shape::Field("Agent", "agent_id"),
        "The agent's identifier within the workspace, not the UUID of its record. A text that is not a valid \
         identifier is answered with 404.",
    )
    .required()
    .example(AGENT_EXAMPLE)
    .answers(&[404]);

    fn read<'a>(request: &'a Received<'_>, _: &mut Faults) -> Result<&'a str, Failure> {
        request.required(&Self::DOC)
    }
}

/// The one agent to list.
pub struct AgentIdFilter;

impl Parameter for AgentIdFilter {
    type Value<'a> = Option<&'a str>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "AgentIdFilter",
        AgentId::DOC.name,
        Shape::Text,
        "Lists this agent alone; the array is empty when no agent of the `state` has the identifier.",
    )
    .example(AGENT_EXAMPLE);

    fn read<'a>(request: &'a Received<'_>, _: &mut Faults) -> Result<Option<&'a str>, Failure> {
        Ok(request.optional(&Self::DOC))
    }
}

/// Which agents to list, by whether they were deleted.
pub struct State;

impl Parameter for State {
    type Value<'a> = Option<AgentState>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "AgentState",
        "state",
        Shape::Word {
            words: &[
                AgentState::Active.as_str(),
                AgentState::Inactive.as_str(),
                AgentState::All.as_str(),
            ],
            default: AgentState::Active.as_str(),
        },
        "Lists active agents, deleted ones, or both.",
    )
    .example(r#""all""#);

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<Option<AgentState>, Failure> {
        let word = request.optional(&Self::DOC);
        let state = word.map(str::parse).transpose();
        Ok(state.unwrap_or_else(|rule| {
            faults.push(format_args!("the query parameter {}", Self::DOC.name), rule);
            None
        }))
    }
}

/// The user to act on.
pub struct UserId;

impl Parameter for UserId {
    type Value<'a> = &'a str;

    const DOC: ParameterDoc = ParameterDoc::query(
        "UserId",
        "user_id",
        Shape::Field("Member", "user_id"),
        "The user: the `sub` of the user's session tokens. The user need not have signed in before.",
    )
    .required()
    .example(r#""user_71""#);

    fn read<'a>(request: &'a Received<'_>, _: &mut Faults) -> Result<&'a str, Failure> {
        request.required(&Self::DOC)
    }
}

/// The API key to act on.
pub struct KeyId;

impl Parameter for KeyId {
    type Value<'a> = &'a str;

    const DOC: ParameterDoc = ParameterDoc::query(
        "KeyId",
        "key_id",
        Shape::Field("ApiKey", "id"),
        "The `id` of the API key. A text that is not a valid one is answered with 404.",
    )
    .required()
    .example(r#""4fQ8mZr2LkV7xN0bTy6W""#)
    .answers(&[404]);

    fn read<'a>(request: &'a Received<'_>, _: &mut Faults) -> Result<&'a str, Failure> {
        request.required(&Self::DOC)
    }
}

/// The webhook to act on.
pub struct WebhookId;

impl Parameter for WebhookId {
    type Value<'a> = model::WebhookId;

    const DOC: ParameterDoc = ParameterDoc::query(
        "WebhookId",
        "webhook_id",
        Shape::Field("Webhook", "id"),
        "The `id` of the webhook, as a hyphenated UUID in either case. One that does not exist, or of a workspace that the \
         caller has no part in, is answered with 404.",
    )
    .required()
    .example(r#""0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4""#)
    .answers(&[404]);

    fn read(request: &Received<'_>, _: &mut Faults) -> Result<model::WebhookId, Failure> {
        let id = request.required(&Self::DOC)?.parse();
        id.map_err(|rule| Failure::bad_request(format!("the query parameter {} {rule}", Self::DOC.name)))
    }
}

/// The name of a model provider. The endpoint checks whether there is such a provider.
pub struct ProviderName;

impl Parameter for ProviderName {
    type Value<'a> = &'a str;

    const DOC: ParameterDoc = ParameterDoc::query(
        "Provider",
        "provider",
        Shape::Field("ProviderKeyInfo", "provider"),
        "A model provider. An unknown one is 404.",
    )
    .required()
    .answers(&[404]);

    fn read<'a>(request: &'a Received<'_>, _: &mut Faults) -> Result<&'a str, Failure> {
        request.required(&Self::DOC)
    }
}

/// The provider that a model call goes to.
pub struct CalledProvider;

impl Parameter for CalledProvider {
    type Value<'a> = model::Provider;

    const DOC: ParameterDoc = ParameterDoc::path(
        "provider",
        Shape::Field("ProviderKeyInfo", "provider"),
        "Whose API is called.",
    )
    .example(r#""openai""#);

    fn read(request: &Received<'_>, _: &mut Faults) -> Result<model::Provider, Failure> {
        Ok(target(request)?.provider)
    }
}

/// The path at the provider that a model call goes to.
pub struct CalledPath;

impl Parameter for CalledPath {
    type Value<'a> = Cow<'a, str>;

    const DOC: ParameterDoc = ParameterDoc::path(
        "path",
        Shape::Pattern {
            length: None,
            pattern: "^[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*$",
        },
        "The path at the provider, slashes included, such as `v1/chat/completions`, `v1/responses` or `v1/messages`.",
    )
    .example(r#""v1/chat/completions""#);

    fn read<'a>(request: &'a Received<'_>, _: &mut Faults) -> Result<Cow<'a, str>, Failure> {
        Ok(target(request)?.path)
    }
}

fn target<'a>(request: &'a Received<'_>) -> Result<Target<'a>, Failure> {
    Target::of_path(request.uri.path())
        .ok_or_else(|| Failure::not_found("the path names no provider and path that can be called"))
}

/// The versions that a change may act on.
pub struct IfMatch;

impl Parameter for IfMatch {
    type Value<'a> = Precondition;

    const DOC: ParameterDoc = ParameterDoc::header(
        "IfMatch",
        "If-Match",
        Shape::Text,
        "Entity tags of the versions to act on, separated by commas and compared strongly, or `*` for any. Another \
         version is answered with 412. A tag to which a compressing proxy has added `-gzip` names the same version.",
    )
    .example(r#""\"k3j9x0ab-a42\"""#)
    .answers(&[412]);

    fn read(request: &Received<'_>, _: &mut Faults) -> Result<Precondition, Failure> {
        Ok(if_match(request.headers))
    }
}

/// Declares optional header fields whose text an endpoint reads.
macro_rules! header_texts {
    ($($(#[doc = $doc:literal])+ $name:ident, $component:literal, $field:literal, $about:literal;)+) => {$(
        $(#[doc = $doc])+
        pub struct $name;

        impl Parameter for $name {
            type Value<'a> = Option<&'a str>;

            const DOC: ParameterDoc = ParameterDoc::header($component, $field, Shape::Text, $about);

            fn read<'a>(request: &'a Received<'_>, _: &mut Faults) -> Result<Option<&'a str>, Failure> {
                let mut fields = request.headers.get_all($field).iter();
                let text = fields.next().and_then(|field| field.to_str().ok());
                // A field that is sent twice counts as none.
                Ok(text.filter(|_| fields.next().is_none()))
            }
        }
    )+};
}

header_texts! {
    /// The revision of the Model Context Protocol.
    McpVersion, "McpProtocolVersion", "MCP-Protocol-Version", "The revision of the protocol. The stateless revision requires it.";
    /// The method of a message.
    McpMethod, "McpMethod", "Mcp-Method", "The method of the message. The stateless revision requires it.";
    /// What a message names.
    McpName, "McpName", "Mcp-Name", "The tool, the resource or the prompt that the message names. The stateless revision requires it.";
}

/// The versions that the caller has.
pub struct IfNoneMatch;

impl Parameter for IfNoneMatch {
    type Value<'a> = Option<Known<'a>>;

    const DOC: ParameterDoc = ParameterDoc::header(
        "IfNoneMatch",
        "If-None-Match",
        Shape::Text,
        "Entity tags of the versions that the caller has, separated by commas, or `*`. When the current one is among \
         them the answer is 304.",
    )
    .example(r#""\"k3j9x0ab-w118\"""#);

    fn read<'a>(request: &'a Received<'_>, _: &mut Faults) -> Result<Option<Known<'a>>, Failure> {
        Ok(request.has_if_none_match.then_some(Known(request.headers)))
    }
}

/// The versions that the caller has, compared when the current one is known.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a>(&'a HeaderMap);

impl Known<'_> {
    /// Whether this version is among them.
    pub fn includes(self, current: Tag) -> bool {
        if_none_match(self.0, current)
    }
}

impl Received<'_> {
    fn optional(&self, parameter: &ParameterDoc) -> Option<&str> {
        self.query.get(parameter.name)
    }

    fn required(&self, parameter: &ParameterDoc) -> Result<&str, Failure> {
        self.query.required(parameter.name)
    }

    /// A whole number within the bounds that the parameter declares.
    fn number(&self, parameter: &ParameterDoc, faults: &mut Faults) -> Option<u64> {
        let Shape::Number { minimum, maximum, .. } = parameter.shape else {
            return None;
        };
        let bounds = minimum..=maximum.unwrap_or(u64::MAX);
        self.query.number(parameter.name, bounds, faults)
    }
}
