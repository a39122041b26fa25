//! The interface between the service, which decides what to send and when, and the network.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

/// A message to send by `POST`, as JSON.
///
/// ```
/// use agentcfg_core::webhook::Outgoing;
/// fn headers(message: &Outgoing) -> [(&str, String); 3] {
///     [
///         ("webhook-id", message.id.clone()),
///         ("webhook-timestamp", message.timestamp.to_string()),
///         ("webhook-signature", message.signature.clone()),
///     ]
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The URL of the webhook.
    pub url: String,
    /// The header `webhook-id`, the same for each attempt.
    pub id: String,
    /// The header `webhook-timestamp`: the time of the attempt in Unix seconds.
    pub timestamp: i64,
    /// The header `webhook-signature`: one signature for each valid secret, separated by spaces.
    pub signature: String,
    /// The body, which is what was signed.
    pub body: Bytes,
}

/// The result of an attempt.
///
/// ```
/// use agentcfg_core::webhook::DeliveryAnswer;
/// let answer = DeliveryAnswer { status: Some(204), ..DeliveryAnswer::default() };
/// assert!(answer.is_success());
/// assert!(!DeliveryAnswer { status: Some(302), ..DeliveryAnswer::default() }.is_success());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryAnswer {
    /// The status code, if an answer came.
    pub status: Option<u16>,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// The first KiB of the answer's body.
    pub response: Option<String>,
    /// Why there is no answer.
    pub error: Option<String>,
}

impl DeliveryAnswer {
    /// Whether the receiver has taken the message: a status of 2xx.
    ///
    /// ```
    /// use agentcfg_core::webhook::DeliveryAnswer;
    /// assert!(!DeliveryAnswer::failed("no answer within 15s").is_success());
    /// ```
    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// An attempt without an answer.
    ///
    /// ```
    /// use agentcfg_core::webhook::DeliveryAnswer;
    /// assert_eq!(DeliveryAnswer::failed("cannot connect").error.as_deref(), Some("cannot connect"));
    /// ```
    pub fn failed(error: impl Into<String>) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::default()
        }
    }
}

/// Sends messages. The server's implementation checks the address of each connection and follows no redirects.
///
/// ```
/// use agentcfg_core::webhook::{DeliveryAnswer, Outgoing, Transport};
///
/// /// Takes every message, for tests.
/// struct Taken;
///
/// #[async_trait::async_trait]
/// impl Transport for Taken {
///     async fn post(&self, _: Outgoing) -> DeliveryAnswer {
///         DeliveryAnswer { status: Some(200), ..DeliveryAnswer::default() }
///     }
/// }
/// ```
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Sends a message once and waits at most `TIMEOUT` for the head of the answer. Its status decides, so little more time is
    /// given to the body.
    async fn post(&self, message: Outgoing) -> DeliveryAnswer;
}

impl dyn Transport {
    /// The time that a receiver has for its answer.
    ///
    /// ```
    /// use agentcfg_core::webhook::Transport;
    /// assert_eq!(<dyn Transport>::TIMEOUT.as_secs(), 15);
    /// ```
    pub const TIMEOUT: Duration = Duration::from_secs(15);

    /// How many bytes of an answer are kept.
    ///
    /// ```
    /// use agentcfg_core::webhook::Transport;
    /// assert_eq!(<dyn Transport>::KEPT_BYTES, 1024);
    /// ```
    pub const KEPT_BYTES: usize = 1024;
}
