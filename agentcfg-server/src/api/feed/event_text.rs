//! The text of server-sent events (WHATWG HTML, section 9.2).

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::Arc;

use agentcfg_core::model::{Cursor, ErrorBody, StatusEvent};
use agentcfg_core::service::SerializedEvent;
use bytes::Bytes;
use serde::Serialize;

/// A text of this length is sent before more is written. An event of this length is not copied into the text: the
/// streams that it is sent on share its bytes.
const FULL: usize = 16 << 10;

/// The longest piece of a shared event, so that a connection holds little of it at a time.
const PIECE: usize = 64 << 10;

/// Events that are written one after the other.
#[derive(Debug, Default)]
pub(super) struct EventWriter {
    /// What is before `end`, in pieces.
    begin: VecDeque<Bytes>,
    end: Vec<u8>,
}

impl EventWriter {
    /// The time that the client waits before it reconnects. It belongs to the event that is written next.
    pub(super) fn retry(&mut self, millis: u64) {
        // Writing to memory cannot fail.
        let _ = writeln!(self.end, "retry: {millis}");
    }

    /// An event with a position and without a change.
    pub(super) fn bookmark(&mut self, cursor: Cursor) {
        let _ = write!(self.end, "event: bookmark\nid: {cursor}\ndata: {{}}\n\n");
    }

    pub(super) fn change(&mut self, event: &SerializedEvent) {
        let _ = write!(self.end, "event: change\nid: {}\ndata: ", event.cursor());
        let json = event.json();
        if json.len() < FULL {
            self.end.extend_from_slice(json.as_bytes());
        } else {
            self.begin.push_back(std::mem::take(&mut self.end).into());
            let mut rest = Bytes::from_owner(SharedText(Arc::clone(json)));
            while !rest.is_empty() {
                self.begin.push_back(rest.split_to(PIECE.min(rest.len())));
            }
        }
        self.end.extend_from_slice(b"\n\n");
    }

    /// A status has no position: a resumed stream begins with all statuses.
    pub(super) fn status(&mut self, event: &StatusEvent) -> serde_json::Result<()> {
        self.end.extend_from_slice(b"event: status\n");
        self.data(event)
    }

    /// The last event of a stream, `end` or `gone`, with its reason.
    pub(super) fn last(&mut self, name: &str, reason: &str) -> serde_json::Result<()> {
        let _ = writeln!(self.end, "event: {name}");
        self.data(&ErrorBody::new(reason))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.begin.is_empty() && self.end.is_empty()
    }

    /// Whether the text must be sent before more is written.
    pub(super) fn is_full(&self) -> bool {
        !self.begin.is_empty() || self.end.len() >= FULL
    }

    /// The text in pieces, none of them empty.
    pub(super) fn into_pieces(mut self) -> VecDeque<Bytes> {
        if !self.end.is_empty() {
            self.begin.push_back(self.end.into());
        }
        self.begin
    }

    /// JSON text has no line breaks, so one line of data holds it.
    fn data(&mut self, value: &impl Serialize) -> serde_json::Result<()> {
        self.end.extend_from_slice(b"data: ");
        serde_json::to_writer(&mut self.end, value)?;
        self.end.extend_from_slice(b"\n\n");
        Ok(())
    }
}

/// A shared text as an owner of [`Bytes`].
struct SharedText(Arc<str>);

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}
