//! What an endpoint gets of a request: the caller, and the parameters and the body that it declares.

mod body;
mod parameter;
pub mod parameters;

use agentcfg_core::{AgentCfg, Caller};
use bytes::Bytes;
use hyper::Uri;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::request::Parts;

pub use self::body::{Body, Content, Optional, Passed, Rpc};
pub use self::parameter::{Input, Parameter, ParameterDoc, Place, Shape};
use crate::api::model_calls::ModelCalls;
use crate::http::browser::Cookie;
use crate::http::errors::Failure;
use crate::http::query::Query;
use crate::http::{Browser, Disconnect};

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
    /// Reports that the caller closed the connection, where that can be observed.
    pub disconnect: Option<&'a Disconnect>,
    /// What browsers see of this server.
    pub(super) browser: Option<&'a Browser>,
    /// For [`Passed`] and cookies alone, which forwards the query and the header fields.
    head: &'a Parts,
}

impl<'a> Call<'a> {
    /// The call of a request with this head, on a server that has no proxy to the model providers.
    pub(super) fn new(service: &'a AgentCfg, caller: &'a Caller, head: &'a Parts) -> Self {
        Self {
            service,
            caller,
            model_calls: None,
            disconnect: None,
            browser: None,
            head,
        }
    }

    /// The field `Set-Cookie` that removes the cookie of the session.
    ///
    /// # Errors
    ///
    /// 500 when it cannot be sent, which it always can.
    pub fn removed_cookie(&self) -> Result<HeaderValue, Failure> {
        match self.browser {
            Some(browser) => browser.remove_cookie(Cookie::Session, &self.head.headers),
            None => Browser::default().remove_cookie(Cookie::Session, &self.head.headers),
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
