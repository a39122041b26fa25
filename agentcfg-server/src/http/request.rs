//! Reading the head of a request: its header fields with the credential, its query, and its identifier, each with its rules.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

use agentcfg_core::clock::{Entropy, SystemEntropy};
use agentcfg_core::validate::{Faults, shown};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};
use percent_encoding::percent_decode_str;
use smallvec::SmallVec;

use crate::http::errors::Failure;

/// The longest request line.
pub const MAX_REQUEST_LINE: usize = 8 << 10;
/// The most bytes of header fields.
pub const MAX_HEADERS: usize = 16 << 10;
/// The longest body.
pub const MAX_BODY: usize = 1 << 20;

/// The greatest length in bytes of the body of a model call, and of an apply.
pub const MAX_LONG_BODY: usize = 10 << 20;

/// The greatest length in bytes of a body that is received without a credential. The budget of the bodies in flight leaves
/// short ones out, so this bounds what strangers can make a server hold.
pub const MAX_OPEN_BODY: usize = 4 << 10;

/// The header fields that every request is checked for, found in one pass over them.
#[derive(Debug, Default)]
pub struct Fields<'a> {
    /// The caller's own identifier of the request, when it can be echoed.
    pub request_id: Option<&'a HeaderValue>,
    /// The first field `Authorization`.
    pub authorization: Option<&'a HeaderValue>,
    has_more_authorization: bool,
    has_content_encoding: bool,
    /// Whether the request has `Accept-Encoding`.
    pub has_accept_encoding: bool,
    /// Whether the request has `If-None-Match`.
    pub has_if_none_match: bool,
    /// Bytes on the wire: each field takes its name, `: `, its value and a line end.
    size: usize,
}

impl<'a> Fields<'a> {
    /// Looks through the fields.
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
            } else if name == header::IF_NONE_MATCH {
                fields.has_if_none_match = true;
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

/// Whether a response is to be server-sent events and not JSON: `Accept` names them, and does not prefer JSON (RFC 9110,
/// section 12.5.1). Ranges such as `*/*` do not ask for a stream.
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

/// The parameters of a query.
#[derive(Debug, Default)]
pub struct Query<'a> {
    /// Names and values, in their order.
    pub(crate) parameters: Parameters<'a>,
}

/// Names and values; the usual number of them needs no allocation.
type Parameters<'a> = SmallVec<[(Cow<'a, str>, Cow<'a, str>); 2]>;

impl<'a> Query<'a> {
    /// Reads the query of a URI.
    ///
    /// # Errors
    ///
    /// 400 for a parameter given twice, and for percent-encoding that is none or is not UTF-8.
    pub fn parse(query: Option<&'a str>) -> Result<Self, Failure> {
        let mut parameters = Parameters::new();
        let mut rest = query.unwrap_or_default();
        while !rest.is_empty() {
            let (pair, others) = split(b'&', rest);
            rest = others;
            if pair.is_empty() {
                continue;
            }
            let (name, value) = split(b'=', pair);
            let (name, value) = (decode(name)?, decode(value)?);
            if parameters.iter().any(|(known, _)| *known == name) {
                return Err(Failure::bad_request(format!(
                    "the query parameter {} must be given once",
                    shown(&name)
                )));
            }
            parameters.push((name, value));
        }
        Ok(Self { parameters })
    }

    /// A parameter's value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_ref())
    }

    /// A parameter that must be there.
    ///
    /// # Errors
    ///
    /// 400 when it is missing or empty.
    pub fn required(&self, name: &str) -> Result<&str, Failure> {
        self.get(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| Failure::bad_request(format!("the query parameter {name} is required")))
    }

    /// A whole number within bounds, when it is given. Faults are reported together.
    pub fn number(&self, name: &str, bounds: RangeInclusive<u64>, faults: &mut Faults) -> Option<u64> {
        let text = self.get(name)?;
        let field = format_args!("the query parameter {name}");
        // `parse` alone would accept a sign.
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            faults.push(field, "must be a whole number that is not negative");
            return None;
        }
        let Ok(number) = text.parse() else {
            faults.push(field, format_args!("must be at most {}", bounds.end()));
            return None;
        };
        if !bounds.contains(&number) {
            let (least, most) = bounds.into_inner();
            faults.push(field, format_args!("must be {least} to {most}, got {number}"));
            return None;
        }
        Some(number)
    }
}

/// The query as it was written, without the parameters of these names; `None` when nothing is left.
///
/// # Errors
///
/// As [`Query::parse`].
pub fn query_without(query: Option<&str>, names: &[&str]) -> Result<Option<String>, Failure> {
    let mut kept = Vec::new();
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let name = decode(pair.split_once('=').map_or(pair, |(name, _)| name))?;
        if !names.contains(&&*name) {
            kept.push(pair);
        }
    }
    Ok((!kept.is_empty()).then(|| kept.join("&")))
}

/// A text before and behind the first such byte, which is ASCII; all of it is before one that is not there.
fn split(byte: u8, text: &str) -> (&str, &str) {
    memchr::memchr(byte, text.as_bytes()).map_or((text, ""), |at| (&text[..at], &text[at + 1..]))
}

/// Decodes a part of a query: `%XX` is a byte, `+` is a space.
fn decode(text: &str) -> Result<Cow<'_, str>, Failure> {
    if memchr::memchr2(b'%', b'+', text.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(text));
    }
    let text = text.replace('+', " ");
    // The decoder would leave an incomplete escape as it is.
    let is_escape = |after: &str| {
        after
            .as_bytes()
            .iter()
            .take(2)
            .filter(|byte| byte.is_ascii_hexdigit())
            .count()
            == 2
    };
    if !text.split('%').skip(1).all(is_escape) {
        return Err(Failure::bad_request(
            "the query must be percent-encoded: % needs two hexadecimal digits",
        ));
    }
    percent_decode_str(&text)
        .decode_utf8()
        .map(|decoded| Cow::Owned(decoded.into_owned()))
        .map_err(|_| Failure::bad_request("the query must be percent-encoded UTF-8"))
}

/// The header that carries the identifier of a request, both ways: it ties a response to a line of the log.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const LONGEST_ID: usize = 128;
const HEX: &[u8; 16] = b"0123456789abcdef";

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

/// Gives out identifiers: a random part for the process, and a number.
#[derive(Debug)]
pub struct RequestIds {
    process: [u8; 16],
    next: AtomicU64,
}

impl RequestIds {
    /// Starts a series of its own.
    pub fn new() -> Self {
        let mut random = [0; 8];
        // Without randomness two processes may give out the same identifiers. They only mark lines of the log, so that is
        // no reason to fail.
        let _ = SystemEntropy.fill(&mut random);
        let digit = |i: usize| HEX[usize::from(random[i / 2] >> (4 * (1 - i % 2)) & 15)];
        Self {
            process: std::array::from_fn(digit),
            next: AtomicU64::new(1),
        }
    }

    /// A new identifier: 16 hexadecimal digits, a dash, and the number in hexadecimal.
    pub fn next(&self) -> HeaderValue {
        let mut text = [0; 33];
        let mut length = 33;
        let mut number = self.next.fetch_add(1, Ordering::Relaxed);
        loop {
            length -= 1;
            text[length] = HEX[(number % 16) as usize];
            number /= 16;
            if number == 0 {
                break;
            }
        }
        length -= 1;
        text[length] = b'-';
        text[length - 16..length].copy_from_slice(&self.process);
        HeaderValue::from_bytes(&text[length - 16..]).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
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
            assert_eq!(Fields::of(&headers(&[("authorization", field)])).bearer().unwrap(), "x");
        }
        for field in ["Bearer", "Bearer ", "Basic x", "x", ""] {
            assert_eq!(
                Fields::of(&headers(&[("authorization", field)]))
                    .bearer()
                    .unwrap_err()
                    .status,
                401,
                "{field}"
            );
        }
        let twice = headers(&[("authorization", "Bearer x"), ("authorization", "Bearer x")]);
        assert_eq!(Fields::of(&twice).bearer().unwrap_err().status, 401);
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

    #[test]
    fn a_query_is_decoded_and_names_are_unique() {
        let query = Query::parse(Some("a=%C3%A9+%2B&b&&c=d=e")).unwrap();
        assert_eq!(
            (query.get("a"), query.get("b"), query.get("c"), query.get("x")),
            (Some("é +"), Some(""), Some("d=e"), None)
        );
        for query in ["a=1&a=1", "a=1&%61=2", "a=%ff", "a=%", "a=%4", "a=%zz"] {
            assert_eq!(Query::parse(Some(query)).unwrap_err().status, 400, "{query}");
        }
    }

    #[test]
    fn a_query_goes_on_without_some_of_its_parameters() {
        let without = |query| query_without(Some(query), &["agent_id"]).unwrap();
        assert_eq!(without("agent_id=a"), None);
        assert_eq!(without(""), None);
        assert_eq!(
            without("a=%2F&agent%5Fid=x&&b+c&agent_id2").as_deref(),
            Some("a=%2F&b+c&agent_id2")
        );
        assert_eq!(query_without(None, &[]).unwrap(), None);
    }

    #[test]
    fn numbers_are_whole_and_within_bounds() {
        let read = |text| {
            let mut faults = Faults::default();
            let number = Query::parse(Some(text)).unwrap().number("n", 1..=1000, &mut faults);
            faults.into_result().map(|()| number)
        };
        for (text, number) in [("n=1", Some(1)), ("n=1000", Some(1000)), ("other=1", None)] {
            assert_eq!(read(text).unwrap(), number, "{text}");
        }
        for text in ["n=0", "n=1001", "n=-1", "n=+1", "n=x", "n=", "n=99999999999999999999"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
