//! The change feed: the log of a workspace as an outbox that readers follow by a cursor.
//!
//! A reader is a position, so the service keeps no queue and no copy for it. It reads on from its position, and its
//! authority in the same snapshot or after it: an event whose commit comes after a revocation is never shown. Between
//! reads it waits for a wake-up, which carries no payload ([`wake_ups`]). The readers share the text of an event
//! ([`recent_events`]), also of one with what a label releases ([`releasing`]). Live status is compared once for all
//! readers of a workspace ([`status`]).

mod event_form;
mod page;
mod recent_events;
mod releasing;
mod status;
#[cfg(test)]
mod tests;
mod wake_ups;
mod watch;
#[cfg(feature = "stream")]
mod watch_stream;

pub use self::page::ChangePage;
pub(super) use self::recent_events::RecentEvents;
pub use self::recent_events::SerializedEvent;
pub(super) use self::status::StatusFeeds;
pub(super) use self::wake_ups::{ENDED_ENTRIES, EndedEntry, Heads};
pub use self::watch::{Update, Watch};
#[cfg(feature = "stream")]
pub use self::watch_stream::WatchStream;
