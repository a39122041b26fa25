//! The values of header fields, most of which are written without formatting or an allocation.

use std::cell::RefCell;

use agentcfg_core::model::{RateStatus, Tag};
use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};

pub(super) const RATE_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
pub(super) const RATE_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
pub(super) const RATE_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The three figures of the rate limit: the limit, what remains of it, and when the window ends.
pub(super) fn figures(rate: &RateStatus) -> [HeaderValue; 3] {
    let limit = u64::from(rate.limit);
    let reset = u64::try_from(rate.reset_unix_seconds()).unwrap_or_default();
    let (limit, reset) = RECENT.with_borrow_mut(|[limits, resets]| (limits.of(limit), resets.of(reset)));
    [limit, decimal(u64::from(rate.remaining)), reset]
}

thread_local! {
    /// The limits and the ends of windows of recent answers.
    static RECENT: RefCell<[Recent; 2]> = const { RefCell::new([Recent([const { None }; PLACES]), Recent([const { None }; PLACES])]) };
}

/// Windows that are open end within a minute, so that the ends of all of them have places of their own.
const PLACES: usize = 64;

/// Numbers of recent answers as values of fields: most answers share them, and sharing costs less than writing. A number has
/// one place, which it takes from another one.
struct Recent([Option<(u64, HeaderValue)>; PLACES]);

impl Recent {
    fn of(&mut self, number: u64) -> HeaderValue {
        let place = &mut self.0[(number % PLACES as u64) as usize];
        match place {
            Some((known, value)) if *known == number => value.clone(),
            _ => {
                let value = decimal(number);
                *place = Some((number, value.clone()));
                value
            }
        }
    }
}

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
    fn figures_are_those_of_each_answer() {
        let rate = |limit, seconds: i64| RateStatus {
            limit,
            remaining: 3,
            reset_unix_millis: seconds * 1000,
        };
        for _ in 0..2 {
            for (limit, reset) in [
                (60, 1_795_167_000),
                (60, 1_795_167_064),
                (124, 1_795_167_000),
                (1_000_000, 0),
            ] {
                let expected = [u64::from(limit), 3, reset as u64].map(|number| number.to_string());
                assert_eq!(figures(&rate(limit, reset)), expected);
            }
        }
    }

    #[test]
    fn a_tag_is_written_as_it_reads() {
        let epoch = "k3j9x0ab".parse().unwrap();
        for tag in [Tag::record(epoch, 0), Tag::list(epoch, 7), Tag::record(epoch, u64::MAX)] {
            assert_eq!(tag_value(tag, ""), format!("\"{tag}\"").as_str());
            assert_eq!(tag_value(tag, compression::IN_GZIP), format!("\"{tag}-gzip\"").as_str());
        }
    }
}
