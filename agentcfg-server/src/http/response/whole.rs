//! Responses that are whole from the start: failures, cookies, streams, and the responses of other services.

use agentcfg_core::model::{Cursor, ErrorBody};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body as HttpBody;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::{CHANGE_CURSOR, Coding, FieldValues, Reply, ReplyBody, UNCACHED, insert, json_response};
use crate::http::body::{Body, BodyError};
use crate::http::compression::{Compression, Compressor, GzipBody, MIN_LENGTH};
use crate::http::errors::Failure;

pub(crate) const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
pub const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

impl Failure {
    /// The response: `{"error": "<message>"}`.
    pub fn to_response(&self) -> Response<Body> {
        self.response_with(Body::from(self.body()))
    }

    /// The body.
    pub fn body(&self) -> String {
        serde_json::to_string(&ErrorBody::new(&*self.message)).unwrap_or_default()
    }

    /// The response with its body in the form that an app uses.
    pub fn response_with<B>(&self, body: B) -> Response<B> {
        let mut response = json_response(self.status, body);
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

/// Whether a body in memory is so long that it is compressed.
fn is_long(body: &Body) -> bool {
    body.size_hint()
        .exact()
        .is_some_and(|length| length >= MIN_LENGTH as u64)
}

impl Reply {
    /// A whole response, as it is.
    pub fn whole(response: Response<Body>) -> Self {
        Self {
            relayed: Some(Box::new(response)),
            ..Self::ok(ReplyBody::Made(Bytes::new())).plain()
        }
    }

    /// A whole response in the coding that the client prefers, where it is long.
    pub fn negotiable(response: Response<Body>) -> Self {
        let coding = match is_long(response.body()) {
            true => Coding::Undecided,
            false => Coding::Fixed,
        };
        Self {
            coding,
            ..Self::whole(response)
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

    /// 200 with lines of JSON, which are streamed.
    pub fn lines<B>(body: B) -> Self
    where
        B: HttpBody<Data = Bytes, Error = BodyError> + Send + 'static,
    {
        Self::streamed(body, "application/x-ndjson")
    }

    /// 200 with JSON that is streamed.
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
        Self {
            coding: Coding::Undecided,
            ..Self::relayed(response)
        }
    }

    /// A refusal in the coding that the client prefers, where it is long.
    pub(crate) async fn refused(refusal: Response<Body>, compression: &Compression, in_gzip: bool) -> Response<Body> {
        match compression.compressor() {
            Some(compressor) if is_long(refusal.body()) => Self::negotiated(refusal, compressor, in_gzip).await,
            _ => refusal,
        }
    }

    /// A response in the coding that the client prefers. A streamed body is compressed as it is sent.
    pub(super) async fn negotiated(response: Response<Body>, compressor: &Compressor, in_gzip: bool) -> Response<Body> {
        let (mut head, body) = response.into_parts();
        head.headers
            .append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        let compressed = match body {
            Body::Streamed(body) if in_gzip => Body::Streamed(GzipBody::new(body).boxed_unsync()),
            Body::Whole(body) if in_gzip => {
                let Ok(plain) = body.collect().await;
                let plain = plain.to_bytes();
                match compressor.compress(vec![plain.clone()]).await {
                    Ok(body) => Body::Whole(body.into()),
                    Err(error) => {
                        tracing::warn!(error, "an answer could not be compressed, and goes out as it is");
                        return Response::from_parts(head, Body::Whole(plain.into()));
                    }
                }
            }
            other => return Response::from_parts(head, other),
        };
        head.headers.remove(header::CONTENT_LENGTH);
        head.headers
            .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        Response::from_parts(head, compressed)
    }

    /// A stream of server-sent events that begins at this position. It is never compressed, and its connection closes
    /// with it.
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
