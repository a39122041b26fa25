//! The body of a stream.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame};

use super::stream_state::StreamState;
use crate::http::Disconnect;

/// The state of a stream and the next piece of its text; `None` after its end.
type Step = (Box<StreamState>, Option<Bytes>);

/// A response body of server-sent events. It makes a piece when the connection takes one, and holds no other.
pub struct EventStream {
    /// The future of the next piece; `None` after the end.
    next: Option<Pin<Box<dyn Future<Output = Step> + Send>>>,
    disconnect: Disconnect,
}

/// The client has closed the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client closed the connection")]
pub struct Left;

impl EventStream {
    pub(super) fn new(state: StreamState, disconnect: Disconnect) -> Self {
        Self {
            next: Some(step(Box::new(state))),
            disconnect,
        }
    }
}

fn step(mut state: Box<StreamState>) -> Pin<Box<dyn Future<Output = Step> + Send>> {
    Box::pin(async move {
        let piece = state.next().await;
        (state, piece)
    })
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Left;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Left>>> {
        let Some(next) = &mut self.next else {
            return Poll::Ready(None);
        };
        let polled = next.as_mut().poll(cx);
        if polled.is_pending() && self.disconnect.poll_disconnected(cx).is_ready() {
            // This frees the slot of the stream.
            self.next = None;
            return Poll::Ready(Some(Err(Left)));
        }
        let (state, piece) = ready!(polled);
        self.next = piece.is_some().then(|| step(state));
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}
