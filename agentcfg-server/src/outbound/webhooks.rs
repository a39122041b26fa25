//! The network side of webhooks: one `POST`, to the public internet alone.

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::error::causes;
use agentcfg_core::model::{AllowedHost, WebhookUrl};
use agentcfg_core::webhook::{DeliveryAnswer, Outgoing, Transport};
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use super::public_only::{LOOKUPS, Network, PublicOnly, Refused, System};
use super::{BoxError, Options, tls_config, with_causes};

/// The idle timeout of connections. It is short, because some servers close theirs after five seconds, and an attempt
/// on a connection that is being closed fails.
const POOL_IDLE: Duration = Duration::from_secs(3);
const IDLE_CONNECTIONS: usize = 16;

/// How much of an answer's body is read, so that its connection can be used again. Of this, the beginning is kept.
const READ_BYTES: usize = 16 << 10;

/// How long the body of an answer is read.
const BODY_TIMEOUT: Duration = Duration::from_secs(2);

/// The greatest size of an answer's head.
const MAX_HEAD: usize = 64 << 10;

const USER_AGENT: &str = concat!("agentcfg-webhooks/", env!("CARGO_PKG_VERSION"));

/// Sends the messages of webhooks over HTTP/1.1.
///
/// Connections are made to public addresses only, by `https` and port 443, except to the hosts that the deployment
/// allows. Redirects are not followed, and proxies of the environment are ignored.
///
/// ```
/// use agentcfg_core::webhook::{Outgoing, Transport};
/// use agentcfg_server::WebhookTransport;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let transport = WebhookTransport::new(&["hooks.internal:8080".parse()?])?;
/// let message = Outgoing {
///     url: "https://127.0.0.1/hook".into(),
///     id: "msg_1".into(),
///     timestamp: 1_614_265_330,
///     signature: "v1,…".into(),
///     body: "{}".into(),
/// };
/// let answer = transport.post(message).await;
/// assert_eq!(answer.error.as_deref(), Some("the URL must not name an address that is not public"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct WebhookTransport {
    client: Client<HttpsConnector<PublicOnly>, Full<Bytes>>,
    timeout: Duration,
}

impl WebhookTransport {
    /// A transport without connections, with these exceptions.
    ///
    /// # Errors
    ///
    /// If TLS cannot be configured.
    pub fn new(exceptions: &[AllowedHost]) -> io::Result<Self> {
        Self::with_options(exceptions, &Options::default())
    }

    /// As [`Self::new`], with the certificate authorities and the proxy of these options. A proxy resolves the names of
    /// hosts itself: what it may reach is for the proxy to decide then, and addresses in a URL are checked here.
    ///
    /// # Errors
    ///
    /// If TLS cannot be configured.
    pub fn with_options(exceptions: &[AllowedHost], options: &Options) -> io::Result<Self> {
        Self::on(Arc::new(System), exceptions, options)
    }

    fn on(network: Arc<dyn Network>, exceptions: &[AllowedHost], options: &Options) -> io::Result<Self> {
        let connector = PublicOnly {
            network,
            exceptions: exceptions.into(),
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
            egress: options.egress.clone(),
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls_config(&options.extra_roots).map_err(io::Error::other)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .http1_max_buf_size(MAX_HEAD)
            .build(connector);
        Ok(Self {
            client,
            timeout: <dyn Transport>::TIMEOUT,
        })
    }

    /// Sends a message, and waits for the head of the answer.
    async fn exchange(&self, message: Outgoing) -> Result<Response<Incoming>, String> {
        // Parsers differ in what they make of a malformed URL, so none is sent on. The connector checks where it leads.
        let _: WebhookUrl = message.url.parse().map_err(|rule| format!("the URL {rule}"))?;
        let request = request(message).map_err(|error| format!("the message cannot be sent: {error}"))?;
        let answered = self.client.request(request).await;
        answered.map_err(|error| reason(&error.into()))
    }
}

#[async_trait]
impl Transport for WebhookTransport {
    async fn post(&self, message: Outgoing) -> DeliveryAnswer {
        match timeout(self.timeout, self.exchange(message)).await {
            Ok(Ok(response)) => answer(response, BODY_TIMEOUT.min(self.timeout)).await,
            Ok(Err(error)) => DeliveryAnswer::failed(error),
            Err(_) => DeliveryAnswer::failed(format!("no answer within {} s", self.timeout.as_secs())),
        }
    }
}

fn request(message: Outgoing) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    Request::post(message.url)
        .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .header(header::USER_AGENT, HeaderValue::from_static(USER_AGENT))
        .header("webhook-id", message.id)
        .header("webhook-timestamp", message.timestamp)
        .header("webhook-signature", message.signature)
        .body(Full::new(message.body))
}

/// The answer with the beginning of its body. The status decides whether the message was taken, so a body that breaks
/// off or does not end does no harm.
async fn answer(response: Response<Incoming>, limit: Duration) -> DeliveryAnswer {
    let (head, mut body) = response.into_parts();
    let mut kept = Vec::new();
    let mut read = 0;
    let end = Instant::now() + limit;
    while read < READ_BYTES {
        let Ok(Some(Ok(frame))) = timeout_at(end, body.frame()).await else {
            break;
        };
        let Some(data) = frame.data_ref() else { continue };
        read += data.len();
        let room = <dyn Transport>::KEPT_BYTES - kept.len();
        kept.extend_from_slice(&data[..data.len().min(room)]);
    }
    let retry_after = head.headers.get(header::RETRY_AFTER);
    DeliveryAnswer::default()
        .status(head.status.as_u16())
        .retry_after(retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned))
        .response(String::from_utf8_lossy(&kept).into_owned())
}

/// Why there is no answer: the connector's own reason, or the chain of causes.
fn reason(error: &BoxError) -> String {
    let refused = causes(&**error).find_map(|cause| cause.downcast_ref::<Refused>());
    refused.map_or_else(|| with_causes(error), ToString::to_string)
}

impl fmt::Debug for WebhookTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookTransport")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
