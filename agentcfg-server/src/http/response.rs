//! Answers: what a handler gives, and how it becomes a response.

#[cfg(test)]
mod tests;
mod values;
mod whole;

use std::cell::RefCell;

use agentcfg_core::model::{Cursor, RateStatus, Tag};
use agentcfg_core::service::{AgentList, StatusList};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde::Serialize;

use self::values::{cursor_value, decimal, tag_value};
use crate::http::body::Body;
use crate::http::compression::{Compression, Compressor, Failed, IN_GZIP, asks_for_gzip};
use crate::http::errors::Failure;
use crate::http::request::{Fields, REQUEST_ID};

/// The number of the version of an agent that an answer is of.
const AGENT_VERSION: HeaderName = HeaderName::from_static("agent-version");
const CHANGE_CURSOR: HeaderName = HeaderName::from_static("change-cursor");

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

    /// The response to a request with this head, in the content coding that it prefers. It has what every response carries:
    /// this identifier, and the figures of the rate limit if the request was counted.
    pub(crate) async fn into_response(
        mut self,
        (head, fields): (&Parts, &Fields<'_>),
        compression: &Compression,
        rate: Option<&RateStatus>,
        id: HeaderValue,
    ) -> Response<Body> {
        let has_forms = self.form == Form::Open
            && matches!(head.method, Method::GET | Method::HEAD)
            && matches!(self.status, StatusCode::OK | StatusCode::NOT_MODIFIED)
            && self.content.len() >= compression.from_length;
        if has_forms {
            self.form = Form::Chosen;
            if fields.has_accept_encoding && asks_for_gzip(&head.headers) {
                self = Box::pin(self.in_gzip(compression)).await;
            }
        }
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

    /// The reply in gzip, if it can be compressed.
    async fn in_gzip(self, compression: &Compression) -> Self {
        if self.status == StatusCode::NOT_MODIFIED {
            return self.chosen_gzip(Bytes::new());
        }
        let Some(compressor) = compression.compressor() else {
            return self;
        };
        match self.content.in_gzip(compressor).await {
            Ok(body) => self.chosen_gzip(body),
            Err(error) => {
                tracing::warn!(error, "an answer could not be compressed, and goes out as it is");
                self
            }
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
                Form::Gzip => tag_value(tag, IN_GZIP),
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

/// Lists from this length on are sent in the pieces that they have, so that none is copied.
const LONG_LIST: usize = 64 << 10;

/// The content of a reply, as JSON.
#[derive(Debug)]
enum Content {
    /// What was written for this request.
    Made(Bytes),
    /// A list that other responses share.
    List(AgentList),
    /// Statuses that other responses share.
    Statuses(StatusList),
    /// A text that never changes.
    Document(&'static str),
}

impl Content {
    fn len(&self) -> usize {
        match self {
            Self::Made(body) => body.len(),
            Self::List(list) => list.json_len(),
            Self::Statuses(list) => list.json_len(),
            Self::Document(text) => text.len(),
        }
    }

    /// The content in gzip. Lists keep that form.
    async fn in_gzip(&self, compressor: &Compressor) -> Result<Bytes, Failed> {
        match self {
            Self::Made(body) => compressor.compress(vec![body.clone()]).await,
            Self::List(list) => list.encoded(|parts| compressor.compress(parts)).await,
            Self::Statuses(list) => list.encoded(|pieces| compressor.compress_pieces(pieces)).await,
            Self::Document(text) => compressor.document(text).await,
        }
    }

    fn into_body(self) -> Body {
        Body::Whole(Full::new(match self {
            Self::List(list) if list.json_len() >= LONG_LIST => return Body::Pieces(list.json_parts().into_iter()),
            Self::Statuses(list) if list.json_len() >= LONG_LIST => {
                return Body::Pieces(list.json_parts().into_iter());
            }
            Self::List(list) => list.json(),
            Self::Statuses(list) => list.json(),
            Self::Made(body) => body,
            Self::Document(text) => Bytes::from_static(text.as_bytes()),
        }))
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

/// The fields of a [`ListHead`] that have a value.
const KEPT: usize = 4;

/// The fields that [`fill`] gives a value to, in this order.
const FILLED: [HeaderName; 4] = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
    REQUEST_ID,
];

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

/// The three figures of the rate limit: the limit, what remains of it, and when the window ends.
fn figures(rate: &RateStatus) -> [HeaderValue; 3] {
    let limit = u64::from(rate.limit);
    let reset = u64::try_from(rate.reset_unix_seconds()).unwrap_or_default();
    let (limit, reset) = RECENT.with_borrow_mut(|[limits, resets]| (limits.of(limit), resets.of(reset)));
    [limit, decimal(u64::from(rate.remaining)), reset]
}

thread_local! {
    /// The limits and the ends of windows of recent answers.
    static RECENT: RefCell<[Recent; 2]> = const { RefCell::new([Recent([const { None }; PLACES]), Recent([const { None }; PLACES])]) };
}

/// Windows that are open end within a minute, so that the ends of all of them have places of their own.
const PLACES: usize = 64;

/// Numbers of recent answers as values of fields: most answers share them, and sharing costs less than writing. A number has
/// one place, which it takes from another one.
struct Recent([Option<(u64, HeaderValue)>; PLACES]);

impl Recent {
    fn of(&mut self, number: u64) -> HeaderValue {
        let place = &mut self.0[(number % PLACES as u64) as usize];
        match place {
            Some((known, value)) if *known == number => value.clone(),
            _ => {
                let value = decimal(number);
                *place = Some((number, value.clone()));
                value
            }
        }
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
