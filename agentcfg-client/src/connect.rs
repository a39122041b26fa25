//! The connector: name resolution, TCP and TLS within one timeout.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use agentcfg_core::tls;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::Error;
use crate::error::BoxError;

/// The pooled HTTP client beneath a [`Client`](crate::Client).
pub(crate) type Http = hyper_util::client::legacy::Client<Connector, Full<Bytes>>;

/// Shorter than the idle timeouts of servers and load balancers, so that a request rarely meets the
/// close of its pooled connection.
const POOL_IDLE: Duration = Duration::from_secs(20);
const POOL_SIZE: usize = 64;
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Builds the pool without connecting. `roots` is PEM text, trusted in addition to the public roots.
pub(crate) fn http(connect_timeout: Duration, roots: &[u8]) -> Result<Http, Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_connect_timeout(Some(connect_timeout));
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls_config(roots)?)
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp);
    let connector = Connector {
        inner: https,
        timeout: connect_timeout,
    };
    Ok(hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_SIZE)
        .build(connector))
}

fn tls_config(roots: &[u8]) -> Result<ClientConfig, Error> {
    let mut trusted = tls::public_roots();
    if !roots.is_empty() {
        tls::add_pem(&mut trusted, roots).map_err(|error| Error::input(error.to_string()))?;
    }
    tls::client_config(trusted).map_err(|error| Error::input(format!("TLS cannot be set up: {error}")))
}

/// Connects within one timeout that covers name resolution, TCP and the TLS handshake.
#[derive(Clone)]
pub(crate) struct Connector {
    inner: HttpsConnector<HttpConnector>,
    timeout: Duration,
}

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let connecting = self.inner.call(target);
        let timeout = self.timeout;
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "connecting took too long").into()),
            }
        })
    }
}
