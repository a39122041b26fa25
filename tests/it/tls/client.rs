//! Clients over TLS: HTTP/2 as a browser speaks it, and its frames one by one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use hyper::{HeaderMap, Request, Response, StatusCode};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::AUTHORITY;

/// Longer than anything takes that works.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// A connection whose client offers these protocols.
pub async fn tls(address: SocketAddr, protocols: &[&str]) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(AUTHORITY.as_bytes()).unwrap())
        .unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let tcp = TcpStream::connect(address).await?;
    tcp.set_nodelay(true)?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, tcp).await
}

/// One HTTP/2 connection.
pub struct Http2 {
    send: SendRequest<Bytes>,
    authority: String,
    connection: tokio::task::JoinHandle<Result<(), h2::Error>>,
}

impl Http2 {
    pub async fn connect(address: SocketAddr) -> Self {
        Self::with(address, h2::client::Builder::new()).await
    }

    /// A connection with other settings of the client.
    pub async fn with(address: SocketAddr, builder: h2::client::Builder) -> Self {
        let stream = tls(address, &["h2", "http/1.1"]).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (send, connection) = builder.handshake(stream).await.unwrap();
        Self {
            send,
            authority: format!("localhost:{}", address.port()),
            connection: tokio::spawn(connection),
        }
    }

    /// Begins a request whose body follows.
    pub async fn begin(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        ends: bool,
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", self.authority));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let mut send = self.send.clone().ready().await.unwrap();
        send.send_request(request.body(()).unwrap(), ends).unwrap()
    }

    /// Sends a request, with JSON if there is any, and reads the whole answer.
    pub async fn ask(&self, method: &str, path: &str, fields: &[(&str, &str)], body: Option<&Value>) -> Answer {
        let mut fields = fields.to_vec();
        if body.is_some() {
            fields.push(("content-type", "application/json"));
        }
        let (response, mut stream) = self.begin(method, path, &fields, body.is_none()).await;
        if let Some(body) = body {
            stream.send_data(body.to_string().into(), true).unwrap();
        }
        Answer::of(timeout(TIMEOUT, response).await.expect("an answer").unwrap()).await
    }

    pub async fn get(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.ask("GET", path, fields, None).await
    }

    /// Waits for the end of the connection.
    pub async fn ended(self) -> Result<(), h2::Error> {
        drop(self.send);
        timeout(TIMEOUT, self.connection).await.expect("it ends").unwrap()
    }
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub async fn of(response: Response<RecvStream>) -> Self {
        let (head, mut stream) = response.into_parts();
        let mut body = Vec::new();
        while let Some(piece) = piece(&mut stream).await {
            body.extend_from_slice(&piece);
        }
        Self {
            status: head.status,
            headers: head.headers,
            body,
        }
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?} {}", String::from_utf8_lossy(&self.body));
        self
    }

    /// Asserts an error whose message contains this.
    #[track_caller]
    pub fn refused(self, status: u16, said: &str) -> Self {
        let answer = self.expect(status);
        let json = answer.json();
        assert!(json["error"].as_str().unwrap().contains(said), "{json}");
        assert!(answer.headers.contains_key("x-request-id"), "{answer:?}");
        answer
    }
}

/// The next piece of a body; `None` at its end.
pub async fn piece(stream: &mut RecvStream) -> Option<Bytes> {
    let next = timeout(TIMEOUT, stream.data()).await.expect("the body goes on");
    let piece = next?.unwrap();
    stream.flow_control().release_capacity(piece.len()).unwrap();
    Some(piece)
}

/// A connection of frames that the test makes itself.
pub struct Frames {
    stream: TlsStream<TcpStream>,
    authority: String,
    unread: Vec<u8>,
}

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

impl Frames {
    /// A connection after the preface with these settings.
    pub async fn connect(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let mut frames = Self {
            stream: tls(address, &["h2"]).await.unwrap(),
            authority: format!("localhost:{}", address.port()),
            unread: Vec::new(),
        };
        let mut payload = Vec::new();
        for (id, value) in settings {
            payload.extend_from_slice(&id.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        let mut preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        preface.extend(frame(SETTINGS, 0, 0, &payload));
        frames.send(&preface).await.unwrap();
        frames
    }

    pub async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// The header fields of a GET, in HPACK without compression.
    pub fn get(&self, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
        self.request("GET", path, fields)
    }

    /// The header fields of a request, in HPACK without compression.
    pub fn request(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
        // The static table has :scheme https, and the names of :method, :path and :authority.
        let mut block = vec![0x02];
        string(&mut block, method);
        block.extend([0x87, 0x04]);
        string(&mut block, path);
        block.push(0x01);
        string(&mut block, &self.authority);
        for (name, value) in fields {
            block.push(0);
            string(&mut block, name);
            string(&mut block, value);
        }
        block
    }

    /// The next frame: kind, flags, stream and payload; `None` when the connection has ended.
    pub async fn next(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        loop {
            if let Some(head) = self.unread.get(..9) {
                let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
                let (kind, flags) = (head[3], head[4]);
                let stream = u32::from_be_bytes(head[5..9].try_into().unwrap());
                if self.unread.len() >= 9 + length {
                    let frame: Vec<u8> = self.unread.drain(..9 + length).collect();
                    return Some((kind, flags, stream, frame[9..].to_vec()));
                }
            }
            let mut chunk = [0; 16 << 10];
            match timeout(TIMEOUT, self.stream.read(&mut chunk))
                .await
                .expect("a frame or the end")
            {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.unread.extend_from_slice(&chunk[..count]),
            }
        }
    }

    /// The next frame of this kind; `None` when the connection has ended.
    pub async fn next_of(&mut self, wanted: u8) -> Option<(u8, u32, Vec<u8>)> {
        loop {
            let (kind, flags, stream, payload) = self.next().await?;
            if kind == wanted {
                return Some((flags, stream, payload));
            }
        }
    }
}

/// One frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

fn string(block: &mut Vec<u8>, text: &str) {
    let length = text.len();
    if length < 127 {
        block.push(u8::try_from(length).unwrap());
    } else {
        block.push(127);
        let mut rest = length - 127;
        while rest >= 128 {
            block.push(u8::try_from(rest % 128 + 128).unwrap());
            rest /= 128;
        }
        block.push(u8::try_from(rest).unwrap());
    }
    block.extend_from_slice(text.as_bytes());
}
