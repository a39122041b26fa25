//! Answers: what a handler gives, and how it becomes a response.

#[cfg(test)]
mod tests;
mod values;
mod whole;

use agentcfg_core::model::{Cursor, RateStatus, Tag, Timestamp};
use agentcfg_core::service::{ListText, StatusList};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde::Serialize;

pub(crate) use self::values::FieldValues;
pub(crate) use self::whole::{ACCEL_BUFFERING, SHOULD_RETRY};
use crate::http::body::Body;
use crate::http::byte_budget::{ByteBudget, SMALL_ANSWER};
use crate::http::compression::{Compression, IN_GZIP, asks_for_gzip};
use crate::http::errors::Failure;
use crate::http::request::{HeadFields, REQUEST_ID};

/// The number of the version of an agent that an answer is of.
const AGENT_VERSION: HeaderName = HeaderName::from_static("agent-version");
const CHANGE_CURSOR: HeaderName = HeaderName::from_static("change-cursor");
const HISTORY_SINCE: HeaderName = HeaderName::from_static("history-since");

/// `Cache-Control` of what is new in each answer. A proxy that transforms a stream, such as by compression, holds it
/// back.
const UNCACHED: &str = "no-store, no-transform";

/// Capacity for the fields of a typical response: content type, tag, cursor, `Vary`, rate limit, request id and
/// `X-Content-Type-Options`.
const FIELDS: usize = 9;

/// The field that names the version of an agent.
pub fn agent_version(version: u64) -> (HeaderName, HeaderValue) {
    (AGENT_VERSION, version.into())
}

/// What a handler gives.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    body: ReplyBody,
    tag: Option<Tag>,
    version: Option<u64>,
    /// The position in the change feed.
    cursor: Option<Cursor>,
    /// Since when a history is known.
    history_since: Option<Timestamp>,
    /// Whether caches and proxies must keep no copy.
    is_uncached: bool,
    coding: Coding,
    /// A whole response, such as that of another service, which replaces the other parts.
    relayed: Option<Box<Response<Body>>>,
}

/// The content coding of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    /// Plain, and not negotiated.
    Fixed,
    /// Negotiated, not chosen yet.
    Undecided,
    /// Plain, as negotiated.
    Identity,
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
        Self::ok(ReplyBody::Made(json.into()))
    }

    /// 200 with a list, whose text responses may share.
    pub fn list(list: ListText) -> Self {
        Self::ok(ReplyBody::List(list))
    }

    /// 200 with this content.
    pub fn ok(body: ReplyBody) -> Self {
        Self {
            status: StatusCode::OK,
            body,
            tag: None,
            version: None,
            cursor: None,
            history_since: None,
            is_uncached: false,
            coding: Coding::Undecided,
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

    /// Names the version of the agent that the reply is of.
    #[must_use]
    pub fn of_version(self, version: Option<u64>) -> Self {
        Self { version, ..self }
    }

    /// Adds the position in the change feed from which to go on, where it is known.
    #[must_use]
    pub fn with_cursor(self, cursor: Option<Cursor>) -> Self {
        Self { cursor, ..self }
    }

    /// Says since when the history in the answer is known.
    #[must_use]
    pub fn of_history_since(self, since: Timestamp) -> Self {
        Self {
            history_since: Some(since),
            ..self
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
            coding: Coding::Fixed,
            ..self
        }
    }

    /// Whether the body is long and this request's own, so that it counts as an unread answer of its caller.
    pub(crate) fn is_counted(&self) -> bool {
        self.status != StatusCode::NOT_MODIFIED && self.body.is_own() && self.body.len() > SMALL_ANSWER
    }

    /// The response to a request with this head, in the content coding that it prefers. Its body is counted for this
    /// caller if [`Self::is_counted`].
    ///
    /// # Errors
    ///
    /// 429 and 503 when the body does not fit into the budget.
    pub(crate) async fn into_response(
        mut self,
        (head, fields): (&Parts, &HeadFields<'_>),
        compression: &Compression,
        (budget, caller): (&ByteBudget, Option<String>),
        values: &mut FieldValues,
    ) -> Result<Response<Body>, Failure> {
        if self.coding == Coding::Undecided
            && let Some(compressor) = compression.compressor()
            && let Some(response) = self.relayed.take()
        {
            let in_gzip = fields.has_accept_encoding && asks_for_gzip(&head.headers);
            return Ok(Box::pin(Self::negotiated(*response, compressor, in_gzip)).await);
        }
        // Counted before it is compressed, which takes a while.
        let share = match caller {
            Some(caller) if head.method == Method::GET => Some(budget.answer(caller, self.body.len())?),
            // A change that was made is answered, whatever its caller has not read.
            Some(caller) if head.method != Method::HEAD => budget.answer(caller, self.body.len()).ok(),
            _ => None,
        };
        let has_forms = self.coding == Coding::Undecided
            && (self.status.is_success() || self.status == StatusCode::NOT_MODIFIED)
            && self.body.len() >= compression.from_length;
        if has_forms {
            self.coding = Coding::Identity;
            if fields.has_accept_encoding && asks_for_gzip(&head.headers) {
                self = Box::pin(self.in_gzip(compression)).await;
            }
        }
        if let Some(mut share) = share {
            share.shrink(self.body.len());
            self.body = ReplyBody::Made(share.hold(self.body.whole()));
        }
        Ok(self.written(values))
    }

    /// The reply in gzip, if it can be compressed.
    async fn in_gzip(self, compression: &Compression) -> Self {
        if self.status == StatusCode::NOT_MODIFIED {
            return self.chosen_gzip(Bytes::new(), true);
        }
        let Some(compressor) = compression.compressor() else {
            return self;
        };
        let compressed = match &self.body {
            ReplyBody::Made(body) | ReplyBody::Shared(body) => compressor.compress(vec![body.clone()]).await,
            ReplyBody::List(list) => list.encoded(|parts| compressor.compress(parts)).await,
            ReplyBody::Statuses(list) => list.encoded(|pieces| compressor.compress_pieces(pieces)).await,
            ReplyBody::Document(text) => compressor.document(text.clone()).await,
        };
        let is_own = self.body.is_own();
        match compressed {
            Ok(body) => self.chosen_gzip(body, is_own),
            Err(error) => {
                tracing::warn!(error, "an answer could not be compressed, and goes out as it is");
                self
            }
        }
    }

    /// The negotiation chose gzip, with this body if the reply has one.
    fn chosen_gzip(self, body: Bytes, is_own: bool) -> Self {
        Self {
            coding: Coding::Gzip,
            body: match is_own {
                true => ReplyBody::Made(body),
                false => ReplyBody::Shared(body),
            },
            ..self
        }
    }

    fn written(self, values: &mut FieldValues) -> Response<Body> {
        let version = self.version.map(|version| values.decimal(version));
        if let Some(mut response) = self.relayed {
            if let Some(version) = version {
                response.headers_mut().insert(AGENT_VERSION, version);
            }
            return *response;
        }
        let unchanged = self.status == StatusCode::NOT_MODIFIED;
        let body = if unchanged {
            Body::default()
        } else {
            self.body.into_body()
        };
        let mut response = json_response(self.status, body);
        let headers = response.headers_mut();
        if let Some(tag) = self.tag {
            // The tag of a record is the same in each answer with it: it is for conditions of changes.
            let is_of_record = self.version.is_some();
            let suffix = if self.coding == Coding::Gzip && !is_of_record {
                IN_GZIP
            } else {
                ""
            };
            headers.insert(header::ETAG, values.tag(tag, suffix));
        }
        if let Some(version) = version {
            headers.insert(AGENT_VERSION, version);
        }
        if let Some(cursor) = self.cursor {
            headers.insert(CHANGE_CURSOR, values.cursor(cursor));
        }
        // The text of a time is ASCII.
        if let Some(since) = self.history_since
            && let Ok(since) = HeaderValue::try_from(since.to_string())
        {
            headers.insert(HISTORY_SINCE, since);
        }
        if self.is_uncached {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(UNCACHED));
        }
        if matches!(self.coding, Coding::Identity | Coding::Gzip) {
            headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        if unchanged {
            headers.remove(header::CONTENT_TYPE);
        } else if self.coding == Coding::Gzip {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

/// Texts from this length on are sent in the pieces that they have, so that none is copied.
const LONG: usize = 64 << 10;

/// The content of a reply, as JSON.
#[derive(Debug)]
pub enum ReplyBody {
    /// What was written for this request.
    Made(Bytes),
    /// A text that responses share.
    Shared(Bytes),
    /// A list whose text responses share, unless it was made for one caller.
    List(ListText),
    /// Statuses of agents, whose text responses share.
    Statuses(StatusList),
    /// A text of the program.
    Document(Bytes),
}

impl ReplyBody {
    fn len(&self) -> usize {
        match self {
            Self::Made(body) | Self::Shared(body) => body.len(),
            Self::List(list) => list.json_len(),
            Self::Statuses(list) => list.json_len(),
            Self::Document(text) => text.len(),
        }
    }

    /// Whether no other response holds the same text.
    fn is_own(&self) -> bool {
        match self {
            Self::Made(_) => true,
            Self::List(list) => !list.is_shared(),
            Self::Shared(_) | Self::Statuses(_) | Self::Document(_) => false,
        }
    }

    fn into_body(self) -> Body {
        let is_long = self.len() >= LONG;
        match self {
            Self::List(list) if is_long => Body::Pieces(list.json_parts().into_iter()),
            Self::Statuses(list) if is_long => Body::Pieces(list.json_parts().into_iter()),
            short => Body::Whole(Full::new(short.whole())),
        }
    }

    /// The text in one piece.
    fn whole(self) -> Bytes {
        match self {
            Self::Made(body) | Self::Shared(body) => body,
            Self::List(list) => list.json(),
            Self::Statuses(list) => list.json(),
            Self::Document(text) => text,
        }
    }
}

fn json_response<B>(status: StatusCode, body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().reserve(FIELDS);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Adds what every response carries: this identifier, and the figures of the rate limit if the request was counted.
pub fn complete(headers: &mut HeaderMap, rate: Option<&RateStatus>, id: HeaderValue, values: &mut FieldValues) {
    if let Some(rate) = rate {
        figures(headers, rate, values);
    }
    headers.insert(REQUEST_ID, id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// Adds the figures of the rate limit.
pub fn figures(headers: &mut HeaderMap, rate: &RateStatus, values: &mut FieldValues) {
    for (name, figure) in rate.headers() {
        let figure = u64::try_from(figure).unwrap_or_default();
        headers.insert(HeaderName::from_static(name), values.decimal(figure));
    }
}

/// Adds a field whose value the server made; one that cannot be sent is left out.
pub fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
