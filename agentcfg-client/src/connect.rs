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
use rustls::{ClientConfig, RootCertStore};
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

/// What secures connections.
#[derive(Clone, Default)]
pub(crate) struct Trust {
    /// PEM text, trusted in addition to the public roots.
    pub(crate) roots: Vec<u8>,
    /// In place of the public roots and the crate's crypto provider.
    pub(crate) config: Option<ClientConfig>,
}

/// Builds the pool without connecting. Connections to an `http` URL need no TLS.
pub(crate) fn http(connect_timeout: Duration, trust: Trust, encrypted: bool) -> Result<Http, Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_connect_timeout(Some(connect_timeout));
    let inner = match encrypted {
        true => Inner::Encrypted(
            HttpsConnectorBuilder::new()
                .with_tls_config(trust.config()?)
                .https_only()
                .enable_http1()
                .wrap_connector(tcp),
        ),
        false => {
            trust.roots()?;
            Inner::Plain(tcp)
        }
    };
    let connector = Connector {
        inner,
        timeout: connect_timeout,
    };
    Ok(hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_SIZE)
        .build(connector))
}

impl Trust {
    fn config(&self) -> Result<ClientConfig, Error> {
        let roots = self.roots()?;
        let mut config = match &self.config {
            Some(config) => config.clone(),
            None => {
                tls::client_config(roots).map_err(|error| Error::input(format!("TLS cannot be set up: {error}")))?
            }
        };
        // The connector chooses the protocol.
        config.alpn_protocols.clear();
        Ok(config)
    }

    fn roots(&self) -> Result<RootCertStore, Error> {
        let mut roots = tls::public_roots();
        if !self.roots.is_empty() {
            if self.config.is_some() {
                let fault = "root_certificates and tls_config exclude each other: the configuration has its own roots";
                return Err(Error::input(fault));
            }
            tls::add_pem(&mut roots, &self.roots).map_err(|error| Error::input(error.to_string()))?;
        }
        Ok(roots)
    }
}

/// Connects within one timeout that covers name resolution, TCP and the TLS handshake.
#[derive(Clone)]
pub(crate) struct Connector {
    inner: Inner,
    timeout: Duration,
}

#[derive(Clone)]
enum Inner {
    Plain(HttpConnector),
    Encrypted(HttpsConnector<HttpConnector>),
}

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match &mut self.inner {
            Inner::Plain(tcp) => tcp.poll_ready(cx).map_err(Into::into),
            Inner::Encrypted(tls) => tls.poll_ready(cx),
        }
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let mut inner = self.inner.clone();
        let timeout = self.timeout;
        let connecting = async move {
            match &mut inner {
                Inner::Plain(tcp) => Ok(MaybeHttpsStream::Http(tcp.call(target).await?)),
                Inner::Encrypted(tls) => tls.call(target).await,
            }
        };
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "connecting took too long").into()),
            }
        })
    }
}
