//! A streamed body in gzip: each piece is compressed when it comes, and goes on at once.

use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use flate2::write::GzEncoder;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body as HttpBody, Frame};

use super::LEVEL;
use crate::http::body::BodyError;

/// How much is compressed in one poll: about a millisecond, in which the other requests of the worker wait.
const SLICE: usize = 32 << 10;

/// A body in gzip.
pub struct GzipBody {
    inner: UnsyncBoxBody<Bytes, BodyError>,
    /// `None` after the end.
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// What came and was not compressed yet.
    waiting: Bytes,
}

impl GzipBody {
    pub fn new(inner: UnsyncBoxBody<Bytes, BodyError>) -> Self {
        Self {
            inner,
            encoder: Some(GzEncoder::new(Vec::new(), LEVEL)),
            waiting: Bytes::new(),
        }
    }
}

impl HttpBody for GzipBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            let this = &mut *self;
            let Some(encoder) = &mut this.encoder else {
                return Poll::Ready(None);
            };
            if this.waiting.is_empty() {
                match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                    Some(Ok(frame)) => this.waiting = frame.into_data().unwrap_or_default(),
                    Some(Err(error)) => {
                        this.encoder = None;
                        return Poll::Ready(Some(Err(error)));
                    }
                    None => {
                        let rest = this.encoder.take().map(GzEncoder::finish).transpose();
                        let rest = rest.map_err(BodyError::new)?.unwrap_or_default();
                        return Poll::Ready(Some(Ok(Frame::data(rest.into()))));
                    }
                }
                continue;
            }
            let slice = this.waiting.split_to(SLICE.min(this.waiting.len()));
            encoder.write_all(&slice).map_err(BodyError::new)?;
            if this.waiting.is_empty() {
                encoder.flush().map_err(BodyError::new)?;
            }
            let compressed = std::mem::take(encoder.get_mut());
            if !compressed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(compressed.into()))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.encoder.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    fn body(pieces: Vec<Result<Bytes, BodyError>>) -> GzipBody {
        let frames = futures_util::stream::iter(pieces.into_iter().map(|piece| piece.map(Frame::data)));
        GzipBody::new(StreamBody::new(frames).boxed_unsync())
    }

    #[tokio::test]
    async fn each_piece_goes_on_at_once_and_all_of_it_is_one_text() {
        let long: Bytes = (0..100_000u32).flat_map(u32::to_be_bytes).collect::<Vec<_>>().into();
        let pieces = [
            Bytes::from_static(b"one"),
            long.clone(),
            Bytes::new(),
            Bytes::from_static(b"two"),
        ];
        let mut compressed = body(pieces.iter().cloned().map(Ok).collect());
        let first = compressed.frame().await.unwrap().unwrap().into_data().unwrap();
        let mut start = [0; 3];
        GzDecoder::new(&*first).read_exact(&mut start).unwrap();
        assert_eq!(&start, b"one");
        let rest = compressed.collect().await.unwrap().to_bytes();
        let mut plain = Vec::new();
        GzDecoder::new(&*[first, rest].concat())
            .read_to_end(&mut plain)
            .unwrap();
        assert!(plain == pieces.concat());
    }

    #[tokio::test]
    async fn a_fault_is_passed_on_and_no_end_is_written() {
        let mut compressed = body(vec![Ok(Bytes::from_static(b"one")), Err(BodyError::new("lost"))]);
        assert!(compressed.frame().await.unwrap().is_ok());
        assert!(compressed.frame().await.unwrap().is_err());
        assert!(compressed.frame().await.is_none());
    }
}
