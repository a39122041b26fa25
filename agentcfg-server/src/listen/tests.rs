mod self_wakes;
mod times;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::*;
use crate::http::{BodyTimeout, Disconnect};

/// A server with a test service that counts its calls.
struct Server {
    address: SocketAddr,
    calls: Arc<AtomicUsize>,
    /// Lets one `/wait` respond.
    release: Arc<Notify>,
    /// Signals that a `/wait` or a `/watch` has begun.
    waiting: Arc<Notify>,
    open: Gauge,
    stop: Option<oneshot::Sender<()>>,
    done: JoinHandle<Drained>,
}

impl Server {
    async fn start(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (calls, release, waiting) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(Notify::new()),
            Arc::new(Notify::new()),
        );
        let shared = (calls.clone(), release.clone(), waiting.clone());
        let connect = move |client: Disconnect| {
            let shared = (shared.clone(), client);
            service_fn(move |request: Request<Incoming>| call(request, shared.clone()))
        };
        let (stop, stopped) = oneshot::channel();
        let open = limits.open_connections.clone();
        let done = tokio::spawn(serve(listener, connect, limits, async {
            let _ = stopped.await;
        }));
        Self {
            address,
            calls,
            release,
            waiting,
            open,
            stop: Some(stop),
            done,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends `bytes` and reads until the server closes.
    async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        read_to_end(&mut stream).await
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }
}

type Shared = (Arc<AtomicUsize>, Arc<Notify>, Arc<Notify>);

/// The service. One path panics before there is a future.
fn call(
    request: Request<Incoming>,
    state: (Shared, Disconnect),
) -> impl Future<Output = Result<Response<Full<Bytes>>, Infallible>> {
    assert_ne!(request.uri().path(), "/panic-at-once", "as asked");
    answer(request, state)
}

async fn answer(
    request: Request<Incoming>,
    ((calls, release, waiting), disconnect): (Shared, Disconnect),
) -> Result<Response<Full<Bytes>>, Infallible> {
    calls.fetch_add(1, Ordering::SeqCst);
    let body = match request.uri().path() {
        "/echo" => match request.into_body().collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if BodyTimeout::is_in(&error) => Bytes::from_static(b"body timed out"),
            Err(_) => Bytes::from_static(b"body broke"),
        },
        "/wait" => {
            waiting.notify_one();
            release.notified().await;
            Bytes::from_static(b"waited")
        }
        "/watch" => {
            waiting.notify_one();
            disconnect.disconnected().await;
            release.notify_one();
            Bytes::from_static(b"noticed")
        }
        "/ending" => {
            disconnect.end_by((tokio::time::Instant::now() + short()).into());
            Bytes::from(vec![b'x'; 64 << 20])
        }
        "/panic" => panic!("as asked"),
        "/big" => Bytes::from(vec![b'x'; 64 << 20]),
        // The service returns bytes that look like a refusal by hyper.
        "/lookalike" => Bytes::from_static(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"),
        "/refuse" => {
            let mut response = Response::new(Full::default());
            *response.status_mut() = hyper::StatusCode::BAD_REQUEST;
            return Ok(response);
        }
        path => Bytes::from(format!("{} bytes of path", path.len())),
    };
    Ok(Response::new(Full::new(body)))
}

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset after the response would be an error here.
    stream.read_to_end(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Reads until `end` was read.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(end) {
        let byte = stream
            .read_u8()
            .await
            .unwrap_or_else(|error| panic!("{error} after {text:?}"));
        text.push(byte as char);
    }
    text
}

fn short() -> Duration {
    Duration::from_millis(60)
}

#[track_caller]
fn assert_error(answer: &str, status: u16) {
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no head in {answer:?}"));
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    assert!(head.contains("content-type: application/json"), "{answer}");
    assert!(head.contains("x-request-id: "), "{answer}");
    assert!(head.contains(&format!("content-length: {}", body.len())), "{answer}");
    let value: serde_json::Value = serde_json::from_str(body).unwrap();
    let fields = value.as_object().unwrap();
    assert!(fields.len() == 1 && fields["error"].is_string(), "{answer}");
}

#[tokio::test]
async fn malformed_http_gets_a_json_400() {
    let server = Server::start(Limits::default()).await;
    let cases: &[&[u8]] = &[
        b"garbage\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello of TLS\r\n\r\n",
        b"\0\0\0\0",
        b"G(ET / HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"GET  / HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET /\x01 HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nbad name: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\n: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nname : x\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nname: a\x00b\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nname: a\r\n folded\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: +5\r\n\r\nhello",
        b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 5, 6\r\n\r\nhello",
        b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999999999999\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\n\r\nhello",
        b"POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ];
    for case in cases {
        let answer = server.exchange(case).await;
        assert!(!answer.is_empty(), "no answer to {:?}", case.escape_ascii().to_string());
        assert_error(&answer, 400);
        assert!(answer.contains("connection: close"), "{answer}");
    }
    assert_eq!(server.calls(), 0);
}

#[tokio::test]
async fn oversized_heads_get_a_json_414_or_431() {
    let server = Server::start(Limits::default()).await;
    let path = "a".repeat(1 << 20);
    assert_error(
        &server
            .exchange(format!("GET /{path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes())
            .await,
        414,
    );
    assert_error(&server.exchange(format!("\r\n\r\nGET /{path}").as_bytes()).await, 414);
    assert_error(
        &server
            .exchange(format!("GET / HTTP/1.1\r\nhost: a\r\nname: {path}\r\n\r\n").as_bytes())
            .await,
        431,
    );
    assert_error(
        &server
            .exchange(format!("GET / HTTP/1.1\r\nhost: a\r\n{path}: x\r\n\r\n").as_bytes())
            .await,
        431,
    );
    let many = "a: b\r\n".repeat(101);
    assert_error(
        &server
            .exchange(format!("GET / HTTP/1.1\r\nhost: a\r\n{many}\r\n").as_bytes())
            .await,
        431,
    );
    assert_eq!(server.calls(), 0);
}

#[tokio::test]
async fn the_limits_of_hyper_are_above_those_of_the_service() {
    let server = Server::start(Limits::default()).await;
    let path = "a".repeat(30_000);
    let many = "a: b\r\n".repeat(97);
    let head = format!("GET /{path} HTTP/1.1\r\nhost: a\r\nname: {path}\r\n{many}connection: close\r\n\r\n");
    let answer = server.exchange(head.as_bytes()).await;
    assert!(answer.ends_with("30001 bytes of path"), "{answer}");
}

#[tokio::test]
async fn a_refusal_after_good_requests_is_replaced_too() {
    let server = Server::start(Limits::default()).await;
    for body in [
        "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello",
        "GET /refuse HTTP/1.1\r\nhost: a\r\n\r\n",
        "HEAD / HTTP/1.1\r\nhost: a\r\n\r\n",
    ] {
        let answer = server.exchange(format!("{body}{body}garbage\r\n\r\n").as_bytes()).await;
        let last = answer.rfind("HTTP/1.1 400 ").unwrap();
        assert_error(&answer[last..], 400);
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 3, "{answer}");
    }
    // A fault that hyper would not find, in the same packet as the request before it.
    let good = "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello";
    let answer = server
        .exchange(format!("{good}GET /a HTTP/1.1\r\n\r\n{good}").as_bytes())
        .await;
    let (first, second) = answer.split_once("hello").unwrap();
    assert!(first.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_error(second, 400);
    // The same on separate packets.
    let mut stream = server.connect().await;
    stream.write_all(b"GET /ok HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    read_until(&mut stream, "3 bytes of path").await;
    stream.write_all(b"garbage\r\n\r\n").await.unwrap();
    assert_error(&read_to_end(&mut stream).await, 400);
}

#[tokio::test]
async fn responses_of_the_service_are_not_replaced() {
    let server = Server::start(Limits::default()).await;
    let answer = server
        .exchange(b"GET /refuse HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .await;
    assert!(
        answer.starts_with("HTTP/1.1 400 Bad Request\r\n") && answer.contains("content-length: 0"),
        "{answer}"
    );
    let answer = server
        .exchange(b"GET /lookalike HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .await;
    assert!(
        answer.ends_with("\r\n\r\nHTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"),
        "{answer}"
    );
    let answer = server
        .exchange(b"POST /echo HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi")
        .await;
    assert!(
        answer.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n") && answer.ends_with("hi"),
        "{answer}"
    );
}

#[tokio::test]
async fn http_1_0_needs_no_host() {
    let server = Server::start(Limits::default()).await;
    assert!(
        server
            .exchange(b"GET /a HTTP/1.0\r\n\r\n")
            .await
            .ends_with("2 bytes of path")
    );
    let missing = server.exchange(b"GET /a HTTP/1.1\r\nconnection: close\r\n\r\n").await;
    assert_error(&missing, 400);
    assert!(missing.contains("Host is required"), "{missing}");
    let same =
        b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi";
    assert!(server.exchange(same).await.ends_with("hi"));
}

#[tokio::test]
async fn conflicting_framings_allow_no_request_smuggling() {
    let server = Server::start(Limits::default()).await;
    for framing in [
        "content-length: 40\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 3",
    ] {
        let before = server.calls();
        let request = format!(
            "POST /echo HTTP/1.1\r\nhost: a\r\n{framing}\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n"
        );
        let answer = server.exchange(request.as_bytes()).await;
        assert_error(&answer, 400);
        assert!(answer.contains("must not be sent together"), "{answer}");
        assert_eq!(server.calls() - before, 0);
    }
}

#[tokio::test]
async fn a_panic_answers_500_and_affects_no_other_request() {
    let server = Server::start(Limits::default()).await;
    let mut other = server.connect().await;
    let mut stream = server.connect().await;
    for path in ["/panic", "/panic-at-once"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nx-request-id: mine\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_until(&mut stream, "}").await;
        assert_error(&answer, 500);
        assert!(
            answer.contains("x-request-id: mine\r\n") && !answer.contains("as asked"),
            "{answer}"
        );
    }
    for stream in [&mut stream, &mut other] {
        stream.write_all(b"GET /ok HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        read_until(stream, "3 bytes of path").await;
    }
}

#[tokio::test]
async fn a_response_before_the_end_of_the_body_arrives_completely() {
    let server = Server::start(Limits::default()).await;
    let mut stream = server.connect().await;
    stream
        .write_all(b"POST /refuse HTTP/1.1\r\nhost: a\r\ncontent-length: 8000000\r\n\r\n")
        .await
        .unwrap();
    // Far more than the system's socket buffers hold, so that closing early would reset the connection.
    stream.write_all(&vec![b'x'; 8_000_000]).await.unwrap();
    assert!(read_to_end(&mut stream).await.starts_with("HTTP/1.1 400 "));
}

#[tokio::test]
async fn a_client_that_half_closes_still_gets_its_response() {
    let server = Server::start(Limits::default()).await;
    let mut stream = server.connect().await;
    stream
        .write_all(b"GET /wait HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    server.waiting.notified().await;
    server.release.notify_one();
    assert!(read_to_end(&mut stream).await.ends_with("waited"));
}

#[tokio::test]
async fn a_call_can_detect_that_its_client_disconnected() {
    let server = Server::start(Limits::default()).await;
    for request in [
        "POST /watch HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n",
        "POST /watch HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello",
        "GET /watch HTTP/1.1\r\nhost: a\r\n\r\n",
    ] {
        // The connection has served a request before: its state must not leak into the next one.
        let mut stream = server.connect().await;
        stream
            .write_all(b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi")
            .await
            .unwrap();
        read_until(&mut stream, "hi").await;
        stream.write_all(request.as_bytes()).await.unwrap();
        server.waiting.notified().await;
        drop(stream);
        server.release.notified().await;

        let mut stream = server.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        server.waiting.notified().await;
        stream.set_zero_linger().unwrap();
        drop(stream);
        server.release.notified().await;

        // A half-closed connection looks the same, and can still receive the response.
        let mut stream = server.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        server.waiting.notified().await;
        stream.shutdown().await.unwrap();
        server.release.notified().await;
        assert!(read_to_end(&mut stream).await.ends_with("noticed"));
    }
}
