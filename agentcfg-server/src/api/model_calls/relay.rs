//! The provider's answer on its way to the caller.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use agentcfg_core::model::Provider;
use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use super::error::CALLER_LEFT;
use crate::http::Disconnect;
use crate::outbound;

/// A response body that is read from a provider as fast as the caller reads it.
///
/// Pieces that have arrived go on together, so that the many small ones of a stream cost few writes; none waits for
/// another. It holds [`TOGETHER`] bytes at most, or one piece. Dropping it ends the exchange with the provider.
#[derive(Debug)]
pub struct Relay {
    upstream: outbound::OutboundBody,
    provider: Provider,
    idle: Duration,
    /// The deadline for the next piece of the provider's answer. It runs only while the provider is waited for: the
    /// time that the caller takes does not count.
    deadline: Option<Instant>,
    /// The timer of the deadline. Most answers end before they need one. It is moved when it fires, which is less often
    /// than pieces arrive.
    timer: Option<Pin<Box<Sleep>>>,
    disconnect: Disconnect,
    /// What follows the last piece, if it has arrived already.
    ahead: Option<Ahead>,
    /// The error at the end, while data that was received before it is still being sent.
    fault: Option<BrokenAnswer>,
}

/// The length up to which pieces are joined.
const TOGETHER: usize = 16 << 10;

/// An end of the answer that arrived together with the last piece.
#[derive(Debug, Clone, Copy)]
enum Ahead {
    End,
    Broken(BrokenAnswer),
}

/// Why an answer broke off. The caller's connection is closed too, so that no client mistakes a part for the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrokenAnswer {
    /// The provider did not send the rest.
    #[error("the provider broke off its answer")]
    Cut,
    /// The provider sent nothing for too long.
    #[error("the provider sent nothing for too long within its answer")]
    Idle,
    /// The caller closed the connection.
    #[error("the caller closed the connection")]
    Left,
}

impl BrokenAnswer {
    /// The kind of the failure, for traces.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Cut => "connection_broken",
            Self::Idle => "timeout",
            Self::Left => CALLER_LEFT,
        }
    }
}

impl Relay {
    pub(super) fn new(
        upstream: outbound::OutboundBody,
        provider: Provider,
        idle: Duration,
        disconnect: Disconnect,
    ) -> Self {
        Self {
            upstream,
            provider,
            idle,
            deadline: None,
            timer: None,
            disconnect,
            ahead: None,
            fault: None,
        }
    }

    fn poll_upstream(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenAnswer>>> {
        match self.ahead {
            Some(Ahead::End) => return Poll::Ready(None),
            Some(Ahead::Broken(fault)) => return Poll::Ready(Some(Err(fault))),
            None => {}
        }
        let piece = ready!(self.poll_piece(cx));
        Poll::Ready(match piece {
            Some(Ok(first)) => Some(Ok(self.with_more(first, cx))),
            other => other,
        })
    }

    /// A piece, joined with those after it that have arrived too.
    fn with_more(&mut self, first: Bytes, cx: &mut Context<'_>) -> Bytes {
        let mut together = BytesMut::new();
        while first.len().max(together.len()) < TOGETHER && !self.upstream.is_end_stream() {
            match self.poll_piece(cx) {
                Poll::Ready(Some(Ok(next))) => {
                    if together.is_empty() {
                        together.reserve(first.len() + next.len());
                        together.extend_from_slice(&first);
                    }
                    together.extend_from_slice(&next);
                }
                Poll::Ready(Some(Err(fault))) => {
                    self.ahead = Some(Ahead::Broken(fault));
                    break;
                }
                Poll::Ready(None) => {
                    self.ahead = Some(Ahead::End);
                    break;
                }
                Poll::Pending => {
                    // The deadline starts again once the caller has taken everything.
                    self.deadline = None;
                    break;
                }
            }
        }
        match together.is_empty() {
            true => first,
            false => together.freeze(),
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenAnswer>>> {
        loop {
            let frame = match Pin::new(&mut self.upstream).poll_frame(cx) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    ready!(self.poll_silence(cx));
                    return Poll::Ready(Some(Err(BrokenAnswer::Idle)));
                }
            };
            self.deadline = None;
            match frame.map(|frame| frame.map(Frame::into_data)) {
                None => return Poll::Ready(None),
                Some(Ok(Ok(data))) => return Poll::Ready(Some(Ok(data))),
                // Trailers belong to the connection that they came on.
                Some(Ok(Err(_))) => {}
                Some(Err(_)) => return Poll::Ready(Some(Err(BrokenAnswer::Cut))),
            }
        }
    }

    /// Ready when the provider has been silent for too long.
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
    type Error = BrokenAnswer;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenAnswer>>> {
        if let Some(fault) = self.fault {
            return Poll::Ready(Some(Err(fault)));
        }
        if self.disconnect.poll_disconnected(cx).is_ready() {
            return Poll::Ready(Some(Err(BrokenAnswer::Left)));
        }
        match ready!(self.poll_upstream(cx)) {
            None => Poll::Ready(None),
            Some(Ok(data)) => Poll::Ready(Some(Ok(Frame::data(data)))),
            Some(Err(fault)) => {
                tracing::warn!(provider = %self.provider, "{fault}");
                // An error ends the connection at once, so earlier data is sent first.
                self.fault = Some(fault);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.ahead, Some(Ahead::End)) || self.upstream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.upstream.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};
    use hyper::Request;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::outbound::{Options, Outbound};

    /// The pieces of an answer of which these bytes are sent at once, before the connection ends.
    async fn pieces(answer: &'static str) -> Vec<Result<String, BrokenAnswer>> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 1000]).await.unwrap() > 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let request = Request::get(url).body(Full::default()).unwrap();
        let outbound = Outbound::new(&Options::default()).unwrap();
        let upstream = outbound.send(request).await.unwrap().into_body();
        server.await.unwrap();
        let mut relay = Relay::new(
            upstream,
            Provider::OPENAI,
            Duration::from_secs(60),
            Disconnect::default(),
        );
        let mut pieces = Vec::new();
        while let Some(frame) = relay.frame().await {
            pieces.push(frame.map(|frame| String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()));
            if pieces.last().is_some_and(Result::is_err) {
                break;
            }
        }
        pieces
    }

    #[tokio::test]
    async fn pieces_that_are_there_go_on_together() {
        const CHUNKS: &str =
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n";
        const WHOLE: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n";
        let whole = pieces(WHOLE).await;
        assert!(matches!(&whole[..], [Ok(all)] if all == "onetwo"), "{whole:?}");
        // What came before the connection broke arrives before the error.
        let cut = pieces(CHUNKS).await;
        assert!(
            matches!(&cut[..], [Ok(all), Err(BrokenAnswer::Cut)] if all == "onetwothree"),
            "{cut:?}"
        );
        let short = pieces("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbegun").await;
        assert!(
            matches!(&short[..], [Ok(all), Err(BrokenAnswer::Cut)] if all == "begun"),
            "{short:?}"
        );
    }
}
