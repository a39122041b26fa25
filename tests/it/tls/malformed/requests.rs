//! Requests that are malformed.

use super::super::client::{DATA, END_HEADERS, END_STREAM, HEADERS, frame};
use super::Expected::{Good, Refused};
use super::{Row, fields, get, request};

/// A `POST` that makes a workspace, with these fields, and its body in frames of stream 1.
fn post(bearer: &str, more: &[(&str, &str)], body: &[&[u8]]) -> Vec<u8> {
    let mut block = fields(&[
        (":method", "POST"),
        (":scheme", "https"),
        (":path", "/api/workspaces"),
        (":authority", "localhost"),
        ("content-type", "application/json"),
    ]);
    // The token is longer than a length of one byte.
    block.extend([0x0f, 0x08, 0x7f]);
    let mut rest = bearer.len() - 127;
    while rest >= 128 {
        block.push(u8::try_from(rest % 128).unwrap() + 128);
        rest /= 128;
    }
    block.push(u8::try_from(rest).unwrap());
    block.extend_from_slice(bearer.as_bytes());
    block.extend(fields(more));
    let mut bytes = frame(HEADERS, END_HEADERS, 1, &block);
    for (number, piece) in body.iter().enumerate() {
        let flags = if number + 1 == body.len() { END_STREAM } else { 0 };
        bytes.extend(frame(DATA, flags, 1, piece));
    }
    bytes
}

/// Requests that are malformed (RFC 9113, section 8), and controls.
pub(super) fn rows(bearer: &str) -> Vec<Row> {
    let with = |more: &[(&str, &str)]| request(&get(more));
    let pseudo = |list: &[(&str, &str)]| request(&fields(list));
    let (method, scheme, path, host) = (
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/healthz"),
        (":authority", "localhost"),
    );
    let body: &[u8] = b"{\"name\":\"x\"}";
    let mut rows = vec![
        ("te: trailers", Good, with(&[("te", "trailers")])),
        (
            "a cookie in crumbs",
            Good,
            with(&[("cookie", "a=b"), ("cookie", "c=d")]),
        ),
        ("an empty value", Good, with(&[("x-a", "")])),
        ("te: gzip", Refused, with(&[("te", "gzip")])),
        ("a name in capitals", Refused, with(&[("X-A", "b")])),
        ("one capital letter", Refused, with(&[("x-aBc", "b")])),
        ("a name with a space", Refused, with(&[("x a", "b")])),
        ("a name with a colon", Refused, with(&[("x:a", "b")])),
        ("an empty name", Refused, with(&[("", "b")])),
        ("a name that is not ASCII", Refused, with(&[("x-\u{e4}", "b")])),
        ("a value with NUL", Refused, with(&[("x-a", "b\0")])),
        ("a value with a line end", Refused, with(&[("x-a", "b\r\nx-b: c")])),
        ("a value with LF", Refused, with(&[("x-a", "b\nc")])),
        ("connection", Refused, with(&[("connection", "close")])),
        ("keep-alive", Refused, with(&[("keep-alive", "timeout=5")])),
        ("proxy-connection", Refused, with(&[("proxy-connection", "keep-alive")])),
        ("transfer-encoding", Refused, with(&[("transfer-encoding", "chunked")])),
        ("upgrade", Refused, with(&[("upgrade", "h2c")])),
        (
            "a pseudo-header behind a field",
            Refused,
            pseudo(&[method, scheme, host, ("x-a", "b"), path]),
        ),
        (
            "an unknown pseudo-header",
            Refused,
            pseudo(&[method, scheme, path, host, (":x", "b")]),
        ),
        (
            "a pseudo-header of responses",
            Refused,
            pseudo(&[method, scheme, path, host, (":status", "200")]),
        ),
        ("no method", Refused, pseudo(&[scheme, path, host])),
        ("no scheme", Refused, pseudo(&[method, path, host])),
        ("no path", Refused, pseudo(&[method, scheme, host])),
        ("an empty path", Refused, pseudo(&[method, scheme, (":path", ""), host])),
        (
            "a path without a slash",
            Refused,
            pseudo(&[method, scheme, (":path", "healthz"), host]),
        ),
        (
            "a path with a space",
            Refused,
            pseudo(&[method, scheme, (":path", "/health z"), host]),
        ),
        ("two methods", Refused, pseudo(&[method, method, scheme, path, host])),
        ("two schemes", Refused, pseudo(&[method, scheme, scheme, path, host])),
        ("two paths", Refused, pseudo(&[method, scheme, path, path, host])),
        ("two authorities", Refused, pseudo(&[method, scheme, path, host, host])),
        (
            "a method with a space",
            Refused,
            pseudo(&[(":method", "G T"), scheme, path, host]),
        ),
        (
            "an authority with a user",
            Refused,
            pseudo(&[method, scheme, path, (":authority", "u:p@localhost")]),
        ),
        (
            "an authority with a path",
            Refused,
            pseudo(&[method, scheme, path, (":authority", "localhost/x")]),
        ),
        (
            "an empty authority",
            Refused,
            pseudo(&[method, scheme, path, (":authority", "")]),
        ),
        (
            "CONNECT with a path",
            Refused,
            pseudo(&[(":method", "CONNECT"), scheme, path, host]),
        ),
        ("a length without a body", Refused, with(&[("content-length", "5")])),
        (
            "a length that is no number",
            Refused,
            post(bearer, &[("content-length", "x")], &[body]),
        ),
        (
            "a negative length",
            Refused,
            post(bearer, &[("content-length", "-1")], &[body]),
        ),
        (
            "two lengths",
            Refused,
            post(bearer, &[("content-length", "12"), ("content-length", "13")], &[body]),
        ),
        (
            "a body below its length",
            Refused,
            post(bearer, &[("content-length", "20")], &[body]),
        ),
        (
            "a body above its length",
            Refused,
            post(bearer, &[("content-length", "5")], &[body]),
        ),
        (
            "a body above its length in pieces",
            Refused,
            post(bearer, &[("content-length", "12")], &[body, b" "]),
        ),
        (
            "a body behind length 0",
            Refused,
            post(bearer, &[("content-length", "0")], &[body]),
        ),
        ("a list of fields over the limit", Refused, {
            let long = "v".repeat(120);
            with(&vec![("x-a", long.as_str()); 130])
        }),
    ];
    let trailers = |more: &[(&str, &str)], flags: u8| {
        let unfinished = post(bearer, &[], &[body, b""]);
        // Without the last frame of the body, which is empty.
        let open = unfinished[..unfinished.len() - 9].to_vec();
        [open, frame(HEADERS, flags, 1, &fields(more))].concat()
    };
    // h2 drops pseudo-headers of trailers, which RFC 9113 forbids, and nothing here reads trailers.
    rows.push((
        "trailers that do not end the stream",
        Refused,
        trailers(&[("x-a", "b")], END_HEADERS),
    ));
    rows
}
