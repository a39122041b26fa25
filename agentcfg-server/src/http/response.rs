//! Answers: what a handler gives, and how it becomes a response.

use std::pin::Pin;
use std::task::{Context, Poll};

use agentcfg_core::model::{ErrorBody, RateStatus, Tag};
use agentcfg_core::service::AgentList;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use crate::api::model_calls::{Broken, Relay};
use crate::http::compression;
use crate::http::errors::Failure;

const RATE_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const RATE_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RATE_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Fields of a typical response: content type, tag, what it varies by, rate limit, request id.
const FIELDS: usize = 7;

/// Lists from this length on are sent in the pieces that they have, so that none is copied.
const LONG_LIST: usize = 64 << 10;

/// The body of every response.
#[derive(Debug)]
pub enum Body {
    /// One that is there as a whole, as almost all are.
    Whole(Full<Bytes>),
    /// One in pieces that others use too.
    Pieces(std::vec::IntoIter<Bytes>),
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
            Self::Pieces(pieces) => Poll::Ready(pieces.next().map(|piece| Ok(Frame::data(piece)))),
            Self::Relayed(relay) => Pin::new(relay).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Pieces(pieces) => pieces.as_slice().is_empty(),
            Self::Relayed(relay) => relay.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Pieces(pieces) => {
                SizeHint::with_exact(pieces.as_slice().iter().map(|piece| piece.len() as u64).sum())
            }
            Self::Relayed(relay) => relay.size_hint(),
        }
    }
}

/// What a handler gives.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    content: Content,
    tag: Option<Tag>,
    form: Form,
    /// The answer of somebody else, in place of all that.
    relayed: Option<Box<Response<Relay>>>,
}

/// What a reply says, as JSON.
#[derive(Debug)]
pub(crate) enum Content {
    /// What was written for this request.
    Made(Bytes),
    /// A list that others share.
    List(AgentList),
    /// A text that never changes.
    Document(&'static str),
}

/// In which form the content goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As it is, whatever the request asks for.
    Plain,
    /// As it is, unless the request asks for something else.
    Open,
    /// As it is, because the request asks for nothing else.
    Chosen,
    /// In gzip, because the request asks for it.
    Gzip,
}

impl Content {
    fn len(&self) -> usize {
        match self {
            Self::Made(body) => body.len(),
            Self::List(list) => list.json_len(),
            Self::Document(text) => text.len(),
        }
    }

    fn into_body(self) -> Body {
        Body::Whole(Full::new(match self {
            Self::List(list) if list.json_len() >= LONG_LIST => return Body::Pieces(list.json_parts().into_iter()),
            Self::List(list) => list.json(),
            Self::Made(body) => body,
            Self::Document(text) => Bytes::from_static(text.as_bytes()),
        }))
    }
}

impl Reply {
    /// 200 with a value as JSON.
    ///
    /// # Errors
    ///
    /// 500 when the value cannot be written, which no value of the API does.
    pub fn json<T: Serialize>(value: &T) -> Result<Self, Failure> {
        // Room for most records at once.
        let mut body = Vec::with_capacity(1024);
        serde_json::to_writer(&mut body, value).map_err(|error| Failure {
            cause: Some(error.to_string()),
            ..Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error")
        })?;
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

    /// Goes out as it is, whatever the request asks for. Then the tag stands for one form alone.
    #[must_use]
    pub fn plain(self) -> Self {
        Self {
            form: Form::Plain,
            ..self
        }
    }

    /// The answer of a model provider, as it is.
    pub fn relayed(response: Response<Relay>) -> Self {
        Self {
            relayed: Some(Box::new(response)),
            ..Self::ok(Content::Document("")).plain()
        }
    }

    /// Whether it depends on the request in which form this goes out.
    pub(crate) fn may_be_compressed(&self) -> bool {
        self.form == Form::Open
            && matches!(self.status, StatusCode::OK | StatusCode::NOT_MODIFIED)
            && self.content.len() >= compression::MIN_LENGTH
    }

    /// What is to be compressed, if anything goes out.
    pub(crate) fn content(&self) -> Option<&Content> {
        (self.status != StatusCode::NOT_MODIFIED).then_some(&self.content)
    }

    /// Goes out as it is because the request asks for nothing else.
    pub(crate) fn chosen_plain(self) -> Self {
        Self {
            form: Form::Chosen,
            ..self
        }
    }

    /// Goes out in gzip because the request asks for it, with this body if with any.
    pub(crate) fn chosen_gzip(self, body: Bytes) -> Self {
        Self {
            form: Form::Gzip,
            content: Content::Made(body),
            ..self
        }
    }

    /// The response, still without what every response carries.
    pub fn into_response(self) -> Response<Body> {
        if let Some(response) = self.relayed {
            return response.map(|relay| Body::Relayed(Box::new(relay)));
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

/// A tag as the value of the field `ETag`, for the form that `suffix` names. Most answers have one, so that it is written
/// without formatting or an allocation.
fn tag_value(tag: Tag, suffix: &str) -> HeaderValue {
    let (epoch, mut digits) = (tag.epoch(), itoa::Buffer::new());
    // The letter is one of two.
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
