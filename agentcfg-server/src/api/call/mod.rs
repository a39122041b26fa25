//! What an endpoint gets of a request: who calls, and the parameters and the body that it declares.

mod body;
mod parameter;
pub mod parameters;

use agentcfg_core::{AgentCfg, Caller};
use bytes::Bytes;
use hyper::Uri;
use hyper::header::HeaderMap;

pub use self::body::{Body, Content, Passed, ReadJson};
pub use self::parameter::{Input, Parameter, ParameterDoc, Place, Shape};
use crate::api::model_calls::ModelCalls;
use crate::http::query::Query;
use crate::listen::Leaving;

/// One request, as an endpoint sees it.
///
/// The query, the header fields and the body are private: an endpoint reads them through the parameters and the body
/// that its definition names, so that the OpenAPI document lists all that is read.
pub struct Call<'a> {
    /// The core.
    pub service: &'a AgentCfg,
    /// Who calls.
    pub caller: &'a Caller,
    /// The way to the model providers, if this server has one.
    pub model_calls: Option<&'a ModelCalls>,
    /// Reports that the caller closed the connection, where that can be observed.
    pub leaving: Option<&'a Leaving>,
    request: Received<'a>,
}

/// What was received: the parts of a request that parameters and bodies are read from.
pub(super) struct Received<'a> {
    pub(super) uri: &'a Uri,
    pub(super) query: Query<'a>,
    pub(super) headers: &'a HeaderMap,
    /// Empty where the endpoint declares no body.
    pub(super) body: Bytes,
}

impl<'a> Call<'a> {
    /// A call without a way to the model providers.
    pub(super) fn new(service: &'a AgentCfg, caller: &'a Caller, request: Received<'a>) -> Self {
        Self {
            service,
            caller,
            model_calls: None,
            leaving: None,
            request,
        }
    }
}
