//! Requests whose framing RFC 9112 forbids, as raw bytes.

use agentcfg_tests::harness::{Studio, Wire};

/// See the head of the file.
const CORPUS: &str = include_str!("malformed.txt");

#[test]
fn each_request_of_the_corpus_gets_its_answer() {
    let studio = Studio::open();
    let rows: Vec<_> = CORPUS.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(rows.len() >= 120, "{} rows", rows.len());
    for row in rows {
        let (status, request) = row.split_once(' ').unwrap();
        let mut wire = Wire::connect(studio.server.address());
        let bytes = unescape(&request.replace("{token}", &studio.owner));
        let answer = wire.send(bytes).finish().receive("GET");
        let answer = answer.unwrap_or_else(|| panic!("no answer to {row}"));
        assert_eq!(answer.status.to_string(), status, "{row}: {answer:?}");
        if answer.status == 400 {
            assert!(!answer.error().is_empty(), "{row}: {answer:?}");
            assert_eq!(answer.need("connection"), "close", "{row}");
            assert!(wire.receive("GET").is_none(), "a second answer to {row}");
        }
    }
    studio.server.get("/healthz").send().expect(200);
}

#[test]
fn a_refusal_has_the_identifier_of_its_request() {
    let studio = Studio::open();
    for fields in [
        "X-Request-Id: mine\r\n",
        "Host: a\r\nHost: a\r\nX-Request-Id: mine\r\n",
        "Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\nX-Request-Id: mine\r\n",
    ] {
        let mut wire = Wire::connect(studio.server.address());
        let request = format!("GET /healthz HTTP/1.1\r\n{fields}\r\n");
        let answer = wire.send(request).finish().receive("GET").unwrap();
        assert_eq!(answer.status, 400, "{fields:?}: {answer:?}");
        assert_eq!(answer.need("x-request-id"), "mine", "{fields:?}");
    }
}

#[test]
fn a_header_section_that_never_ends_is_cut_by_bytes() {
    let studio = Studio::open();
    for (start, endless, status) in [
        ("GET /healthz HTTP/1.1\r\nHost: a\r\n", "X: y\r\n", 431),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\nX: ", "yyyyyyyy", 431),
        ("GET /", "yyyyyyyy", 414),
        ("", "\r\n", 414),
    ] {
        let mut wire = Wire::connect(studio.server.address());
        let answer = wire
            .send(start)
            .send_aside(endless.repeat(1 << 16).into_bytes())
            .receive("GET");
        let answer = answer.unwrap_or_else(|| panic!("no answer to endless {endless:?}"));
        assert_eq!(answer.status, status, "{endless:?}: {answer:?}");
    }
}

/// The bytes that a row stands for.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next() {
                Some(b'r') => b'\r',
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'\\') => b'\\',
                Some(b'x') => {
                    let digits = [rest.next().unwrap(), rest.next().unwrap()];
                    u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
                }
                other => panic!("no escape: {other:?} in {text}"),
            },
            byte => byte,
        });
    }
    bytes
}
