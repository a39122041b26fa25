//! A tunnel through a proxy: `CONNECT` of HTTP/1.1.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::header::{HOST, PROXY_AUTHORIZATION};
use hyper::{Method, Request, Uri, upgrade};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::error::BoxError;
use crate::proxy::{Proxy, Refused};

/// The port of `https`.
const HTTPS: u16 = 443;

/// Connects to a server through a proxy.
#[derive(Clone)]
pub(crate) struct Tunnel {
    proxy: Proxy,
    tcp: HttpConnector,
}

impl Tunnel {
    pub(crate) fn new(proxy: Proxy, tcp: HttpConnector) -> Self {
        Self { proxy, tcp }
    }

    /// Makes a tunnel of a connection to the proxy.
    async fn open(self, to_proxy: TokioIo<TcpStream>, server: &Uri) -> Result<TokioIo<TcpStream>, BoxError> {
        let host = server.host().unwrap_or_default();
        let authority = format!("{host}:{}", server.port_u16().unwrap_or(HTTPS));
        let mut request = Request::builder()
            .method(Method::CONNECT)
            .uri(&authority)
            .header(HOST, &authority)
            .body(Empty::<&[u8]>::new())?;
        if let Some(auth) = self.proxy.auth() {
            request.headers_mut().insert(PROXY_AUTHORIZATION, auth.clone());
        }
        let (mut sender, connection) = http1::handshake(to_proxy).await?;
        tokio::spawn(connection.with_upgrades());
        let answer = sender.send_request(request).await?;
        if !answer.status().is_success() {
            return Err(Refused(answer.status()).into());
        }
        let tunnel = upgrade::on(answer).await?.downcast::<TokioIo<TcpStream>>();
        let tunnel = tunnel.map_err(|_| io::Error::other("the connection to the proxy has an unknown type"))?;
        match tunnel.read_buf.is_empty() {
            true => Ok(tunnel.io),
            // In TLS the client speaks first.
            false => Err(io::Error::other("the proxy sent more than its answer").into()),
        }
    }
}

impl Service<Uri> for Tunnel {
    type Response = TokioIo<TcpStream>;
    type Error = TunnelError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, TunnelError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TunnelError>> {
        self.tcp.poll_ready(cx).map_err(|error| TunnelError(error.into()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let mut tunnel = self.clone();
        Box::pin(async move {
            let to_proxy = tunnel.tcp.call(tunnel.proxy.uri().clone()).await;
            let to_proxy = to_proxy.map_err(|error| TunnelError(error.into()))?;
            tunnel.open(to_proxy, &server).await.map_err(TunnelError)
        })
    }
}

/// Why there is no tunnel. What fails within it, such as TLS, is another error.
#[derive(Debug)]
pub(crate) struct TunnelError(BoxError);

impl fmt::Display for TunnelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for TunnelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

impl TunnelError {
    pub(crate) fn into_cause(self) -> BoxError {
        self.0
    }
}
