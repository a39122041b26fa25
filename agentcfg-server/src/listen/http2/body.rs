//! The body of a request on an HTTP/2 stream: the client is asked for it, and it has time limits.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use agentcfg_core::sync::lock;
use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{self, HeaderMap};
use hyper::{Response, StatusCode};
use tokio::time::{Instant, Sleep, sleep_until};

use super::piece::Piece;
use crate::http::BodyTimeout;
use crate::listen::limits::BodyPace;

/// The response side of a stream, by which the body of its request asks the client for itself.
pub(super) type Respond = Arc<Mutex<Responder>>;

/// See [`Respond`].
pub(super) struct Responder {
    pub(super) send: SendResponse<Piece>,
    /// Whether the response has begun. h2 would send an interim response after it.
    pub(super) has_begun: bool,
}

/// The body of a request as h2 receives it.
pub struct Received {
    stream: RecvStream,
    /// How much is still to come, where the client has said it.
    left: Option<u64>,
    /// Of a client that waits for `100 Continue`, until it was sent.
    to_ask: Option<Respond>,
}

impl Received {
    pub(super) fn new(stream: RecvStream, headers: &HeaderMap, respond: &Respond) -> Self {
        let awaits = |value: &header::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
        let to_ask = headers.get(header::EXPECT).is_some_and(awaits) && !stream.is_end_stream();
        Self {
            left: if stream.is_end_stream() {
                Some(0)
            } else {
                length(headers)
            },
            stream,
            to_ask: to_ask.then(|| Respond::clone(respond)),
        }
    }
}

/// The length that all fields `Content-Length` name. h2 has compared it with what arrives.
fn length(headers: &HeaderMap) -> Option<u64> {
    let mut named = headers
        .get_all(header::CONTENT_LENGTH)
        .iter()
        .map(|field| field.to_str().ok()?.parse().ok());
    let first = named.next()??;
    named.all(|other| other == Some(first)).then_some(first)
}

impl Body for Received {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if let Some(respond) = self.to_ask.take() {
            let mut responder = lock(&respond);
            if !responder.has_begun {
                let mut asking = Response::new(());
                *asking.status_mut() = StatusCode::CONTINUE;
                // Where it fails, the stream has ended, which the next line finds.
                let _ = responder.send.send_informational(asking);
            }
        }
        if let Some(data) = ready!(self.stream.poll_data(cx)).transpose()? {
            let _ = self.stream.flow_control().release_capacity(data.len());
            self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        let trailers = ready!(self.stream.poll_trailers(cx))?;
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

/// The place where a body that was not read to its end is left.
pub(super) type Leftover<B> = Arc<Mutex<Option<B>>>;

/// The body of a request on an HTTP/2 stream. One that arrives too slowly fails with
/// [`BodyTimeout`](StreamBodyError::TooSlow).
#[derive(Debug)]
pub struct StreamBody<B: Body = Received> {
    /// Present until it is dropped.
    body: Option<B>,
    leftover: Leftover<B>,
    pace: BodyPace,
    received: u64,
    /// The time limit of the whole body, from the first wait for it, and its timer.
    wait: Option<(Instant, Pin<Box<Sleep>>)>,
}

/// Why the body of a request ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamBodyError {
    /// The client has reset the stream or closed the connection.
    #[error("the stream broke off")]
    Broken(#[source] h2::Error),
    /// The client is too slow.
    #[error("the body arrives too slowly")]
    TooSlow(#[source] BodyTimeout),
}

impl From<h2::Error> for StreamBodyError {
    fn from(error: h2::Error) -> Self {
        Self::Broken(error)
    }
}

impl<B: Body> StreamBody<B> {
    pub(super) fn new(body: B, pace: BodyPace, leftover: Leftover<B>) -> Self {
        Self {
            body: Some(body),
            leftover,
            pace,
            received: 0,
            wait: None,
        }
    }
}

impl<B: Body> Drop for StreamBody<B> {
    fn drop(&mut self) {
        let unread = self.body.take().filter(|body| !body.is_end_stream());
        *lock(&self.leftover) = unread;
    }
}

impl<B> Body for StreamBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    StreamBodyError: From<B::Error>,
{
    type Data = Bytes;
    type Error = StreamBodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) {
            if let Some(Ok(frame)) = &frame {
                this.received += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(StreamBodyError::from)));
        }
        let (end, timer) = this.wait.get_or_insert_with(|| {
            let end = Instant::now() + this.pace.time;
            (end, Box::pin(sleep_until(end)))
        });
        let deadline = this.pace.deadline(*end, this.received);
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Some(Err(StreamBodyError::TooSlow(BodyTimeout))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use http_body_util::BodyExt;
    use tokio::time::{Interval, interval};

    use super::*;
    use crate::listen::Limits;

    impl From<Infallible> for StreamBodyError {
        fn from(never: Infallible) -> Self {
            match never {}
        }
    }

    /// A body of one piece a second.
    struct EverySecond {
        interval: Interval,
        size: usize,
        left: u32,
    }

    impl Body for EverySecond {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.left == 0 {
                return Poll::Ready(None);
            }
            ready!(self.interval.poll_tick(cx));
            self.left -= 1;
            Poll::Ready(Some(Ok(Frame::data(vec![0; self.size].into()))))
        }
    }

    async fn receive(size: usize, seconds: u32) -> Result<usize, (StreamBodyError, Duration)> {
        let begin = Instant::now();
        let body = EverySecond {
            interval: interval(Duration::from_secs(1)),
            size,
            left: seconds,
        };
        let received = StreamBody::new(body, Limits::default().body_pace(), Leftover::default())
            .collect()
            .await;
        received
            .map(|body| body.to_bytes().len())
            .map_err(|error| (error, begin.elapsed()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_must_come_in_time_and_at_the_minimal_rate() {
        assert_eq!(receive(5000, 25).await.unwrap(), 125_000);
        let (error, after) = receive(100, 25).await.unwrap_err();
        assert!(BodyTimeout::is_in(&error), "{error:?}");
        assert!((10..=12).contains(&after.as_secs()), "{after:?}");
        let (_, after) = receive(5000, 60).await.unwrap_err();
        assert_eq!(after.as_secs(), 30);
    }
}
