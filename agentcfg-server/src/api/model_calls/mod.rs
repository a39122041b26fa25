//! Model calls: a request goes to a provider with another credential, and the answer comes back unchanged.
//!
//! The core decides which provider is called with which credential; this module only proxies bytes.

mod answer_fields;
mod attempts;
mod error;
mod headers;
mod key_test;
mod raw_json;
mod refusal;
mod relay;
mod request_body;
mod target;
mod usage;

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use agentcfg_core::model::{Provider, ProviderApi};
use agentcfg_core::service::ModelAttempt;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, Uri};

pub use answer_fields::named;
pub use error::CallError;
pub use refusal::in_form_of;
pub use relay::Relay;
pub use request_body::Draft;
pub use target::{Format, PathAgent, Target};
pub use usage::Metering;

use self::usage::{MeteredBody, MeteredCall};
use crate::api::trace::TRACEPARENT;
use crate::http::Disconnect;
use crate::outbound::{Options, Outbound, OutboundError};

agentcfg_core::__settable! {
    /// The timeouts of model calls.
    ///
    /// ```
    /// use agentcfg_server::CallTimeouts;
    /// use std::time::Duration;
    /// let timeouts = CallTimeouts::default().first_byte(Duration::from_secs(120));
    /// assert_eq!(timeouts.idle, Duration::from_secs(60));
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    CallTimeouts {
        /// Time for the head of the provider's answer to come, counted from the sending of the request.
        first_byte: Duration,
        /// Longest time between two pieces of the provider's answer.
        idle: Duration,
    }
}

impl Default for CallTimeouts {
    /// Ten minutes, for models that think, and one.
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(60),
        }
    }
}

/// Calls providers over a pool of connections. Clones share the pool.
///
/// ```
/// use agentcfg_server::{ModelCalls, CallTimeouts};
/// use std::time::Duration;
/// let calls = ModelCalls::new(CallTimeouts::default().idle(Duration::from_secs(30)))?;
/// let same_pool = calls.clone();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ModelCalls {
    outbound: Outbound,
    timeouts: CallTimeouts,
}

/// The part of a caller's request that is forwarded.
#[derive(Debug)]
pub struct Sent<'a> {
    /// The method.
    pub method: Method,
    /// The provider that the path of the request names.
    pub provider: Provider,
    /// The path at the provider, without a slash at either end.
    pub path: &'a str,
    /// The parameters for the provider, as they were written.
    pub query: Option<&'a str>,
    /// All header fields. The allow-list in `headers` is applied here.
    pub headers: &'a HeaderMap,
    /// The body, into which model, persona and settings are inserted.
    pub draft: Draft,
    /// Who is told of each attempt.
    pub metering: Metering<'a>,
}

impl ModelCalls {
    /// A pool without connections.
    ///
    /// # Errors
    ///
    /// When TLS cannot be set up.
    ///
    /// ```
    /// use agentcfg_server::{ModelCalls, CallTimeouts};
    /// use std::time::Duration;
    /// let calls = ModelCalls::new(CallTimeouts::default().idle(Duration::from_secs(30)))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(timeouts: CallTimeouts) -> io::Result<Self> {
        Self::with_options(timeouts, Options::default())
    }

    /// As [`Self::new`], with the certificate authorities and the proxy of these options.
    ///
    /// # Errors
    ///
    /// When TLS cannot be set up.
    pub fn with_options(timeouts: CallTimeouts, options: Options) -> io::Result<Self> {
        let outbound = Outbound::new(&options.connect_timeout(Duration::from_secs(10)))?;
        Ok(Self { outbound, timeouts })
    }

    /// Sends a request to one provider, and returns the answer as soon as its head has arrived.
    ///
    /// The answer's body, and this future, end the exchange with the provider when they are dropped, or when the caller
    /// leaves. The meter notes whether the provider may have got the request, and so may bill it.
    ///
    /// # Errors
    ///
    /// When the provider cannot be reached, breaks off or does not answer in time, or the caller leaves. A refusal by
    /// the provider is an answer.
    async fn send_to(
        &self,
        attempt: &ModelAttempt,
        sent: &Sent<'_>,
        body: MeteredBody,
        metered: &mut MeteredCall,
        disconnect: &Disconnect,
    ) -> Result<Response<Relay>, CallError> {
        let provider = attempt.provider;
        let mut request = request(attempt, sent, body)?;
        if metered.number > 1 {
            headers::of_another_attempt(request.headers_mut(), metered.number);
        }
        if let Some(traceparent) = metered.traceparent() {
            request.headers_mut().insert(TRACEPARENT, traceparent);
        }
        let answer = tokio::time::timeout(
            self.timeouts.first_byte,
            self.outbound.send_noted(request, &mut metered.may_be_bought),
        );
        let response = tokio::select! {
            biased;
            () = disconnect.disconnected() => return Err(CallError::CallerLeft),
            answer = answer => answer.map_err(|_| CallError::TimedOut(provider, self.timeouts.first_byte))?,
        };
        let response = response.map_err(|error| match error {
            OutboundError::Connect(_) => CallError::Unreachable(provider, error),
            _ => CallError::Broken(provider, error),
        })?;
        let (head, body) = response.into_parts();
        if head.status.is_informational() {
            // The request asked for no upgrade, and this connection supports none.
            return Err(CallError::Protocol(provider));
        }
        let mut answer = Response::new(Relay::new(body, provider, self.timeouts.idle, disconnect.clone()));
        *answer.status_mut() = head.status;
        *answer.headers_mut() = headers::from_provider(&head.headers, &attempt.credential);
        Ok(answer)
    }
}

fn request(attempt: &ModelAttempt, sent: &Sent<'_>, metered: MeteredBody) -> Result<Request<Full<Bytes>>, CallError> {
    let (api, header) = (attempt.api, attempt.credential_header);
    let mut headers = headers::to_provider(sent.headers, api, header, &attempt.credential)
        .map_err(|error| CallError::Request(error.into()))?;
    metered.limit_codings(&mut headers);
    let body = metered.body;
    if body.is_empty() && ![Method::GET, Method::DELETE].contains(&sent.method) {
        // Some servers require a length, and hyper sends none for an empty body.
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    let mut request = Request::new(Full::new(body));
    request.method_mut().clone_from(&sent.method);
    let path = match attempt.provider == sent.provider {
        true => sent.path.into(),
        false => at_another(attempt.api, &attempt.base_url, sent.path),
    };
    *request.uri_mut() = address(attempt.api, &attempt.base_url, &path, sent.query)?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// The URL of a path at a provider. Clients are configured with the version `v1` and without it; it is left out where
/// the base URL has a version: for Anthropic's API at its end, for OpenAI's anywhere, such as `/v1beta/openai`, since
/// OpenAI's own has one.
fn address(api: ProviderApi, base_url: &str, path: &str, query: Option<&str>) -> Result<Uri, CallError> {
    let path = path
        .strip_prefix("v1/")
        .filter(|_| has_version(api, base_url))
        .unwrap_or(path);
    let mut address = format!("{base_url}/{path}");
    if let Some(query) = query {
        address = format!("{address}?{query}");
    }
    address
        .parse()
        .map_err(|error: hyper::http::uri::InvalidUri| CallError::Request(error.into()))
}

/// The path of a call that goes to another provider than the one that it names: with the version `v1`, which that
/// provider's base URL may have had.
fn at_another<'a>(api: ProviderApi, base_url: &str, path: &'a str) -> Cow<'a, str> {
    match has_version(api, base_url) || path.split('/').next().is_some_and(begins_like_a_version) {
        true => path.into(),
        false => format!("v1/{path}").into(),
    }
}

fn has_version(api: ProviderApi, base_url: &str) -> bool {
    match api {
        ProviderApi::OpenAi => base_url.split('/').skip(3).any(begins_like_a_version),
        ProviderApi::Anthropic => base_url.ends_with("/v1"),
    }
}

fn begins_like_a_version(segment: &str) -> bool {
    let mut bytes = segment.bytes();
    bytes.next() == Some(b'v') && bytes.next().is_some_and(|next| next.is_ascii_digit())
}

#[cfg(test)]
mod tests;
