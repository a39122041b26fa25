//! The body of every response.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// Why a streamed body broke off. The connection is closed too, so that no client mistakes a part for the whole.
///
/// ```
/// use agentcfg_server::BodyError;
/// assert_eq!(BodyError::new("the provider left").to_string(), "the provider left");
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct BodyError(Box<dyn std::error::Error + Send + Sync>);

impl BodyError {
    /// Wraps the error of the body's source.
    ///
    /// ```
    /// use agentcfg_server::BodyError;
    /// let broken = BodyError::new(std::io::Error::other("connection reset"));
    /// ```
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

/// The body of every response.
///
/// ```
/// use agentcfg_server::Body;
/// use hyper::body::Body as _;
/// assert_eq!(Body::from("hello".to_owned()).size_hint().exact(), Some(5));
/// assert!(Body::default().is_end_stream());
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Body {
    /// A complete body in memory, as almost all are.
    Whole(Full<Bytes>),
    /// A complete body in pieces that other responses share.
    Pieces(std::vec::IntoIter<Bytes>),
    /// A streamed body.
    Streamed(UnsyncBoxBody<Bytes, BodyError>),
}

impl Default for Body {
    fn default() -> Self {
        Self::Whole(Full::default())
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::Whole(Full::from(text))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Self::Whole(body) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
            Self::Pieces(pieces) => Poll::Ready(pieces.next().map(|piece| Ok(Frame::data(piece)))),
            Self::Streamed(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Pieces(pieces) => pieces.as_slice().is_empty(),
            Self::Streamed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Pieces(pieces) => {
                SizeHint::with_exact(pieces.as_slice().iter().map(|piece| piece.len() as u64).sum())
            }
            Self::Streamed(body) => body.size_hint(),
        }
    }
}
