//! A connection to another server, which the task of each exchange drives itself.
//!
//! The state machine of HTTP is hyper's. It usually runs in a task of its own, to which requests and pieces of
//! responses go through channels, so that each of them wakes another task and often another thread. Here the future of
//! the request and the body of the response poll it in place.

use std::error::Error;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::hyper_internals::{InPlace, unsent};

/// What a connection goes over: TCP, or TLS over it.
pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// A connection with its state machine.
pub(super) struct Connection {
    requests: SendRequest<Full<Bytes>>,
    /// `None` when the connection has ended.
    driver: Option<http1::Connection<Stream, Full<Bytes>>>,
    in_place: InPlace,
}

/// Why a request has no response.
pub(super) enum Unanswered {
    /// Nothing of the request was sent: the connection had been closed before.
    Unsent(Box<Request<Full<Bytes>>>),
    /// Some of it was sent, or may have been.
    Broken(hyper::Error),
}

impl Connection {
    /// A connection over a stream that is open.
    pub(super) async fn over(stream: Stream) -> Result<Self, hyper::Error> {
        let (requests, driver) = http1::handshake(stream).await?;
        Ok(Self {
            requests,
            driver: Some(driver),
            in_place: InPlace::default(),
        })
    }

    /// Sends a request, in origin form and with the field `Host`, and waits for the head of the response.
    ///
    /// Dropping the future leaves a connection that cannot be used again.
    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Unanswered> {
        let mut response = pin!(self.requests.try_send_request(request));
        let (driver, in_place) = (&mut self.driver, &self.in_place);
        let outcome = poll_fn(|cx| in_place.poll(cx, |cx| drive(driver, cx, |cx| response.as_mut().poll(cx)))).await;
        outcome.map_err(|mut error| match unsent(&mut error) {
            Some(request) => Unanswered::Unsent(Box::new(request)),
            None => Unanswered::Broken(error.into_error()),
        })
    }

    /// Polls something that the connection feeds, such as the body of a response.
    pub(super) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut work: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let driver = &mut self.driver;
        self.in_place.poll(cx, |cx| drive(driver, cx, &mut work))
    }

    /// Whether the connection is between two exchanges, so that another request can be sent.
    pub(super) fn is_idle(&self) -> bool {
        self.driver.is_some() && self.requests.is_ready()
    }

    /// Whether an idle connection is still open, as far as is known.
    pub(super) fn is_open(&mut self) -> bool {
        self.in_place.poll_once(|cx| step(&mut self.driver, cx));
        self.is_idle()
    }
}

/// Polls `work`, and the driver if it waits.
fn drive<T>(
    driver: &mut Option<http1::Connection<Stream, Full<Bytes>>>,
    cx: &mut Context<'_>,
    work: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let polled = work(cx);
    if polled.is_pending() {
        step(driver, cx);
    }
    polled
}

/// Polls the driver, and drops it when it has ended: that ends the futures that still wait for it.
fn step(driver: &mut Option<http1::Connection<Stream, Full<Bytes>>>, cx: &mut Context<'_>) {
    let Some(polled) = driver.as_mut().map(|driver| Pin::new(driver).poll(cx)) else {
        return;
    };
    if let Poll::Ready(ended) = polled {
        if let Err(error) = ended {
            tracing::debug!(error = &error as &dyn Error, "a connection to another server ended");
        }
        *driver = None;
        // What waited for it is polled once more.
        cx.waker().wake_by_ref();
    }
}
