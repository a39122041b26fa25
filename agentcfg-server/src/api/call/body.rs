//! The types of bodies, and how each is read.

use agentcfg_core::model::{
    AgentPatch, ApplyAgents, BudgetLimit, JsonBody, LabelRestore, LabelTarget, Limits, NewAgent, NewApiKey, NewWebhook,
    NewWorkspace, NoFields, Promotion, PromptValues, RoleChange, Rollback, RotateApiKey, SignIn, StatusReport,
    WebhookPatch, WebhookReplay, WorkspacePatch,
};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::validate::{Invalid, Valid};
use bytes::Bytes;
use hyper::header::HeaderMap;

use super::{Call, Location, ParameterDoc, Received};
use crate::api::schema::{ReadJson, Schema};
use crate::http::errors::Failure;
use crate::http::query::query_without;
use crate::http::request::{MAX_BODY, MAX_LONG_BODY};

/// The type of an endpoint's body.
pub trait Body: Sized + Send {
    /// How the body is received.
    const CONTENT: Content;

    /// The greatest length of the body in bytes.
    const MAX_BYTES: usize = MAX_BODY;

    /// Reads the body.
    ///
    /// # Errors
    ///
    /// 400 with every fault of the body.
    fn read(request: &Received<'_>) -> Result<Self, Failure>;
}

/// How a body is received.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// There is none, and none is read.
    Nothing,
    /// JSON of this type, with a JSON content type.
    Json(Schema),
    /// JSON of this type, or an empty body.
    OptionalJson(Schema),
    /// A JSON-RPC message, with a JSON content type.
    Rpc,
    /// The body of a model call: it may be longer, and must be JSON only where something is filled in.
    ModelCall,
}

impl Content {
    /// Whether the endpoint declares a JSON body.
    pub const fn is_json(&self) -> bool {
        matches!(self, Self::Json(_))
    }

    /// The schema of the JSON, if the body has one.
    pub const fn schema(&self) -> Option<Schema> {
        match self {
            Self::Json(schema) | Self::OptionalJson(schema) => Some(*schema),
            Self::Nothing | Self::Rpc | Self::ModelCall => None,
        }
    }
}

/// The parts of a model call that are forwarded: the body, the query and the header fields.
#[derive(Debug)]
pub struct Passed(Bytes);

impl Passed {
    /// The body.
    pub fn body(&self) -> Bytes {
        self.0.clone()
    }

    /// The query as it was received, without the parameters of this service.
    ///
    /// # Errors
    ///
    /// 400 where the query is not percent-encoded.
    pub fn query(&self, call: &Call<'_>, own: &[ParameterDoc]) -> Result<Option<String>, Failure> {
        let own = own.iter().filter(|parameter| parameter.location == Location::Query);
        let names: Vec<_> = own.map(|parameter| parameter.name).collect();
        query_without(call.rest.head.uri.query(), &names)
    }

    /// All header fields.
    pub fn headers<'a>(&self, call: &Call<'a>) -> &'a HeaderMap {
        &call.rest.head.headers
    }
}

impl Body for Passed {
    const CONTENT: Content = Content::ModelCall;
    const MAX_BYTES: usize = MAX_LONG_BODY;

    fn read(request: &Received<'_>) -> Result<Self, Failure> {
        Ok(Self(request.body.clone()))
    }
}

impl<T: ReadJson> Body for T {
    const CONTENT: Content = Content::Json(Schema::of_body::<T>());
    const MAX_BYTES: usize = T::MAX_BYTES;

    fn read(request: &Received<'_>) -> Result<Self, Failure> {
        Ok(Self::read_json(&request.body, request.limits)?)
    }
}

/// A JSON-RPC message, which its endpoint reads: its faults are answered as JSON-RPC.
#[derive(Debug)]
pub struct Rpc(pub Bytes);

impl Body for Rpc {
    const CONTENT: Content = Content::Rpc;

    fn read(request: &Received<'_>) -> Result<Self, Failure> {
        Ok(Self(request.body.clone()))
    }
}

/// A body that may be left out.
#[derive(Debug)]
pub struct Optional<T>(pub Option<T>);

impl<T: ReadJson> Body for Optional<T> {
    const CONTENT: Content = Content::OptionalJson(Schema::of_body::<T>());
    const MAX_BYTES: usize = T::MAX_BYTES;

    fn read(request: &Received<'_>) -> Result<Self, Failure> {
        if request.body.is_empty() {
            return Ok(Self(None));
        }
        Ok(Self(Some(T::read_json(&request.body, request.limits)?)))
    }
}

macro_rules! bodies {
    ($($described:ident),* $(,)?) => {
        $(impl ReadJson for Valid<$described> {
            type Described = $described;

            fn read_json(json: &[u8], limits: Limits) -> Result<Self, Invalid> {
                <$described as JsonBody>::read_json(json, limits)
            }
        })*
    };
}

bodies!(
    NewAgent,
    AgentPatch,
    StatusReport,
    Rollback,
    PromptValues,
    LabelTarget,
    Promotion,
    BudgetLimit,
    LabelRestore,
    NewWorkspace,
    WorkspacePatch,
    RoleChange,
    NewApiKey,
    RotateApiKey,
    SignIn,
    NewWebhook,
    WebhookPatch,
    WebhookReplay,
    NoFields,
);

impl ReadJson for ProviderCredential {
    type Described = Self;

    fn read_json(json: &[u8], _: Limits) -> Result<Self, Invalid> {
        Self::from_json(json)
    }
}

/// A thousand agents with long prompts need a higher limit than other bodies.
impl ReadJson for Valid<ApplyAgents> {
    type Described = ApplyAgents;

    const MAX_BYTES: usize = MAX_LONG_BODY;

    fn read_json(json: &[u8], limits: Limits) -> Result<Self, Invalid> {
        ApplyAgents::from_json_within(json, limits)
    }
}
