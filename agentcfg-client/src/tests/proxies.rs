//! Calls through a proxy.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::encrypted;
use super::server::{Server, answer};
use crate::{Client, RetryPolicy};

/// `canary:secret` as basic authorization.
const CREDENTIAL: &str = "Basic Y2FuYXJ5OnNlY3JldA==";

/// A proxy that answers the requests for a tunnel, and makes it if the answer is 200.
struct Proxy {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn start(status: u16, server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(stream.read_u8().await.unwrap());
                }
                seen.lock().unwrap().push(String::from_utf8(request).unwrap());
                let head = format!("HTTP/1.1 {status} x\r\n\r\n");
                stream.write_all(head.as_bytes()).await.unwrap();
                if status == 200 {
                    let mut onward = TcpStream::connect(server).await.unwrap();
                    tokio::spawn(async move { copy_bidirectional(&mut stream, &mut onward).await });
                }
            }
        });
        Self { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn an_encrypted_call_goes_through_a_tunnel_that_has_the_credential_of_the_proxy() {
    let server = encrypted::server().await;
    let proxy = Proxy::start(200, server.address()).await;
    let client = encrypted::builder(&server)
        .root_certificates(encrypted::AUTHORITY)
        .api_key("svc_test_canary")
        .proxy(format!("http://canary:secret@{}", proxy.address))
        .build()
        .unwrap();
    for _ in 0..2 {
        assert_eq!(client.list_workspaces().await.unwrap(), []);
    }
    let address = server.address();
    let expected =
        format!("CONNECT {address} HTTP/1.1\r\nhost: {address}\r\nproxy-authorization: {CREDENTIAL}\r\n\r\n");
    assert_eq!(proxy.requests(), [expected], "one tunnel for both calls");
    for request in server.requests() {
        assert!(request.starts_with("GET /api/workspaces HTTP/1.1\r\n"), "{request}");
        assert!(!request.to_lowercase().contains("proxy-"), "{request}");
    }
}

#[tokio::test]
async fn a_plain_call_is_forwarded_by_the_url_in_it() {
    let forwarder = Server::start([answer(200, "", "[]"), answer(200, "", "[]")]).await;
    let (_, address) = forwarder
        .url()
        .split_once("://")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let client = Client::builder("http://agents.invalid/agentcfg")
        .proxy(format!("http://canary:secret@{address}"))
        .build()
        .unwrap();
    for _ in 0..2 {
        assert_eq!(client.list_workspaces().await.unwrap(), []);
    }
    for request in forwarder.requests() {
        let line = "GET http://agents.invalid/agentcfg/api/workspaces HTTP/1.1\r\n";
        assert!(request.starts_with(line), "{request}");
        assert!(request.contains("host: agents.invalid\r\n"), "{request}");
        let credential = format!("proxy-authorization: {CREDENTIAL}\r\n");
        assert!(request.contains(&credential), "{request}");
    }
    assert_eq!((forwarder.connections(), forwarder.requests().len()), (1, 2));
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_credential() {
    let server = encrypted::server().await;
    for (status, message, attempts) in [
        (407, "needs a user and a password", 1),
        (403, "makes no connection to the server, and answers 403 Forbidden", 1),
        (502, "makes no connection to the server, and answers 502 Bad Gateway", 2),
    ] {
        let proxy = Proxy::start(status, server.address()).await;
        let client = encrypted::builder(&server)
            .retry(
                RetryPolicy::default()
                    .max_retries(1)
                    .min_delay(std::time::Duration::from_millis(1)),
            )
            .proxy(format!("http://canary:secret@{}", proxy.address))
            .build()
            .unwrap();
        let error = client.list_workspaces().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the proxy http://{} {message}", proxy.address)
        );
        assert!(
            error.is_connect() && error.is_proxy() && !error.may_have_been_applied(),
            "{error:?}"
        );
        assert!(!format!("{error:?}").contains("canary"), "{error:?}");
        assert_eq!(proxy.requests().len(), attempts);
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_proxy_that_cannot_be_reached_is_named() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for server in ["http://agents.invalid", "https://agents.invalid"] {
        let client = Client::builder(server)
            .root_certificates(encrypted::AUTHORITY)
            .proxy(format!("{closed}"))
            .retry(RetryPolicy::NEVER)
            .build()
            .unwrap();
        let error = client.list_workspaces().await.unwrap_err();
        let message = format!("no connection could be made through the proxy http://{closed}");
        assert_eq!(error.to_string(), message);
        assert!(error.is_proxy(), "{error:?}");
    }
}

#[tokio::test]
async fn a_certificate_is_refused_within_a_tunnel_too() {
    let server = encrypted::server().await;
    let proxy = Proxy::start(200, server.address()).await;
    let client = encrypted::builder(&server)
        .proxy(format!("http://{}", proxy.address))
        .build()
        .unwrap();
    let error = client.list_workspaces().await.unwrap_err();
    assert!(
        error.to_string().contains("an authority that is not trusted here"),
        "{error}"
    );
    assert!(!error.is_proxy(), "{error:?}");
}

#[test]
fn a_proxy_that_is_none_is_refused() {
    for proxy in ["", "socks5://host:1080", "https://host:1", "http://"] {
        let error = Client::builder("https://host").proxy(proxy).build().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the proxy must be http://host:port, with or without user:password@",
            "{proxy}"
        );
    }
}
