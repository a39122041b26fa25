//! TLS: the handshake, and the choice between HTTP/1.1 and HTTP/2 (ALPN).

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use agentcfg_core::tls;
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use prometheus_client::metrics::counter::Counter;
use rustls::ServerConfig;
use rustls::server::ResolvesServerCert;
use tokio::io::AsyncBufRead;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower_service::Service;

use super::connection::service_fn;
use super::demand::{Demand, closing};
use super::http2::StreamBody;
use super::limits::Limits;
use super::socket::Peer;
use super::write_timeout_stream::WriteTimeoutStream;
use super::{answers, connection, http2};
use crate::http::{Disconnect, PeerAddress};

/// HTTP/2 in ALPN (RFC 9113, section 3.2).
const H2: &[u8] = b"h2";

/// The side of TLS that a server is on. Versions 1.2 and 1.3 are spoken; sessions are resumed as far as rustls does it
/// by default.
///
/// ```no_run
/// use agentcfg_server::listen::Tls;
/// # fn example(certificate: std::sync::Arc<dyn rustls::server::ResolvesServerCert>) -> Result<(), rustls::Error> {
/// let tls = Tls::new(certificate)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    failed: Counter,
}

impl Tls {
    /// TLS with the certificates of `resolver`, which is asked at each handshake.
    ///
    /// # Errors
    ///
    /// When there is no crypto provider, or it supports no version of TLS.
    ///
    /// ```no_run
    /// # fn example(certificate: std::sync::Arc<dyn rustls::server::ResolvesServerCert>) -> Result<(), rustls::Error> {
    /// let tls = agentcfg_server::listen::Tls::new(certificate)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(resolver: Arc<dyn ResolvesServerCert>) -> Result<Self, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(tls::provider()?)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            failed: Counter::default(),
        })
    }

    /// Counts the handshakes that fail.
    ///
    /// ```no_run
    /// # fn example(tls: agentcfg_server::listen::Tls) {
    /// let failed = prometheus_client::metrics::counter::Counter::default();
    /// let tls = tls.counting_failures(failed.clone());
    /// # }
    /// ```
    #[must_use]
    pub fn counting_failures(self, failed: Counter) -> Self {
        Self { failed, ..self }
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// What a new connection begins with.
enum Start {
    Encrypted(Box<TlsStream<WriteTimeoutStream<TcpStream>>>),
    /// An HTTP request without TLS.
    Plain(TcpStream),
}

/// Serves `stream`, whose client has this address, until either side closes it, as `demand` says.
pub(super) async fn run<S1, B1, S2, B2>(
    stream: TcpStream,
    client: Option<IpAddr>,
    tls: Tls,
    (http1, http2): (impl FnOnce(Disconnect) -> S1, S2),
    limits: Limits,
    demand: watch::Receiver<Demand>,
) where
    S1: Service<Request<Incoming>, Response = Response<B1>, Error = Infallible> + Clone + Send + Sync + 'static,
    S1::Future: Send,
    B1: Body<Data = Bytes> + Send + Unpin + 'static,
    B1::Error: Into<Box<dyn Error + Send + Sync>>,
    S2: Service<Request<StreamBody>, Response = Response<B2>, Error = Infallible> + Clone + Send + Sync + 'static,
    S2::Future: Send + 'static,
    B2: Body<Data = Bytes> + Send + Unpin + 'static,
    B2::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let begun = tokio::select! {
        biased;
        begun = timeout(limits.header_timeout, begin(stream, &tls.acceptor, &limits)) => begun,
        // No request has arrived yet.
        () = closing(demand.clone()) => return,
    };
    match begun.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(Start::Encrypted(stream)) if stream.get_ref().1.alpn_protocol() == Some(H2) => {
            let http2 = WithAddress {
                address: client,
                service: http2,
            };
            Box::pin(http2::run(*stream, http2, limits, demand)).await;
        }
        Ok(Start::Encrypted(stream)) => Box::pin(connection::run(*stream, client, http1, limits, demand)).await,
        Ok(Start::Plain(stream)) => {
            let refuse = service_fn(async |request: Request<Incoming>| {
                Ok::<_, Infallible>(answers::without_tls(request.headers()))
            });
            Box::pin(connection::run(stream, client, |_| refuse, limits, demand)).await;
        }
        Err(error) => {
            tls.failed.inc();
            tracing::debug!(%error, "a TLS handshake failed");
        }
    }
}

async fn begin(stream: TcpStream, acceptor: &TlsAcceptor, limits: &Limits) -> io::Result<Start> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // A record of TLS begins with the number of its type, 22; a request begins with a letter.
    if first[0].is_ascii_alphabetic() {
        return Ok(Start::Plain(stream));
    }
    let stream = WriteTimeoutStream::new(stream, limits.write_timeout);
    Ok(Start::Encrypted(Box::new(acceptor.accept(stream).await?)))
}

impl Peer for TlsStream<WriteTimeoutStream<TcpStream>> {
    fn poll_disconnect(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match Pin::new(self).poll_fill_buf(cx) {
            Poll::Ready(Ok([]) | Err(_)) => Poll::Ready(()),
            Poll::Ready(Ok(_)) | Poll::Pending => Poll::Pending,
        }
    }

    fn reset_on_close(&self) {
        self.get_ref().0.get_ref().reset_on_close();
    }
}

/// Puts the address of the client into each request of a connection. HTTP/1.1 has it in the state of the connection.
#[derive(Clone)]
struct WithAddress<S> {
    address: Option<IpAddr>,
    service: S,
}

impl<S: Service<Request<StreamBody>>> Service<Request<StreamBody>> for WithAddress<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<StreamBody>) -> S::Future {
        if let Some(address) = self.address {
            request.extensions_mut().insert(PeerAddress(address));
        }
        self.service.call(request)
    }
}
