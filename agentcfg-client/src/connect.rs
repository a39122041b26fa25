//! The connector: name resolution, TCP, the proxy and TLS within one timeout.

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
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use tower_service::Service;

use crate::Error;
use crate::error::BoxError;
use crate::proxy::{Proxy, ProxyFailure};
use crate::stream::Stream;
use crate::tunnel::{Tunnel, TunnelError};

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
pub(crate) fn http(
    connect_timeout: Duration,
    trust: Trust,
    encrypted: bool,
    proxy: Option<Proxy>,
) -> Result<Http, Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_connect_timeout(Some(connect_timeout));
    let inner = match (encrypted, &proxy) {
        (true, None) => Inner::Encrypted(over_tls(trust.config()?, tcp)),
        (true, Some(proxy)) => Inner::Tunneled(over_tls(trust.config()?, Tunnel::new(proxy.clone(), tcp))),
        (false, _) => {
            trust.roots()?;
            Inner::Plain(tcp)
        }
    };
    let connector = Connector {
        inner,
        proxy,
        timeout: connect_timeout,
    };
    Ok(hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_SIZE)
        .build(connector))
}

fn over_tls<T>(config: ClientConfig, transport: T) -> HttpsConnector<T> {
    HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .enable_http1()
        .wrap_connector(transport)
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

/// Connects within one timeout that covers name resolution, TCP, the proxy and the TLS handshake.
#[derive(Clone)]
pub(crate) struct Connector {
    inner: Inner,
    proxy: Option<Proxy>,
    timeout: Duration,
}

#[derive(Clone)]
enum Inner {
    /// To the server, or to the proxy that forwards each request.
    Plain(HttpConnector),
    Encrypted(HttpsConnector<HttpConnector>),
    /// Encrypted from end to end, so that the proxy sees the name of the server alone.
    Tunneled(HttpsConnector<Tunnel>),
}

impl Inner {
    async fn connect(&mut self, server: Uri, proxy: Option<&Proxy>) -> Result<Stream, BoxError> {
        match (self, proxy) {
            (Self::Plain(tcp), None) => Ok(Stream::new(MaybeHttpsStream::Http(tcp.call(server).await?))),
            (Self::Plain(tcp), Some(proxy)) => {
                let to_proxy = tcp.call(proxy.uri().clone()).await?;
                Ok(Stream::to_forwarder(MaybeHttpsStream::Http(to_proxy)))
            }
            (Self::Encrypted(tls), _) => Ok(Stream::new(tls.call(server).await?)),
            (Self::Tunneled(tls), _) => Ok(Stream::new(tls.call(server).await?)),
        }
    }

    fn is_encrypted(&self) -> bool {
        !matches!(self, Self::Plain(_))
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match &mut self.inner {
            Inner::Plain(tcp) => tcp.poll_ready(cx).map_err(Into::into),
            Inner::Encrypted(tls) => tls.poll_ready(cx),
            Inner::Tunneled(tls) => tls.poll_ready(cx),
        }
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let Self {
            mut inner,
            proxy,
            timeout,
        } = self.clone();
        Box::pin(async move {
            let connecting = inner.connect(server, proxy.as_ref());
            let error = match tokio::time::timeout(timeout, connecting).await {
                Ok(Ok(connected)) => return Ok(connected),
                Ok(Err(error)) => error,
                Err(_) => io::Error::new(io::ErrorKind::TimedOut, "connecting took too long").into(),
            };
            let Some(proxy) = proxy else { return Err(error) };
            match error.downcast() {
                Ok(tunnel) => Err(ProxyFailure::new(&proxy, TunnelError::into_cause(*tunnel)).into()),
                // TLS is between this client and the server.
                Err(error) if inner.is_encrypted() && !is_timeout(&error) => Err(error),
                Err(error) => Err(ProxyFailure::new(&proxy, error).into()),
            }
        })
    }
}

fn is_timeout(error: &BoxError) -> bool {
    error
        .downcast_ref()
        .is_some_and(|error: &io::Error| error.kind() == io::ErrorKind::TimedOut)
}
