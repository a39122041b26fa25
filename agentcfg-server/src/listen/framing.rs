//! What RFC 9112 asks of a request's framing beyond what hyper checks, found in the bytes on their way to hyper.
//!
//! hyper takes a bare LF for the end of a line, ignores `Content-Length` beside `Transfer-Encoding`, takes any list of codings
//! that ends in `chunked`, and does not check `Host`. A proxy in front may read such a request in another way, so that the
//! two would not agree where it ends. The scanner follows the framing of the connection, bodies included, so that it also
//! finds a fault in a request that arrives together with the one before it.

use std::net::Ipv6Addr;

use memchr::{memchr, memmem};

/// The highest length that hyper reads; the two above it mark bodies without a length there.
const LONGEST: u64 = u64::MAX - 2;

/// Follows the requests of one connection.
#[derive(Debug, Default)]
pub(super) struct Framing {
    part: Part,
    head: Head,
    /// The start of a line whose end has not arrived yet.
    line: Vec<u8>,
    fault: Option<Fault>,
}

/// The part of a request that the next byte belongs to.
#[derive(Debug, Default, Clone, Copy)]
enum Part {
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
struct Head {
    is_http_11: bool,
    has_host: bool,
    length: Option<u64>,
    is_chunked: bool,
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

    /// Follows the next bytes. The answer is the place of the line feed that ends a faulty line: hyper must not see that
    /// line as complete, because it would pass the request on.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            match &mut self.part {
                Part::Refused => return None,
                Part::Body(left) | Part::Chunk(left) => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len() - at);
                    *left -= here as u64;
                    at += here;
                    if *left == 0 {
                        self.part = match self.part {
                            Part::Chunk(_) => Part::ChunkSize,
                            _ => Part::RequestLine,
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
                        self.fault = Some(fault);
                        self.part = Part::Refused;
                        return Some(end);
                    }
                    at = end + 1;
                }
            }
        }
        None
    }

    /// A line, with all before its line feed.
    fn line_ended(&mut self, line: &[u8]) -> Result<(), Fault> {
        let content = line.strip_suffix(b"\r");
        match (self.part, content) {
            // Not in the line of a chunk size: there hyper refuses a bare LF by itself, and takes NUL for an extension.
            (Part::RequestLine | Part::Fields | Part::Trailers, None) => return Err(Fault::BareLf),
            // Empty lines before a request line are ignored.
            (Part::RequestLine, Some(b"")) => {}
            (Part::RequestLine, Some(line)) => {
                if !has_good_target(line) {
                    return Err(Fault::Target);
                }
                self.head = Head {
                    is_http_11: line.ends_with(b"HTTP/1.1"),
                    ..Head::default()
                };
                self.part = Part::Fields;
            }
            (Part::Fields, Some(b"")) => self.part = self.head.ended()?,
            (Part::Fields, Some(field)) => self.head.field(field)?,
            (Part::ChunkSize, _) => {
                self.part = match chunk_size(line) {
                    Some(0) => Part::Trailers,
                    Some(size) => Part::Chunk(size.saturating_add(2)),
                    // hyper refuses the body, and with it whatever follows.
                    None => Part::Refused,
                };
            }
            (Part::Trailers, Some(b"")) => self.part = Part::RequestLine,
            _ => {}
        }
        Ok(())
    }
}

impl Head {
    fn field(&mut self, line: &[u8]) -> Result<(), Fault> {
        // Most fields are none of those that matter, and their first letter says so.
        if !matches!(line.first(), Some(b'h' | b'H' | b'c' | b'C' | b't' | b'T')) {
            return Ok(());
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

    /// What follows the head.
    fn ended(&self) -> Result<Part, Fault> {
        if self.is_http_11 && !self.has_host {
            return Err(Fault::NoHost);
        }
        Ok(match self.length {
            _ if self.is_chunked => Part::ChunkSize,
            Some(length) if length > 0 => Part::Body(length),
            _ => Part::RequestLine,
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
mod tests {
    use super::*;

    /// The fault in some bytes, however they are cut into reads, and how many bytes come before the end of its line.
    fn scan(bytes: &[u8]) -> Option<(Fault, usize)> {
        let whole = scan_in_pieces(bytes, bytes.len());
        for size in [1, 2, 3, 7, 16] {
            assert_eq!(
                scan_in_pieces(bytes, size),
                whole,
                "in pieces of {size}: {}",
                bytes.escape_ascii()
            );
        }
        whole
    }

    fn scan_in_pieces(bytes: &[u8], size: usize) -> Option<(Fault, usize)> {
        let mut framing = Framing::default();
        let mut before = 0;
        for piece in bytes.chunks(size.max(1)) {
            if let Some(at) = framing.scan(piece) {
                return Some((framing.fault().unwrap(), before + at));
            }
            before += piece.len();
        }
        assert_eq!(framing.fault(), None);
        None
    }

    fn fault(text: &str) -> Option<Fault> {
        scan(text.as_bytes()).map(|(fault, _)| fault)
    }

    fn fields(fields: &str) -> Option<Fault> {
        fault(&format!("POST / HTTP/1.1\r\n{fields}\r\n"))
    }

    #[test]
    fn lines_end_in_crlf() {
        assert_eq!(scan(b"GET / HTTP/1.1\nhost: a\r\n\r\n"), Some((Fault::BareLf, 14)));
        assert_eq!(fields("host: a\nx: y\r\n"), Some(Fault::BareLf));
        assert_eq!(fault("GET / HTTP/1.1\r\nhost: a\r\n\n"), Some(Fault::BareLf));
        assert_eq!(fault("\nGET / HTTP/1.1\r\n"), Some(Fault::BareLf));
        assert_eq!(fault("\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n"), None);
        let chunked = |rest: &str| fields(&format!("host: a\r\ntransfer-encoding: chunked\r\n\r\n{rest}"));
        assert_eq!(chunked("1\r\n\n\r\n0\r\nx: y\r\n"), None);
        for rest in ["0\r\nx: y\n", "0\r\n\n", "1\r\na\r\n0\r\nx: y\n"] {
            assert_eq!(chunked(rest), Some(Fault::BareLf), "{rest:?}");
        }
    }

    #[test]
    fn only_connect_names_an_authority() {
        for line in ["GET /", "GET *", "OPTIONS *", "GET http://a/b", "CONNECT a:80"] {
            assert_eq!(fault(&format!("{line} HTTP/1.1\r\nhost: a\r\n\r\n")), None, "{line}");
        }
        for line in ["GET a", "GET a:80", "GET", "GET ", "get"] {
            assert_eq!(
                fault(&format!("{line} HTTP/1.1\r\nhost: a\r\n\r\n")),
                Some(Fault::Target),
                "{line}"
            );
        }
    }

    #[test]
    fn a_request_names_one_good_host() {
        for host in [
            "a",
            "a.example:80",
            "a:",
            "127.0.0.1:7420",
            "[::1]",
            "[::1]:7420",
            "a_b",
            "%41",
            "A-b.~!$&'()*+,;=",
        ] {
            assert_eq!(fields(&format!("Host: {host}\r\n")), None, "{host}");
            assert_eq!(fields(&format!("HOST:\t{host} \r\n")), None, "{host}");
        }
        for host in [
            "", "a b", "a/b", "a@b", "u:p@a", "a:b", "a:65536", "a:-1", "a:80:80", ":80", "[::1", "::1", "[a]", "[]",
            "[::1]x", "a\\b", "a?b", "a#b", "\"a\"", "<a>", "a%", "a%4", "a%zz", "http://a", "ä", "a\u{1}",
        ] {
            assert_eq!(fields(&format!("Host: {host}\r\n")), Some(Fault::Host), "{host}");
            assert_eq!(
                fault(&format!("GET / HTTP/1.0\r\nHost: {host}\r\n\r\n")),
                Some(Fault::Host),
                "{host}"
            );
        }
        assert_eq!(fields(""), Some(Fault::NoHost));
        assert_eq!(fields("hos: a\r\nhosts: a\r\n"), Some(Fault::NoHost));
        assert_eq!(fault("GET / HTTP/1.0\r\n\r\n"), None);
        assert_eq!(fields("host: a\r\nx: y\r\nHost: a\r\n"), Some(Fault::TwoHosts));
    }

    #[test]
    fn a_body_has_one_framing() {
        for (lines, expected) in [
            ("content-length: 0\r\n", None),
            ("content-length: 18446744073709551613\r\n", None),
            ("content-length: 5\r\ncontent-length: 5\r\n", None),
            ("content-length: 5\r\ncontent-length: 6\r\n", Some(Fault::TwoLengths)),
            ("content-length: 18446744073709551614\r\n", Some(Fault::Length)),
            ("content-length: 18446744073709551616\r\n", Some(Fault::Length)),
            ("content-length:\r\n", Some(Fault::Length)),
            ("content-length: +1\r\n", Some(Fault::Length)),
            ("content-length: 5, 5\r\n", Some(Fault::Length)),
            ("transfer-encoding: chunked\r\n", None),
            ("transfer-encoding: CHUNKED\r\n", None),
            ("transfer-encoding: gzip\r\n", Some(Fault::Coding)),
            ("transfer-encoding: gzip, chunked\r\n", Some(Fault::Coding)),
            ("transfer-encoding: chunked, chunked\r\n", Some(Fault::Coding)),
            (
                "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
                Some(Fault::Coding),
            ),
            ("transfer-encoding: chunked;q=1\r\n", Some(Fault::Coding)),
            ("transfer-encoding:\r\n", Some(Fault::Coding)),
            (
                "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
                Some(Fault::CodingAndLength),
            ),
            (
                "content-length: 5\r\ntransfer-encoding: chunked\r\n",
                Some(Fault::CodingAndLength),
            ),
        ] {
            assert_eq!(fields(&format!("host: a\r\n{lines}")), expected, "{lines}");
        }
    }

    #[test]
    fn the_next_request_begins_after_the_body() {
        for body in [
            "\r\n",
            "content-length: 0\r\n\r\n",
            "content-length: 12\r\n\r\n\n\nGET / \r\n\r\nx",
            "transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "transfer-encoding: chunked\r\n\r\n3;a=b\r\n\n\n\n\r\nA\r\n0123456789\r\n0\r\nx: y\r\n\r\n",
        ] {
            let good = format!("POST / HTTP/1.1\r\nhost: a\r\n{body}");
            assert_eq!(fault(&good.repeat(3)), None, "{body:?}");
            let then_bad = format!("{good}GET / HTTP/1.1\r\n\r\n");
            assert_eq!(
                scan(then_bad.as_bytes()),
                Some((Fault::NoHost, then_bad.len() - 1)),
                "{body:?}"
            );
        }
    }
}
