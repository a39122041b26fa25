//! Values of header fields that are made anew for each response, without memory of its own for each.
//!
//! A typical response has five of them. They are written one behind another into a block of memory, which is
//! freed with the last value that is in it.

use std::cell::RefCell;

use bytes::{BufMut, BytesMut};
use hyper::header::HeaderValue;

/// What a block has room for: the values of about thirty responses.
const BLOCK: usize = 4096;
/// The longest number.
const DIGITS: usize = 20;

thread_local! {
    static FREE: RefCell<BytesMut> = RefCell::new(BytesMut::new());
}

/// A value of at most `room` bytes.
pub fn made(room: usize, write: impl FnOnce(&mut BytesMut)) -> HeaderValue {
    let bytes = FREE.with_borrow_mut(|free| {
        if free.capacity() < room {
            free.reserve(BLOCK.max(room));
        }
        write(free);
        free.split().freeze()
    });
    HeaderValue::from_maybe_shared(bytes).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// A number in decimal.
pub fn decimal(number: u64) -> HeaderValue {
    made(DIGITS, |out| put_number(out, number, 10))
}

/// Writes a number in a base up to 16, without the machinery of formatting: this runs several times a request.
pub fn put_number(out: &mut BytesMut, mut number: u64, base: u64) {
    let mut text = [0; DIGITS];
    let mut start = text.len();
    loop {
        start -= 1;
        // What is left is less than the base, so nothing is cut off.
        text[start] = b"0123456789abcdef"[(number % base) as usize];
        number /= base;
        if number == 0 {
            break;
        }
    }
    out.put_slice(&text[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_their_base() {
        for number in [0, 7, 10, 1_795_180_691, u64::MAX] {
            assert_eq!(decimal(number), number.to_string().as_str());
            let hex = made(16, |out| put_number(out, number, 16));
            assert_eq!(hex, format!("{number:x}").as_str());
        }
    }

    #[test]
    fn values_stay_as_they_are_when_others_are_made() {
        let values: Vec<_> = (0..5000).map(decimal).collect();
        for (number, value) in values.iter().enumerate() {
            assert_eq!(value, number.to_string().as_str());
        }
    }
}
