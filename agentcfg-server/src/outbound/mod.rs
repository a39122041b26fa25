//! Requests to other services: one pool of connections, TLS, limits, and no surprises.
//!
//! Redirects are not followed, no proxy is taken from the environment, and nothing is kept of an answer. Who calls
//! decides where a request goes; nothing in here changes that.

// The tests of the identity providers use more of it.
#[cfg(test)]
#[cfg_attr(not(feature = "process"), allow(dead_code))]
pub(crate) mod stub;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use agentcfg_core::tls;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::{Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use tokio::net::TcpStream;
use tower_service::Service;

type BoxError = Box<dyn Error + Send + Sync>;

/// Shorter than most servers keep an idle connection, so that a request is rarely sent into one that is just being
/// closed.
const POOL_IDLE: Duration = Duration::from_secs(20);
const KEEPALIVE: Duration = Duration::from_secs(60);

/// How connections are made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Time for names, TCP and TLS together.
    pub connect_timeout: Duration,
    /// Idle connections that are kept for each host.
    pub idle_connections: usize,
    /// Certificate authorities that are trusted besides the public ones.
    pub extra_roots: Vec<CertificateDer<'static>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            idle_connections: 64,
            extra_roots: Vec::new(),
        }
    }
}

/// A pool of connections over HTTP/1.1, with TLS where the URL says `https`. Clones share the connections.
#[derive(Clone)]
pub struct Outbound {
    client: Client<Connector, Full<Bytes>>,
}

/// Why there is no answer. The text is for the log: it names neither the URL nor anything that was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutboundError {
    /// No connection came about, so nothing was sent.
    #[error("cannot connect: {}", causes(.0))]
    Connect(BoxError),
    /// The connection broke before the answer was there.
    #[error("the connection broke: {}", causes(.0))]
    Broken(BoxError),
    /// The answer is longer than the caller takes.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// Time is up.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
}

impl Outbound {
    /// A pool without connections.
    ///
    /// # Errors
    ///
    /// When TLS cannot be set up, for instance because an extra root is no certificate.
    pub fn new(options: &Options) -> io::Result<Self> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls_config(&options.extra_roots).map_err(io::Error::other)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let connector = Connector {
            inner: https,
            timeout: options.connect_timeout,
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(options.idle_connections)
            .build(connector);
        Ok(Self { client })
    }

    /// Sends a request once and gives the response as soon as its head is there; the body streams.
    ///
    /// Dropping the future or the response ends the exchange and closes its connection. There is no time limit but that
    /// for connecting.
    ///
    /// # Errors
    ///
    /// [`OutboundError::Connect`] and [`OutboundError::Broken`].
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, OutboundError> {
        self.client.request(request).await.map_err(|error| {
            if error.is_connect() {
                OutboundError::Connect(error.into())
            } else {
                OutboundError::Broken(error.into())
            }
        })
    }

    /// Asks something that may be asked twice, and reads the answer whole: at most so many bytes within so much time.
    ///
    /// When the connection breaks before an answer, which is how one ends that the other side no longer kept, the
    /// question is asked once more.
    ///
    /// # Errors
    ///
    /// See [`OutboundError`].
    pub async fn ask(
        &self,
        request: Request<Full<Bytes>>,
        max_bytes: usize,
        within: Duration,
    ) -> Result<Response<Bytes>, OutboundError> {
        let asking = async {
            let response = match self.send(request.clone()).await {
                Err(OutboundError::Broken(_)) => self.send(request).await?,
                other => other?,
            };
            let (head, body) = response.into_parts();
            match Limited::new(body, max_bytes).collect().await {
                Ok(body) => Ok(Response::from_parts(head, body.to_bytes())),
                Err(error) if error.is::<LengthLimitError>() => Err(OutboundError::TooLong(max_bytes)),
                Err(error) => Err(OutboundError::Broken(error)),
            }
        };
        tokio::time::timeout(within, asking)
            .await
            .unwrap_or(Err(OutboundError::TimedOut(within)))
    }
}

fn tls_config(extra_roots: &[CertificateDer<'static>]) -> Result<ClientConfig, rustls::Error> {
    let mut roots = tls::public_roots();
    for root in extra_roots {
        roots.add(root.clone())?;
    }
    tls::client_config(roots)
}

/// An error with all that lies beneath it.
fn causes(error: &BoxError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Connects within a time limit that covers names, TCP and the TLS handshake.
#[derive(Clone)]
struct Connector {
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
            tokio::time::timeout(timeout, connecting)
                .await
                .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long").into()))
        })
    }
}
