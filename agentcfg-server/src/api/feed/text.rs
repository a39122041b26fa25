//! The text of server-sent events (WHATWG HTML, section 9.2).

use std::io::Write as _;

use agentcfg_core::model::{ChangeEvent, Cursor, ErrorBody, StatusEvent};
use bytes::Bytes;
use serde::Serialize;

/// Events that are written one after the other.
#[derive(Debug, Default)]
pub(super) struct Text(Vec<u8>);

impl Text {
    /// How long the client is to wait before it connects again. It belongs to the event that is written next.
    pub(super) fn retry(&mut self, millis: u64) {
        // Writing to memory cannot fail.
        let _ = writeln!(self.0, "retry: {millis}");
    }

    /// The position, without a change.
    pub(super) fn bookmark(&mut self, cursor: Cursor) {
        let _ = write!(self.0, "event: bookmark\nid: {cursor}\ndata: {{}}\n\n");
    }

    pub(super) fn change(&mut self, event: &ChangeEvent) -> serde_json::Result<()> {
        let _ = writeln!(self.0, "event: change\nid: {}", event.cursor);
        self.data(event)
    }

    /// A status has no position: a stream that is resumed begins with all of them.
    pub(super) fn status(&mut self, event: &StatusEvent) -> serde_json::Result<()> {
        self.0.extend_from_slice(b"event: status\n");
        self.data(event)
    }

    /// The last event of a stream, `end` or `gone`, with its reason.
    pub(super) fn last(&mut self, name: &str, reason: &str) -> serde_json::Result<()> {
        let _ = writeln!(self.0, "event: {name}");
        self.data(&ErrorBody {
            error: reason.to_owned(),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In bytes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.0.into()
    }

    /// The JSON text of a value has no line break, so it is one line.
    fn data(&mut self, value: &impl Serialize) -> serde_json::Result<()> {
        self.0.extend_from_slice(b"data: ");
        serde_json::to_writer(&mut self.0, value)?;
        self.0.extend_from_slice(b"\n\n");
        Ok(())
    }
}
