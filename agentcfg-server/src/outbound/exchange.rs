//! A connection to another server, which the task of each exchange drives itself.
//!
//! The state machine of HTTP is hyper's. It usually runs in a task of its own, to which requests and pieces of responses go
//! through channels, so that each of them wakes another task and often another thread. Here the future of the request and
//! the body of the response poll it in place.

use std::error::Error;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use atomic_waker::AtomicWaker;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// What a connection goes over: TCP, or TLS over it.
pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// How often one poll goes through what has woken itself before it yields to other tasks.
const ROUNDS: usize = 32;

/// A connection with its state machine.
pub(super) struct Connection {
    requests: SendRequest<Full<Bytes>>,
    /// `None` when the connection has ended.
    driver: Option<http1::Connection<Stream, Full<Bytes>>>,
    wakes: Arc<Wakes>,
    /// The waker of `wakes`.
    waker: Waker,
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
        let wakes = Arc::new(Wakes::default());
        Ok(Self {
            requests,
            driver: Some(driver),
            waker: Waker::from(Arc::clone(&wakes)),
            wakes,
        })
    }

    /// Sends a request, in origin form and with the field `Host`, and waits for the head of the response.
    ///
    /// Dropping the future leaves a connection that cannot be used again.
    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Unanswered> {
        let mut response = pin!(self.requests.try_send_request(request));
        let (driver, wakes, waker) = (&mut self.driver, &self.wakes, &self.waker);
        let outcome = poll_fn(|cx| drive(driver, wakes, waker, cx, |cx| response.as_mut().poll(cx))).await;
        outcome.map_err(|mut error| match error.take_message() {
            Some(request) => Unanswered::Unsent(Box::new(request)),
            None => Unanswered::Broken(error.into_error()),
        })
    }

    /// Polls something that the connection feeds, such as the body of a response.
    pub(super) fn poll<T>(&mut self, cx: &mut Context<'_>, work: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        drive(&mut self.driver, &self.wakes, &self.waker, cx, work)
    }

    /// Whether the connection is between two exchanges, so that another request can be sent.
    pub(super) fn is_idle(&self) -> bool {
        self.driver.is_some() && self.requests.is_ready()
    }

    /// Whether an idle connection is still open, as far as is known.
    pub(super) fn is_open(&mut self) -> bool {
        self.wakes.begin();
        step(&mut self.driver, &mut Context::from_waker(&self.waker));
        self.is_idle()
    }
}

/// Polls `work` and the driver in turn until neither wakes the other any more.
fn drive<T>(
    driver: &mut Option<http1::Connection<Stream, Full<Bytes>>>,
    wakes: &Wakes,
    waker: &Waker,
    cx: &mut Context<'_>,
    mut work: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    wakes.task.register(cx.waker());
    let mut inner = Context::from_waker(waker);
    for _ in 0..ROUNDS {
        wakes.begin();
        if let Poll::Ready(done) = work(&mut inner) {
            return Poll::Ready(done);
        }
        step(driver, &mut inner);
        if wakes.park() {
            return Poll::Pending;
        }
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// Polls the driver, and drops it when it has ended: that ends whatever still waits for it.
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

/// The wakes of a connection: those during a poll are seen by that poll, others wake the task that polled last.
#[derive(Default)]
struct Wakes {
    state: AtomicU8,
    task: AtomicWaker,
}

const PARKED: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

impl Wakes {
    /// A poll begins. What woke before is part of it.
    fn begin(&self) {
        self.state.store(POLLED, SeqCst);
    }

    /// Ends a poll; false when something woke during it.
    fn park(&self) -> bool {
        self.state.compare_exchange(POLLED, PARKED, SeqCst, SeqCst).is_ok()
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, SeqCst) == PARKED {
            self.task.wake();
        }
    }
}
