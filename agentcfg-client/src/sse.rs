//! Reading server-sent events (WHATWG HTML, section 9.2): the part of the format that this API uses.

use std::time::Duration;

/// An event of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// An event is longer than the client accepts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Assembles events from pieces of any length.
#[derive(Debug)]
pub(crate) struct EventReader {
    /// The bytes of an incomplete line.
    line: Vec<u8>,
    event: Event,
    has_fields: bool,
    max_bytes: usize,
    /// The last `retry` of the stream.
    pub(crate) retry: Option<Duration>,
}

impl EventReader {
    /// Makes a reader that accepts events up to this length.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            line: Vec::new(),
            event: Event::default(),
            has_fields: false,
            max_bytes,
            retry: None,
        }
    }

    /// Takes the next piece, and returns the events that it completes.
    pub(crate) fn take(&mut self, mut piece: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&piece[..end]);
            piece = &piece[end + 1..];
            let line = std::mem::take(&mut self.line);
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            if line.is_empty() {
                let event = std::mem::take(&mut self.event);
                if std::mem::take(&mut self.has_fields) {
                    events.push(event);
                }
            } else {
                self.field(&String::from_utf8_lossy(line));
            }
            self.check_length()?;
        }
        self.line.extend_from_slice(piece);
        self.check_length()?;
        Ok(events)
    }

    /// Whether the last piece ended within a field of an event, such as long data, and not within a comment.
    pub(crate) fn is_within_event(&self) -> bool {
        self.line.first().is_some_and(|byte| *byte != b':')
    }

    fn check_length(&self) -> Result<(), TooLong> {
        match self.line.len() + self.event.data.len() > self.max_bytes {
            true => Err(TooLong),
            false => Ok(()),
        }
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.event.name),
            "id" => self.event.id = Some(value.to_owned()),
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "retry" => {
                self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry);
                return;
            }
            // A comment or an unknown field is ignored.
            _ => return,
        }
        self.has_fields = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": hello\nretry: 1500\nevent: bookmark\nid: c1\ndata: {}\n\nevent:change\r\nid: c2\r\ndata: {\"a\":\ndata:  1}\r\n\r\n\n\nretry: soon\n\n";

    fn events() -> Vec<Event> {
        let event = |name: &str, id: &str, data: &str| Event {
            name: name.into(),
            id: Some(id.into()),
            data: data.into(),
        };
        vec![event("bookmark", "c1", "{}"), event("change", "c2", "{\"a\":\n 1}")]
    }

    #[test]
    fn events_are_the_same_however_the_stream_is_cut() {
        for length in 1..=STREAM.len() {
            let mut reader = EventReader::new(100);
            let mut found = Vec::new();
            for piece in STREAM.as_bytes().chunks(length) {
                found.extend(reader.take(piece).unwrap());
            }
            assert_eq!(found, events(), "pieces of {length}");
            assert_eq!(reader.retry, Some(Duration::from_millis(1500)));
        }
    }

    #[test]
    fn a_comment_is_no_part_of_an_event() {
        let mut reader = EventReader::new(100);
        for (piece, expected) in [
            (": pi", false),
            ("ece\n", false),
            ("data: {", true),
            ("}\n", false),
            ("\n", false),
        ] {
            reader.take(piece.as_bytes()).unwrap();
            assert_eq!(reader.is_within_event(), expected, "{piece:?}");
        }
    }

    #[test]
    fn an_event_that_is_too_long_is_refused_before_its_end() {
        let mut reader = EventReader::new(100);
        assert_eq!(reader.take(&[b'x'; 101]), Err(TooLong));
        let mut reader = EventReader::new(100);
        let line = format!("data: {}\n", "x".repeat(60));
        assert_eq!(reader.take(line.as_bytes()), Ok(Vec::new()));
        assert_eq!(reader.take(line.as_bytes()), Err(TooLong));
    }
}
