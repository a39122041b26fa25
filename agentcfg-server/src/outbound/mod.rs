//! The HTTP client for other services: one connection pool, TLS, and limits.
//!
//! A request goes exactly where its caller sends it: redirects are not followed, and proxies of the environment are
//! ignored. A deployment can name a proxy that all of them go through. Responses are not cached.

mod body;
mod egress;
mod exchange;
mod pool;
mod public_only;
// The tests of the identity providers use more of it.
#[cfg(test)]
#[cfg_attr(not(feature = "process"), allow(dead_code))]
pub(crate) mod stub;
#[cfg(test)]
mod tests;
mod webhooks;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::tls;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::header::{HOST, PROXY_AUTHORIZATION};
use hyper::{Request, Response, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use tower_service::Service;

pub use self::body::OutboundBody;
use self::egress::{BoxError, Connector};
pub use self::egress::{Egress, InvalidProxy};
use self::exchange::{Connection, Unanswered};
use self::pool::{Origin, Pool, PooledConnection};
pub use self::webhooks::WebhookTransport;

const KEEPALIVE: Duration = Duration::from_secs(60);

agentcfg_core::__settable! {
    /// The settings of the connection pool.
    ///
    /// ```
    /// use agentcfg_server::OutboundOptions;
    /// let options = OutboundOptions::default().idle_connections(8);
    /// ```
    #[derive(Debug, Clone)]
    Options {
        /// The time limit for name resolution, TCP and TLS together.
        connect_timeout: Duration,
        /// The maximum number of idle connections for each host.
        idle_connections: usize,
        /// Certificate authorities that are trusted in addition to the public ones.
        extra_roots: Vec<CertificateDer<'static>>,
        /// The proxy that requests go out through, if there is one.
        egress: Egress,
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            idle_connections: 64,
            extra_roots: Vec::new(),
            egress: Egress::default(),
        }
    }
}

/// A pool of HTTP/1.1 connections, with TLS for `https` URLs. Clones share the pool.
///
/// ```
/// use agentcfg_server::{Outbound, OutboundOptions};
/// let pool = Outbound::new(&OutboundOptions::default())?;
/// let same_pool = pool.clone();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Outbound {
    connector: HttpsConnector<Connector>,
    egress: Egress,
    connect_timeout: Duration,
    pool: Arc<Pool>,
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound")
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

/// Why there is no response. The text is for the log: it contains neither the URL nor anything that was sent.
///
/// ```
/// use agentcfg_server::OutboundError;
/// assert_eq!(OutboundError::TooLong(1024).to_string(), "the answer is longer than 1024 bytes");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutboundError {
    /// The connection could not be established, so nothing was sent.
    #[error("cannot connect: {}", with_causes(.0))]
    Connect(BoxError),
    /// The connection broke before the response was complete.
    #[error("the connection broke: {}", with_causes(.0))]
    Broken(BoxError),
    /// The response is longer than the caller's limit.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// The response did not arrive within the caller's time limit.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
}

impl Outbound {
    /// A pool without connections.
    ///
    /// # Errors
    ///
    /// If TLS cannot be configured, for example because an extra root is not a certificate.
    ///
    /// ```
    /// use agentcfg_server::{Outbound, OutboundOptions};
    /// let pool = Outbound::new(&OutboundOptions::default())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(options: &Options) -> io::Result<Self> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls_config(&options.extra_roots).map_err(io::Error::other)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(Connector {
                tcp,
                egress: options.egress.clone(),
            });
        Ok(Self {
            connector,
            egress: options.egress.clone(),
            connect_timeout: options.connect_timeout,
            pool: Pool::new(options.idle_connections),
        })
    }

    /// Sends a request once and returns the response when its head has arrived; the body is a stream.
    ///
    /// Dropping the future or the response cancels the request and closes its connection. Only connecting has a time
    /// limit.
    ///
    /// # Errors
    ///
    /// [`OutboundError::Connect`] and [`OutboundError::Broken`].
    ///
    /// ```no_run
    /// # async fn example(pool: agentcfg_server::Outbound) -> Result<(), Box<dyn std::error::Error>> {
    /// let request = hyper::Request::get("https://api.example.com/v1/models").body(Default::default())?;
    /// println!("{}", pool.send(request).await?.status());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<OutboundBody>, OutboundError> {
        self.send_noted(request, &mut false).await
    }

    /// As [`Self::send`]. `may_have_arrived` is true from the moment in which a byte of the request may have been sent,
    /// also where the future is dropped or the exchange fails.
    pub(crate) async fn send_noted(
        &self,
        request: Request<Full<Bytes>>,
        may_have_arrived: &mut bool,
    ) -> Result<Response<OutboundBody>, OutboundError> {
        let (mut head, body) = request.into_parts();
        let forwarding = self.egress.forwarding(&head.uri);
        let absolute = forwarding.is_some().then(|| head.uri.clone());
        let (origin, target) = Origin::split(head.uri).map_err(|error| OutboundError::Connect(error.into()))?;
        let is_forwarded = absolute.is_some();
        head.uri = absolute.unwrap_or(target);
        if let Some(authorization) = forwarding.and_then(|forwarding| forwarding.authorization) {
            head.headers.insert(PROXY_AUTHORIZATION, authorization);
        }
        let mut request = Request::from_parts(head, body);
        loop {
            let kept = self.pool.take(&origin);
            let is_kept = kept.is_some();
            let mut pooled = match kept {
                Some(pooled) => pooled,
                None => self.connect(&origin).await.map_err(OutboundError::Connect)?,
            };
            request.headers_mut().entry(HOST).or_insert_with(|| pooled.host());
            *may_have_arrived = true;
            let outcome = pooled.connection.send(request).await;
            *may_have_arrived = !matches!(outcome, Err(Unanswered::Unsent(_)));
            match outcome {
                // The proxy's own refusal, which reached no server.
                Ok(response) if is_forwarded && response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                    *may_have_arrived = false;
                    return Err(OutboundError::Connect("the proxy needs a user and a password".into()));
                }
                Ok(response) => {
                    return Ok(response.map(|incoming| OutboundBody::new(incoming, pooled, Arc::clone(&self.pool))));
                }
                Err(Unanswered::Unsent(same)) if is_kept => request = *same,
                Err(Unanswered::Unsent(_)) => {
                    let error = io::Error::from(io::ErrorKind::ConnectionAborted);
                    return Err(OutboundError::Broken(error.into()));
                }
                Err(Unanswered::Broken(error)) => return Err(OutboundError::Broken(error.into())),
            }
        }
    }

    async fn connect(&self, origin: &Origin) -> Result<PooledConnection, BoxError> {
        let connecting = self.connector.clone().call(origin.url()?);
        let stream = tokio::time::timeout(self.connect_timeout, connecting)
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "connecting timed out"))??;
        Ok(PooledConnection::new(Connection::over(stream).await?, origin.clone()))
    }

    /// Sends an idempotent request and reads the whole response, up to `max_bytes` and within the time limit.
    ///
    /// The request is retried once if the connection breaks before the response: a pooled connection may have been
    /// closed by the server.
    ///
    /// # Errors
    ///
    /// See [`OutboundError`].
    ///
    /// ```no_run
    /// # async fn example(pool: agentcfg_server::Outbound) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// let request = hyper::Request::get("https://id.example.com/jwks.json").body(Default::default())?;
    /// let answer = pool.send_idempotent(request, 64 << 10, Duration::from_secs(5)).await?;
    /// println!("{} bytes", answer.body().len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send_idempotent(
        &self,
        request: Request<Full<Bytes>>,
        max_bytes: usize,
        within: Duration,
    ) -> Result<Response<Bytes>, OutboundError> {
        let response = async {
            match self.send(request.clone()).await {
                Err(OutboundError::Broken(_)) => self.send(request).await,
                other => other,
            }
        };
        whole(response, max_bytes, within).await
    }

    /// Sends a request once, on at most one connection, and reads the whole response, up to `max_bytes` and within the
    /// time limit. When the connection breaks, the server may have acted upon the request.
    ///
    /// # Errors
    ///
    /// See [`OutboundError`].
    ///
    /// ```no_run
    /// # async fn example(pool: agentcfg_server::Outbound) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// let request = hyper::Request::post("https://id.example.com/token").body("code=a-code".into())?;
    /// let answer = pool.send_once(request, 64 << 10, Duration::from_secs(5)).await?;
    /// println!("{} bytes", answer.body().len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send_once(
        &self,
        request: Request<Full<Bytes>>,
        max_bytes: usize,
        within: Duration,
    ) -> Result<Response<Bytes>, OutboundError> {
        whole(self.send(request), max_bytes, within).await
    }
}

/// Reads a whole response, up to `max_bytes` and within the time limit.
async fn whole(
    response: impl Future<Output = Result<Response<OutboundBody>, OutboundError>>,
    max_bytes: usize,
    within: Duration,
) -> Result<Response<Bytes>, OutboundError> {
    let exchange = async {
        let (head, body) = response.await?.into_parts();
        match Limited::new(body, max_bytes).collect().await {
            Ok(body) => Ok(Response::from_parts(head, body.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => Err(OutboundError::TooLong(max_bytes)),
            Err(error) => Err(OutboundError::Broken(error)),
        }
    };
    tokio::time::timeout(within, exchange)
        .await
        .unwrap_or(Err(OutboundError::TimedOut(within)))
}

fn tls_config(extra_roots: &[CertificateDer<'static>]) -> Result<ClientConfig, rustls::Error> {
    let mut roots = tls::public_roots();
    for root in extra_roots {
        roots.add(root.clone())?;
    }
    tls::client_config(roots)
}

/// Formats an error with its chain of causes.
fn with_causes(error: &BoxError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
