//! The parts in which h2 gets a response.

use std::io::IoSlice;

use bytes::{Buf, Bytes};
use tokio::sync::oneshot;

/// The longest piece of a response that is given to h2 at a time. The client must take each within the write timeout, so a
/// short piece bounds what a client can leave in the server.
pub(super) const LONGEST: usize = 32 << 10;

/// A part of a response. h2 drops it when it was written, or when the stream was reset.
#[derive(Debug)]
pub(super) struct Piece {
    data: Bytes,
    /// Dropped with the piece.
    _end: Option<oneshot::Sender<()>>,
}

impl Piece {
    pub(super) fn new(data: Bytes) -> Self {
        Self { data, _end: None }
    }

    /// The last piece of a response, and what resolves when h2 drops it.
    pub(super) fn last(data: Bytes) -> (Self, oneshot::Receiver<()>) {
        let (end, dropped) = oneshot::channel();
        let piece = Self { data, _end: Some(end) };
        (piece, dropped)
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.data.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.data.chunk()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.data.chunks_vectored(slices)
    }

    fn advance(&mut self, bytes: usize) {
        self.data.advance(bytes);
    }
}
