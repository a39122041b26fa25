//! Checks the framing of requests (RFC 9112) that hyper does not check, on the raw bytes before hyper reads them.
//!
//! hyper takes a bare LF for the end of a line, ignores `Content-Length` beside `Transfer-Encoding`, takes any list of
//! codings that ends in `chunked`, and does not check `Host`. A proxy in front may read such a request in another way,
//! so that the two would not agree where it ends. The scanner follows the framing of the connection, bodies included,
//! so that it also finds a fault in a request that arrives together with the one before it.

use std::net::Ipv6Addr;

use hyper::header::HeaderValue;
use memchr::{memchr, memmem};

use crate::http::request::{REQUEST_ID, echoed_id};

/// The highest length that hyper reads; the two above it mark bodies without a length there.
const LONGEST: u64 = u64::MAX - 2;

/// Follows the requests of one connection.
#[derive(Debug, Default)]
pub(super) struct Framing {
    part: RequestPart,
    head: HeadSoFar,
    /// The start of a line whose end has not arrived yet.
    line: Vec<u8>,
    fault: Option<Fault>,
}

/// The part of a request that the next byte belongs to.
#[derive(Debug, Default, Clone, Copy)]
enum RequestPart {
    /// The request line, or an empty line before it.
    #[default]
    RequestLine,
    Fields,
    /// A body with so many bytes to come.
    Body(u64),
    /// The line with the size of a chunk.
    ChunkSize,
    /// The content of a chunk and its line end.
    Chunk(u64),
    Trailers,
    /// After a fault nothing is scanned: hyper ends the connection.
    Refused,
}

/// What the fields of a head say so far.
#[derive(Debug, Default)]
struct HeadSoFar {
    is_http_11: bool,
    has_host: bool,
    length: Option<u64>,
    is_chunked: bool,
    /// The caller's own identifier of the request, as it was sent.
    id: Option<Vec<u8>>,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    BareLf,
    Target,
    NoHost,
    NoAuthority,
    OtherHost,
    TwoHosts,
    Host,
    Length,
    TwoLengths,
    Coding,
    CodingAndLength,
}

impl Fault {
    /// The message for the client.
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::BareLf => "lines of a request must end in CRLF",
            Self::Target => "the request target must be a path or a URL",
            Self::NoHost => "the header Host is required in HTTP/1.1",
            Self::NoAuthority => "the request must name its host in :authority",
            Self::OtherHost => "the header Host must not differ from :authority",
            Self::TwoHosts => "the header Host must be sent once",
            Self::Host => "the header Host must be a host name or an address, with or without a port",
            Self::Length => "Content-Length must be a number of bytes below 2^64 - 2",
            Self::TwoLengths => "Content-Length must be sent once",
            Self::Coding => "Transfer-Encoding must be chunked, and sent once",
            Self::CodingAndLength => "Content-Length and Transfer-Encoding must not be sent together",
        }
    }
}

impl Framing {
    /// The fault that [`Self::scan`] found.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// The caller's own identifier of the request with the fault, when it has arrived with the faulty line and can be
    /// echoed.
    pub(super) fn sent_id(&self) -> Option<HeaderValue> {
        let id = self.head.id.as_ref().filter(|_| self.fault.is_some())?;
        let id = HeaderValue::from_bytes(id).ok()?;
        echoed_id(&id).cloned()
    }

    /// Follows the next bytes. The answer is the place of the line feed that ends a faulty line: hyper must not see
    /// that line as complete, because it would pass the request on.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            match &mut self.part {
                RequestPart::Refused => return None,
                RequestPart::Body(left) | RequestPart::Chunk(left) => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len() - at);
                    *left -= here as u64;
                    at += here;
                    if *left == 0 {
                        self.part = match self.part {
                            RequestPart::Chunk(_) => RequestPart::ChunkSize,
                            _ => RequestPart::RequestLine,
                        };
                    }
                }
                _ => {
                    let Some(length) = memchr(b'\n', &bytes[at..]) else {
                        self.line.extend_from_slice(&bytes[at..]);
                        return None;
                    };
                    let end = at + length;
                    let outcome = if self.line.is_empty() {
                        self.line_ended(&bytes[at..end])
                    } else {
                        let mut line = std::mem::take(&mut self.line);
                        line.extend_from_slice(&bytes[at..end]);
                        self.line_ended(&line)
                    };
                    if let Err(fault) = outcome {
                        let is_end_of_head = bytes[at..end].trim_ascii_end().is_empty();
                        self.refuse(fault, &bytes[end + 1..], is_end_of_head);
                        return Some(end);
                    }
                    at = end + 1;
                }
            }
        }
        None
    }

    /// Ends the scan. The identifier of the request may stand behind the faulty line, unless that ends the head.
    fn refuse(&mut self, fault: Fault, rest: &[u8], is_end_of_head: bool) {
        if let RequestPart::RequestLine = self.part {
            self.head = HeadSoFar::default();
        }
        if !is_end_of_head {
            let lines = rest.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
            for line in lines.take_while(|line| !line.is_empty()) {
                self.head.note_id(line);
            }
        }
        self.fault = Some(fault);
        self.part = RequestPart::Refused;
    }

    /// A line, with all before its line feed.
    fn line_ended(&mut self, line: &[u8]) -> Result<(), Fault> {
        let content = line.strip_suffix(b"\r");
        match (self.part, content) {
            // Not in the line of a chunk size: there hyper refuses a bare LF by itself, and takes NUL for an extension.
            (RequestPart::RequestLine | RequestPart::Fields | RequestPart::Trailers, None) => {
                return Err(Fault::BareLf);
            }
            // Empty lines before a request line are ignored.
            (RequestPart::RequestLine, Some(b"")) => {}
            (RequestPart::RequestLine, Some(line)) => {
                if !has_good_target(line) {
                    return Err(Fault::Target);
                }
                self.head = HeadSoFar {
                    is_http_11: line.ends_with(b"HTTP/1.1"),
                    ..HeadSoFar::default()
                };
                self.part = RequestPart::Fields;
            }
            (RequestPart::Fields, Some(b"")) => self.part = self.head.ended()?,
            (RequestPart::Fields, Some(field)) => self.head.field(field)?,
            (RequestPart::ChunkSize, _) => {
                self.part = match chunk_size(line) {
                    Some(0) => RequestPart::Trailers,
                    Some(size) => RequestPart::Chunk(size.saturating_add(2)),
                    // hyper refuses the body, and with it whatever follows.
                    None => RequestPart::Refused,
                };
            }
            (RequestPart::Trailers, Some(b"")) => self.part = RequestPart::RequestLine,
            _ => {}
        }
        Ok(())
    }
}

impl HeadSoFar {
    fn field(&mut self, line: &[u8]) -> Result<(), Fault> {
        // Most fields are none of those that matter, and their first letter says so.
        match line.first() {
            Some(b'h' | b'H' | b'c' | b'C' | b't' | b'T') => {}
            Some(b'x' | b'X') => {
                self.note_id(line);
                return Ok(());
            }
            _ => return Ok(()),
        }
        let Some(colon) = memchr(b':', line) else {
            return Ok(());
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"host") {
            if self.has_host {
                return Err(Fault::TwoHosts);
            }
            if !is_host(value) {
                return Err(Fault::Host);
            }
            self.has_host = true;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let length = length(value).ok_or(Fault::Length)?;
            if self.is_chunked {
                return Err(Fault::CodingAndLength);
            }
            if self.length.is_some_and(|known| known != length) {
                return Err(Fault::TwoLengths);
            }
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.length.is_some() {
                return Err(Fault::CodingAndLength);
            }
            if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Fault::Coding);
            }
            self.is_chunked = true;
        }
        Ok(())
    }

    /// Keeps the identifier of the request, if this line is the first one that has it.
    fn note_id(&mut self, line: &[u8]) {
        let Some(colon) = memchr(b':', line).filter(|_| self.id.is_none()) else {
            return;
        };
        if line[..colon].eq_ignore_ascii_case(REQUEST_ID.as_str().as_bytes()) {
            self.id = Some(line[colon + 1..].trim_ascii().to_vec());
        }
    }

    /// What follows the head.
    fn ended(&self) -> Result<RequestPart, Fault> {
        if self.is_http_11 && !self.has_host {
            return Err(Fault::NoHost);
        }
        Ok(match self.length {
            _ if self.is_chunked => RequestPart::ChunkSize,
            Some(length) if length > 0 => RequestPart::Body(length),
            _ => RequestPart::RequestLine,
        })
    }
}

/// Whether the target is a path, a URL or `*`. Only `CONNECT` names an authority.
fn has_good_target(line: &[u8]) -> bool {
    let Some(space) = memchr(b' ', line) else {
        return false;
    };
    let (method, target) = (&line[..space], &line[space + 1..]);
    matches!(target.first(), Some(b'/' | b'*')) || method == b"CONNECT" || memmem::find(target, b"://").is_some()
}

fn length(value: &[u8]) -> Option<u64> {
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length = std::str::from_utf8(value).ok()?.parse().ok()?;
    (length <= LONGEST).then_some(length)
}

/// The size in the line before a chunk.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    u64::from_str_radix(std::str::from_utf8(&line[..digits]).ok()?, 16).ok()
}

/// Whether a value is `uri-host [ ":" port ]`. An empty one is refused: there is no http URI without a host.
pub(super) fn is_host(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let (host_is_good, rest) = match text.strip_prefix('[') {
        Some(literal) => match literal.split_once(']') {
            Some((address, rest)) => (address.parse::<Ipv6Addr>().is_ok(), rest),
            None => return false,
        },
        None => {
            let end = memchr(b':', value).unwrap_or(value.len());
            (end > 0 && is_registered_name(&value[..end]), &text[end..])
        }
    };
    let port_is_good = match rest.strip_prefix(':') {
        Some(port) => {
            port.bytes().all(|byte| byte.is_ascii_digit()) && (port.is_empty() || port.parse::<u16>().is_ok())
        }
        None => rest.is_empty(),
    };
    host_is_good && port_is_good
}

/// Unreserved characters, sub-delimiters and percent-encoded bytes (RFC 3986, 3.2.2).
fn is_registered_name(name: &[u8]) -> bool {
    let mut rest = name;
    while let [byte, after @ ..] = rest {
        rest = match (byte, after) {
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => after,
            (b'%', _) => return false,
            _ if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(byte) => after,
            _ => return false,
        };
    }
    true
}

#[cfg(test)]
mod tests;
