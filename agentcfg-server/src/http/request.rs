//! The head of a request: its header fields with the credential, and its identifier, each with its rules.

use std::sync::atomic::{AtomicU64, Ordering};

use agentcfg_core::clock::{Entropy, SystemEntropy};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};

use crate::http::errors::Failure;

/// The longest request line in bytes.
pub const MAX_REQUEST_LINE: usize = 8 << 10;
/// The greatest size of the header fields in bytes.
pub const MAX_HEADERS: usize = 16 << 10;
/// The longest body in bytes, unless an endpoint allows more.
pub const MAX_BODY: usize = 1 << 20;

/// The greatest length in bytes of the body of a model call, and of an apply.
pub const MAX_LONG_BODY: usize = 10 << 20;

/// The greatest length in bytes of a body that is received without a credential. The budget of bodies in flight does
/// not count short bodies, so this bounds what clients without a credential can make a server hold.
pub const MAX_OPEN_BODY: usize = 4 << 10;

/// The header fields that every request is checked for, found in one pass over them.
#[derive(Debug, Default)]
pub struct HeadFields<'a> {
    /// The caller's own identifier of the request, when it can be echoed.
    pub request_id: Option<&'a HeaderValue>,
    /// The first field `Authorization`.
    pub authorization: Option<&'a HeaderValue>,
    has_more_authorization: bool,
    has_content_encoding: bool,
    /// Whether the request has `Accept-Encoding`.
    pub has_accept_encoding: bool,
    /// Bytes on the wire: each field takes its name, `: `, its value and a line end.
    size: usize,
}

impl<'a> HeadFields<'a> {
    /// Reads the fields in one pass.
    pub fn of(headers: &'a HeaderMap) -> Self {
        let mut fields = Self::default();
        for (name, value) in headers {
            fields.size += name.as_str().len() + value.len() + 4;
            if name == header::AUTHORIZATION {
                fields.has_more_authorization = fields.authorization.is_some();
                fields.authorization = fields.authorization.or(Some(value));
            } else if name == header::CONTENT_ENCODING {
                fields.has_content_encoding = true;
            } else if name == header::ACCEPT_ENCODING {
                fields.has_accept_encoding = true;
            } else if name == REQUEST_ID && fields.request_id.is_none() {
                fields.request_id = echoed_id(value);
            }
        }
        fields
    }

    /// Refuses a head that is too long.
    ///
    /// # Errors
    ///
    /// 414 for the request line, 431 for the header fields.
    pub fn check_head(&self, method: &Method, uri: &Uri) -> Result<(), Failure> {
        let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
        let authority = uri
            .authority()
            .map_or(0, |authority| authority.as_str().len() + "http://".len());
        let line = method.as_str().len() + 1 + authority + target + 1 + "HTTP/1.1".len();
        if line > MAX_REQUEST_LINE {
            let message = format!("the request line must be at most {MAX_REQUEST_LINE} bytes, got {line}");
            return Err(Failure::uri_too_long(message));
        }
        let size = self.size;
        if size > MAX_HEADERS {
            let message = format!("the header fields must be at most {MAX_HEADERS} bytes, got {size}");
            return Err(Failure::headers_too_large(message));
        }
        Ok(())
    }

    /// The credential in `Authorization: Bearer <credential>`.
    ///
    /// # Errors
    ///
    /// 401 when there is none, more than one, or another scheme.
    pub fn bearer(&self) -> Result<&'a str, Failure> {
        let unauthorized = |message| Err(Failure::unauthorized(message));
        let Some(field) = self.authorization else {
            return unauthorized("missing credentials: send the header Authorization: Bearer <credential>");
        };
        if self.has_more_authorization {
            return unauthorized("invalid credentials: the Authorization header must be sent once");
        }
        let text = std::str::from_utf8(field.as_bytes()).unwrap_or_default();
        let (scheme, credential) = text.split_once(' ').unwrap_or((text, ""));
        let credential = credential.trim_matches(' ');
        if !scheme.eq_ignore_ascii_case("bearer") || credential.is_empty() {
            return unauthorized("invalid credentials: send the header Authorization: Bearer <credential>");
        }
        Ok(credential)
    }

    /// Refuses a body in an encoding.
    ///
    /// # Errors
    ///
    /// 415 when `Content-Encoding` is there.
    pub fn check_encoding(&self) -> Result<(), Failure> {
        if self.has_content_encoding {
            let message = "Content-Encoding is not supported: send the body as it is";
            return Err(Failure::unsupported_media_type(message));
        }
        Ok(())
    }
}

const EVENTS: &str = "text/event-stream";

/// Whether a response is to be server-sent events and not JSON: `Accept` names them, and does not prefer JSON (RFC
/// 9110, section 12.5.1). Ranges such as `*/*` do not ask for a stream.
pub fn asks_for_events(headers: &HeaderMap) -> bool {
    let fields = headers.get_all(header::ACCEPT).iter();
    let ranges = fields.flat_map(|field| field.to_str().unwrap_or_default().split(','));
    let mut best: Option<(f32, bool)> = None;
    for range in ranges {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let is_events = name.eq_ignore_ascii_case(EVENTS);
        if !is_events && !name.eq_ignore_ascii_case("application/json") {
            continue;
        }
        let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let quality = quality.map_or(1.0, |quality| quality.parse().unwrap_or(0.0));
        if quality > best.map_or(0.0, |(quality, _)| quality) {
            best = Some((quality, is_events));
        }
    }
    best.is_some_and(|(_, is_events)| is_events)
}

/// The header that carries the identifier of a request, both ways: it ties a response to a line of the log.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const LONGEST_ID: usize = 128;

/// The caller's own identifier of a request, when it can be echoed.
#[cfg(any(feature = "process", test))]
pub fn sent_id(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(REQUEST_ID).and_then(echoed_id)
}

/// An identifier, when it can be echoed: 1–128 visible ASCII characters.
pub fn echoed_id(id: &HeaderValue) -> Option<&HeaderValue> {
    let is_visible = (1..=LONGEST_ID).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic);
    is_visible.then_some(id)
}

/// Gives out identifiers: a random part for the process, and a number. A clone begins a series of its own.
#[derive(Debug)]
pub struct RequestIds {
    process: u64,
    next: AtomicU64,
}

impl RequestIds {
    /// Starts a series of its own.
    pub fn new() -> Self {
        let mut random = [0; 8];
        // Without randomness two processes may give out the same identifiers. They only mark lines of the log, so that
        // is no reason to fail.
        let _ = SystemEntropy.fill(&mut random);
        Self {
            process: u64::from_be_bytes(random),
            next: AtomicU64::new(1),
        }
    }

    /// A new identifier: 16 hexadecimal digits, a dash, and the number in hexadecimal.
    pub fn next(&self) -> HeaderValue {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = format!("{:016x}-{number:x}", self.process);
        HeaderValue::try_from(id).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
    }
}

impl Clone for RequestIds {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl Default for RequestIds {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Header fields for a test.
    pub(in crate::http) fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn the_scheme_is_read_in_any_case() {
        for field in ["Bearer x", "bearer x", "BEARER  x "] {
            assert_eq!(
                HeadFields::of(&headers(&[("authorization", field)])).bearer().unwrap(),
                "x"
            );
        }
        for field in ["Bearer", "Bearer ", "Basic x", "x", ""] {
            assert_eq!(
                HeadFields::of(&headers(&[("authorization", field)]))
                    .bearer()
                    .unwrap_err()
                    .status,
                401,
                "{field}"
            );
        }
        let twice = headers(&[("authorization", "Bearer x"), ("authorization", "Bearer x")]);
        assert_eq!(HeadFields::of(&twice).bearer().unwrap_err().status, 401);
    }

    #[test]
    fn events_are_sent_to_those_who_name_them() {
        for (accept, is) in [
            ("text/event-stream", true),
            ("Text/Event-Stream;charset=utf-8", true),
            ("text/event-stream, */*;q=0.1", true),
            ("application/json;q=0.5, text/event-stream", true),
            ("text/event-stream, application/json", true),
            ("application/json, text/event-stream", false),
            ("application/json, text/event-stream;q=0.9", false),
            ("text/event-stream;q=0", false),
            ("text/event-streams", false),
            ("text/*", false),
            ("*/*", false),
            ("", false),
        ] {
            assert_eq!(asks_for_events(&headers(&[("accept", accept)])), is, "{accept}");
        }
        assert!(!asks_for_events(&headers(&[])));
    }

    #[test]
    fn an_identifier_is_echoed_when_it_is_harmless() {
        let echoed = |id: &str| {
            let headers = headers(&[("x-request-id", id)]);
            sent_id(&headers).is_some()
        };
        assert!(echoed("abc-1"));
        assert!(echoed(&"x".repeat(128)));
        assert!(!echoed(""));
        assert!(!echoed("two words"));
        assert!(!echoed(&"x".repeat(129)));
    }

    #[test]
    fn no_two_are_alike() {
        let ids = RequestIds::new();
        assert_ne!(ids.next(), ids.next());
        assert_ne!(RequestIds::new().next(), ids.next());
    }
}
