//! Numbers, tags and cursors as the values of header fields.

use agentcfg_core::model::{Cursor, Tag};
use hyper::header::HeaderValue;

/// A number as a field's value.
pub(super) fn decimal(number: u64) -> HeaderValue {
    made(itoa::Buffer::new().format(number).as_bytes())
}

/// A tag as the value of the field `ETag`, for the form that `suffix` names.
pub(super) fn tag_value(tag: Tag, suffix: &str) -> HeaderValue {
    // The kind is one ASCII letter.
    let kind = [tag.kind() as u8];
    let mut digits = itoa::Buffer::new();
    joined([
        "\"",
        tag.epoch().as_str(),
        "-",
        std::str::from_utf8(&kind).unwrap_or_default(),
        digits.format(tag.number()),
        suffix,
        "\"",
    ])
}

/// A cursor as the value of the field `Change-Cursor`.
pub(super) fn cursor_value(cursor: Cursor) -> HeaderValue {
    let (mut workspace, mut digits) = ([0; 36], itoa::Buffer::new());
    joined([
        cursor.epoch().as_str(),
        "-",
        cursor.workspace().as_uuid().hyphenated().encode_lower(&mut workspace),
        "-c",
        digits.format(cursor.revision()),
    ])
}

/// A value of these parts, which are short. Most answers have a tag and a cursor, so that they are written without formatting.
fn joined<const N: usize>(parts: [&str; N]) -> HeaderValue {
    let mut text = [0; 80];
    let mut length = 0;
    for part in parts {
        text[length..length + part.len()].copy_from_slice(part.as_bytes());
        length += part.len();
    }
    made(&text[..length])
}

fn made(text: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(text).unwrap_or_else(|_| HeaderValue::from_static("0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::compression;

    #[test]
    fn a_tag_is_written_as_it_reads() {
        let epoch = "k3j9x0ab".parse().unwrap();
        for tag in [Tag::record(epoch, 0), Tag::list(epoch, 7), Tag::record(epoch, u64::MAX)] {
            assert_eq!(tag_value(tag, ""), format!("\"{tag}\"").as_str());
            assert_eq!(tag_value(tag, compression::IN_GZIP), format!("\"{tag}-gzip\"").as_str());
        }
    }

    #[test]
    fn a_cursor_is_written_as_it_reads() {
        let workspace = "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05".parse().unwrap();
        for revision in [0, 42, u64::MAX] {
            let cursor = Cursor::new("k3j9x0ab".parse().unwrap(), workspace, revision);
            assert_eq!(cursor_value(cursor), cursor.to_string().as_str());
        }
    }
}
