//! Reads the usage out of an answer while it passes: a JSON text or a stream of events, plain or in gzip.

use std::io::Write;

use agentcfg_core::model::TokenUsage;
use flate2::write::MultiGzDecoder;
use hyper::header::{self, HeaderMap, HeaderValue};

use super::finder::{Finder, Place};
use super::path::UsagePath;
use super::reported::Reported;

/// Reads an answer. It holds at most 64 KiB of it, whatever its length.
#[derive(Debug)]
pub struct AnswerScanner {
    path: UsagePath,
    text: Coded,
    /// Whether the answer is a stream of events.
    pub is_stream: bool,
    /// The bytes that came after the last report.
    after_report: usize,
}

/// The most bytes of a stream after its last report: the end of its events, and comments.
const AFTER_LAST_REPORT: usize = 1024;

/// The coding of an answer.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a call has one, and most are plain")]
enum Coded {
    Plain(Text),
    Gzip(Box<MultiGzDecoder<Text>>),
    /// One that is not read here, or a text that was broken.
    Unknown,
}

/// The text of an answer.
#[derive(Debug)]
struct Text {
    path: UsagePath,
    finder: Finder,
    events: Option<Events>,
    reported: Reported,
    /// The model that answers, where it is wanted.
    model: Option<String>,
}

/// A stream of events, line by line.
#[derive(Debug, Default)]
struct Events {
    line: Line,
    /// Whether the last byte ended a line, so that a line feed after it belongs to that end.
    after_return: bool,
}

/// The part of a line that was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Line {
    /// Nothing but this much of `data:`.
    Start(usize),
    Data,
    Other,
    #[default]
    Empty,
}

const DATA: &[u8] = b"data:";

/// Whether an encoding of content leaves it as it is.
pub fn is_identity(coding: &HeaderValue) -> bool {
    coding.is_empty() || coding.as_bytes().eq_ignore_ascii_case(b"identity")
}

impl AnswerScanner {
    /// A scanner for an answer with these header fields. It also reads which model answers, if that is wanted.
    pub fn new(path: UsagePath, headers: &HeaderMap, wants_model: bool) -> Self {
        let starts_with = |name, prefix: &[u8]| {
            let value = headers.get(name).map(HeaderValue::as_bytes);
            value.is_some_and(|value| value.len() >= prefix.len() && value[..prefix.len()].eq_ignore_ascii_case(prefix))
        };
        let is_stream = starts_with(header::CONTENT_TYPE, b"text/event-stream");
        let text = Text {
            path,
            finder: Finder::new(wants_model),
            model: None,
            events: is_stream.then(Events::default),
            reported: Reported::default(),
        };
        let coding = headers.get(header::CONTENT_ENCODING);
        let text = match coding.map(|coding| coding.as_bytes().to_ascii_lowercase()).as_deref() {
            Some(b"gzip" | b"x-gzip") => Coded::Gzip(Box::new(MultiGzDecoder::new(text))),
            Some(_) if !coding.is_none_or(is_identity) => Coded::Unknown,
            _ => Coded::Plain(text),
        };
        Self {
            path,
            text,
            is_stream,
            after_report: 0,
        }
    }

    /// Reads on.
    pub fn read(&mut self, bytes: &[u8]) {
        let before = self.reported();
        self.read_on(bytes);
        match self.reported() == before {
            true => self.after_report += bytes.len(),
            false => self.after_report = 0,
        }
    }

    fn read_on(&mut self, bytes: &[u8]) {
        let is_broken = match &mut self.text {
            Coded::Plain(text) => {
                text.read(bytes);
                false
            }
            Coded::Gzip(decoder) => decoder.write_all(bytes).and_then(|()| decoder.flush()).is_err(),
            Coded::Unknown => false,
        };
        if is_broken && let Coded::Gzip(decoder) = &self.text {
            // What follows the end of a gzip text is not read; what was reported before stays.
            let reported = decoder.get_ref().reported;
            if !reported.is_whole {
                self.text = Coded::Unknown;
            }
        }
    }

    /// What was reported so far.
    pub fn reported(&self) -> Option<Reported> {
        match &self.text {
            Coded::Plain(text) => Some(text.reported),
            Coded::Gzip(decoder) => Some(decoder.get_ref().reported),
            Coded::Unknown => None,
        }
    }

    /// The model that answers, where that is wanted and was said.
    pub fn model(&self) -> Option<&str> {
        match &self.text {
            Coded::Plain(text) => text.model.as_deref(),
            Coded::Gzip(decoder) => decoder.get_ref().model.as_deref(),
            Coded::Unknown => None,
        }
    }

    /// The tokens of a call that has ended: what was reported, and estimates of what was not, by a quarter of the
    /// bytes. Says whether there are estimates.
    pub fn usage(&self, sent: u64, received: u64) -> (TokenUsage, bool) {
        let reported = self.reported().unwrap_or_default();
        let mut usage = reported.usage();
        if reported.is_whole {
            return (usage, false);
        }
        let (estimate, _) = self.path.estimate(sent, received);
        if !reported.has_input {
            return (estimate, true);
        }
        usage.output = estimate.output;
        usage.reasoning = 0;
        (usage, true)
    }

    /// As [`Self::usage`], of an answer that was cut. Some providers report in the chunks of a stream what they have made so
    /// far: where more has come since, the output is estimated.
    pub fn usage_of_cut(&self, sent: u64, received: u64) -> (TokenUsage, bool) {
        let (mut usage, is_estimated) = self.usage(sent, received);
        let is_of_chunks = self.is_stream && self.path == UsagePath::ChatCompletions;
        if is_estimated || !is_of_chunks || self.after_report <= AFTER_LAST_REPORT {
            return (usage, is_estimated);
        }
        let (estimate, _) = self.path.estimate(sent, received);
        usage.output = usage.output.max(estimate.output);
        (usage, true)
    }
}

impl Text {
    fn read(&mut self, bytes: &[u8]) {
        let Self {
            path,
            finder,
            events,
            reported,
            model,
        } = self;
        let mut found = |place: Place, text: &[u8]| match (place, &path) {
            (Place::Model, _) => *model = unquoted(text),
            (_, UsagePath::Messages) => reported.take_messages(place, text),
            _ => reported.take_openai(text),
        };
        match events {
            None => finder.read(bytes, &mut found),
            Some(events) => events.read(bytes, finder, &mut found),
        }
    }
}

impl Events {
    fn read(&mut self, bytes: &[u8], finder: &mut Finder, found: &mut impl FnMut(Place, &[u8])) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = match self.line {
                Line::Empty | Line::Start(_) => {
                    self.start(rest[0], finder);
                    1
                }
                Line::Data | Line::Other => {
                    let end = memchr::memchr2(b'\n', b'\r', rest);
                    if self.line == Line::Data {
                        finder.read(&rest[..end.unwrap_or(rest.len())], found);
                    }
                    end.map_or(rest.len(), |end| {
                        self.line = Line::Empty;
                        self.after_return = rest[end] == b'\r';
                        end + 1
                    })
                }
            };
            rest = &rest[end..];
        }
    }

    /// Reads a byte of the start of a line.
    fn start(&mut self, byte: u8, finder: &mut Finder) {
        let matched = match self.line {
            Line::Start(matched) => matched,
            _ => 0,
        };
        self.line = match byte {
            b'\n' | b'\r' => {
                if matched == 0 {
                    // The event ends here.
                    *finder = Finder::new(finder.wants_model());
                }
                self.after_return = byte == b'\r';
                Line::Empty
            }
            _ if byte == DATA[matched] => match matched + 1 == DATA.len() {
                true => Line::Data,
                false => Line::Start(matched + 1),
            },
            _ => Line::Other,
        };
    }
}

/// A text of JSON that lacks its quotes, as it is meant.
fn unquoted(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    match text.contains('\\') {
        false => Some(text.to_owned()),
        true => serde_json::from_str(&format!("\"{text}\"")).ok(),
    }
}

/// The plain text that a decoder writes.
impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.read(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use hyper::header::HeaderValue;

    use super::*;

    fn scanned(path: UsagePath, fields: &[(&'static str, &'static str)], body: &[u8], piece: usize) -> AnswerScanner {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        let mut scanner = AnswerScanner::new(path, &headers, true);
        body.chunks(piece).for_each(|bytes| scanner.read(bytes));
        scanner
    }

    const EVENTS: (&str, &str) = ("content-type", "text/event-stream; charset=utf-8");
    const JSON: (&str, &str) = ("content-type", "application/json");

    fn used(input: u64, output: u64) -> TokenUsage {
        TokenUsage {
            input,
            output,
            ..TokenUsage::default()
        }
    }

    #[test]
    fn answers_and_streams_are_read_in_any_pieces() {
        const CHAT: &str = "data: {\"model\":\"m\\\"1\",\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\":{}\"}}],\"usage\":null}\n\n\
                            data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n";
        const RESPONSES: &str = "event: response.created\r\ndata: {\"response\":{\"model\":\"m\\\"1\",\"usage\":null}}\r\n\r\n\
                                 event: response.completed\r\ndata: {\"response\":{\"output\":[{\"usage\":{\"input_tokens\":1}}],\r\n\
                                 data: \"usage\":{\"input_tokens\":7,\"output_tokens\":3}}}\r\n\r\n";
        const MESSAGES: &str = "event: message_start\ndata: {\"message\":{\"model\":\"m\\\"1\",\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n\
                                : comment\ndata: {\"delta\":{}}\n\n\
                                data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":3}}\n\n";
        for (path, text) in [
            (UsagePath::ChatCompletions, CHAT),
            (UsagePath::Responses, RESPONSES),
            (UsagePath::Messages, MESSAGES),
        ] {
            for piece in [1, 2, 5, 4096] {
                let scanner = scanned(path, &[EVENTS], text.as_bytes(), piece);
                assert!(scanner.is_stream);
                assert_eq!(scanner.model(), Some("m\"1"), "{path:?} in pieces of {piece}");
                assert_eq!(
                    scanner.usage(4, 4),
                    (used(7, 3), false),
                    "{path:?} in pieces of {piece}"
                );
            }
        }
        let whole = br#"{"data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":7,"total_tokens":7}}"#;
        assert_eq!(
            scanned(UsagePath::Embeddings, &[JSON], whole, 9).usage(4, 4),
            (used(7, 0), false)
        );
    }

    #[test]
    fn compressed_answers_are_read_too() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let long = "x".repeat(100_000);
        write!(
            encoder,
            r#"{{"text":"{long}","usage":{{"prompt_tokens":7,"completion_tokens":3}}}}"#
        )
        .unwrap();
        let body = encoder.finish().unwrap();
        // A gzip text may have several members (RFC 1952).
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b" \n").unwrap();
        let mut members = encoder.finish().unwrap();
        members.extend(&body);
        let gzip = ("content-encoding", "gzip");
        let scanner = scanned(UsagePath::ChatCompletions, &[JSON, gzip], &members, 9);
        assert_eq!(scanner.usage(4, 4), (used(7, 3), false));
        for piece in [1, 100, 100_000] {
            let scanner = scanned(UsagePath::ChatCompletions, &[JSON, gzip], &body, piece);
            assert_eq!(scanner.usage(4, 4), (used(7, 3), false));
        }
        // A text that is not what it claims to be, and a coding that is not read.
        for (coding, body) in [("gzip", &b"no gzip"[..]), ("br", b"xx")] {
            let scanner = scanned(
                UsagePath::ChatCompletions,
                &[JSON, ("content-encoding", coding)],
                body,
                3,
            );
            assert_eq!(scanner.usage(9, 5), (used(3, 2), true));
        }
    }

    #[test]
    fn a_stream_that_is_cut_after_an_early_report_is_estimated() {
        let chunk = |usage: &str| format!("data: {{\"choices\":[{{\"delta\":{{}}}}]{usage}}}\n\n");
        let report = |output: u64| format!(",\"usage\":{{\"prompt_tokens\":7,\"completion_tokens\":{output}}}");
        let content = chunk(&format!(",\"x\":\"{}\"", "y".repeat(2000)));
        for (text, expected) in [
            (chunk(&report(1)) + &content, (used(7, 520), true)),
            (
                content.clone() + &chunk(&report(900)) + "data: [DONE]\n\n",
                (used(7, 900), false),
            ),
            (chunk(&report(900)) + &content, (used(7, 900), true)),
        ] {
            let scanner = scanned(UsagePath::ChatCompletions, &[EVENTS], text.as_bytes(), 50);
            assert_eq!(scanner.usage_of_cut(4, 2080), expected, "{text}");
            assert!(!scanner.usage(4, 2080).1, "one that ends has reported");
        }
    }

    #[test]
    fn what_is_not_reported_is_estimated_by_a_quarter_of_the_bytes() {
        let of = |path, text: &[u8]| scanned(path, &[EVENTS], text, 1000).usage(10, 9);
        assert_eq!(
            of(UsagePath::ChatCompletions, b"data: {\"choices\":[{}]}\n\n"),
            (used(3, 3), true)
        );
        assert_eq!(of(UsagePath::Embeddings, b""), (used(3, 0), true));
        // A stream of messages says at its beginning what the input is.
        let begun = b"data: {\"message\":{\"usage\":{\"input_tokens\":700,\"output_tokens\":1}}}\n\n";
        assert_eq!(of(UsagePath::Messages, begun), (used(700, 3), true));
    }
}
