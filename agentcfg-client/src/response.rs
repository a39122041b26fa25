//! A response: read within a size limit, classified and decoded.

use agentcfg_core::model::{Agent, ErrorBody, Success, Tag, Tagged, VersionedAgent};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::HeaderMap;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, ETAG, HeaderName, HeaderValue, LOCATION};
use hyper::{Response, StatusCode};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::error::{BoxError, RefusalFacts, ResponseFacts};
use crate::rate_limit::{RateLimit, retry_after};

/// The number of the version of the agent that an answer is of.
const AGENT_VERSION: HeaderName = HeaderName::from_static("agent-version");
/// The fields that break a rule.
const FAULT_FIELDS: HeaderName = HeaderName::from_static("fault-fields");

/// Larger than any error message of the service.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// How much of an untrusted header value a message quotes.
const MAX_QUOTED: usize = 200;

/// A successful response, or 304 to a conditional request.
pub(crate) struct ApiResponse {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl ApiResponse {
    /// Reads a response completely.
    ///
    /// # Errors
    ///
    /// For every status other than success, a body longer than `max_bytes`, and a connection that breaks.
    pub(crate) async fn read(response: Response<Incoming>, max_bytes: usize) -> Result<Self, Error> {
        let (head, body) = response.into_parts();
        let status = head.status.as_u16();
        let success = head.status.is_success() || status == 304;
        let max_bytes = if success {
            max_bytes
        } else {
            max_bytes.min(MAX_ERROR_BYTES)
        };
        let body = match read_body(body, max_bytes).await {
            Ok(body) => body,
            // The status alone classifies the error.
            Err(_) if !success => Bytes::new(),
            Err(Unread::TooLong) => {
                let message = format!("the answer is longer than the {max_bytes} bytes allowed");
                return Err(Error::unreadable(facts(status, &head.headers), message));
            }
            Err(Unread::Broken(error)) => return Err(Error::cut_off(facts(status, &head.headers), error)),
        };
        let answer = Self {
            status,
            headers: head.headers,
            body,
        };
        if success { Ok(answer) } else { Err(answer.into_error()) }
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn is_not_modified(&self) -> bool {
        self.status == 304
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let facts = facts(self.status, &self.headers);
            match self.text(CONTENT_TYPE) {
                Some(kind) if !kind.starts_with("application/json") => {
                    Error::unreadable(facts, format!("the answer is {kind}, not the JSON of agentcfg"))
                }
                _ => Error::unreadable(facts, format!("the answer is not what agentcfg promises: {error}")),
            }
        })
    }

    pub(crate) fn tagged<T: DeserializeOwned>(&self) -> Result<Tagged<T>, Error> {
        Ok(Tagged {
            value: self.json()?,
            tag: tag(&self.headers).unwrap_or(Tag::UNKNOWN),
        })
    }

    /// Reads an agent with the tag of its record and the number of its version.
    pub(crate) fn agent(&self) -> Result<VersionedAgent, Error> {
        Ok(self.versioned(self.tagged()?))
    }

    /// An agent of this answer with the number of its version, which is 0 if a proxy removed or changed it.
    pub(crate) fn versioned(&self, agent: Tagged<Agent>) -> VersionedAgent {
        let version = self
            .headers
            .get(AGENT_VERSION)
            .and_then(|text| text.to_str().ok()?.parse().ok());
        VersionedAgent::new(agent, version.unwrap_or_default())
    }

    /// The text of a header field.
    pub(crate) fn header(&self, name: &'static str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The error of an answer that this client cannot decode.
    pub(crate) fn unreadable(&self, message: impl Into<String>) -> Error {
        Error::unreadable(facts(self.status, &self.headers), message)
    }

    /// The error of a call for one record that the response does not have.
    pub(crate) fn absent(&self, message: impl Into<String>) -> Error {
        Error::absent(facts(self.status, &self.headers), message)
    }

    /// Reads a response that reports success and nothing else.
    pub(crate) fn success(&self) -> Result<(), Error> {
        self.json::<Success>().map(drop)
    }

    fn into_error(self) -> Error {
        let facts = facts(self.status, &self.headers);
        match serde_json::from_slice::<ErrorBody>(&self.body) {
            Ok(body) => Error::refused(self.status, facts, body.error),
            Err(_) => Error::foreign(self.status, facts, self.foreign_message()),
        }
    }

    /// The message for a response that did not come from the service, such as a proxy's page.
    fn foreign_message(&self) -> String {
        let status = StatusCode::from_u16(self.status).unwrap_or_default();
        let name = match status.canonical_reason() {
            Some(reason) => format!("{} {reason}", self.status),
            None => self.status.to_string(),
        };
        match (self.status, self.text(LOCATION), self.text(CONTENT_TYPE)) {
            (300..400, Some(location), _) => format!("the answer is a redirect to {location}, which is not followed"),
            (_, _, Some(kind)) => format!("the answer is {name} as {kind}, which is not from agentcfg"),
            _ => format!("the answer is {name} without a message"),
        }
    }

    fn text(&self, name: HeaderName) -> Option<String> {
        let text = self.headers.get(name)?.to_str().ok()?;
        Some(text.chars().take(MAX_QUOTED).collect())
    }
}

/// Why a body was not read completely.
enum Unread {
    TooLong,
    Broken(BoxError),
}

async fn read_body(body: Incoming, max_bytes: usize) -> Result<Bytes, Unread> {
    // An announced length over the limit is refused before anything is read.
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(Unread::TooLong);
    }
    match Limited::new(body, max_bytes).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Unread::TooLong),
        Err(error) => Err(Unread::Broken(error)),
    }
}

pub(crate) fn facts(status: u16, headers: &HeaderMap) -> ResponseFacts {
    let request_id = headers.get("x-request-id").and_then(|id| id.to_str().ok());
    ResponseFacts {
        status: Some(status),
        request_id: request_id.map(|id| id.chars().take(MAX_QUOTED).collect()),
        retry_after: retry_after(headers),
        rate_limit: RateLimit::read(headers),
        refusal: refusal(status, headers).map(Box::new),
    }
}

/// What the head of a refusal says about its reason; `None` for any other answer, and where it has none of it.
fn refusal(status: u16, headers: &HeaderMap) -> Option<RefusalFacts> {
    let facts = RefusalFacts {
        fault_fields: match status {
            400 => headers.get(FAULT_FIELDS).map(fields).unwrap_or_default(),
            _ => Vec::new(),
        },
        current_tag: (status == 412).then(|| tag(headers)).flatten(),
    };
    (facts != RefusalFacts::default()).then_some(facts)
}

/// The names in `Fault-Fields`. A name that a proxy has changed so that it is no text any more is left out.
fn fields(value: &HeaderValue) -> Vec<String> {
    let names = value.to_str().unwrap_or_default().split(',').map(str::trim);
    let decoded = names.filter_map(|name| percent_decode_str(name).decode_utf8().ok());
    decoded.filter(|name| !name.is_empty()).map(Into::into).collect()
}

/// The tag in the entity tag. `None` if there is none, or a proxy removed or changed it.
fn tag(headers: &HeaderMap) -> Option<Tag> {
    let text = headers.get(ETAG)?.to_str().ok()?;
    text.strip_prefix('"')?.strip_suffix('"')?.parse().ok()
}
