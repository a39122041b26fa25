//! One HTTP/1 connection, the call of its service for each request, and the services that a listener takes.

use std::any::Any;
use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::Either;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::{Request, Response, Version};
use hyper_util::rt::TokioIo;
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tower_service::Service;

use super::answers;
use super::connection_state::{ConnectionState, Phase, ResponseGuard};
use super::demand::{Demand, closing};
use super::limits::Limits;
use super::socket::{Peer, Socket};
use crate::http::request::{RequestIds, sent_id};
use crate::http::{self, Disconnect};
use crate::hyper_internals::MAX_HEAD;

/// Serves `stream`, whose client has this address, until either side closes it, as `demand` says.
pub(super) async fn run<T, S, B>(
    stream: T,
    client: Option<IpAddr>,
    connect: impl FnOnce(Disconnect) -> S,
    limits: Limits,
    demand: watch::Receiver<Demand>,
) where
    T: AsyncRead + AsyncWrite + Peer + Unpin,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let state = ConnectionState::new(limits.leaving.clone(), client);
    let socket = Socket::new(stream, state.clone(), limits, demand.clone());
    let service_side = state.clone();
    let service = connect(state.disconnect());
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let has_body = !request.body().is_end_stream();
        let guard = service_side.begin(has_body, request.version() < Version::HTTP_11);
        let sent_id = sent_id(request.headers()).cloned();
        answer(service.clone(), request, sent_id, guard)
    });
    // The socket has separate timeouts for idle connections and slow heads; hyper has one timeout for both.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .half_close(true)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(socket), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = closing(demand) => {
            if state.phase() == Phase::AwaitingRequest {
                state.no_body_is_sent();
            }
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = &error as &dyn Error, "connection ended early");
    }
}

/// Calls the service for one request, as soon as it is ready, and gives its response a body that `guard` follows. A
/// call that panics is answered with 500; `sent_id` is the caller's own identifier of the request, for that response.
pub(super) fn answer<S, R, B, G>(
    mut service: S,
    request: Request<R>,
    sent_id: Option<HeaderValue>,
    guard: G,
) -> AnswerFuture<impl Future<Output = Result<Response<B>, Infallible>>, G>
where
    S: Service<Request<R>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send,
    R: Send + 'static,
{
    let begun = catch_unwind(AssertUnwindSafe(|| {
        // The services of this crate are always ready, so that path allocates nothing.
        let ready = service.poll_ready(&mut Context::from_waker(Waker::noop()));
        if ready.is_ready() {
            return service.call(request).left_future();
        }
        let later = async move {
            let Ok(()) = poll_fn(|cx| service.poll_ready(cx)).await;
            service.call(request).await
        };
        later.boxed().right_future()
    }));
    // A panic is resumed where the future is polled, so that one place handles both.
    let call = begun.unwrap_or_else(|panic| async move { resume_unwind(panic) }.boxed().right_future());
    let guard = Some(guard);
    AnswerFuture { call, sent_id, guard }
}

pin_project! {
    /// The response to one request; see [`answer`]. An `async` block or a combinator would move or store the call's
    /// future once more.
    pub(super) struct AnswerFuture<F, G> {
        #[pin]
        call: F,
        sent_id: Option<HeaderValue>,
        guard: Option<G>,
    }
}

impl<F, B, G> Future for AnswerFuture<F, G>
where
    F: Future<Output = Result<Response<B>, Infallible>>,
    G: Follow,
{
    type Output = Result<Response<G::Followed<Either<B, http::Body>>>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // Unwind safety: the call is not polled again after a panic, so its incomplete state is never used.
        let outcome = catch_unwind(AssertUnwindSafe(|| this.call.poll(cx)));
        let mut response = match outcome {
            Ok(polled) => {
                let Ok(response) = ready!(polled);
                response.map(Either::Left)
            }
            Err(panic) => {
                let id = this.sent_id.take().unwrap_or_else(|| RequestIds::new().next());
                tracing::error!(
                    request_id = id.to_str().unwrap_or_default(),
                    panic = panic_message(&*panic),
                    "a service call panicked"
                );
                answers::panicked(id).map(Either::Right)
            }
        };
        let guard = this.guard.take();
        if guard.as_ref().is_some_and(G::is_last) {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        Poll::Ready(Ok(response.map(|body| G::follow(guard, body))))
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// Follows the response body to its end.
pub(super) trait Follow: Sized {
    /// A body that is followed.
    type Followed<B>;

    /// Whether the response says that its connection ends with it.
    fn is_last(&self) -> bool {
        false
    }

    /// Puts a body under observation. It is called once; later calls have no `guard`.
    fn follow<B>(guard: Option<Self>, body: B) -> Self::Followed<B>;
}

/// Of a response that is followed elsewhere.
impl Follow for () {
    type Followed<B> = B;

    fn follow<B>(_: Option<Self>, body: B) -> B {
        body
    }
}

impl Follow for ResponseGuard {
    type Followed<B> = Tracked<B>;

    fn is_last(&self) -> bool {
        Self::is_last(self)
    }

    fn follow<B>(guard: Option<Self>, body: B) -> Tracked<B> {
        Tracked { body, _guard: guard }
    }
}

/// A response body that holds the guard of its response.
#[derive(Debug)]
pub(super) struct Tracked<B> {
    body: B,
    _guard: Option<ResponseGuard>,
}

impl<B: Body + Unpin> Body for Tracked<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
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
    ServiceFn(call)
}

/// See [`service_fn`].
#[derive(Debug, Clone, Copy)]
pub struct ServiceFn<F>(F);

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
        (self.0)(request)
    }
}
