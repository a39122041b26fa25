//! The identifier that ties a response to a line of the log.

use std::sync::atomic::{AtomicU64, Ordering};

use agentcfg_core::clock::{Entropy, SystemEntropy};
#[cfg(any(feature = "process", test))]
use hyper::header::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

/// The header that carries it, both ways.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const LONGEST: usize = 128;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// The caller's own identifier, when it can be echoed.
#[cfg(any(feature = "process", test))]
pub fn sent(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(REQUEST_ID).and_then(echoed)
}

/// An identifier, when it can be echoed: 1–128 visible ASCII characters.
pub fn echoed(id: &HeaderValue) -> Option<&HeaderValue> {
    let is_visible = (1..=LONGEST).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic);
    is_visible.then_some(id)
}

/// Gives out identifiers: a random part for the process, and a number.
#[derive(Debug)]
pub struct RequestIds {
    process: [u8; 16],
    next: AtomicU64,
}

impl RequestIds {
    /// Starts a series of its own.
    pub fn new() -> Self {
        let mut random = [0; 8];
        // Without randomness two processes may give out the same identifiers. They only mark lines of the log, so that is
        // no reason to fail.
        let _ = SystemEntropy.fill(&mut random);
        let digit = |i: usize| HEX[usize::from(random[i / 2] >> (4 * (1 - i % 2)) & 15)];
        Self {
            process: std::array::from_fn(digit),
            next: AtomicU64::new(1),
        }
    }

    /// A new identifier: 16 hexadecimal digits, a dash, and the number in hexadecimal.
    pub fn next(&self) -> HeaderValue {
        let mut text = [0; 33];
        let mut length = 33;
        let mut number = self.next.fetch_add(1, Ordering::Relaxed);
        loop {
            length -= 1;
            text[length] = HEX[(number % 16) as usize];
            number /= 16;
            if number == 0 {
                break;
            }
        }
        length -= 1;
        text[length] = b'-';
        text[length - 16..length].copy_from_slice(&self.process);
        HeaderValue::from_bytes(&text[length - 16..]).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
    }
}

impl Default for RequestIds {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_echoed_when_it_is_harmless() {
        let echoed = |id: &str| {
            let headers = HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_str(id).unwrap())]);
            sent(&headers).is_some()
        };
        assert!(echoed("abc-1"));
        assert!(echoed(&"x".repeat(128)));
        assert!(!echoed(""));
        assert!(!echoed("two words"));
        assert!(!echoed(&"x".repeat(129)));
    }

    #[test]
    fn no_two_are_alike() {
        let ids = RequestIds::new();
        assert_ne!(ids.next(), ids.next());
        assert_ne!(RequestIds::new().next(), ids.next());
    }
}
