//! A connection without sockets: requests come from memory, and responses are discarded.

use std::io::{IoSlice, Result};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};

/// Requests of equal length, stored contiguously in the order of sending: the reader finds them in the processor's
/// cache, like bytes that the kernel has just copied from a socket.
#[derive(Clone)]
pub struct Requests {
    bytes: Arc<[u8]>,
    length: usize,
}

impl Requests {
    /// Stores these requests; all have the length of the first.
    pub fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut bytes = Vec::new();
        let mut length = 0;
        for text in texts {
            bytes.extend_from_slice(text.as_bytes());
            length = text.len();
            assert_eq!(bytes.len() % length, 0, "requests of one length");
        }
        Self {
            bytes: bytes.into(),
            length,
        }
    }

    /// The same range of each request.
    pub fn parts(&self, part: Range<usize>) -> impl Iterator<Item = &str> {
        self.bytes
            .chunks(self.length)
            .map(move |request| std::str::from_utf8(&request[part.clone()]).expect("a request of ASCII"))
    }

    /// The client's side of a connection that sends each request once and then half-closes.
    pub fn send(&self) -> Wire {
        Wire {
            requests: self.clone(),
            sent: 0,
        }
    }
}

/// See [`Requests::send`].
pub struct Wire {
    requests: Requests,
    sent: usize,
}

impl Read for Wire {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, mut buffer: ReadBufCursor<'_>) -> Poll<Result<()>> {
        // One request at a time, like a client that waits for each response.
        let left = &self.requests.bytes[self.sent..];
        let in_this = self.requests.length - self.sent % self.requests.length;
        let given = left.len().min(in_this).min(buffer.remaining());
        buffer.put_slice(&left[..given]);
        self.sent += given;
        Poll::Ready(Ok(()))
    }
}

impl Write for Wire {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[IoSlice<'_>]) -> Poll<Result<usize>> {
        Poll::Ready(Ok(bytes.iter().map(|bytes| bytes.len()).sum()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }
}
