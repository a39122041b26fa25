//! The input of an endpoint: the caller, and the declared parameters and body. A parameter has its place in the
//! request, its description and its reader.

mod body;
pub mod parameters;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::model::Limits;
use agentcfg_core::service::BrowserSession;
use agentcfg_core::validate::Faults;
use agentcfg_core::webhook::Transport;
use agentcfg_core::{AgentCfg, Caller};
use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Uri};

pub use self::body::{Body, Content, Optional, Passed, Rpc};
use crate::api::credential::{Credential, SessionCredential};
use crate::api::feed::Streams;
use crate::api::model_calls::ModelCalls;
use crate::api::observer::Observer;
use crate::api::request_trace::RequestTrace;
use crate::http::browser::Cookie;
use crate::http::errors::Failure;
use crate::http::query::Query;
use crate::http::{Browser, ByteBudget, Disconnect};

/// One request, as its endpoint sees it.
///
/// The request itself is private: an endpoint gets the values of the parameters and of the body that its definition
/// names, and can read nothing else. So the OpenAPI document lists all that is read.
pub struct Call<'a> {
    /// The core.
    pub service: &'a AgentCfg,
    /// The authenticated caller.
    pub caller: &'a Caller,
    /// The proxy to the model providers, if this server has one.
    pub model_calls: Option<&'a ModelCalls>,
    /// The transport for tests of webhooks, if this server sends webhooks.
    pub webhooks: Option<&'a dyn Transport>,
    /// Signals that the client has closed the connection, where that can be observed.
    pub disconnect: &'a Disconnect,
    /// The open streams of changes.
    pub streams: &'a Streams,
    /// The budget of unread answers, for those that are streamed.
    pub answers: &'a ByteBudget,
    /// Observes the events that streams send.
    pub observer: Option<&'a Arc<dyn Observer>>,
    /// The identifier of the request, as in `X-Request-Id`.
    pub request_id: &'a str,
    /// Where the request is in a trace, if it is traced.
    pub trace: Option<&'a RequestTrace>,
    /// The rest of the request.
    pub(super) rest: Rest<'a>,
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("service", &self.service)
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

/// How long work continues for a client that has closed its sending side.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The parts of a request that only this module reads, for [`Passed`], cookies and streams.
pub(super) struct Rest<'a> {
    /// What the caller was authenticated with.
    credential: Credential<'a>,
    /// What browsers see of this server.
    browser: &'a Browser,
    head: &'a Parts,
}

impl<'a> Rest<'a> {
    pub(super) fn new(credential: Credential<'a>, browser: &'a Browser, head: &'a Parts) -> Self {
        Self {
            credential,
            browser,
            head,
        }
    }
}

impl<'a> Call<'a> {
    /// The credential of the caller's session, which a stream verifies again; `None` for an API key.
    pub fn session(&self) -> Option<SessionCredential<'a>> {
        self.rest
            .credential
            .session()
            .filter(|_| self.caller.key_workspace().is_none())
    }

    /// Whether the answer is sent without its body.
    pub fn is_head(&self) -> bool {
        self.rest.head.method == Method::HEAD
    }

    /// Runs long work until the client has been gone for [`PATIENCE`].
    ///
    /// # Errors
    ///
    /// The failure of the work; 499 when it was broken off.
    pub async fn while_connected<T, E>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, Failure>
    where
        Failure: From<E>,
    {
        match self.disconnect.while_connected(PATIENCE, work).await {
            Some(done) => Ok(done?),
            None => Err(Failure::client_closed(
                "the client closed its side of the connection before the answer",
            )),
        }
    }

    /// The field `Set-Cookie` with the cookie of a session that was opened.
    ///
    /// # Errors
    ///
    /// 500 when it cannot be sent, which it always can.
    pub fn session_cookie(&self, session: &BrowserSession) -> Result<HeaderValue, Failure> {
        let Rest { browser, head, .. } = &self.rest;
        browser.set_cookie(Cookie::Session, &session.cookie, session.seconds, &head.headers)
    }

    /// The field `Set-Cookie` that removes the cookie of the session.
    ///
    /// # Errors
    ///
    /// 500 when it cannot be sent, which it always can.
    pub fn removed_cookie(&self) -> Result<HeaderValue, Failure> {
        let Rest { browser, head, .. } = &self.rest;
        browser.remove_cookie(Cookie::Session, &head.headers)
    }
}

/// No body.
impl Body for () {
    const CONTENT: Content = Content::Nothing;

    fn read(_: &Received<'_>) -> Result<Self, Failure> {
        Ok(())
    }
}

/// The received parts of a request, from which parameters and bodies are read.
pub struct Received<'a> {
    pub(super) uri: &'a Uri,
    pub(super) query: Query<'a>,
    pub(super) headers: &'a HeaderMap,
    /// Empty until it has been received, and where the endpoint declares none.
    pub(super) body: Bytes,
    /// By which the body is checked.
    pub(super) limits: Limits,
}

impl fmt::Debug for Received<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The header fields and the body have secrets.
        f.debug_struct("Received").finish_non_exhaustive()
    }
}

/// A parameter of requests. Its reader and its part of the OpenAPI document follow from one declaration.
pub trait Parameter {
    /// What the reader gives.
    type Value<'a>: Send;

    /// The description.
    const DOC: ParameterDoc;

    /// Reads the parameter. Faults that can be reported together with others go into `faults`.
    ///
    /// # Errors
    ///
    /// 400 where the parameter is missing or breaks its rule.
    fn read<'a>(request: &'a Received<'_>, faults: &mut Faults) -> Result<Self::Value<'a>, Failure>;
}

/// The description of a parameter.
#[derive(Debug, Clone, Copy)]
pub struct ParameterDoc {
    /// The name of the component in the OpenAPI document; `None` writes the parameter where it is used.
    pub component: Option<&'static str>,
    /// The name in the request.
    pub name: &'static str,
    /// The part of the request that it is in.
    pub location: Location,
    /// What it means, in Markdown.
    pub description: &'static str,
    /// Whether a request without it is refused.
    pub is_required: bool,
    /// The allowed texts.
    pub shape: Shape,
    /// An example as JSON.
    pub example: Option<&'static str>,
    /// Statuses that an endpoint answers because it has this parameter.
    pub answers: &'static [u16],
}

impl ParameterDoc {
    /// An optional parameter of the query.
    pub const fn query(component: &'static str, name: &'static str, shape: Shape, description: &'static str) -> Self {
        Self {
            component: Some(component),
            name,
            location: Location::Query,
            description,
            is_required: false,
            shape,
            example: None,
            answers: &[],
        }
    }

    /// A header field.
    pub const fn header(component: &'static str, name: &'static str, shape: Shape, description: &'static str) -> Self {
        Self {
            location: Location::Header,
            ..Self::query(component, name, shape, description)
        }
    }

    /// A part of the path, which one endpoint has.
    pub const fn path(name: &'static str, shape: Shape, description: &'static str) -> Self {
        Self {
            component: None,
            location: Location::Path,
            is_required: true,
            ..Self::query("", name, shape, description)
        }
    }

    /// The parameter as a refusal names it.
    pub fn named(&self) -> String {
        let part = match self.location {
            Location::Query => "query parameter",
            Location::Path => "path parameter",
            Location::Header => "header",
        };
        format!("the {part} {}", self.name)
    }

    /// Makes the parameter required.
    #[must_use]
    pub const fn required(self) -> Self {
        Self {
            is_required: true,
            ..self
        }
    }

    /// Shows an example, written as JSON.
    #[must_use]
    pub const fn example(self, json: &'static str) -> Self {
        Self {
            example: Some(json),
            ..self
        }
    }

    /// Adds statuses to the answers of each endpoint that has the parameter.
    #[must_use]
    pub const fn answers(self, statuses: &'static [u16]) -> Self {
        Self {
            answers: statuses,
            ..self
        }
    }
}

/// The part of a request that a parameter is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as OpenAPI names them")]
pub enum Location {
    Query,
    Path,
    Header,
}

/// The allowed texts of a parameter.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// The texts of a field of a described type, such as `("Agent", "workspace_id")`.
    Field(&'static str, &'static str),
    /// A whole number within bounds.
    Number {
        /// The minimum.
        minimum: u64,
        /// The maximum. The reader of numbers has a bound of its own, 2^64 - 1.
        maximum: Option<u64>,
        /// The value of a request without the parameter.
        default: Option<u64>,
    },
    /// One word of a closed set.
    Word {
        /// The words.
        words: &'static [&'static str],
        /// The value of a request without the parameter.
        default: &'static str,
    },
    /// Any text.
    Text,
    /// A text of limited length that matches a regular expression.
    Pattern {
        /// The least and the greatest length in characters.
        length: Option<(u64, u64)>,
        /// The regular expression.
        pattern: &'static str,
    },
}
