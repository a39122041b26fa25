//! One HTTP/1 connection, and the services that a listener takes for its connections.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::{Request, Response, Version};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tower_service::Service;

use super::exchange::{Exchange, Phase, answer};
use super::limits::Limits;
use super::socket::{Peer, Socket};
use crate::http::request::Outline;

/// The maximum size of a request head that hyper reads. It is well above the limits of the service, so that the service
/// refuses with its own message, and below 64 KiB, the maximum of a header name in hyper.
const READ_BUFFER: usize = 65_000;

/// Serves `stream` until either side closes it. `closing` turns true at shutdown.
pub(super) async fn run<T, S, B>(stream: T, service: S, limits: Limits, closing: watch::Receiver<bool>)
where
    T: AsyncRead + AsyncWrite + Peer + Unpin,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let exchange = Exchange::default();
    let socket = Socket::new(stream, exchange.clone(), &limits);
    let service_side = exchange.clone();
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        let has_body = !request.body().is_end_stream();
        let guard = service_side.begin(has_body, request.version() < Version::HTTP_11);
        let outline = Outline::of(request.headers());
        let sent_id = outline.request_id.cloned();
        // Other calls with safe methods are short: they do not need the handle, and inserting it has a cost.
        if outline.may_ask_for_events || !request.method().is_safe() {
            request.extensions_mut().insert(service_side.disconnect());
        }
        answer(service.clone(), request, sent_id, guard)
    });
    // The socket has separate timeouts for idle connections and slow heads; hyper has one timeout for both.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .half_close(true)
        .max_buf_size(READ_BUFFER)
        .serve_connection(TokioIo::new(socket), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = shutdown(closing) => {
            if exchange.phase() == Phase::AwaitingRequest {
                exchange.no_body_is_sent();
            }
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = &error as &dyn Error, "connection ended early");
    }
}

/// Resolves when `closing` turns true, or its sender is dropped.
///
/// All connections share the channel, and polling it takes a shared lock. So it is polled once, to register the waker;
/// later polls of the task only compare the channel's version, which takes no lock.
pub(super) async fn shutdown(closing: watch::Receiver<bool>) {
    let mut polled = closing.clone();
    let mut closed = pin!(async { polled.wait_for(|closing| *closing).await.is_ok() });
    let mut is_registered = false;
    poll_fn(move |cx| {
        if is_registered && !closing.has_changed().unwrap_or(true) {
            return Poll::Pending;
        }
        is_registered = true;
        closed.as_mut().poll(cx).map(drop)
    })
    .await
}

/// What a listener gets the service of each connection from: a service, which is cloned, or [`each_connection`].
pub trait Connect {
    /// The service of one connection, which is cloned for each request.
    type Service;

    /// Is called once for each connection.
    fn connect(&self) -> Self::Service;
}

impl<S> Connect for S
where
    S: Service<Request<Incoming>> + Clone,
{
    type Service = S;

    fn connect(&self) -> S {
        self.clone()
    }
}

/// Makes the services of connections from a state and two functions: `connect` makes the state of one connection, and `call`
/// answers a request of it.
///
/// Requests of different connections then share no reference count, which costs more the more threads change it.
///
/// ```
/// use agentcfg_server::listen::each_connection;
/// use hyper::{Request, Response, body::Incoming};
/// use std::convert::Infallible;
/// use std::sync::Arc;
/// fn hello(greeting: &Arc<str>, _: Request<Incoming>) -> impl Future<Output = Result<Response<String>, Infallible>> + use<> {
///     std::future::ready(Ok(Response::new(greeting.to_string())))
/// }
/// let services = each_connection(Arc::from("hello"), |greeting: &Arc<str>| Arc::from(&**greeting), hello);
/// ```
pub fn each_connection<T, F>(state: T, connect: fn(&T) -> T, call: F) -> EachConnection<T, F> {
    EachConnection { state, connect, call }
}

/// See [`each_connection`].
#[derive(Debug, Clone, Copy)]
pub struct EachConnection<T, F> {
    state: T,
    connect: fn(&T) -> T,
    call: F,
}

impl<T, F: Clone> Connect for EachConnection<T, F> {
    type Service = WithState<T, F>;

    fn connect(&self) -> WithState<T, F> {
        WithState {
            state: (self.connect)(&self.state),
            call: self.call.clone(),
        }
    }
}

/// The service of one connection; see [`each_connection`].
#[derive(Debug, Clone, Copy)]
pub struct WithState<T, F> {
    state: T,
    call: F,
}

impl<T, F, Fut, B> Service<Request<Incoming>> for WithState<T, F>
where
    F: Fn(&T, Request<Incoming>) -> Fut,
    Fut: Future<Output = Result<Response<B>, Infallible>>,
{
    type Response = Response<B>;
    type Error = Infallible;
    type Future = Fut;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Fut {
        (self.call)(&self.state, request)
    }
}

/// Makes a service from an async function, for [`serve`](super::serve).
///
/// ```
/// use agentcfg_server::listen::service_fn;
/// use hyper::{Request, Response, body::Incoming};
/// use std::convert::Infallible;
/// let hello = service_fn(async |_: Request<Incoming>| Ok::<_, Infallible>(Response::new("hello".to_owned())));
/// ```
pub fn service_fn<F>(call: F) -> ServiceFn<F> {
    ServiceFn { call }
}

/// See [`service_fn`].
#[derive(Debug, Clone, Copy)]
pub struct ServiceFn<F> {
    call: F,
}

impl<F, Fut, B> Service<Request<Incoming>> for ServiceFn<F>
where
    F: Fn(Request<Incoming>) -> Fut,
    Fut: Future<Output = Result<Response<B>, Infallible>>,
{
    type Response = Response<B>;
    type Error = Infallible;
    type Future = Fut;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Fut {
        (self.call)(request)
    }
}
