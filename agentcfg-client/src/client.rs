//! The client: one credential over a shared pool of connections.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentcfg_core::model::Message;
use agentcfg_core::sync::lock;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, PROXY_AUTHORIZATION};
use tokio::time::{Instant, timeout_at};

use crate::connect::Http;
use crate::error::ResponseFacts;
use crate::request::{Call, Prepared};
use crate::response::{self, ApiResponse};
use crate::retry::{self, deadline_after};
use crate::trace::traced;
use crate::{Error, RateLimit, RetryPolicy, Timeouts};

/// A client of one server with one credential.
///
/// Clones are cheap and share their connections. `Debug` shows no secret.
///
/// ```
/// use agentcfg_client::Client;
/// let client = Client::builder("https://agents.example.com/agentcfg")
///     .api_key("svc_live_…".replace('…', "0"))
///     .build()?;
/// let same_connections = client.clone();
/// # Ok::<(), agentcfg_client::Error>(())
/// ```
#[derive(Clone)]
pub struct Client {
    shared: Arc<ClientShared>,
    credential: Arc<Credential>,
    /// The message for changes.
    message: Option<Message>,
}

/// State that clients with different credentials share.
pub(crate) struct ClientShared {
    pub(crate) http: Http,
    pub(crate) base: String,
    pub(crate) timeouts: Timeouts,
    pub(crate) retry: RetryPolicy,
    pub(crate) max_response_bytes: usize,
    /// The credential for a proxy that forwards each request.
    pub(crate) forwarder_auth: Option<HeaderValue>,
    pub(crate) on_retry: Option<OnRetry>,
}

/// What is called before a pause that is followed by another attempt.
pub(crate) type OnRetry = Arc<dyn Fn(&Error, Duration) + Send + Sync>;

/// A credential and the rate limit that the last response reported for it.
pub(crate) struct Credential {
    kind: &'static str,
    header: Option<HeaderValue>,
    rate_limit: Mutex<Option<RateLimit>>,
}

impl Client {
    /// Returns a client with another session token over the same connections.
    ///
    /// Session tokens expire after an hour: replace the client before that, or when a call
    /// [`is_unauthorized`](Error::is_unauthorized).
    ///
    /// # Errors
    ///
    /// For a token that is empty or cannot be sent in a header.
    ///
    /// ```no_run
    /// # use agentcfg_client::{Client, Error};
    /// # async fn new_token() -> String { String::new() }
    /// # async fn run(mut client: Client) -> Result<(), Error> {
    /// if client.list_workspaces().await.is_err_and(|error| error.is_unauthorized()) {
    ///     client = client.with_session_token(new_token().await)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_session_token(&self, token: impl AsRef<str>) -> Result<Self, Error> {
        self.with(Credential::new("session token", token.as_ref())?)
    }

    /// Returns a client with another API key over the same connections.
    ///
    /// # Errors
    ///
    /// For a key that is empty or cannot be sent in a header.
    ///
    /// ```
    /// # use agentcfg_client::Client;
    /// # let client = Client::builder("http://127.0.0.1:7420").build()?;
    /// let pipeline = client.with_api_key("svc_live_of_the_pipeline")?;
    /// let dashboard = client.with_api_key("svc_live_of_the_dashboard")?;
    /// # Ok::<(), agentcfg_client::Error>(())
    /// ```
    pub fn with_api_key(&self, key: impl AsRef<str>) -> Result<Self, Error> {
        self.with(Credential::new("API key", key.as_ref())?)
    }

    /// The rate limit of the credential, as of the last response that reported it.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// client.list_workspaces().await?;
    /// if let Some(rate) = client.rate_limit() {
    ///     println!("{} of {} requests are left until {}", rate.remaining, rate.limit, rate.reset);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn rate_limit(&self) -> Option<RateLimit> {
        *lock(&self.credential.rate_limit)
    }

    /// Returns a client that gives this reason for each change of an agent or a label that it makes. The reason is kept
    /// in the audit entry, and with the version if the change makes one.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::{AgentPatch, Patch, Precondition};
    /// let patch = AgentPatch::default().model("gpt-5.5");
    /// let client = client.with_message("Cheaper model for drafts".parse()?);
    /// client.update_agent(None, "writer", &patch, &Precondition::None).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_message(&self, message: Message) -> Self {
        Self {
            message: Some(message),
            ..self.clone()
        }
    }

    pub(crate) fn message(&self) -> Option<&Message> {
        self.message.as_ref()
    }

    fn with(&self, credential: Credential) -> Result<Self, Error> {
        Ok(Self {
            credential: Arc::new(credential),
            ..self.clone()
        })
    }

    pub(crate) fn assemble(shared: Arc<ClientShared>, credential: Credential) -> Self {
        Self {
            shared,
            credential: Arc::new(credential),
            message: None,
        }
    }

    /// Sends a call, with retries, and decodes the response.
    pub(crate) async fn send<T>(
        &self,
        call: Call,
        read: impl FnOnce(&ApiResponse) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.send_with(&self.shared.retry, call, read).await
    }

    pub(crate) async fn send_with<T>(
        &self,
        policy: &RetryPolicy,
        call: Call,
        read: impl FnOnce(&ApiResponse) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let request = call.prepare(&self.shared.base, self.credential.header.as_ref())?;
        let total = self.shared.timeouts.total;
        let before_pause = |error: &Error, pause| {
            if let Some(on_retry) = &self.shared.on_retry {
                on_retry(error, pause);
            }
        };
        let answered = retry::run(policy, total, request.effect(), before_pause, |deadline| {
            self.attempt(&request, deadline)
        });
        answered
            .await
            .and_then(|answer| read(&answer))
            .map_err(|error| if request.changes() { error.of_a_change() } else { error })
    }

    /// Sends a call once, and returns the body of its successful response unread.
    pub(crate) async fn open(&self, call: Call) -> Result<(ResponseFacts, Incoming), Error> {
        let request = call.prepare(&self.shared.base, self.credential.header.as_ref())?;
        let head = async {
            let end = deadline_after(self.shared.timeouts.attempt);
            let answered = timeout_at(end, self.respond(&request)).await;
            answered.unwrap_or_else(|_| Err(Error::timed_out()))
        };
        let response = traced(&request, head).await?;
        if response.status().is_success() {
            let facts = response::facts(response.status().as_u16(), response.headers());
            return Ok((facts, response.into_body()));
        }
        let answer = ApiResponse::read(response, self.shared.max_response_bytes);
        let refused = timeout_at(deadline_after(self.shared.timeouts.attempt), answer).await;
        match refused.unwrap_or_else(|_| Err(Error::timed_out())) {
            Err(error) => Err(error),
            Ok(answer) => Err(answer.absent("the answer has no content")),
        }
    }

    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.shared.timeouts
    }

    /// The greatest length of a response, and of an event in a stream.
    pub(crate) fn max_response_bytes(&self) -> usize {
        self.shared.max_response_bytes
    }

    async fn attempt(&self, request: &Prepared, deadline: Instant) -> Result<ApiResponse, Error> {
        let end = deadline_after(self.shared.timeouts.attempt).min(deadline);
        let exchange = async {
            let answered = timeout_at(end, self.exchange(request)).await;
            answered.unwrap_or_else(|_| Err(Error::timed_out()))
        };
        traced(request, exchange).await
    }

    async fn exchange(&self, request: &Prepared) -> Result<ApiResponse, Error> {
        let response = self.respond(request).await?;
        ApiResponse::read(response, self.shared.max_response_bytes).await
    }

    /// Sends a request and receives the head of its response.
    async fn respond(&self, request: &Prepared) -> Result<Response<Incoming>, Error> {
        let mut request = request.to_http();
        if let Some(credential) = &self.shared.forwarder_auth {
            request.headers_mut().insert(PROXY_AUTHORIZATION, credential.clone());
        }
        let response = self.shared.http.request(request).await.map_err(Error::transport)?;
        if let Some(rate_limit) = RateLimit::read(response.headers()) {
            *lock(&self.credential.rate_limit) = Some(rate_limit);
        }
        Ok(response)
    }
}

impl Credential {
    pub(crate) fn new(kind: &'static str, secret: &str) -> Result<Self, Error> {
        if secret.is_empty() {
            return Err(Error::input(format!("the {kind} is empty")));
        }
        if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = format!("the {kind} holds a space, a line break or another character that cannot be sent");
            return Err(Error::input(message));
        }
        let mut header = HeaderValue::try_from(format!("Bearer {secret}"))
            .map_err(|_| Error::input(format!("the {kind} cannot be sent in a header")))?;
        header.set_sensitive(true);
        Ok(Self {
            kind,
            header: Some(header),
            rate_limit: Mutex::new(None),
        })
    }

    pub(crate) fn none() -> Self {
        Self {
            kind: "none",
            header: None,
            rate_limit: Mutex::new(None),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("url", &self.shared.base)
            .field("credential", &format_args!("{} [redacted]", self.credential.kind))
            .field("timeouts", &self.shared.timeouts)
            .field("retry", &self.shared.retry)
            .field("rate_limit", &self.rate_limit())
            .finish_non_exhaustive()
    }
}
