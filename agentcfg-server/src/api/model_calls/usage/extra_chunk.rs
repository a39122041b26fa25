//! Takes the chunk that reports the usage out of a stream of chat completions whose caller did not ask for it.

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A longer event is passed on before its end is there: it is no chunk without choices.
const LONGEST: usize = 64 << 10;

/// Holds each event until it is complete, and drops the one with usage and without choices.
#[derive(Debug, Default)]
pub struct ExtraChunk {
    held: BytesMut,
    /// How many bytes of `held` were searched for the end of the event.
    searched: usize,
    /// Whether the rest of a long event passes.
    passes: bool,
}

#[derive(Deserialize)]
struct Chunk {
    /// Absent or null is as none.
    choices: Option<Vec<IgnoredAny>>,
    /// An object; null is none.
    usage: Option<serde_json::Map<String, serde_json::Value>>,
    /// A failure in the middle of a stream, which the caller must see.
    error: Option<IgnoredAny>,
}

impl ExtraChunk {
    /// The bytes that are to be passed on now.
    pub fn pass(&mut self, bytes: &[u8]) -> Bytes {
        self.held.extend_from_slice(bytes);
        let mut passed = BytesMut::new();
        while let Some(end) = self.event_end() {
            let event = self.held.split_to(end);
            self.searched = 0;
            if std::mem::take(&mut self.passes) || !is_extra(&event) {
                passed.extend_from_slice(&event);
            }
        }
        if self.passes || self.held.len() > LONGEST {
            self.passes = true;
            // The last bytes may begin the end of the event.
            let kept = self.held.len().min(3);
            let some = self.held.split_to(self.held.len() - kept);
            passed.extend_from_slice(&some);
            self.searched = 0;
        }
        passed.freeze()
    }

    /// The bytes of an event that did not end, at the end of the stream. Some servers leave out the empty line after
    /// the last one.
    pub fn rest(&mut self) -> Bytes {
        let rest = self.held.split();
        match !self.passes && is_extra(&rest) {
            true => Bytes::new(),
            false => rest.freeze(),
        }
    }

    /// The end of the first event: that of an empty line after it.
    fn event_end(&mut self) -> Option<usize> {
        let from = self.searched.saturating_sub(3);
        for at in memchr::memchr2_iter(b'\n', b'\r', &self.held[from..]) {
            let rest = &self.held[from + at..];
            for end in [&b"\r\n\r\n"[..], b"\n\r\n", b"\n\n", b"\r\r"] {
                if rest.starts_with(end) {
                    return Some(from + at + end.len());
                }
            }
        }
        self.searched = self.held.len();
        None
    }
}

fn is_extra(event: &[u8]) -> bool {
    let lines = event.split(|byte| matches!(byte, b'\n' | b'\r'));
    let data: Vec<&[u8]> = lines.filter_map(|line| line.strip_prefix(b"data:")).collect();
    let chunk = serde_json::from_slice::<Chunk>(&data.join(&b'\n'));
    chunk.is_ok_and(|chunk| {
        let has_choices = chunk.choices.is_some_and(|choices| !choices.is_empty());
        !has_choices && chunk.usage.is_some() && chunk.error.is_none()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn passed(text: &[u8], piece: usize) -> Vec<u8> {
        let mut filter = ExtraChunk::default();
        let mut passed = Vec::new();
        for bytes in text.chunks(piece) {
            passed.extend_from_slice(&filter.pass(bytes));
        }
        passed.extend_from_slice(&filter.rest());
        passed
    }

    const FIRST: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n";
    const EXTRA: &str = "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    #[test]
    fn the_chunk_without_choices_alone_is_taken_out() {
        for newline in ["\n", "\r\n", "\r"] {
            let with = [FIRST, EXTRA, DONE].concat().replace('\n', newline);
            let without = [FIRST, DONE].concat().replace('\n', newline);
            for piece in [1, 3, 50, 1000] {
                assert_eq!(
                    passed(with.as_bytes(), piece),
                    without.as_bytes(),
                    "{newline:?} {piece}"
                );
            }
        }
        for end in ["", "\n"] {
            let last = [FIRST, EXTRA.trim_end(), end].concat();
            assert_eq!(passed(last.as_bytes(), 7), FIRST.as_bytes(), "the stream ends with it");
        }
        for extra in [
            "data: {\"id\":\"c\",\"usage\":{\"prompt_tokens\":1}}\n\n",
            "data: {\"choices\":null,\"usage\":{\"prompt_tokens\":1}}\n\n",
        ] {
            assert_eq!(
                passed([FIRST, extra, DONE].concat().as_bytes(), 9),
                [FIRST, DONE].concat().as_bytes()
            );
        }
        for kept in [
            "data: {\"choices\":[],\"usage\":null}\n\n",
            "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n",
            "data: {\"choices\":[{}],\"usage\":{\"prompt_tokens\":1}}\n\n",
            ": {\"choices\":[],\"usage\":{}}\n\n",
            "data: {\"choices\":[],\"usage\":{}",
        ] {
            assert_eq!(passed(kept.as_bytes(), 4), kept.as_bytes());
        }
    }

    #[test]
    fn an_event_passes_as_soon_as_it_is_complete_and_a_long_one_before() {
        let mut filter = ExtraChunk::default();
        assert_eq!(filter.pass(FIRST.as_bytes()), FIRST.as_bytes());
        assert!(filter.pass(b"data: ").is_empty());
        let long = vec![b'x'; 2 * LONGEST];
        assert!(filter.pass(&long).len() > LONGEST && filter.held.len() <= 3);
        assert_eq!(filter.pass(b"\n\n"), &b"xxx\n\n"[..]);
        assert_eq!(filter.pass([EXTRA, DONE].concat().as_bytes()), DONE.as_bytes());
    }

    proptest! {
        #[test]
        fn all_other_bytes_pass(bytes in proptest::collection::vec(any::<u8>(), 0..300), piece in 1_usize..40) {
            prop_assert_eq!(passed(&bytes, piece), bytes);
        }
    }
}
