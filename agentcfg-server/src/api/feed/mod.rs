//! The change feed as server-sent events (SSE).
//!
//! A stream is a position in the log of a workspace: it has no queue, and reads on when its connection takes more. The core
//! decides with each read what the caller may see.

mod jitter;
mod opening;
mod slots;
mod state;
mod stream;
#[cfg(test)]
mod tests;
mod text;

pub use opening::Opening;
pub use slots::Streams;
