//! The messages of webhooks: their signature, their body, when they are sent again, and the interface to the network.
//!
//! The messages follow [Standard Webhooks](https://www.standardwebhooks.com): receivers verify them with its libraries.
//! The service keeps the webhooks themselves; [`Sender`](crate::service::WebhookSender) reads a workspace's log and
//! delivers. What receivers see is in `docs/webhooks.md`.

mod details;
mod message;
mod schedule;
mod signature;
mod transport;

pub(crate) use self::details::AppliedRow;
pub(crate) use self::message::{EventHead, body, test_body};
pub(crate) use self::schedule::{LAST_ATTEMPT, disables_at, pause};
pub use self::signature::{InvalidSecret, SigningSecret};
pub use self::transport::{DeliveryAnswer, Outgoing, Transport};
