//! The change feed as server-sent events (SSE).
//!
//! A stream is a position in the log of a workspace: it has no queue, and reads on when its connection takes more. The
//! core decides with each read what the caller may see.

mod event_stream;
mod event_text;
mod jitter;
mod open_stream;
mod stream_limits;
mod stream_state;
#[cfg(test)]
mod tests;

pub use open_stream::Opening;
pub use stream_limits::Streams;
