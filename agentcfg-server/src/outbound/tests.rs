use std::sync::atomic::Ordering;

use hyper::StatusCode;
use hyper::header::LOCATION;
use rustls::pki_types::pem::PemObject;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

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
