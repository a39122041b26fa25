//! Faults in the framing of requests, and what is known of a request that has one.

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
fn the_identifier_of_a_refused_request_is_known_before_and_behind_the_fault() {
    let id = |text: &str| {
        let mut framing = Framing::default();
        framing.scan(text.as_bytes());
        framing.sent_id().map(|id| id.to_str().unwrap().to_owned())
    };
    let mine = Some("mine".to_owned());
    for fields in [
        "X-Request-Id: mine\r\nhost: a b\r\n\r\n",
        "host: a b\r\nx-request-id:mine \r\n\r\n",
        "x-request-id: mine\r\nx-request-id: other\r\n\r\n",
        "host: a\nx-request-id: mine\r\n",
    ] {
        assert_eq!(id(&format!("GET / HTTP/1.1\r\n{fields}")), mine, "{fields:?}");
    }
    assert_eq!(id("GET a HTTP/1.1\r\nx-request-id: mine\r\n\r\n"), mine);
    for other in [
        "GET / HTTP/1.1\r\nhost: a\r\nx-request-id: mine\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\nx-request-id: mine\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a b\r\n\r\nx-request-id: mine\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nx-request-id: mine\r\n\r\nGET a HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\n\nx-request-id: mine\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\nx-request-id: mine\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a b\r\nx-request-id: two words\r\n\r\n",
    ] {
        assert_eq!(id(other), None, "{other:?}");
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
