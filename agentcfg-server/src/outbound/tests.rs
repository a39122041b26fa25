use std::sync::atomic::Ordering;

use hyper::StatusCode;
use hyper::header::LOCATION;
use rustls::pki_types::pem::PemObject;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::stub::{Stub, answer};
use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn outbound() -> Outbound {
    Outbound::new(&Options::default()).unwrap()
}

fn get(url: &str) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::default());
    *request.uri_mut() = url.parse().unwrap();
    request
}

#[tokio::test]
async fn connections_are_reused() {
    let stub = Stub::new(|_| answer(200, "hello")).await;
    let outbound = outbound();
    for _ in 0..20 {
        let response = outbound
            .send_idempotent(get(&stub.url("/a?b=c")), 100, SECOND)
            .await
            .unwrap();
        assert_eq!(response.body(), "hello");
    }
    assert_eq!(stub.connections.load(Ordering::SeqCst), 1);
    let seen = &stub.seen()[0];
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("GET", "/a?b=c"));
    assert_eq!(seen.header("host"), Some(stub.address.to_string().as_str()));
}

/// Reads one request without a body, and answers.
async fn answer_raw(stream: &mut TcpStream, answer: &str) {
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        assert!(stream.read_buf(&mut seen).await.unwrap() > 0);
    }
    stream.write_all(answer.as_bytes()).await.unwrap();
}

/// Lets the runtime see what happened to its sockets so far.
async fn see_sockets() {
    let (mut near, mut far) = tokio::net::UnixStream::pair().unwrap();
    far.write_all(b"x").await.unwrap();
    near.read_exact(&mut [0]).await.unwrap();
}

async fn text(response: Response<OutboundBody>) -> Result<String, hyper::Error> {
    let body = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_connection_is_kept_after_every_kind_of_whole_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answers = [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "ok"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", ""),
        ("HTTP/1.1 204 No Content\r\n\r\n", ""),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n3\r\nay!\r\n0\r\n\r\n",
            "okay!",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n",
            "ok",
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            "ok",
        ),
        // The last one ends the connection, and so does the next one.
        (
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
            "ok",
        ),
    ];
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for (raw, _) in answers {
            answer_raw(&mut stream, raw).await;
        }
        let (mut second, _) = listener.accept().await.unwrap();
        answer_raw(&mut second, "HTTP/1.0 200 OK\r\n\r\nuntil the end").await;
    });
    let outbound = outbound();
    for (_, expected) in answers {
        assert_eq!(text(outbound.send(get(&url)).await.unwrap()).await.unwrap(), expected);
    }
    assert_eq!(outbound.pool.count(), 0);
    assert_eq!(
        text(outbound.send(get(&url)).await.unwrap()).await.unwrap(),
        "until the end"
    );
    assert_eq!(outbound.pool.count(), 0);
    server.await.unwrap();
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_costs_no_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let outbound = outbound();
    for kept in [true, false] {
        let exchange = tokio::spawn({
            let (outbound, url) = (outbound.clone(), url.clone());
            async move { text(outbound.send(get(&url)).await.unwrap()).await.unwrap() }
        });
        let (mut stream, _) = listener.accept().await.unwrap();
        answer_raw(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        assert_eq!(exchange.await.unwrap(), "ok");
        assert_eq!(outbound.pool.count(), 1);
        drop(stream);
        see_sockets().await;
        if kept {
            continue;
        }
        // Without a request, the connection is closed when the pool looks.
        assert!(!outbound.pool.sweep());
        assert_eq!(outbound.pool.count(), 0);
    }
}

#[tokio::test]
async fn idle_connections_are_closed_in_time() {
    let stub = Stub::new(|_| answer(200, "hello")).await;
    let outbound = outbound();
    for connections in 1..=2 {
        let response = outbound.send(get(&stub.url("/"))).await.unwrap();
        assert_eq!(text(response).await.unwrap(), "hello");
        assert_eq!(stub.connections.load(Ordering::SeqCst), connections);
        assert_eq!(outbound.pool.count(), 1);
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(21)).await;
        tokio::time::resume();
    }
    // The task that sweeps has begun with the first idle connection.
    while outbound.pool.count() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn no_more_connections_are_kept_than_allowed() {
    let stub = Stub::new(|_| answer(200, "hello")).await;
    let outbound = Outbound::new(&Options {
        idle_connections: 2,
        ..Options::default()
    })
    .unwrap();
    let gate = stub.leave.acquire_many(Semaphore::MAX_PERMITS as u32).await;
    let requests: Vec<_> = (0..4)
        .map(|_| {
            let (outbound, request) = (outbound.clone(), get(&stub.url("/")));
            tokio::spawn(async move { text(outbound.send(request).await.unwrap()).await.unwrap() })
        })
        .collect();
    while stub.connections.load(Ordering::SeqCst) < 4 {
        tokio::task::yield_now().await;
    }
    drop(gate);
    for request in requests {
        assert_eq!(request.await.unwrap(), "hello");
    }
    assert_eq!(outbound.pool.count(), 2);
}

#[tokio::test]
async fn a_dropped_answer_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let outbound = outbound();
    let exchange = outbound.send(get(&url));
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        answer_raw(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nbegun").await;
        stream
    };
    let (response, mut stream) = tokio::join!(exchange, server);
    drop(response.unwrap());
    assert_eq!(stream.read(&mut [0; 10]).await.unwrap(), 0);
    assert_eq!(outbound.pool.count(), 0);

    // So does a request whose response is no longer waited for.
    let mut exchange = Box::pin(outbound.send(get(&url)));
    let mut accepted = Box::pin(listener.accept());
    let (mut stream, _) = tokio::select! {
        accepted = &mut accepted => accepted.unwrap(),
        _ = &mut exchange => panic!("there is no response"),
    };
    let mut head = [0; 10];
    tokio::select! {
        read = stream.read_exact(&mut head) => drop(read.unwrap()),
        _ = &mut exchange => panic!("there is no response"),
    }
    drop(exchange);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert_eq!(outbound.pool.count(), 0);
}

#[tokio::test]
async fn long_bodies_pass_in_both_directions() {
    let stub = Stub::new(|seen| answer(200, &seen.body)).await;
    let outbound = outbound();
    let long = "0123456789abcdef".repeat(1 << 16);
    for _ in 0..3 {
        let request = Request::post(stub.url("/")).body(Full::from(long.clone())).unwrap();
        assert_eq!(text(outbound.send(request).await.unwrap()).await.unwrap(), long);
    }
    assert_eq!(stub.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = Stub::new(|_| answer(200, "elsewhere")).await;
    let target = elsewhere.url("/");
    let stub = Stub::new(move |_| {
        let mut response = answer(302, "");
        response.headers_mut().insert(LOCATION, target.parse().unwrap());
        response
    })
    .await;
    let response = outbound()
        .send_idempotent(get(&stub.url("/")), 100, SECOND)
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::FOUND);
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn a_response_longer_than_the_limit_is_an_error() {
    let stub = Stub::new(|_| answer(200, &"x".repeat(1000))).await;
    let outbound = outbound();
    assert_eq!(
        outbound
            .send_idempotent(get(&stub.url("/")), 1000, SECOND)
            .await
            .unwrap()
            .body()
            .len(),
        1000
    );
    let error = outbound
        .send_idempotent(get(&stub.url("/")), 999, SECOND)
        .await
        .unwrap_err();
    assert!(matches!(error, OutboundError::TooLong(999)), "{error}");
}

#[tokio::test]
async fn requests_and_handshakes_time_out() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let within = Duration::from_millis(50);
    let error = outbound().send_idempotent(get(&url), 100, within).await.unwrap_err();
    assert!(matches!(error, OutboundError::TimedOut(_)), "{error}");
    // A TLS handshake without a response ends with the connect timeout.
    let options = Options {
        connect_timeout: within,
        ..Options::default()
    };
    let url = url.replace("http:", "https:");
    let error = Outbound::new(&options).unwrap().send(get(&url)).await.unwrap_err();
    assert!(matches!(error, OutboundError::Connect(_)), "{error}");
}

#[tokio::test]
async fn a_failed_connect_has_its_own_error() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for url in [format!("http://{gone}/"), "http://nobody.invalid/".to_owned()] {
        let error = outbound()
            .send_idempotent(get(&url), 100, 20 * SECOND)
            .await
            .unwrap_err();
        assert!(matches!(error, OutboundError::Connect(_)), "{error}");
        assert!(!error.to_string().contains(&url), "{error}");
    }
}

#[tokio::test]
async fn a_request_on_a_closed_connection_is_retried_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        // The first connection is closed upon the request, like an idle connection that the server has timed out.
        for answers in [false, true] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 1000];
            assert!(stream.read(&mut buffer).await.unwrap() > 0);
            if answers {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                    .await
                    .unwrap();
            }
        }
    });
    let response = outbound().send_idempotent(get(&url), 100, 5 * SECOND).await.unwrap();
    assert_eq!(response.body(), "ok");
    server.await.unwrap();
}

#[tokio::test]
async fn a_truncated_body_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 1000];
            let _ = stream.read(&mut buffer).await;
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{}")
                .await;
        }
    });
    let error = outbound()
        .send_idempotent(get(&url), 100, 5 * SECOND)
        .await
        .unwrap_err();
    assert!(matches!(error, OutboundError::Broken(_)), "{error}");
}

#[tokio::test]
async fn tls_needs_a_certificate_that_is_trusted_for_the_name() {
    let stub = Stub::encrypted(|_| answer(200, "private")).await;
    let port = stub.address.port();
    let options = Options {
        extra_roots: CertificateDer::pem_slice_iter(include_bytes!("tls/ca.pem"))
            .collect::<Result<_, _>>()
            .unwrap(),
        ..Options::default()
    };
    let trusting = Outbound::new(&options).unwrap();
    let url = format!("https://localhost:{port}/");
    assert_eq!(
        trusting
            .send_idempotent(get(&url), 100, 5 * SECOND)
            .await
            .unwrap()
            .body(),
        "private"
    );

    let error = outbound()
        .send_idempotent(get(&url), 100, 5 * SECOND)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    let by_address = format!("https://127.0.0.1:{port}/");
    let error = trusting
        .send_idempotent(get(&by_address), 100, 5 * SECOND)
        .await
        .unwrap_err();
    assert!(matches!(error, OutboundError::Connect(_)), "{error}");
}
