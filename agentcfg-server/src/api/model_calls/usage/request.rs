//! What the body of a call says of its usage: whether it asks for a stream, and for the report at its end.

use std::ops::Range;

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::raw_json::{is_object, present, range};
use super::output_cap::whole_number;
use super::path::UsagePath;
use crate::http::errors::Failure;

/// The body of a call as it is sent.
#[derive(Debug)]
pub struct MeteredBody {
    /// The body.
    pub body: Bytes,
    /// The path, if its answers report usage.
    pub path: Option<UsagePath>,
    /// Whether the answer is to be a stream.
    pub is_stream: bool,
    /// Whether the report at the end of the stream was asked for here, and not by the caller.
    pub asks_for_usage: bool,
    /// Whether the provider is to answer before it has run the call. What that answer does not report may be bought
    /// still.
    pub is_background: bool,
}

/// The members that matter here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Members<'a> {
    #[serde(borrow, deserialize_with = "present")]
    stream: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    stream_options: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    background: Option<&'a RawValue>,
}

/// The cap of a response that is made in the background.
#[derive(Debug, Deserialize)]
struct BackgroundCap<'a> {
    #[serde(borrow)]
    max_output_tokens: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Options<'a> {
    #[serde(borrow, deserialize_with = "present")]
    include_usage: Option<&'a RawValue>,
}

impl MeteredBody {
    /// Reads a body whose model and persona are filled in. A stream of chat completions gets
    /// `stream_options.include_usage` where it does not ask for it.
    ///
    /// # Errors
    ///
    /// 400 where a member that decides this is there twice: readers differ in which one they take.
    pub fn read(path: Option<UsagePath>, body: Bytes) -> Result<Self, Failure> {
        let plain = |body, is_stream| Self {
            body,
            path,
            is_stream,
            asks_for_usage: false,
            is_background: false,
        };
        let text = std::str::from_utf8(&body).ok().filter(|_| path.is_some());
        let text = text.filter(|text| is_object(text));
        let Some(text) = text else {
            return Ok(plain(body, false));
        };
        let members = match serde_json::from_str::<Members<'_>>(text) {
            Ok(members) => members,
            Err(error) if error.to_string().starts_with("duplicate field") => {
                let message = "each of stream, stream_options and background must appear at most once";
                return Err(Failure::bad_request(message));
            }
            // The provider refuses a body that is no JSON object.
            Err(_) => return Ok(plain(body, false)),
        };
        let is_stream = members.stream.is_some_and(|stream| stream.get() == "true");
        if !is_stream || path != Some(UsagePath::ChatCompletions) {
            let is_background = members.background.is_some_and(|background| background.get() == "true");
            return Ok(Self {
                is_background: is_background && path == Some(UsagePath::Responses),
                ..plain(body, is_stream)
            });
        }
        match asked(text, members.stream_options) {
            Some((place, new)) => {
                let body = [&text[..place.start], &new, &text[place.end..]].concat();
                Ok(Self {
                    body: body.into(),
                    path,
                    is_stream,
                    asks_for_usage: true,
                    is_background: false,
                })
            }
            None => Ok(plain(body, is_stream)),
        }
    }
}

impl MeteredBody {
    /// The most output tokens that are bought after the answer to this body.
    pub fn output_after_the_answer(&self) -> Option<u64> {
        let body = self.is_background.then_some(&self.body)?;
        let cap = serde_json::from_slice::<BackgroundCap<'_>>(body)
            .ok()?
            .max_output_tokens?;
        whole_number("max_output_tokens", cap).ok().flatten()
    }

    /// Lets the provider answer in a coding that is read here: gzip where the caller takes it, and none where events
    /// are taken out. Paths without usage keep what the caller takes.
    pub fn limit_codings(&self, headers: &mut HeaderMap) {
        if self.path.is_none() {
            return;
        }
        let mut accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
        let takes_gzip = accepted.any(|value| {
            let mut codings = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            // A client that writes weights gets the answer plain.
            codings.any(|coding| coding.eq_ignore_ascii_case(b"gzip"))
        });
        let was_there = headers.remove(header::ACCEPT_ENCODING).is_some();
        // Without the field a server may choose any coding.
        let coding = match (self.asks_for_usage, takes_gzip, was_there) {
            (false, false, false) => return,
            (false, true, _) => "gzip",
            _ => "identity",
        };
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(coding));
    }
}

/// The text that asks for usage, and the range that it replaces; `None` where the body asks already, or has options
/// that are none.
fn asked(text: &str, options: Option<&RawValue>) -> Option<(Range<usize>, String)> {
    const INCLUDE: &str = "\"include_usage\":true";
    // Serde reads the fields of a struct from a list, too.
    if options.is_some_and(|options| options.get().starts_with('[')) {
        return None;
    }
    let Some(options) = options.filter(|options| options.get() != "null") else {
        let brace = text.find('{')? + 1;
        return match options {
            Some(null) => Some((range(text, null), format!("{{{INCLUDE}}}"))),
            None => {
                let comma = if text[brace..].trim_start().starts_with('}') {
                    ""
                } else {
                    ","
                };
                Some((brace..brace, format!("\"stream_options\":{{{INCLUDE}}}{comma}")))
            }
        };
    };
    let inner: Options<'_> = serde_json::from_str(options.get()).ok()?;
    match inner.include_usage {
        Some(value) if value.get() == "true" => None,
        Some(value) => Some((range(text, value), "true".to_owned())),
        None => {
            let at = range(text, options).start + 1;
            let comma = if text[at..].trim_start().starts_with('}') {
                ""
            } else {
                ","
            };
            Some((at..at, format!("{INCLUDE}{comma}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: UsagePath, body: &str) -> (String, bool, bool) {
        let read = MeteredBody::read(Some(path), Bytes::copy_from_slice(body.as_bytes())).unwrap();
        (
            String::from_utf8(read.body.to_vec()).unwrap(),
            read.is_stream,
            read.asks_for_usage,
        )
    }

    #[test]
    fn a_stream_of_chat_completions_is_asked_for_its_usage() {
        for (body, expected) in [
            (
                r#"{"stream":true}"#,
                r#"{"stream_options":{"include_usage":true},"stream":true}"#,
            ),
            (
                r#"{ "stream": true, "stream_options": null }"#,
                r#"{ "stream": true, "stream_options": {"include_usage":true} }"#,
            ),
            (
                r#"{"stream_options":{},"stream":true}"#,
                r#"{"stream_options":{"include_usage":true},"stream":true}"#,
            ),
            (
                r#"{"stream_options":{"include_obfuscation":false},"stream":true}"#,
                r#"{"stream_options":{"include_usage":true,"include_obfuscation":false},"stream":true}"#,
            ),
            (
                r#"{"stream_options":{"include_usage": false},"stream":true}"#,
                r#"{"stream_options":{"include_usage": true},"stream":true}"#,
            ),
        ] {
            assert_eq!(
                read(UsagePath::ChatCompletions, body),
                (expected.to_owned(), true, true),
                "{body}"
            );
            assert!(serde_json::from_str::<serde_json::Value>(expected).is_ok());
        }
    }

    #[test]
    fn a_provider_answers_in_a_coding_that_is_read_and_that_the_caller_takes() {
        for (accepted, expected) in [
            (None, None),
            (Some("gzip, br"), Some("gzip")),
            (Some("br"), Some("identity")),
            (Some("identity"), Some("identity")),
        ] {
            let body = Bytes::from_static(b"{}");
            let metered = MeteredBody::read(Some(UsagePath::ChatCompletions), body).unwrap();
            let mut headers = HeaderMap::new();
            headers.extend(accepted.map(|value| (header::ACCEPT_ENCODING, HeaderValue::from_static(value))));
            metered.limit_codings(&mut headers);
            let sent = headers
                .get(header::ACCEPT_ENCODING)
                .map(|value| value.to_str().unwrap());
            assert_eq!(sent, expected, "{accepted:?}");
        }
    }

    #[test]
    fn other_bodies_stay_as_they_are() {
        for (path, body, is_stream) in [
            (
                UsagePath::ChatCompletions,
                r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
                true,
            ),
            (
                UsagePath::ChatCompletions,
                r#"{"stream":true,"stream_options":7}"#,
                true,
            ),
            (
                UsagePath::ChatCompletions,
                r#"{"stream":true,"stream_options":[]}"#,
                true,
            ),
            (UsagePath::Embeddings, "[true]", false),
            (UsagePath::ChatCompletions, r#"{"stream":false}"#, false),
            (UsagePath::ChatCompletions, r#"{"stream":"true"}"#, false),
            (UsagePath::Responses, r#"{"stream":true}"#, true),
            (UsagePath::Messages, r#"{"stream":true}"#, true),
            (UsagePath::Embeddings, "no JSON {", false),
            (UsagePath::ChatCompletions, "", false),
        ] {
            assert_eq!(read(path, body), (body.to_owned(), is_stream, false), "{body}");
        }
        let twice = Bytes::from_static(br#"{"stream":false,"stream":true}"#);
        assert!(MeteredBody::read(Some(UsagePath::ChatCompletions), twice).is_err());
    }
}
