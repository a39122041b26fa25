//! Answers: what a handler gives, and how it becomes a response.

mod values;

use agentcfg_core::model::{Cursor, ErrorBody, RateStatus, Tag};
use agentcfg_core::service::{AgentList, StatusList};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Body as HttpBody;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde::Serialize;

use self::values::{RATE_LIMIT, RATE_REMAINING, RATE_RESET, cursor_value, decimal, figures, tag_value};
use crate::http::body::{Body, BodyError, Content};
use crate::http::compression::{self, Compression};
use crate::http::errors::Failure;
use crate::http::request::{Fields, REQUEST_ID};

/// The number of the version of an agent that an answer is of.
const AGENT_VERSION: HeaderName = HeaderName::from_static("agent-version");
const CHANGE_CURSOR: HeaderName = HeaderName::from_static("change-cursor");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// `Cache-Control` of what is new in each answer. A proxy that transforms a stream, such as by compression, holds it back.
const UNCACHED: &str = "no-store, no-transform";

/// Capacity for the fields of a typical response: content type, tag, cursor, `Vary`, rate limit, request id.
const FIELDS: usize = 8;

/// What a handler gives.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    content: Content,
    tag: Option<Tag>,
    version: Option<u64>,
    /// The position in the change feed.
    cursor: Option<HeaderValue>,
    /// Whether caches and proxies must keep no copy.
    is_uncached: bool,
    /// Whether tag and cursor are those of the list, which keeps its header fields.
    is_as_listed: bool,
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
        Ok(Self::made(body))
    }

    /// 200 with a text that is JSON.
    pub fn made(json: Vec<u8>) -> Self {
        Self::ok(Content::Made(json.into()))
    }

    /// 200 with a list, its tag and its cursor.
    pub fn list(list: AgentList) -> Self {
        Self {
            is_as_listed: true,
            ..Self::ok(Content::List(list))
        }
    }

    /// 200 with the status list.
    pub fn statuses(list: StatusList) -> Self {
        Self::ok(Content::Statuses(list))
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
            version: None,
            cursor: None,
            is_uncached: false,
            is_as_listed: false,
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
        Self {
            tag: Some(tag),
            ..self.spelled_out()
        }
    }

    /// Names the version of the agent that the reply is of.
    #[must_use]
    pub fn of_version(self, version: Option<u64>) -> Self {
        Self { version, ..self }
    }

    /// Adds the position in the change feed from which to go on.
    #[must_use]
    pub fn with_cursor(self, cursor: Bytes) -> Self {
        Self {
            cursor: Some(cursor_value(cursor)),
            ..self
        }
    }

    /// Names no position in the change feed.
    #[must_use]
    pub fn without_cursor(self) -> Self {
        Self {
            cursor: None,
            ..self.spelled_out()
        }
    }

    /// Caches and proxies must keep no copy.
    #[must_use]
    pub fn uncached(self) -> Self {
        Self {
            is_uncached: true,
            ..self
        }
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
    pub fn events<B>(stream: B, cursor: &str) -> Self
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
        insert(headers, CHANGE_CURSOR, cursor);
        Self::relayed(response)
    }

    /// Negotiates the content coding. Whether it is gzip is the answer; [`Self::in_gzip`] then encodes the reply.
    pub(crate) fn negotiates_gzip(
        &mut self,
        compression: &Compression,
        method: &Method,
        fields: &Fields<'_>,
        headers: &HeaderMap,
    ) -> bool {
        let has_forms = self.form == Form::Open
            && matches!(*method, Method::GET | Method::HEAD)
            && matches!(self.status, StatusCode::OK | StatusCode::NOT_MODIFIED)
            && self.content.len() >= compression.from_length;
        if !has_forms {
            return false;
        }
        self.form = Form::Chosen;
        fields.has_accept_encoding && compression::asks_for_gzip(headers)
    }

    /// The reply in gzip, if it can be compressed.
    pub(crate) async fn in_gzip(self, compression: &Compression) -> Self {
        if self.status == StatusCode::NOT_MODIFIED {
            return self.chosen_gzip(Bytes::new());
        }
        match compression.compress(&self.content).await {
            Some(body) => self.chosen_gzip(body),
            None => self,
        }
    }

    /// The negotiation chose gzip, with this body if the reply has one.
    fn chosen_gzip(self, body: Bytes) -> Self {
        Self {
            form: Form::Gzip,
            content: Content::Made(body),
            ..self.spelled_out()
        }
    }

    /// The same reply with tag and cursor in fields of its own.
    fn spelled_out(self) -> Self {
        match &self.content {
            Content::List(list) if self.is_as_listed => Self {
                tag: Some(list.tag()),
                cursor: Some(ListHead::of(list, |head| head.cursor.clone())),
                is_as_listed: false,
                ..self
            },
            _ => self,
        }
    }

    /// The response, with what every response carries: this identifier, and the figures of the rate limit if the request was
    /// counted.
    pub fn into_response(self, rate: Option<&RateStatus>, id: HeaderValue) -> Response<Body> {
        if let (Content::List(list), true, Some(rate)) = (&self.content, self.is_as_listed, rate)
            && self.form == Form::Chosen
            && self.status == StatusCode::OK
        {
            let fields = ListHead::of(list, |head| head.fields.clone());
            let mut response = Response::new(self.content.into_body());
            *response.headers_mut() = fields;
            fill(response.headers_mut(), rate, id);
            return response;
        }
        let mut response = self.spelled_out().written();
        complete(response.headers_mut(), rate, id);
        response
    }

    fn written(self) -> Response<Body> {
        let version = self.version.map(decimal);
        if let Some(mut response) = self.relayed {
            response
                .headers_mut()
                .extend(version.map(|version| (AGENT_VERSION, version)));
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
        headers.extend(version.map(|version| (AGENT_VERSION, version)));
        if let Some(cursor) = self.cursor {
            headers.insert(CHANGE_CURSOR, cursor);
        }
        if self.is_uncached {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(UNCACHED));
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

/// The fields of a [`ListHead`] that have a value.
const KEPT: usize = 4;

/// The fields that [`fill`] gives a value to, in this order.
const FILLED: [HeaderName; 4] = [RATE_LIMIT, RATE_REMAINING, RATE_RESET, REQUEST_ID];

/// The header fields of an answer with a list in its plain form. The list keeps them, so that an answer copies them.
struct ListHead {
    cursor: HeaderValue,
    /// With fields without a value for [`fill`], so that a copy need not grow.
    fields: HeaderMap,
}

impl ListHead {
    /// A part of the head of a list.
    fn of<T>(list: &AgentList, part: impl Fn(&Self) -> T) -> T {
        match list.head(Self::new) {
            Some(head) => part(head),
            None => part(&Self::new(list.tag(), list.cursor())),
        }
    }

    fn new(tag: Tag, cursor: Cursor) -> Self {
        let cursor = cursor_value(cursor.to_string().into());
        let mut fields = HeaderMap::with_capacity(FIELDS);
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        fields.insert(header::ETAG, tag_value(tag, ""));
        fields.insert(CHANGE_CURSOR, cursor.clone());
        fields.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        for name in FILLED {
            fields.insert(name, HeaderValue::from_static(""));
        }
        Self { cursor, fields }
    }
}

/// Gives the fields without a value of a [`ListHead`] their values. They are its last ones, in this order: a map that had
/// nothing removed iterates in the order of insertion.
fn fill(headers: &mut HeaderMap, rate: &RateStatus, id: HeaderValue) {
    let [limit, remaining, reset] = figures(rate);
    for (place, value) in headers.values_mut().skip(KEPT).zip([limit, remaining, reset, id]) {
        *place = value;
    }
}

/// Adds what every response carries; see [`Reply::into_response`].
pub fn complete(headers: &mut HeaderMap, rate: Option<&RateStatus>, id: HeaderValue) {
    if let Some(rate) = rate {
        for (name, figure) in FILLED.into_iter().zip(figures(rate)) {
            headers.insert(name, figure);
        }
    }
    headers.insert(REQUEST_ID, id);
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
    fn each_field_of_a_list_gets_its_own_value() {
        let cursor: Cursor = "k3j9x0ab-00000000-0000-0000-0000-000000000000-c7".parse().unwrap();
        let mut fields = ListHead::new(Tag::list(cursor.epoch(), 7), cursor).fields;
        let kept = fields.clone();
        let rate = RateStatus {
            limit: 100,
            remaining: 99,
            reset_unix_millis: 1_795_167_060_000,
        };
        fill(&mut fields, &rate, HeaderValue::from_static("request-1"));
        assert_eq!(fields.len(), KEPT + FILLED.len());
        for (name, value) in [
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", "99"),
            ("x-ratelimit-reset", "1795167060"),
            ("x-request-id", "request-1"),
        ] {
            assert_eq!(fields[name], value, "{name}");
        }
        for name in ["content-type", "etag", "change-cursor", "vary"] {
            assert_eq!(fields[name], kept[name], "{name}");
        }
    }
}
