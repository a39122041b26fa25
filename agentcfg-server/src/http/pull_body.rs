//! A body whose pieces are made on demand.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame};

use crate::http::body::BodyError;

/// The future of the next piece. It returns the source for the piece after it; `None` ends the body.
pub type NextPiece<S> = Pin<Box<dyn Future<Output = Result<Option<(Bytes, S)>, BodyError>> + Send>>;

/// A body that asks its source for one piece after another. Nothing is buffered, so no piece is made before the client
/// takes it.
pub struct PullBody<S> {
    next: fn(S) -> NextPiece<S>,
    /// The future of the current piece; `None` after the end.
    piece: Option<NextPiece<S>>,
}

impl<S> PullBody<S> {
    /// Makes a body of a source.
    pub fn new(source: S, next: fn(S) -> NextPiece<S>) -> Self {
        Self {
            next,
            piece: Some(next(source)),
        }
    }

    /// A body without content, for an answer to `HEAD`.
    pub fn empty(next: fn(S) -> NextPiece<S>) -> Self {
        Self { next, piece: None }
    }
}

impl<S> HttpBody for PullBody<S> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(piece) = &mut self.piece else {
            return Poll::Ready(None);
        };
        let made = ready!(piece.as_mut().poll(cx));
        self.piece = None;
        Poll::Ready(match made {
            Ok(Some((bytes, source))) => {
                self.piece = Some((self.next)(source));
                Some(Ok(Frame::data(bytes)))
            }
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.piece.is_none()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn count_down(from: u8) -> NextPiece<u8> {
        Box::pin(async move {
            match from {
                0 => Ok(None),
                9 => Err(BodyError::new("the source failed")),
                number => Ok(Some((Bytes::from(number.to_string()), number - 1))),
            }
        })
    }

    #[tokio::test]
    async fn the_pieces_follow_each_other_to_the_end() {
        let body = PullBody::new(3, count_down).collect().await.unwrap();
        assert_eq!(body.to_bytes(), "321");
        assert!(
            PullBody::new(0, count_down)
                .collect()
                .await
                .unwrap()
                .to_bytes()
                .is_empty()
        );
    }

    #[tokio::test]
    async fn a_failure_ends_the_body_with_an_error() {
        let mut body = PullBody::new(9, count_down);
        assert!(body.frame().await.unwrap().is_err());
        assert!(body.frame().await.is_none());
    }
}
