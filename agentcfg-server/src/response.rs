//! Answers: what a handler gives, and how it becomes a response.

use agentcfg_core::model::{ErrorBody, RateStatus, Tag};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use crate::errors::Failure;

const RATE_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const RATE_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RATE_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Fields of a typical response: content type, tag, rate limit, request id.
const FIELDS: usize = 6;

/// The body of every response.
pub type Body = Full<Bytes>;

/// What a handler gives.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    body: Bytes,
    tag: Option<Tag>,
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
            body: Bytes::new(),
            tag: Some(tag),
        }
    }

    /// The response, still without what every response carries.
    pub fn into_response(self) -> Response<Body> {
        let mut response = json_response(self.status, self.body);
        if let Some(tag) = self.tag {
            insert(response.headers_mut(), header::ETAG, &tag.to_string());
        }
        if self.status == StatusCode::NOT_MODIFIED {
            response.headers_mut().remove(header::CONTENT_TYPE);
        }
        response
    }
}

fn json_response(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(body));
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

/// A number as a field's value, without the machinery of formatting: this runs thrice a request.
fn decimal(mut number: u64) -> HeaderValue {
    let mut text = [0; 20];
    let mut start = text.len();
    loop {
        start -= 1;
        // A digit is less than ten, so nothing is cut off.
        text[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    HeaderValue::from_bytes(&text[start..]).unwrap_or_else(|_| HeaderValue::from_static("0"))
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
    fn numbers_are_written_in_decimal() {
        for number in [0, 7, 10, 1_795_180_691, u64::MAX] {
            assert_eq!(decimal(number), number.to_string().as_str());
        }
    }
}
