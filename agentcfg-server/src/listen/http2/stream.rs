//! One stream: the call of the service for its request, and its response.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Poll, ready};
use std::time::Duration;

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::sync::lock;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http_body_util::{BodyExt, Either};
use hyper::body::Body;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use tokio::task::consume_budget;
use tokio::time::{Instant, timeout, timeout_at};
use tower_service::Service;

use super::activity::{Activity, OpenStream};
use super::body::{Leftover, Received, Respond, Responder, StreamBody};
use super::piece::{self, Piece};
use super::request::prepare;
use crate::http::{self, request::sent_id};
use crate::listen::answers;
use crate::listen::connection::answer;
use crate::listen::limits::{BodyPace, LINGER_IDLE, LINGER_TOTAL};

/// Fields of a connection of HTTP/1.1. A message of HTTP/2 that has one is malformed.
const OF_A_CONNECTION: [HeaderName; 6] = [
    header::CONNECTION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Answers the request of a stream. It ends early when the client resets the stream, or leaves its response unread for
/// too long: then the stream is reset. After the response, what the client still sends is read and discarded for a while.
pub(super) async fn serve<S, B>(
    request: Request<RecvStream>,
    respond: SendResponse<Piece>,
    service: S,
    (pace, write_timeout): (BodyPace, Duration),
    mut open: OpenStream,
) where
    S: Service<Request<StreamBody>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let respond = Arc::new(Mutex::new(Responder {
        send: respond,
        has_begun: false,
    }));
    let leftover = Leftover::default();
    let is_head = request.method() == Method::HEAD;
    let called = call(request, &respond, service, pace, &leftover);
    let Some(response) = called.await else { return };
    let patience = Patience {
        activity: open.activity(),
        write_timeout,
    };
    if !send(response, is_head, &respond, patience).await {
        return;
    }
    open.complete();
    drop(open);
    let unread = lock(&leftover).take();
    if let Some(unread) = unread {
        discard(unread).await;
    }
}

/// The response of the service, or the refusal of a request that it does not get; `None` when the client has reset the
/// stream.
async fn call<S, B>(
    request: Request<RecvStream>,
    respond: &Respond,
    service: S,
    pace: BodyPace,
    leftover: &Leftover<Received>,
) -> Option<Response<Either<B, http::Body>>>
where
    S: Service<Request<StreamBody>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
{
    let request = match prepare(request) {
        Ok(request) => request,
        Err((fault, headers)) => return Some(answers::refused(fault, &headers).map(Either::Right)),
    };
    let (head, stream) = request.into_parts();
    let body = Received::new(stream, &head.headers, respond);
    let sent_id = sent_id(&head.headers).cloned();
    let request = Request::from_parts(head, StreamBody::new(body, pace, Arc::clone(leftover)));
    let mut answered = pin!(answer(service, request, sent_id, ()));
    tokio::select! {
        biased;
        answered = answered.as_mut() => {
            let Ok(response) = answered;
            Some(response)
        }
        _ = poll_fn(|cx| lock(respond).send.poll_reset(cx)) => None,
    }
}

/// How long a client may leave a response unread.
#[derive(Clone, Copy)]
struct Patience<'a> {
    activity: &'a Activity,
    write_timeout: Duration,
}

impl Patience<'_> {
    /// Waits for what depends on the client; `None` when the client takes too long. While the socket takes nothing more,
    /// all streams of the connection share what the client reads, and the socket has the time limit.
    async fn wait<T>(self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            if let Ok(done) = timeout(self.write_timeout, work.as_mut()).await {
                return Some(done);
            }
            if !self.activity.is_blocked() {
                return None;
            }
        }
    }
}

/// Sends a response, without its body if `is_head`; false when the client does not take all of it.
async fn send<B>(response: Response<B>, is_head: bool, respond: &Respond, patience: Patience<'_>) -> bool
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (mut head, mut body) = response.into_parts();
    let has_body = !body.is_end_stream();
    complete(&mut head.headers, body.size_hint().exact().filter(|_| has_body));
    let is_empty = is_head || !has_body;
    let sent = {
        let mut responder = lock(respond);
        responder.has_begun = true;
        responder.send.send_response(Response::from_parts(head, ()), is_empty)
    };
    let Ok(mut stream) = sent else { return false };
    if is_empty {
        return true;
    }
    loop {
        let frame = tokio::select! {
            biased;
            _ = poll_fn(|cx| stream.poll_reset(cx)) => return false,
            frame = body.frame() => frame,
        };
        let mut data = match frame {
            None => return finish(&mut stream, Bytes::new(), patience).await,
            Some(Err(error)) => {
                let error = error.into();
                tracing::debug!(
                    error = &*error as &dyn Error,
                    "resetting a stream whose response broke off"
                );
                stream.send_reset(Reason::INTERNAL_ERROR);
                return true;
            }
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => data,
                Err(frame) => match frame.into_trailers() {
                    Ok(trailers) => return stream.send_trailers(trailers).is_ok(),
                    Err(_) => continue,
                },
            },
        };
        while !data.is_empty() {
            let piece = data.split_to(data.len().min(piece::LONGEST));
            match patience.wait(has_room(&mut stream)).await {
                Some(true) => {}
                Some(false) => return false,
                None => return give_up(&mut stream),
            }
            if data.is_empty() && body.is_end_stream() {
                return finish(&mut stream, piece, patience).await;
            }
            if stream.send_data(Piece::new(piece), false).is_err() {
                return false;
            }
        }
    }
}

/// Sends the last piece of a response, and waits until it was written: until then the response is in flight, and its
/// connection stays open. False when the client does not take it.
async fn finish(stream: &mut SendStream<Piece>, piece: Bytes, patience: Patience<'_>) -> bool {
    let (piece, dropped) = Piece::last(piece);
    if stream.send_data(piece, true).is_err() {
        return false;
    }
    let taken = async {
        tokio::select! {
            biased;
            _ = poll_fn(|cx| stream.poll_reset(cx)) => false,
            _ = dropped => true,
        }
    };
    match patience.wait(taken).await {
        Some(is_taken) => is_taken,
        None => give_up(stream),
    }
}

/// Resets a stream whose client does not read its response; false, for the caller to return.
fn give_up(stream: &mut SendStream<Piece>) -> bool {
    tracing::debug!("resetting a stream whose client does not read its response");
    stream.send_reset(Reason::CANCEL);
    false
}

/// What the head of a response needs in HTTP/2, with the length of a body where that is known.
fn complete(headers: &mut HeaderMap, length: Option<u64>) {
    for name in &OF_A_CONNECTION {
        headers.remove(name);
    }
    if let Some(length) = length {
        headers.entry(header::CONTENT_LENGTH).or_insert_with(|| length.into());
    }
    if !headers.contains_key(header::DATE) {
        let now = httpdate::fmt_http_date(SystemClock.now().as_datetime().into());
        headers.extend(HeaderValue::try_from(now).ok().map(|now| (header::DATE, now)));
    }
}

/// Waits until the client and the buffer have room for a byte, so that h2 takes a piece; false when the stream has ended.
async fn has_room(stream: &mut SendStream<Piece>) -> bool {
    stream.reserve_capacity(1);
    poll_fn(|cx| {
        if stream.poll_reset(cx).is_ready() {
            return Poll::Ready(false);
        }
        while stream.capacity() == 0 {
            if !matches!(ready!(stream.poll_capacity(cx)), Some(Ok(_))) {
                return Poll::Ready(false);
            }
        }
        Poll::Ready(true)
    })
    .await
}

/// Reads and discards a body, until its end or for a limited time.
async fn discard(mut body: Received) {
    let end = Instant::now() + LINGER_TOTAL;
    loop {
        let idle = end.min(Instant::now() + LINGER_IDLE);
        match timeout_at(idle, body.frame()).await {
            Ok(Some(Ok(_))) => consume_budget().await,
            Ok(Some(Err(_)) | None) | Err(_) => return,
        }
    }
}
