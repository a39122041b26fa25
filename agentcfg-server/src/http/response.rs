//! Answers: what a handler gives, and how it becomes a response.

use agentcfg_core::model::{ErrorBody, RateStatus, Tag};
use agentcfg_core::service::AgentList;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Body as HttpBody;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde::Serialize;

use crate::http::body::{Body, BodyError};
use crate::http::compression::{self, Compression};
use crate::http::content::Content;
use crate::http::errors::Failure;
use crate::http::request::Fields;

const RATE_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const RATE_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RATE_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Capacity for the fields of a typical response: content type, tag, `Vary`, rate limit, request id.
const FIELDS: usize = 7;

/// What a handler gives.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    content: Content,
    tag: Option<Tag>,
    form: Form,
    /// A whole response, such as that of another service, which replaces the other parts.
    relayed: Option<Box<Response<Body>>>,
}

/// The content coding of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Plain, and not negotiated.
    Plain,
    /// Negotiated, not chosen yet.
    Open,
    /// Plain, as negotiated.
    Chosen,
    /// Gzip, as negotiated.
    Gzip,
}

impl Reply {
    /// 200 with a value as JSON.
    ///
    /// # Errors
    ///
    /// 500 when the value cannot be written, which no value of the API does.
    pub fn json<T: Serialize>(value: &T) -> Result<Self, Failure> {
        // Most records fit into this capacity.
        let mut body = Vec::with_capacity(1024);
        serde_json::to_writer(&mut body, value).map_err(Failure::internal)?;
        Ok(Self::ok(Content::Made(body.into())))
    }

    /// 200 with a list.
    pub fn list(list: AgentList) -> Self {
        Self::ok(Content::List(list))
    }

    /// 200 with a text that is JSON already. There is one such text.
    pub(crate) fn document(text: &'static str) -> Self {
        Self::ok(Content::Document(text))
    }

    fn ok(content: Content) -> Self {
        Self {
            status: StatusCode::OK,
            content,
            tag: None,
            form: Form::Open,
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

    /// 304 in place of 200: the caller has this version.
    #[must_use]
    pub fn not_modified(self) -> Self {
        Self {
            status: StatusCode::NOT_MODIFIED,
            ..self
        }
    }

    /// Takes no part in the negotiation of codings, so that the tag names one form alone.
    #[must_use]
    pub fn plain(self) -> Self {
        Self {
            form: Form::Plain,
            ..self
        }
    }

    /// A whole response, as it is.
    pub fn whole(response: Response<Body>) -> Self {
        Self {
            relayed: Some(Box::new(response)),
            ..Self::ok(Content::Document("")).plain()
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

    /// Encodes the reply in the coding that the request negotiates: gzip or plain.
    pub(crate) async fn encoded(
        self,
        compression: &Compression,
        method: &Method,
        fields: &Fields<'_>,
        headers: &HeaderMap,
    ) -> Self {
        let has_forms = self.form == Form::Open
            && matches!(*method, Method::GET | Method::HEAD)
            && matches!(self.status, StatusCode::OK | StatusCode::NOT_MODIFIED)
            && compression.applies_to(self.content.len());
        if !has_forms {
            return self;
        }
        if !fields.has_accept_encoding || !compression::asks_for_gzip(headers) {
            return self.chosen_plain();
        }
        Box::pin(self.in_gzip(compression)).await
    }

    async fn in_gzip(self, compression: &Compression) -> Self {
        if self.status == StatusCode::NOT_MODIFIED {
            return self.chosen_gzip(Bytes::new());
        }
        match compression.compress(&self.content).await {
            Some(body) => self.chosen_gzip(body),
            None => self.chosen_plain(),
        }
    }

    /// The negotiation chose the plain form.
    fn chosen_plain(self) -> Self {
        Self {
            form: Form::Chosen,
            ..self
        }
    }

    /// The negotiation chose gzip, with this body if the reply has one.
    fn chosen_gzip(self, body: Bytes) -> Self {
        Self {
            form: Form::Gzip,
            content: Content::Made(body),
            ..self
        }
    }

    /// The response, still without what every response carries.
    pub fn into_response(self) -> Response<Body> {
        if let Some(response) = self.relayed {
            return *response;
        }
        let unchanged = self.status == StatusCode::NOT_MODIFIED;
        let body = if unchanged {
            Body::default()
        } else {
            self.content.into_body()
        };
        let mut response = json_response(self.status, body);
        let headers = response.headers_mut();
        if let Some(tag) = self.tag {
            let value = match self.form {
                Form::Gzip => tag_value(tag, compression::IN_GZIP),
                Form::Plain | Form::Open | Form::Chosen => tag_value(tag, ""),
            };
            headers.insert(header::ETAG, value);
        }
        if matches!(self.form, Form::Chosen | Form::Gzip) {
            headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        if unchanged {
            headers.remove(header::CONTENT_TYPE);
        } else if self.form == Form::Gzip {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

fn json_response(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
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
        if self.is_final {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
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

/// A tag as the value of the field `ETag`, for the form that `suffix` names. Most answers have one, so that it is written
/// without formatting or an allocation.
fn tag_value(tag: Tag, suffix: &str) -> HeaderValue {
    let (epoch, mut digits) = (tag.epoch(), itoa::Buffer::new());
    // The kind is one ASCII letter.
    let parts = [
        b"\"",
        epoch.as_str().as_bytes(),
        b"-",
        &[tag.kind() as u8],
        digits.format(tag.number()).as_bytes(),
        suffix.as_bytes(),
        b"\"",
    ];
    let mut text = [0; 48];
    let mut length = 0;
    for part in parts {
        text[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    made(&text[..length])
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
        let epoch = "k3j9x0ab".parse().unwrap();
        for tag in [Tag::record(epoch, 0), Tag::list(epoch, 7), Tag::record(epoch, u64::MAX)] {
            assert_eq!(tag_value(tag, ""), format!("\"{tag}\"").as_str());
            assert_eq!(tag_value(tag, compression::IN_GZIP), format!("\"{tag}-gzip\"").as_str());
        }
    }
}
