//! Numbers, tags and cursors as the values of header fields.

use agentcfg_core::model::Tag;
use bytes::Bytes;
use hyper::header::HeaderValue;

/// A number as a field's value.
pub(super) fn decimal(number: u64) -> HeaderValue {
    made(itoa::Buffer::new().format(number).as_bytes())
}

/// A tag as the value of the field `ETag`, for the form that `suffix` names. Most answers have one, so that it is written
/// without formatting or an allocation.
pub(super) fn tag_value(tag: Tag, suffix: &str) -> HeaderValue {
    let (epoch, mut digits) = (tag.epoch(), itoa::Buffer::new());
    // The kind is one ASCII letter.
    let parts = [
        b"\"",
        epoch.as_str().as_bytes(),
        b"-",
        &[tag.kind() as u8],
        digits.format(tag.number()).as_bytes(),
        suffix.as_bytes(),
        b"\"",
    ];
    let mut text = [0; 48];
    let mut length = 0;
    for part in parts {
        text[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    made(&text[..length])
}

/// A cursor as the value of `Change-Cursor`. Its characters are visible ASCII.
pub(super) fn cursor_value(text: Bytes) -> HeaderValue {
    HeaderValue::from_maybe_shared(text).unwrap_or_else(|_| HeaderValue::from_static(""))
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
}
