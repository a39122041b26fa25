//! The provider's answer on its way to the caller.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use agentcfg_core::model::Provider;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::http::Disconnect;
use crate::outbound;

/// A response body that is read from a provider as fast as the caller takes it.
///
/// It holds one piece at most. Dropping it ends the exchange with the provider.
#[derive(Debug)]
pub struct Relay {
    upstream: outbound::Body,
    provider: Provider,
    idle: Duration,
    /// When the provider has been silent for too long, while it is waited for: the time that the caller takes does not count.
    deadline: Option<Instant>,
    /// The timer of the deadline. Most answers are there before they need one. It is moved when it fires, which is less often
    /// than pieces arrive.
    timer: Option<Pin<Box<Sleep>>>,
    disconnect: Option<Disconnect>,
    /// The error to end with, while data that was received before it is still being sent.
    fault: Option<Broken>,
}

/// Why an answer broke off. The caller's connection is closed as well, so that no client takes a part for the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The provider did not send the rest.
    #[error("the provider broke off its answer")]
    Cut,
    /// The provider sent nothing for too long.
    #[error("the provider fell silent within its answer")]
    Silent,
    /// The caller closed the connection.
    #[error("the caller closed the connection")]
    Left,
}

impl Relay {
    pub(super) fn new(
        upstream: outbound::Body,
        provider: Provider,
        idle: Duration,
        disconnect: Option<Disconnect>,
    ) -> Self {
        Self {
            upstream,
            provider,
            idle,
            deadline: None,
            timer: None,
            disconnect,
            fault: None,
        }
    }

    fn poll_upstream(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        loop {
            let frame = match Pin::new(&mut self.upstream).poll_frame(cx) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    ready!(self.poll_silence(cx));
                    return Poll::Ready(Some(Err(Broken::Silent)));
                }
            };
            self.deadline = None;
            match frame.map(|frame| frame.map(Frame::into_data)) {
                None => return Poll::Ready(None),
                Some(Ok(Ok(data))) => return Poll::Ready(Some(Ok(data))),
                // Trailers are for the connection that they came on.
                Some(Ok(Err(_))) => {}
                Some(Err(_)) => return Poll::Ready(Some(Err(Broken::Cut))),
            }
        }
    }

    /// Ready when the provider sent nothing for too long.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let idle = self.idle;
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + idle);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
    }
}

impl Body for Relay {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(fault) = self.fault {
            return Poll::Ready(Some(Err(fault)));
        }
        if self
            .disconnect
            .as_ref()
            .is_some_and(|disconnect| disconnect.poll_disconnected(cx).is_ready())
        {
            return Poll::Ready(Some(Err(Broken::Left)));
        }
        match ready!(self.poll_upstream(cx)) {
            None => Poll::Ready(None),
            Some(Ok(data)) => Poll::Ready(Some(Ok(Frame::data(data)))),
            Some(Err(fault)) => {
                tracing::warn!(provider = %self.provider, "{fault}");
                // An error ends the connection at once. What the caller should still get is sent before.
                self.fault = Some(fault);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.upstream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.upstream.size_hint()
    }
}
