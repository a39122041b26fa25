//! Frames and requests that RFC 9113 and RFC 7541 forbid, each written by hand.

mod frames;
mod requests;

use agentcfg_tests::harness::Server;

use super::Pair;
use super::client::{CONTINUATION, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADERS, Http2, RST_STREAM, frame};

const WHOLE: u8 = END_HEADERS | END_STREAM;

/// The error code PROTOCOL_ERROR (RFC 9113, section 7).
const PROTOCOL: u32 = 1;

/// What becomes of the connection or of its first request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// GOAWAY with this error code.
    Ended(u32),
    /// The connection was closed without an error code.
    Closed,
    /// RST_STREAM with this error code.
    Reset(u32),
    /// A response: 200, or 0 for a status that the static table does not have.
    Status(u16),
}

/// What the row must lead to.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// 200: a control, or something that must be ignored.
    Good,
    /// An error of the connection with one of these codes.
    Connection(&'static [u32]),
    /// A malformed request: a reset of its stream, an end of the connection, or 400.
    Refused,
}

use Expected::{Connection, Good, Refused};

/// Header fields in HPACK, each a literal without an index.
fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            assert!(text.len() < 127);
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// `GET /healthz` with more fields behind it.
fn get(more: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/healthz"),
        (":authority", "localhost"),
    ];
    fields(&[&pseudo, more].concat())
}

/// A whole request without a body on stream 1.
fn request(block: &[u8]) -> Vec<u8> {
    frame(HEADERS, WHOLE, 1, block)
}

type Row = (&'static str, Expected, Vec<u8>);

/// Sends the bytes on a new connection and waits for the first outcome.
async fn outcome(server: &Server, bytes: &[u8]) -> (Outcome, Frames) {
    let mut frames = Frames::connect(server.address(), &[]).await;
    // The server may end the connection while the bytes are sent.
    let _ = frames.send(bytes).await;
    let outcome = loop {
        let Some((kind, _, stream, payload)) = frames.next().await else {
            break Outcome::Closed;
        };
        let code = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
        match kind {
            GOAWAY => break Outcome::Ended(code(4)),
            RST_STREAM => break Outcome::Reset(code(0)),
            HEADERS => {
                assert!(stream % 2 == 1);
                break Outcome::Status(match payload[0] {
                    0x88 => 200,
                    0x8c => 400,
                    0x8d => 404,
                    0x8e => 500,
                    _ => 0,
                });
            }
            _ => {}
        }
    };
    (outcome, frames)
}

fn is_expected(expected: Expected, outcome: Outcome) -> bool {
    match (expected, outcome) {
        (Good, Outcome::Status(200)) => true,
        // h2 reports most errors as PROTOCOL_ERROR, also where the RFC has a code for them.
        (Connection(codes), Outcome::Ended(code)) => codes.contains(&code) || code == PROTOCOL,
        (Refused, Outcome::Status(status)) => ![200, 500].contains(&status),
        (Refused, Outcome::Reset(code) | Outcome::Ended(code)) => code != 0,
        _ => false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_frame_and_each_request_gets_its_answer() {
    let pair = Pair::good();
    let server = pair.server().start();
    let http = Http2::connect(server.address()).await;
    let token = server.token("ada");
    let bearer = format!("Bearer {token}");
    let auth = [("authorization", &*bearer)];
    let mut rows = frames::rows();
    rows.extend(requests::rows(&bearer));
    assert!(rows.len() >= 90, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for (name, expected, bytes) in rows {
        let (outcome, mut frames) = outcome(&server, &bytes).await;
        if !is_expected(expected, outcome) {
            wrong.push(format!("{name}: {expected:?}, got {outcome:?}"));
            continue;
        }
        // No malformed request makes a workspace.
        let made = http.get("/api/workspaces", &auth).await.expect(200).json();
        if made != serde_json::json!([]) {
            wrong.push(format!("{name}: {outcome:?}, and it was served"));
            break;
        }
        // An error of one stream leaves the connection to the others, one of the connection does not.
        let _ = frames.send(&frame(HEADERS, WHOLE, 7, &get(&[]))).await;
        match outcome {
            Outcome::Reset(_) | Outcome::Status(_) => {
                if let Some((_, stream, payload)) = frames.next_of(HEADERS).await {
                    assert_eq!((stream, payload[0]), (7, 0x88), "{name}");
                } else if !matches!(expected, Refused) {
                    wrong.push(format!("{name}: the connection does not go on"));
                }
            }
            Outcome::Ended(_) | Outcome::Closed => {
                assert!(
                    frames.next_of(HEADERS).await.is_none(),
                    "{name}: a request after the end"
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_the_preface_is_closed() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let pair = Pair::good();
    let server = pair.server().start();
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x06\0\0\0\0\0",
        &[0; 64],
    ] {
        let mut stream = super::client::tls(server.address(), &["h2"]).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        // The end may be a reset.
        let _ = tokio::time::timeout(super::client::TIMEOUT, stream.read_to_end(&mut answer))
            .await
            .expect("the connection ends");
        assert!(
            !answer.windows(4).any(|window| window == b"200 "),
            "{}",
            answer.escape_ascii()
        );
    }
}

/// Fields over many frames: the server keeps a bounded part of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_over_many_frames_ends_in_bounded_memory() {
    let pair = Pair::good();
    let server = pair.server().start();
    let before = server.memory_mib();
    let mut frames = Frames::connect(server.address(), &[]).await;
    let long = "v".repeat(120);
    let piece = fields(&vec![("x-a", long.as_str()); 100]);
    let mut is_open = frames.send(&frame(HEADERS, END_STREAM, 1, &get(&[]))).await.is_ok();
    for _ in 0..2000 {
        is_open = is_open && frames.send(&frame(CONTINUATION, 0, 1, &piece)).await.is_ok();
    }
    assert!(server.memory_mib().saturating_sub(before) < 32);
    while frames.next().await.is_some() {}
    let http = Http2::connect(server.address()).await;
    http.get("/healthz", &[]).await.expect(200);
}
