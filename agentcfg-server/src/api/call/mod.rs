//! What an endpoint gets of a request: the caller, and the parameters and the body that it declares.

mod body;
mod parameter;
pub mod parameters;

use agentcfg_core::{AgentCfg, Caller, Error};
use bytes::Bytes;
use hyper::Uri;
use hyper::header::HeaderMap;

pub use self::body::{Body, Content, Passed, ReadJson};
pub use self::parameter::{Input, Parameter, ParameterDoc, Place, Shape};
use crate::api::answer::Answer;
use crate::api::endpoint::{Endpoint, Guarded};
use crate::api::model_calls::ModelCalls;
use crate::http::Disconnect;
use crate::http::errors::Failure;
use crate::http::query::Query;
use crate::http::request::unmet;
use crate::http::response::Reply;

/// One request, as an endpoint sees it.
///
/// What was received is private: an endpoint gets the values of the parameters and of the body that its definition
/// names, and can read nothing else. So the OpenAPI document lists all that is read.
pub struct Call<'a> {
    /// The core.
    pub service: &'a AgentCfg,
    /// The authenticated caller.
    pub caller: &'a Caller,
    /// The proxy to the model providers, if this server has one.
    pub model_calls: Option<&'a ModelCalls>,
    /// Reports that the caller closed the connection, where that can be observed.
    pub disconnect: Option<&'a Disconnect>,
    request: Received<'a>,
}

/// What was received: the parts of a request that parameters and bodies are read from.
pub struct Received<'a> {
    pub(super) uri: &'a Uri,
    pub(super) query: Query<'a>,
    pub(super) headers: &'a HeaderMap,
    /// Empty until it has been received, and where the endpoint declares none.
    pub(super) body: Bytes,
}

impl<'a> Call<'a> {
    /// A call of a server that has no proxy to the model providers.
    pub(super) fn new(service: &'a AgentCfg, caller: &'a Caller, request: Received<'a>) -> Self {
        Self {
            service,
            caller,
            model_calls: None,
            disconnect: None,
            request,
        }
    }

    /// Adds the body when it has arrived.
    pub(super) fn received(&mut self, body: Bytes) {
        self.request.body = body;
    }

    /// The failure of an endpoint that declares `If-Match`. When the precondition fails, the message names the current tag and
    /// what is wrong with the form of the tag that was sent.
    pub fn unmet(&self, error: Error) -> Failure {
        unmet(self.request.headers, error)
    }
}

/// Reads what an endpoint declares, runs it, and writes its answer.
#[allow(
    clippy::manual_async_fn,
    reason = "the compiler proves that the future is `Send` where that is declared, and fails where it must infer it"
)]
pub(super) fn serve<E: Endpoint>(call: &Call<'_>) -> impl Future<Output = Result<Reply, Failure>> + Send {
    async {
        let input = E::Input::read(&call.request)?;
        let body = E::Body::read(&call.request)?;
        E::run(call, input, body).await?.into_reply()
    }
}

/// Reads the parameters of an endpoint and checks its caller, before there is a body.
#[allow(
    clippy::manual_async_fn,
    reason = "the compiler proves that the future is `Send` where that is declared, and fails where it must infer it"
)]
pub(super) fn check<E: Guarded>(call: &Call<'_>) -> impl Future<Output = Result<(), Failure>> + Send {
    async {
        let input = E::Input::read(&call.request)?;
        E::guard(call, input).await
    }
}
