//! Reading a request: credential, query, conditions and body, each with its rules.

use std::borrow::Cow;

use agentcfg_core::model::{Precondition, Tag, WorkspaceId};
use agentcfg_core::validate::Faults;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode, Uri};
use smallvec::SmallVec;

use crate::compression::plain_tag;
use crate::errors::Failure;
use crate::request_id::{self, REQUEST_ID};

/// The longest request line.
pub const MAX_REQUEST_LINE: usize = 8 << 10;
/// The most bytes of header fields.
pub const MAX_HEADERS: usize = 16 << 10;
/// The longest body.
pub const MAX_BODY: usize = 1 << 20;

/// What every request is asked for of its header fields, found in one pass over them.
#[derive(Debug, Default)]
pub struct Fields<'a> {
    /// The caller's own identifier of the request, when it can be echoed.
    pub request_id: Option<&'a HeaderValue>,
    authorization: Option<&'a HeaderValue>,
    has_more_authorization: bool,
    has_content_encoding: bool,
    /// Whether the caller says which forms of the answer will do.
    pub has_accept_encoding: bool,
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
            return Err(Failure::new(StatusCode::URI_TOO_LONG, message));
        }
        let size = self.size;
        if size > MAX_HEADERS {
            let message = format!("the header fields must be at most {MAX_HEADERS} bytes, got {size}");
            return Err(Failure::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, message));
        }
        Ok(())
    }

    /// The credential in `Authorization: Bearer <credential>`.
    ///
    /// # Errors
    ///
    /// 401 when there is none, more than one, or another scheme.
    pub fn bearer(&self) -> Result<&'a str, Failure> {
        let unauthorized = |message| Err(Failure::new(StatusCode::UNAUTHORIZED, message));
        let Some(field) = self.authorization else {
            return unauthorized("missing credentials: send the header Authorization: Bearer <credential>");
        };
        if self.has_more_authorization {
            return unauthorized("invalid credentials: the Authorization header must be sent once");
        }
        let (scheme, credential) = split(b' ', std::str::from_utf8(field.as_bytes()).unwrap_or_default());
        let credential = credential.trim_matches(' ');
        if !scheme.eq_ignore_ascii_case("bearer") || credential.is_empty() {
            return unauthorized("invalid credentials");
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
            return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        Ok(())
    }
}

/// The parameters of a query.
#[derive(Debug, Default)]
pub struct Query<'a> {
    parameters: Parameters<'a>,
}

/// Names and values; a few need no memory of their own.
type Parameters<'a> = SmallVec<[(Cow<'a, str>, Cow<'a, str>); 4]>;

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
                let name: String = name.chars().take(60).flat_map(char::escape_debug).collect();
                return Err(Failure::bad_request(format!(
                    "the query parameter {name} must be given once"
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

    /// The workspace, when it is named.
    ///
    /// # Errors
    ///
    /// 400 when it is no UUID.
    pub fn workspace_id(&self) -> Result<Option<WorkspaceId>, Failure> {
        let Some(text) = self.get("workspace_id") else {
            return Ok(None);
        };
        text.parse()
            .map(Some)
            .map_err(|rule| Failure::bad_request(format!("the query parameter workspace_id {rule}")))
    }

    /// The workspace, which must be named.
    ///
    /// # Errors
    ///
    /// 400 when it is missing or no UUID.
    pub fn required_workspace_id(&self) -> Result<WorkspaceId, Failure> {
        self.required("workspace_id")?;
        self.workspace_id()?
            .ok_or_else(|| Failure::bad_request("the query parameter workspace_id is required"))
    }

    /// `limit`, when it is given: 1–1000.
    pub fn limit(&self, faults: &mut Faults) -> Option<usize> {
        let limit = self.number("limit", faults)?;
        if !(1..=1000).contains(&limit) {
            faults.push(
                "the query parameter limit",
                format_args!("must be 1 to 1000, got {limit}"),
            );
            return None;
        }
        usize::try_from(limit).ok()
    }

    /// `offset`, or 0.
    pub fn offset(&self, faults: &mut Faults) -> u64 {
        self.number("offset", faults).unwrap_or(0)
    }

    fn number(&self, name: &str, faults: &mut Faults) -> Option<u64> {
        let text = self.get(name)?;
        // A sign or blanks would pass as a number elsewhere; here digits are meant.
        let number = text
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse().ok())
            .flatten();
        if number.is_none() {
            faults.push(
                format_args!("the query parameter {name}"),
                "must be a whole number that is not negative",
            );
        }
        number
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
    let digit = |byte: Option<u8>| {
        byte.and_then(|byte| char::from(byte).to_digit(16))
            .and_then(|d| u8::try_from(d).ok())
    };
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => match (digit(bytes.next()), digit(bytes.next())) {
                (Some(high), Some(low)) => high << 4 | low,
                _ => {
                    return Err(Failure::bad_request(
                        "the query must be percent-encoded: % needs two hexadecimal digits",
                    ));
                }
            },
            other => other,
        });
    }
    String::from_utf8(decoded)
        .map(Cow::Owned)
        .map_err(|_| Failure::bad_request("the query must be percent-encoded UTF-8"))
}

/// The condition in `If-Match`.
pub fn if_match(headers: &HeaderMap) -> Precondition {
    match tags(headers, header::IF_MATCH) {
        None => Precondition::None,
        Some(tags) if tags.iter().any(|tag| tag == "*") => Precondition::Exists,
        // A record's own tag stands for its plain form, which is the only one that is sent. A proxy that compresses may
        // have told its client another.
        Some(tags) => Precondition::OneOf(tags.iter().map(|tag| plain_tag(tag).into_owned()).collect()),
    }
}

/// Whether `If-None-Match` names this tag, be it that of the plain or the compressed form, compared weakly.
pub fn if_none_match(headers: &HeaderMap, current: Tag) -> bool {
    tags(headers, header::IF_NONE_MATCH).is_some_and(|tags| {
        let current = current.to_string();
        tags.iter()
            .any(|tag| tag == "*" || plain_tag(tag).trim_start_matches("W/") == current)
    })
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

/// Reads a JSON body.
///
/// # Errors
///
/// 415 for another content type, 413 for a body that is too long, 408 for one that does not come, 400 for one that breaks off.
pub async fn json_body<B>(headers: &HeaderMap, body: &mut B) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + 'static,
{
    check_json(headers)?;
    whole_body(body, MAX_BODY).await
}

/// Refuses a body that is not said to be JSON.
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
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    Ok(())
}

/// Reads a body of at most so many bytes.
///
/// # Errors
///
/// 413 for one that is too long, 408 for one that does not come, 400 for one that breaks off.
pub async fn whole_body<B>(body: &mut B, most: usize) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + 'static,
{
    let too_long = || {
        Failure::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body must be at most {most} bytes"),
        )
    };
    if body.size_hint().lower() > most as u64 {
        return Err(too_long());
    }
    let mut whole = Bytes::new();
    let mut parts = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| broken(&error))?.into_data() else {
            continue;
        };
        if whole.len() + parts.len() + data.len() > most {
            return Err(too_long());
        }
        // Most bodies come in one piece and need no copy.
        if whole.is_empty() && parts.is_empty() {
            whole = data;
        } else {
            parts.extend_from_slice(&std::mem::take(&mut whole));
            parts.extend_from_slice(&data);
        }
    }
    Ok(if parts.is_empty() { whole } else { parts.freeze() })
}

fn broken(error: &(dyn std::error::Error + 'static)) -> Failure {
    if error
        .downcast_ref::<hyper::Error>()
        .is_some_and(crate::listen::is_body_timeout)
    {
        return Failure::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
    }
    Failure::bad_request("the body broke off before its end")
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

/// Reads what is left of a short body that nobody wants, so that the connection can go on; `false`
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
    fn limits_are_whole_numbers_within_bounds() {
        for text in [
            "limit=0",
            "limit=1001",
            "limit=-1",
            "limit=+1",
            "limit=x",
            "limit=",
            "limit=99999999999999999999",
        ] {
            let mut faults = Faults::default();
            Query::parse(Some(text)).unwrap().limit(&mut faults);
            assert!(faults.into_result().is_err(), "{text}");
        }
    }

    #[test]
    fn conditions_are_read() {
        assert_eq!(if_match(&headers(&[])), Precondition::None);
        assert_eq!(if_match(&headers(&[("if-match", "*")])), Precondition::Exists);
        let list = Precondition::OneOf(vec!["\"a,b\"".into(), "W/\"c\"".into()]);
        assert_eq!(if_match(&headers(&[("if-match", "\"a,b\" , W/\"c\",")])), list);
        let tag = Tag::record(3);
        assert!(if_none_match(&headers(&[("if-none-match", "\"x\", W/\"a3\"")]), tag));
        assert!(if_none_match(&headers(&[("if-none-match", "*")]), tag));
        assert!(!if_none_match(&headers(&[("if-none-match", "\"a4\"")]), tag));
        assert!(if_none_match(&headers(&[("if-none-match", "\"a3-gzip\"")]), tag));
        assert!(if_match(&headers(&[("if-match", "\"a3-gzip\"")])).is_met_by(tag));
        assert!(!if_match(&headers(&[("if-match", "W/\"a3-gzip\"")])).is_met_by(tag));
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
