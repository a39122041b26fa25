//! Reading a request: credential, conditions and body, each with its rules.

use agentcfg_core::Error;
use agentcfg_core::model::{Expected, Precondition, Tag};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};

use crate::http::compression::plain_form;
use crate::http::errors::Failure;
use crate::http::request_id::{self, REQUEST_ID};

/// The longest request line.
pub const MAX_REQUEST_LINE: usize = 8 << 10;
/// The most bytes of header fields.
pub const MAX_HEADERS: usize = 16 << 10;
/// The longest body.
pub const MAX_BODY: usize = 1 << 20;

/// The greatest length in bytes of the body of a model call, and of an apply.
pub const MAX_LONG_BODY: usize = 10 << 20;

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
                fields.request_id = request_id::echoed(value);
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

/// The condition in `If-Match`.
pub fn if_match(headers: &HeaderMap) -> Precondition {
    match tags(headers, header::IF_MATCH) {
        None => Precondition::None,
        Some(tags) if tags.iter().any(|tag| tag == "*") => Precondition::Exists,
        Some(tags) => {
            let expected = |tag: String| opaque(&tag).map_or(Expected::Unknown(tag), Expected::Tag);
            Precondition::OneOf(tags.into_iter().map(expected).collect())
        }
    }
}

/// The answer to an error of a request with `If-Match`. When the condition is not met, it names the current entity tag.
pub fn unmet(condition: &Precondition, error: Error) -> Failure {
    let current = error.current_tag();
    let failure = Failure::from(error);
    let Some(current) = current else { return failure };
    let sent = |is: fn(&str) -> bool| match condition {
        Precondition::OneOf(expected) => expected
            .iter()
            .any(|expected| matches!(expected, Expected::Unknown(tag) if is(tag))),
        Precondition::None | Precondition::Exists => false,
    };
    let way_out = if sent(|tag| tag.starts_with("W/")) {
        "an entity tag must be strong here, without W/"
    } else if sent(|tag| !is_quoted(tag)) {
        "an entity tag stands in double quotes"
    } else {
        "read the agent again"
    };
    Failure {
        message: format!("If-Match does not name the current ETag, which is \"{current}\": {way_out}"),
        ..failure
    }
}

/// Whether `If-None-Match` names this tag, be it that of the plain or the compressed form, compared weakly.
pub fn if_none_match(headers: &HeaderMap, current: Tag) -> bool {
    tags(headers, header::IF_NONE_MATCH).is_some_and(|tags| {
        tags.iter()
            .any(|tag| tag == "*" || opaque(tag.strip_prefix("W/").unwrap_or(tag)) == Some(current))
    })
}

/// Whether `If-None-Match` names this text between quotes, compared weakly.
pub fn names_tag(headers: &HeaderMap, current: &str) -> bool {
    let is_current = |tag: &String| {
        let tag = tag.strip_prefix("W/").unwrap_or(tag);
        let text = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
        tag == "*" || text.is_some_and(|text| plain_form(text) == current)
    };
    tags(headers, header::IF_NONE_MATCH).is_some_and(|tags| tags.iter().any(is_current))
}

/// The version that a strong entity tag names.
///
/// The tag of a compressed form names the same version as that of the plain form. Of an agent, only the plain form is sent,
/// but a proxy that compresses may have changed the tag.
fn opaque(tag: &str) -> Option<Tag> {
    let text = tag.strip_prefix('"')?.strip_suffix('"')?;
    plain_form(text).parse().ok()
}

fn is_quoted(tag: &str) -> bool {
    tag.len() >= 2 && tag.starts_with('"') && tag.ends_with('"')
}

/// The entity tags of a header field; a comma within quotes belongs to the tag.
fn tags(headers: &HeaderMap, name: HeaderName) -> Option<Vec<String>> {
    if !headers.contains_key(&name) {
        return None;
    }
    let mut tags = Vec::new();
    for field in headers.get_all(name) {
        let mut tag = String::new();
        let mut quoted = false;
        for character in String::from_utf8_lossy(field.as_bytes()).chars() {
            quoted ^= character == '"';
            if character == ',' && !quoted {
                tags.push(std::mem::take(&mut tag));
            } else {
                tag.push(character);
            }
        }
        tags.push(tag);
    }
    Some(
        tags.iter()
            .map(|tag| tag.trim().to_owned())
            .filter(|tag| !tag.is_empty())
            .collect(),
    )
}

const EVENTS: &str = "text/event-stream";

/// What a listener needs of the header fields, found in one pass over them: that costs less than a lookup.
#[cfg(feature = "process")]
#[derive(Debug, Default)]
pub struct Outline<'a> {
    /// The caller's own identifier of the request, when it can be echoed.
    pub request_id: Option<&'a HeaderValue>,
    /// Whether `Accept` names the media type of server-sent events, in whatever way; see also [`asks_for_events`].
    pub may_ask_for_events: bool,
}

#[cfg(feature = "process")]
impl<'a> Outline<'a> {
    /// Looks through the fields.
    pub fn of(headers: &'a HeaderMap) -> Self {
        let mut outline = Self::default();
        for (name, value) in headers {
            if name == header::ACCEPT {
                outline.may_ask_for_events |= memchr::memmem::find(value.as_bytes(), b"event-stream").is_some();
            } else if name == REQUEST_ID && outline.request_id.is_none() {
                outline.request_id = request_id::echoed(value);
            }
        }
        outline
    }
}

/// Whether a response is to be server-sent events and not JSON: `Accept` names them, and does not prefer JSON (RFC 9110,
/// section 12.5.1). Ranges such as `*/*` are no wish for a stream.
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

/// Refuses a body whose content type is not JSON.
///
/// # Errors
///
/// 415 for another content type.
pub fn check_json(headers: &HeaderMap) -> Result<(), Failure> {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if headers.get_all(header::CONTENT_TYPE).iter().count() > 1 || !is_json(content_type) {
        let message = "the body must have the header Content-Type: application/json";
        return Err(Failure::unsupported_media_type(message));
    }
    Ok(())
}

fn is_json(content_type: &str) -> bool {
    let media_type = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let subtype = media_type.strip_prefix("application/").unwrap_or_default();
    subtype == "json" || (subtype.len() > "+json".len() && subtype.ends_with("+json"))
}

/// Reads and drops the rest of a short body that no endpoint reads, so that the connection can be reused; `false`
/// when there is too much of it.
pub async fn discard<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> bool {
    const SHORT: u64 = 64 << 10;
    if body.is_end_stream() {
        return true;
    }
    // A body of unknown length is not worth waiting for.
    if body.size_hint().exact().is_none_or(|length| length > SHORT) {
        return false;
    }
    loop {
        match body.frame().await {
            Some(Ok(_)) => {}
            Some(Err(_)) => return false,
            None => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
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
    fn conditions_are_read() {
        assert_eq!(if_match(&headers(&[])), Precondition::None);
        assert_eq!(if_match(&headers(&[("if-match", "*")])), Precondition::Exists);
        let list = Precondition::OneOf(vec!["\"a,b\"".into(), "W/\"c\"".into()]);
        assert_eq!(if_match(&headers(&[("if-match", "\"a,b\" , W/\"c\",")])), list);
        let tag: Tag = "k3j9x0ab-a3".parse().unwrap();
        for (field, is_met) in [
            ("\"x\", W/\"k3j9x0ab-a3\"", true),
            ("*", true),
            ("\"k3j9x0ab-a4\"", false),
            ("\"00000000-a3\"", false),
            ("k3j9x0ab-a3", false),
            ("\"k3j9x0ab-a3-gzip\"", true),
            ("\"k3j9x0ab-a3-gzip-gzip\"", false),
        ] {
            assert_eq!(
                if_none_match(&headers(&[("if-none-match", field)]), tag),
                is_met,
                "{field}"
            );
        }
        for (field, is_met) in [
            ("\"x\", \"k3j9x0ab-a3\"", true),
            ("\"k3j9x0ab-a3-gzip\"", true),
            ("W/\"k3j9x0ab-a3\"", false),
            ("W/\"k3j9x0ab-a3-gzip\"", false),
            ("k3j9x0ab-a3", false),
            ("\"k3j9x0ab-a3", false),
            ("\"k3j9x0ab-w3\"", false),
            ("\"", false),
            ("", false),
        ] {
            assert_eq!(
                if_match(&headers(&[("if-match", field)])).is_met_by(tag),
                is_met,
                "{field}"
            );
        }
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
    fn json_content_types() {
        for good in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/merge-patch+json",
        ] {
            assert!(is_json(good), "{good}");
        }
        for bad in [
            "",
            "text/plain",
            "text/json",
            "application/+json",
            "application/jsonx",
            "json",
        ] {
            assert!(!is_json(bad), "{bad}");
        }
    }
}
