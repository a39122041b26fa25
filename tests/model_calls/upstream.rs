//! What stands in for the providers: a server that says what a test has it say, or else speaks the formats of both.

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

use crate::speech;

/// A request as it came.
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

/// What it does upon a request.
pub enum Does {
    /// Answers as the provider would, the stream piece by piece.
    Speaks,
    /// Answers with this.
    Answers(Response<Bytes>),
    /// Answers with this head; the body comes from a [`Feed`].
    Streams(Response<()>, mpsc::Receiver<Piece>),
    /// Answers when it is released. The other end learns when the request is given up.
    Waits(oneshot::Receiver<()>),
    /// Closes the connection.
    HangsUp,
}

/// A part of a streamed body.
pub enum Piece {
    Data(Bytes),
    /// The connection breaks here.
    Cut,
}

/// The end of a streamed body that a test holds.
pub struct Feed(mpsc::Sender<Piece>);

impl Feed {
    /// Hands a piece over; waits while the one before is not on its way.
    pub async fn send(&self, data: impl Into<Bytes>) {
        assert!(self.try_send(data).await, "nobody takes the stream any more");
    }

    /// The same; `false` when nobody takes it any more.
    pub async fn try_send(&self, data: impl Into<Bytes>) -> bool {
        self.0.send(Piece::Data(data.into())).await.is_ok()
    }

    pub async fn cut(self) {
        let _ = self.0.send(Piece::Cut).await;
    }

    /// Waits until nobody takes the stream any more.
    pub async fn given_up(&self) {
        self.0.closed().await;
    }
}

/// An answer of which a test sends the body.
pub fn streaming(head: Response<()>) -> (Does, Feed) {
    let (feed, pieces) = mpsc::channel(1);
    (Does::Streams(head, pieces), Feed(feed))
}

/// A server-sent stream.
pub fn events() -> (Does, Feed) {
    streaming(
        Response::builder()
            .header("content-type", "text/event-stream")
            .body(())
            .unwrap(),
    )
}

/// See the module.
pub struct Upstream {
    address: SocketAddr,
    plan: Arc<Mutex<VecDeque<Does>>>,
    seen: tokio::sync::Mutex<mpsc::UnboundedReceiver<Seen>>,
}

impl Upstream {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let plan = Arc::<Mutex<VecDeque<Does>>>::default();
        let (tell, seen) = mpsc::unbounded_channel();
        let doing = Arc::clone(&plan);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (doing, tell) = (Arc::clone(&doing), tell.clone());
                let service = service_fn(move |request| answer(request, Arc::clone(&doing), tell.clone()));
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

    /// Plans what the next request that is not planned for meets. Without a plan it speaks.
    pub fn next(&self, does: Does) {
        self.plan.lock().unwrap().push_back(does);
    }

    /// The next request that came, or will come.
    pub async fn seen(&self) -> Seen {
        self.seen.lock().await.recv().await.expect("it serves on")
    }

    /// Whether no request came that was not looked at.
    pub async fn saw_no_more(&self) -> bool {
        self.seen.lock().await.try_recv().is_err()
    }
}

async fn answer(
    request: Request<Incoming>,
    plan: Arc<Mutex<VecDeque<Does>>>,
    tell: mpsc::UnboundedSender<Seen>,
) -> Result<Response<Said>, Hangup> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Hangup)?.to_bytes();
    let seen = Seen {
        method: head.method,
        target: head.uri.to_string(),
        headers: head.headers,
        body,
    };
    let does = plan.lock().unwrap().pop_front().unwrap_or(Does::Speaks);
    let spoken = speech::answer(&seen);
    let _ = tell.send(seen);
    Ok(match does {
        Does::Speaks => spoken.map(Said::pieces),
        Does::Answers(response) => response.map(|body| Said::pieces(vec![body])),
        Does::Streams(head, pieces) => head.map(|()| Said::Fed(pieces)),
        Does::Waits(released) => {
            let _ = released.await;
            spoken.map(Said::pieces)
        }
        Does::HangsUp => return Err(Hangup),
    })
}

/// A response body.
pub enum Said {
    Pieces(VecDeque<Bytes>),
    Fed(mpsc::Receiver<Piece>),
    /// Breaks when it is asked again: what was said before is sent first.
    Broken,
}

impl Said {
    fn pieces(pieces: Vec<Bytes>) -> Self {
        Self::Pieces(pieces.into())
    }
}

impl Body for Said {
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
            // What is one piece has a length; what is more comes in chunks.
            Self::Pieces(pieces) if pieces.len() < 2 => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            _ => SizeHint::default(),
        }
    }
}

/// Ends a connection.
#[derive(Debug)]
pub struct Hangup;

impl std::fmt::Display for Hangup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("hung up as planned")
    }
}

impl std::error::Error for Hangup {}

/// A whole answer.
pub fn whole(status: u16, headers: &[(&'static str, &'static str)], body: impl Into<Bytes>) -> Does {
    let mut response = Response::new(body.into());
    *response.status_mut() = status.try_into().unwrap();
    for (name, value) in headers {
        response
            .headers_mut()
            .append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    Does::Answers(response)
}
