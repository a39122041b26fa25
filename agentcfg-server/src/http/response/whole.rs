//! Responses that are whole from the start: failures, cookies, streams, and the responses of other services.

use agentcfg_core::model::{Cursor, ErrorBody};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Body as HttpBody;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::{CHANGE_CURSOR, FieldValues, Reply, ReplyBody, UNCACHED, insert, json_response};
use crate::http::body::{Body, BodyError};
use crate::http::errors::Failure;

pub(crate) const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

impl Failure {
    /// The response: `{"error": "<message>"}`.
    pub fn to_response(&self) -> Response<Body> {
        let body = serde_json::to_vec(&ErrorBody::new(&*self.message)).unwrap_or_default();
        let mut response = json_response(self.status, Body::Whole(Full::new(body.into())));
        let headers = response.headers_mut();
        if self.is_unauthorized() {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(methods) = &self.allow {
            insert(headers, header::ALLOW, methods);
        }
        if let Some(should_retry) = self.should_retry {
            let value = if should_retry { "true" } else { "false" };
            headers.insert(SHOULD_RETRY, HeaderValue::from_static(value));
        }
        headers.extend(self.fields.iter().cloned());
        response
    }
}

impl Reply {
    /// A whole response, as it is.
    pub fn whole(response: Response<Body>) -> Self {
        Self {
            relayed: Some(Box::new(response)),
            ..Self::ok(ReplyBody::Made(Bytes::new())).plain()
        }
    }

    /// 204 with a cookie.
    pub fn cookie(cookie: HeaderValue) -> Self {
        let mut response = Response::new(Body::default());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(header::SET_COOKIE, cookie);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Self::whole(response)
    }

    /// The response of another service, as it is; its body is streamed.
    pub fn relayed<B>(response: Response<B>) -> Self
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let response = response.map(|body| Body::Streamed(body.map_err(BodyError::new).boxed_unsync()));
        Self::whole(response)
    }

    /// 200 with lines of JSON, which are streamed and never compressed.
    pub fn lines<B>(body: B) -> Self
    where
        B: HttpBody<Data = Bytes, Error = BodyError> + Send + 'static,
    {
        Self::streamed(body, "application/x-ndjson")
    }

    /// 200 with JSON that is streamed and never compressed.
    pub fn streamed_json<B>(body: B) -> Self
    where
        B: HttpBody<Data = Bytes, Error = BodyError> + Send + 'static,
    {
        Self::streamed(body, "application/json")
    }

    fn streamed<B>(body: B, content_type: &'static str) -> Self
    where
        B: HttpBody<Data = Bytes, Error = BodyError> + Send + 'static,
    {
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Self::relayed(response)
    }

    /// A stream of server-sent events that begins at this position. It is never compressed, and its connection closes with it.
    pub fn events<B>(stream: B, cursor: Cursor) -> Self
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let mut response = Response::new(stream);
        let headers = response.headers_mut();
        for (name, value) in [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, UNCACHED),
            (header::CONNECTION, "close"),
            (ACCEL_BUFFERING, "no"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(CHANGE_CURSOR, FieldValues::default().cursor(cursor));
        Self::relayed(response)
    }
}
