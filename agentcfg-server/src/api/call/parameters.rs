//! Every parameter of the API, each declared once.

mod budgets;
mod changes;
mod history;
mod pages;
mod readers;
mod usage;
mod variables;

use std::borrow::Cow;

use agentcfg_core::model::{self, AgentState, InvalidId, Precondition, Tag};
use agentcfg_core::validate::Faults;
use hyper::header::HeaderMap;

pub use self::budgets::*;
pub use self::changes::*;
pub use self::history::*;
pub use self::pages::*;
pub use self::readers::Reader;
use self::readers::{Flag, HeaderText, Parsed, RequiredParsed, RequiredText, Text, parameters};
pub use self::usage::*;
pub use self::variables::Variables;
use super::{Parameter, ParameterDoc, Received, Shape};
use crate::api::model_calls::{PathAgent, Target};
use crate::http::conditions::{if_match, if_none_match};
use crate::http::errors::Failure;

const WORKSPACE: Shape = Shape::Field("Agent", "workspace_id");
const WORKSPACE_EXAMPLE: &str = r#""0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05""#;
const AGENT_EXAMPLE: &str = r#""release-writer""#;

const MOMENT: Shape = Shape::Pattern {
    length: None,
    pattern: concat!(
        "^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])",
        r"[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?",
        "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$"
    ),
};

const fn text(
    component: &'static str,
    name: &'static str,
    description: &'static str,
    example: &'static str,
) -> ParameterDoc {
    ParameterDoc::query(component, name, Shape::Text, description).example(example)
}

const fn moment(component: &'static str, name: &'static str, description: &'static str) -> ParameterDoc {
    ParameterDoc::query(component, name, MOMENT, description).example(r#""2026-11-20T09:30:00Z""#)
}

const fn header_text(component: &'static str, name: &'static str, description: &'static str) -> ParameterDoc {
    ParameterDoc::header(component, name, Shape::Text, description)
}

const fn flag(component: &'static str, name: &'static str, description: &'static str) -> ParameterDoc {
    let shape = Shape::Word {
        words: &["false", "true"],
        default: "false",
    };
    ParameterDoc::query(component, name, shape, description).example("\"true\"")
}

parameters! {
    /// The workspace, which must be named.
    WorkspaceId: RequiredParsed<model::WorkspaceId> = ParameterDoc::query(
        "WorkspaceId",
        "workspace_id",
        WORKSPACE,
        "The workspace, as a hyphenated UUID in either case.",
    )
    .required()
    .example(WORKSPACE_EXAMPLE);

    /// The name of the workspace to delete, which shows that the caller means this one.
    Confirm: RequiredText = ParameterDoc::query(
        "Confirm",
        "confirm",
        Shape::Field("Workspace", "name"),
        "The exact name of the workspace; any other text is answered with 400.",
    )
    .required()
    .example(r#""Studio North""#);

    /// The agent to act on.
    AgentId: RequiredText = ParameterDoc::query(
        "AgentId",
        "agent_id",
        Shape::Field("Agent", "agent_id"),
        "The agent's identifier within the workspace, not the UUID of its record. A text that is not a valid \
         identifier is answered with 404.",
    )
    .required()
    .example(AGENT_EXAMPLE)
    .answers(&[404]);

    /// The user to act on.
    UserId: RequiredText = ParameterDoc::query(
        "UserId",
        "user_id",
        Shape::Field("Member", "user_id"),
        "The user: the `sub` of the user's session tokens. The user need not have signed in before.",
    )
    .required()
    .example(r#""user_71""#);

    /// The user to act on, who must be known.
    KnownUserId: RequiredText = ParameterDoc::query(
        "KnownUserId",
        "user_id",
        Shape::Field("Member", "user_id"),
        "The user: the `sub` of the user's session tokens. 404 for a user who has never signed in and is no member of a workspace.",
    )
    .required()
    .example(r#""user_71""#)
    .answers(&[404]);

    /// The API key to act on.
    KeyId: RequiredText = ParameterDoc::query(
        "KeyId",
        "key_id",
        Shape::Field("ApiKey", "id"),
        "The `id` of the API key. A text that is not a valid one is answered with 404.",
    )
    .required()
    .example(r#""4fQ8mZr2LkV7xN0bTy6W""#)
    .answers(&[404]);

    /// The name of a model provider. The endpoint checks whether there is such a provider.
    ProviderName: RequiredText = ParameterDoc::query(
        "Provider",
        "provider",
        Shape::Field("ProviderKeyInfo", "provider"),
        "A model provider. An unknown one is 404.",
    )
    .required()
    .example(r#""openai""#)
    .answers(&[404]);

    /// The webhook to act on.
    WebhookId: RequiredParsed<model::WebhookId> = ParameterDoc::query(
        "WebhookId",
        "webhook_id",
        Shape::Field("Webhook", "id"),
        "The `id` of the webhook, as a hyphenated UUID in either case. One that does not exist, or of a workspace that the \
         caller has no part in, is answered with 404.",
    )
    .required()
    .example(r#""0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4""#)
    .answers(&[404]);

    /// Whether to decide only.
    DryRun: Flag = flag("DryRun", "dry_run", "With `true` the answer is the same, and nothing is changed.");

    /// The only agent to list.
    AgentIdFilter: Text = text(
        "AgentIdFilter",
        "agent_id",
        "Lists this agent alone; the array is empty when no agent of the `state` has the identifier.",
        AGENT_EXAMPLE,
    );

    /// Whether to list active agents, deleted ones, or both.
    StateFilter: Parsed<AgentState> = ParameterDoc::query(
        "AgentState",
        "state",
        Shape::Word {
            words: &[AgentState::Active.as_str(), AgentState::Inactive.as_str(), AgentState::All.as_str()],
            default: AgentState::Active.as_str(),
        },
        "Lists active agents, deleted ones, or both.",
    )
    .example(r#""all""#);

    /// The revision of the Model Context Protocol.
    McpVersion: HeaderText = header_text(
        "McpProtocolVersion",
        "MCP-Protocol-Version",
        "The revision of the protocol. The stateless revision requires it.",
    );

    /// The method of a message.
    McpMethod: HeaderText = header_text(
        "McpMethod",
        "Mcp-Method",
        "The method of the message. The stateless revision requires it.",
    );

    /// What a message names.
    McpName: HeaderText = header_text(
        "McpName",
        "Mcp-Name",
        "The tool, the resource or the prompt that the message names. The stateless revision requires it.",
    );
}

/// The workspace. It may be left out where the credential implies one.
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
        let id = request.optional(&Self::DOC).map(str::parse).transpose();
        id.map_err(|rule: InvalidId| Failure::parameter(Self::DOC.name, rule))
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
            pattern: "^[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~!$&'()*+,=:@%-]+)*$",
        },
        "The path at the provider, slashes included, such as `v1/chat/completions`, `v1/responses` or `v1/messages`.",
    )
    .example(r#""v1/chat/completions""#);

    fn read<'a>(request: &'a Received<'_>, _: &mut Faults) -> Result<Cow<'a, str>, Failure> {
        Ok(target(request)?.path)
    }
}

/// The agent that a model call is made as, in the path or in the query; `None` where neither names one.
pub struct CalledAgent;

impl Parameter for CalledAgent {
    type Value<'a> = Option<PathAgent<'a>>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "CalledAgent",
        "agent_id",
        Shape::Field("Agent", "agent_id"),
        "The agent's identifier. It is required, unless the path names the agent or the API key is limited to exactly one.",
    )
    .example(AGENT_EXAMPLE)
    .answers(&[404]);

    fn read<'a>(request: &'a Received<'_>, _: &mut Faults) -> Result<Option<PathAgent<'a>>, Failure> {
        match (target(request)?.agent, request.optional(&Self::DOC)) {
            (Some(agent), None) => Ok(Some(agent)),
            (Some(_), Some(_)) => {
                let message = "the agent must be named once: in the path, or as the query parameter agent_id";
                Err(Failure::bad_request(message))
            }
            (None, Some(_)) => Ok(Some(PathAgent::new(request.required(&Self::DOC)?))),
            (None, None) => Ok(None),
        }
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

/// The versions that the caller already has.
pub struct IfNoneMatch;

impl Parameter for IfNoneMatch {
    type Value<'a> = KnownVersions<'a>;

    const DOC: ParameterDoc = ParameterDoc::header(
        "IfNoneMatch",
        "If-None-Match",
        Shape::Text,
        "Entity tags of the versions that the caller has, separated by commas, or `*`. When the current one is among \
         them the answer is 304.",
    )
    .example(r#""\"k3j9x0ab-w118\"""#);

    fn read<'a>(request: &'a Received<'_>, _: &mut Faults) -> Result<KnownVersions<'a>, Failure> {
        Ok(KnownVersions(request.headers))
    }
}

/// The versions that the caller already has, for a comparison once the current one is known.
#[derive(Debug, Clone, Copy)]
pub struct KnownVersions<'a>(&'a HeaderMap);

impl KnownVersions<'_> {
    /// Whether the caller has this version.
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

#[cfg(test)]
mod tests {
    use agentcfg_core::model::Limits;
    use bytes::Bytes;
    use hyper::Uri;

    use super::*;
    use crate::http::query::Query;

    #[test]
    fn what_is_neither_true_nor_false_is_refused_alike() {
        let (uri, headers) = (Uri::default(), HeaderMap::new());
        let read = |query| {
            let request = Received {
                uri: &uri,
                query: Query::parse(Some(query), |_| false).unwrap(),
                headers: &headers,
                body: Bytes::new(),
                limits: Limits::default(),
            };
            let mut faults = Faults::default();
            let values = (
                DryRun::read(&request, &mut faults),
                WithStatus::read(&request, &mut faults),
            );
            let message = faults.into_result().map_err(|invalid| invalid.to_string());
            message.map(|()| (values.0.unwrap(), values.1.unwrap()))
        };
        assert_eq!(read(""), Ok((false, false)));
        assert_eq!(read("dry_run=true&status=false"), Ok((true, false)));
        assert_eq!(
            read("dry_run=yes&status="),
            Err(
                "the query parameter dry_run must be true or false; the query parameter status must be true or false"
                    .to_owned()
            )
        );
    }
}
