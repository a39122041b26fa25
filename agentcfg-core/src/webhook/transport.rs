//! The interface between the service, which decides what to send and when, and the network.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::model::into_field::settable;

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

settable! {
    /// The result of an attempt.
    ///
    /// ```
    /// use agentcfg_core::webhook::DeliveryAnswer;
    /// let answer = DeliveryAnswer::default().status(204);
    /// assert!(answer.is_success());
    /// assert!(!DeliveryAnswer::default().status(302).is_success());
    /// ```
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    DeliveryAnswer {
        /// The status code, if an answer came.
        status: Option<u16>,
        /// The header `Retry-After`.
        retry_after: Option<String>,
        /// The first KiB of the answer's body.
        response: Option<String>,
        /// Why there is no answer.
        error: Option<String>,
    }
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
///         DeliveryAnswer::default().status(200)
///     }
/// }
/// ```
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Sends a message once and waits at most `TIMEOUT` for the head of the answer. Its status decides, so little more
    /// time is given to the body.
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
