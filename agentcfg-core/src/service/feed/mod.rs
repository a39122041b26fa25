//! The change feed: the log of a workspace as an outbox that readers follow by a cursor.
//!
//! A reader is a position, so the service keeps no queue and no copy for it. It reads on from its position, and its authority
//! in the same snapshot or after it: an event whose commit comes after a revocation is never shown. Between reads it
//! waits for a wake-up, which carries no payload ([`signal`]). The readers share the text of an event ([`recent`]). Live status is compared once for all readers of a workspace
//! ([`status`]).

mod item;
mod page;
mod recent;
mod signal;
mod status;
#[cfg(test)]
mod tests;
mod watch;

pub use self::page::ChangePage;
pub(super) use self::recent::Recent;
pub use self::recent::SerializedEvent;
pub(super) use self::signal::{CLOSED_SESSIONS, Heads};
pub(super) use self::status::StatusFeeds;
pub use self::watch::{Update, Watch};
