//! Numbers, tags and cursors as the values of header fields.

use agentcfg_core::model::{Cursor, Tag};
use bytes::BytesMut;
use hyper::header::HeaderValue;

/// The bytes of the values of a typical answer: its tag, its cursor and three figures.
const TYPICAL: usize = 192;

/// Makes the values of an answer's fields, which share one allocation. They are written without formatting.
#[derive(Debug, Default)]
pub struct FieldValues(BytesMut);

impl FieldValues {
    /// A number.
    pub fn decimal(&mut self, number: u64) -> HeaderValue {
        self.joined([itoa::Buffer::new().format(number)])
    }

    /// A tag for the field `ETag`, for the form that `suffix` names.
    pub fn tag(&mut self, tag: Tag, suffix: &str) -> HeaderValue {
        // The kind is one ASCII letter.
        let kind = [tag.kind() as u8];
        let mut digits = itoa::Buffer::new();
        self.joined([
            "\"",
            tag.epoch().as_str(),
            "-",
            std::str::from_utf8(&kind).unwrap_or_default(),
            digits.format(tag.number()),
            suffix,
            "\"",
        ])
    }

    /// A cursor for the field `Change-Cursor`.
    pub fn cursor(&mut self, cursor: Cursor) -> HeaderValue {
        let (mut workspace, mut digits) = ([0; 36], itoa::Buffer::new());
        self.joined([
            cursor.epoch().as_str(),
            "-",
            cursor.workspace().as_uuid().hyphenated().encode_lower(&mut workspace),
            "-c",
            digits.format(cursor.revision()),
        ])
    }

    fn joined<const N: usize>(&mut self, parts: [&str; N]) -> HeaderValue {
        if self.0.capacity() == 0 {
            self.0.reserve(TYPICAL);
        }
        for part in parts {
            self.0.extend_from_slice(part.as_bytes());
        }
        let value = HeaderValue::from_maybe_shared(self.0.split().freeze());
        value.unwrap_or_else(|_| HeaderValue::from_static("0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::compression;

    #[test]
    fn a_tag_is_written_as_it_reads() {
        let epoch = "k3j9x0ab".parse().unwrap();
        for tag in [Tag::record(epoch, 0), Tag::list(epoch, 7), Tag::record(epoch, u64::MAX)] {
            let mut values = FieldValues::default();
            assert_eq!(values.tag(tag, ""), format!("\"{tag}\"").as_str());
            assert_eq!(
                values.tag(tag, compression::IN_GZIP),
                format!("\"{tag}-gzip\"").as_str()
            );
        }
    }

    #[test]
    fn a_cursor_is_written_as_it_reads() {
        let workspace = "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05".parse().unwrap();
        for revision in [0, 42, u64::MAX] {
            let cursor = Cursor::new("k3j9x0ab".parse().unwrap(), workspace, revision);
            assert_eq!(FieldValues::default().cursor(cursor), cursor.to_string().as_str());
        }
    }
}
