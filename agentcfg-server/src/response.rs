//! Answers: what a handler gives, and how it becomes a response.

use std::pin::Pin;
use std::task::{Context, Poll};

use agentcfg_core::model::{ErrorBody, RateStatus, Tag};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use crate::errors::Failure;
use crate::model_calls::{Broken, Relay};

const RATE_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const RATE_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RATE_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Fields of a typical response: content type, tag, rate limit, request id.
const FIELDS: usize = 6;

/// The body of every response.
#[derive(Debug)]
pub enum Body {
    /// One that is there as a whole, as almost all are.
    Whole(Full<Bytes>),
    /// One that is still on its way from a model provider.
    Relayed(Box<Relay>),
}

impl Default for Body {
    fn default() -> Self {
        Self::Whole(Full::default())
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match &mut *self {
            Self::Whole(body) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
            Self::Relayed(relay) => Pin::new(relay).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Relayed(relay) => relay.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Relayed(relay) => relay.size_hint(),
        }
    }
}

/// What a handler gives.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    body: Bytes,
    tag: Option<Tag>,
    /// The answer of somebody else, in place of all that.
    relayed: Option<Box<Response<Relay>>>,
}

impl Reply {
    /// 200 with a value as JSON.
    ///
    /// # Errors
    ///
    /// 500 when the value cannot be written, which no value of the API does.
    pub fn json<T: Serialize>(value: &T) -> Result<Self, Failure> {
        let body = serde_json::to_vec(value).map_err(|error| Failure {
            cause: Some(error.to_string()),
            ..Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error")
        })?;
        Ok(Self::bytes(body.into()))
    }

    /// 200 with bytes that are JSON already.
    pub fn bytes(body: Bytes) -> Self {
        Self {
            status: StatusCode::OK,
            body,
            tag: None,
            relayed: None,
        }
    }

    /// 201 in place of 200.
    #[must_use]
    pub fn created(self) -> Self {
        Self {
            status: StatusCode::CREATED,
            ..self
        }
    }

    /// Adds the tag of this version.
    #[must_use]
    pub fn tagged(self, tag: Tag) -> Self {
        Self { tag: Some(tag), ..self }
    }

    /// 304: the caller has this version.
    pub fn not_modified(tag: Tag) -> Self {
        Self {
            status: StatusCode::NOT_MODIFIED,
            tag: Some(tag),
            ..Self::bytes(Bytes::new())
        }
    }

    /// The answer of a model provider, as it is.
    pub fn relayed(response: Response<Relay>) -> Self {
        Self {
            relayed: Some(Box::new(response)),
            ..Self::bytes(Bytes::new())
        }
    }

    /// The response, still without what every response carries.
    pub fn into_response(self) -> Response<Body> {
        if let Some(response) = self.relayed {
            return response.map(|relay| Body::Relayed(Box::new(relay)));
        }
        let mut response = json_response(self.status, self.body);
        if let Some(tag) = self.tag {
            response.headers_mut().insert(header::ETAG, tag_value(tag));
        }
        if self.status == StatusCode::NOT_MODIFIED {
            response.headers_mut().remove(header::CONTENT_TYPE);
        }
        response
    }
}

fn json_response(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::Whole(Full::new(body)));
    *response.status_mut() = status;
    response.headers_mut().reserve(FIELDS);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

impl Failure {
    /// The response: `{"error": "<message>"}`.
    pub fn to_response(&self) -> Response<Body> {
        let body = serde_json::to_vec(&ErrorBody {
            error: self.message.clone(),
        })
        .unwrap_or_default();
        let mut response = json_response(self.status, body.into());
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// Adds the three figures of the rate limit.
pub fn add_rate(headers: &mut HeaderMap, rate: &RateStatus) {
    let reset = u64::try_from(rate.reset_unix_seconds()).unwrap_or_default();
    for (name, figure) in [
        (RATE_LIMIT, u64::from(rate.limit)),
        (RATE_REMAINING, u64::from(rate.remaining)),
        (RATE_RESET, reset),
    ] {
        headers.insert(name, decimal(figure));
    }
}

/// A number as a field's value.
fn decimal(number: u64) -> HeaderValue {
    made(itoa::Buffer::new().format(number).as_bytes())
}

/// An entity tag as a field's value, without the machinery of formatting: most answers have one.
fn tag_value(tag: Tag) -> HeaderValue {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(tag.number()).as_bytes();
    // Two quotes, a letter, and the longest number.
    let mut text = [b'"'; 3 + 20];
    // The letter is one of two.
    text[1] = tag.kind() as u8;
    text[2..2 + digits.len()].copy_from_slice(digits);
    made(&text[..digits.len() + 3])
}

fn made(text: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(text).unwrap_or_else(|_| HeaderValue::from_static("0"))
}

/// Adds a field whose value the server made; one that cannot be sent is left out.
pub fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_written_as_it_reads() {
        for tag in [Tag::record(0), Tag::list(7), Tag::record(u64::MAX)] {
            assert_eq!(tag_value(tag), tag.to_string().as_str());
        }
    }
}
