//! What an endpoint gets of a request: the caller, and the parameters and the body that it declares.

mod body;
mod parameter;
pub mod parameters;

use agentcfg_core::webhook::Transport;
use agentcfg_core::{AgentCfg, Caller};
use bytes::Bytes;
use hyper::Uri;
use hyper::header::HeaderMap;
use hyper::http::request::Parts;

pub use self::body::{Body, Content, Passed};
pub use self::parameter::{Input, Parameter, ParameterDoc, Place, Shape};
use crate::api::model_calls::ModelCalls;
use crate::http::Disconnect;
use crate::http::query::Query;

/// One request, as an endpoint sees it.
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
    /// Sends the tests of webhooks, if this server sends webhooks.
    pub webhooks: Option<&'a dyn Transport>,
    /// Reports that the caller closed the connection, where that can be observed.
    pub disconnect: Option<&'a Disconnect>,
    /// For [`Passed`] alone, which forwards the query and the header fields.
    head: &'a Parts,
}

impl<'a> Call<'a> {
    /// The call of a request with this head, on a server that has no proxy to the model providers.
    pub(super) fn new(service: &'a AgentCfg, caller: &'a Caller, head: &'a Parts) -> Self {
        Self {
            service,
            caller,
            model_calls: None,
            webhooks: None,
            disconnect: None,
            head,
        }
    }
}

/// What was received: the parts of a request that parameters and bodies are read from.
pub struct Received<'a> {
    pub(super) uri: &'a Uri,
    pub(super) query: Query<'a>,
    pub(super) headers: &'a HeaderMap,
    /// Empty until it has been received, and where the endpoint declares none.
    pub(super) body: Bytes,
}
