//! A fake upstream that replaces the providers: it replies as the test has planned, else in the provider's format.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use crate::provider_formats;

/// A received request.
#[derive(Debug)]
pub struct Seen {
    pub method: Method,
    pub target: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The upstream's reply to a request.
pub enum Reply {
    /// A response in the provider's format; a stream is sent event by event.
    LikeProvider,
    /// This response.
    Response(Response<Bytes>),
    /// This head; a [`Feed`] supplies the body.
    Stream(Response<()>, mpsc::Receiver<Piece>),
    /// A response in the provider's format, once the test releases it. The sender notices when the request is
    /// cancelled.
    Delayed(oneshot::Receiver<()>),
    /// A close of the connection without a response.
    Close,
}

/// A part of a streamed body.
pub enum Piece {
    Data(Bytes),
    /// The connection breaks here.
    Cut,
}

/// The test's end of a streamed body.
pub struct Feed(mpsc::Sender<Piece>);

impl Feed {
    /// Sends a piece; waits until the previous one is taken.
    pub async fn send(&self, data: impl Into<Bytes>) {
        assert!(self.try_send(data).await, "the stream was cancelled");
    }

    /// Sends a piece; returns `false` when the stream was cancelled.
    pub async fn try_send(&self, data: impl Into<Bytes>) -> bool {
        self.0.send(Piece::Data(data.into())).await.is_ok()
    }

    pub async fn cut(self) {
        let _ = self.0.send(Piece::Cut).await;
    }

    /// Delayed until the stream is cancelled.
    pub async fn cancelled(&self) {
        self.0.closed().await;
    }
}

/// A reply whose body the test supplies.
pub fn streaming(head: Response<()>) -> (Reply, Feed) {
    let (feed, pieces) = mpsc::channel(1);
    (Reply::Stream(head, pieces), Feed(feed))
}

/// A reply with a stream of server-sent events.
pub fn events() -> (Reply, Feed) {
    events_with("x-any", "field")
}

/// Events with a field in their head.
pub fn events_with(field: &str, value: &str) -> (Reply, Feed) {
    streaming(
        Response::builder()
            .header("content-type", "text/event-stream")
            .header(field, value)
            .body(())
            .unwrap(),
    )
}

/// The fake upstream.
pub struct Upstream {
    address: SocketAddr,
    plan: Arc<Mutex<VecDeque<Reply>>>,
    seen: tokio::sync::Mutex<mpsc::UnboundedReceiver<Seen>>,
}

impl Upstream {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let plan = Arc::<Mutex<VecDeque<Reply>>>::default();
        let (received, seen) = mpsc::unbounded_channel();
        let replies = Arc::clone(&plan);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (replies, received) = (Arc::clone(&replies), received.clone());
                let service = service_fn(move |request| answer(request, Arc::clone(&replies), received.clone()));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self {
            address,
            plan,
            seen: tokio::sync::Mutex::new(seen),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Plans the reply to the next request without a planned one. Unplanned requests get a reply in the
    /// provider's format.
    pub fn next(&self, reply: Reply) {
        self.plan.lock().unwrap().push_back(reply);
    }

    /// The next request, received already or in the future.
    pub async fn seen(&self) -> Seen {
        self.seen.lock().await.recv().await.expect("the upstream runs")
    }

    /// Whether every received request was taken with [`Self::seen`].
    pub async fn has_no_unseen_request(&self) -> bool {
        self.seen.lock().await.try_recv().is_err()
    }
}

async fn answer(
    request: Request<Incoming>,
    plan: Arc<Mutex<VecDeque<Reply>>>,
    received: mpsc::UnboundedSender<Seen>,
) -> Result<Response<ReplyBody>, Hangup> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Hangup)?.to_bytes();
    let seen = Seen {
        method: head.method,
        target: head.uri.to_string(),
        headers: head.headers,
        body,
    };
    let reply = plan.lock().unwrap().pop_front().unwrap_or(Reply::LikeProvider);
    let provider_response = provider_formats::answer(&seen);
    let _ = received.send(seen);
    Ok(match reply {
        Reply::LikeProvider => provider_response.map(ReplyBody::pieces),
        Reply::Response(response) => response.map(|body| ReplyBody::pieces(vec![body])),
        Reply::Stream(head, pieces) => head.map(|()| ReplyBody::Fed(pieces)),
        Reply::Delayed(released) => {
            let _ = released.await;
            provider_response.map(ReplyBody::pieces)
        }
        Reply::Close => return Err(Hangup),
    })
}

/// The body of a reply.
pub enum ReplyBody {
    Pieces(VecDeque<Bytes>),
    Fed(mpsc::Receiver<Piece>),
    /// Fails when it is polled again, so that the previous pieces are flushed first.
    Broken,
}

impl ReplyBody {
    fn pieces(pieces: Vec<Bytes>) -> Self {
        Self::Pieces(pieces.into())
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Hangup;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Hangup>>> {
        match &mut *self {
            Self::Pieces(pieces) => Poll::Ready(pieces.pop_front().map(|piece| Ok(Frame::data(piece)))),
            Self::Fed(pieces) => match ready!(pieces.poll_recv(cx)) {
                None => Poll::Ready(None),
                Some(Piece::Data(data)) => Poll::Ready(Some(Ok(Frame::data(data)))),
                Some(Piece::Cut) => {
                    *self = Self::Broken;
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            },
            Self::Broken => Poll::Ready(Some(Err(Hangup))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            // A single piece has a length; several pieces are chunked.
            Self::Pieces(pieces) if pieces.len() < 2 => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            _ => SizeHint::default(),
        }
    }
}

/// The error that breaks a connection on purpose.
#[derive(Debug)]
pub struct Hangup;

impl std::fmt::Display for Hangup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("hung up as planned")
    }
}

impl std::error::Error for Hangup {}

/// A reply with a complete response.
pub fn whole(status: u16, headers: &[(&'static str, &'static str)], body: impl Into<Bytes>) -> Reply {
    let mut response = Response::new(body.into());
    *response.status_mut() = status.try_into().unwrap();
    for (name, value) in headers {
        response
            .headers_mut()
            .append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    Reply::Response(response)
}
