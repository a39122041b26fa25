//! The body of a response.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

use super::pool::{Pool, PooledConnection};

/// The body of a response, which is read from its connection while it is polled.
///
/// A body that was read to its end leaves its connection for the next request. Dropping it before closes the
/// connection.
///
/// ```no_run
/// # async fn example(pool: agentcfg_server::Outbound) -> Result<(), Box<dyn std::error::Error>> {
/// use http_body_util::BodyExt;
/// let request = hyper::Request::get("https://api.example.com/v1/models").body(Default::default())?;
/// let body: agentcfg_server::OutboundBody = pool.send(request).await?.into_body();
/// println!("{} bytes", body.collect().await?.to_bytes().len());
/// # Ok(())
/// # }
/// ```
pub struct OutboundBody {
    incoming: Incoming,
    /// `None` after the end of the body.
    pooled: Option<PooledConnection>,
    pool: Arc<Pool>,
}

impl OutboundBody {
    pub(super) fn new(incoming: Incoming, pooled: PooledConnection, pool: Arc<Pool>) -> Self {
        let mut body = Self {
            incoming,
            pooled: Some(pooled),
            pool,
        };
        if body.incoming.is_end_stream() {
            body.give_back();
        }
        body
    }

    /// Leaves the connection to the next request. One that cannot be used again is closed.
    fn give_back(&mut self) {
        if let Some(pooled) = self.pooled.take() {
            self.pool.put(pooled);
        }
    }
}

impl HttpBody for OutboundBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { incoming, pooled, .. } = &mut *self;
        let mut incoming = Pin::new(incoming);
        let frame = ready!(match pooled {
            Some(pooled) => pooled.connection.poll(cx, |cx| incoming.as_mut().poll_frame(cx)),
            None => incoming.poll_frame(cx),
        });
        if frame.is_none() || self.incoming.is_end_stream() {
            self.give_back();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl fmt::Debug for OutboundBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("incoming", &self.incoming)
            .finish_non_exhaustive()
    }
}
