//! A scripted server: each request gets the next reply of the script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What the server does after it has read a request.
pub(super) enum Reply {
    /// Sends these bytes and keeps the connection open.
    Answer(String),
    /// Sends these bytes and closes the connection.
    Last(String),
    /// Sends the first bytes, and then the second ones again and again, each time after it has advanced the clock by
    /// this duration.
    Drip(String, String, Duration),
    /// Sends nothing, keeps the connection open and advances the clock by this duration.
    Stall(Duration),
}

/// Closes the connection without sending anything.
pub(super) fn hang_up() -> Reply {
    Reply::Last(String::new())
}

/// A response with a JSON body and additional header lines, each ended by `\r\n`.
pub(super) fn answer(status: u16, headers: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Answer(format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    ))
}

/// Advances the clock of the test.
pub(super) async fn advance_clock(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[derive(Default)]
struct Seen {
    script: VecDeque<Reply>,
    requests: Vec<String>,
    connections: usize,
}

pub(super) struct Server {
    address: std::net::SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Server {
    pub(super) async fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        Self::start_with(script, None).await
    }

    /// Starts a server that speaks TLS if an acceptor is given.
    pub(super) async fn start_with(script: impl IntoIterator<Item = Reply>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen {
            script: script.into_iter().collect(),
            ..Seen::default()
        }));
        let shared = Arc::clone(&seen);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                shared.lock().unwrap().connections += 1;
                match &tls {
                    None => drop(tokio::spawn(serve(stream, Arc::clone(&shared)))),
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            tokio::spawn(serve(stream, Arc::clone(&shared)));
                        }
                    }
                }
            }
        });
        Self { address, seen }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn address(&self) -> std::net::SocketAddr {
        self.address
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, seen: Arc<Mutex<Seen>>) {
    while let Some(request) = read_request(&mut stream).await {
        let reply = {
            let mut seen = seen.lock().unwrap();
            seen.requests.push(request);
            seen.script.pop_front().expect("the script has an answer left")
        };
        match reply {
            Reply::Answer(text) => {
                // The client may have closed the connection already.
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
            Reply::Last(text) => {
                _ = stream.write_all(text.as_bytes()).await;
                return;
            }
            Reply::Drip(first, next, time) => {
                let mut text = first;
                while stream.write_all(text.as_bytes()).await.is_ok() {
                    text.clone_from(&next);
                    tokio::task::yield_now().await;
                    advance_clock(time).await;
                }
                return;
            }
            Reply::Stall(time) => {
                advance_clock(time).await;
                std::future::pending().await
            }
        }
    }
}

/// Reads one request with its body; `None` at the end of the connection.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let so_far = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = so_far.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return Some(so_far);
            }
        }
        if stream.read_buf(&mut text).await.ok()? == 0 {
            return None;
        }
    }
}
