//! Serving one connection.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body_util::Either;
use hyper::body::{Body, Incoming};
use hyper::header::HeaderValue;
use hyper::server::conn::http1;
use hyper::{Request, Response, Version};
use hyper_util::rt::TokioIo;
use pin_project_lite::pin_project;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tower_service::Service;

use super::answers;
use super::exchange::{Exchange, Phase, ResponseGuard, Tracked};
use super::limits::Limits;
use super::socket::Socket;
use crate::http::request;
use crate::http::request_id::{self, RequestIds};

/// The maximum size of a request head that hyper reads. It is well above the limits of the service, so that the service
/// refuses with its own message, and below 64 KiB, the maximum of a header name in hyper.
const READ_BUFFER: usize = 65_000;

/// Serves `stream` until either side closes it. `closing` turns true at shutdown.
pub(super) async fn run<S, B>(stream: TcpStream, service: S, limits: Limits, closing: watch::Receiver<bool>)
where
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
        // Other calls with safe methods are short: they do not need the handle, and inserting it has a cost.
        if !request.method().is_safe() || request::may_ask_for_events(request.headers()) {
            request.extensions_mut().insert(service_side.disconnect());
        }
        Answer {
            sent_id: request_id::sent(request.headers()).cloned(),
            call: call(service.clone(), request),
            guard: Some(guard),
        }
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
async fn shutdown(closing: watch::Receiver<bool>) {
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

/// Calls a service as soon as it is ready. The services of this crate always are, so that path allocates nothing.
fn call<S, B>(mut service: S, request: Request<Incoming>) -> Call<S::Future>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send,
{
    let begun = catch_unwind(AssertUnwindSafe(|| {
        let ready = service.poll_ready(&mut Context::from_waker(Waker::noop()));
        if ready.is_ready() {
            return Call::Now {
                call: service.call(request),
            };
        }
        Call::Later {
            call: Box::pin(async move {
                let Ok(()) = poll_fn(|cx| service.poll_ready(cx)).await;
                service.call(request).await
            }),
        }
    }));
    // A panic is resumed where the future is polled, so that one place handles both.
    begun.unwrap_or_else(|panic| Call::Later {
        call: Box::pin(async move { resume_unwind(panic) }),
    })
}

pin_project! {
    /// A service call: started, or waiting for the service to be ready.
    #[project = CallProjection]
    enum Call<F: Future> {
        Now { #[pin] call: F },
        Later { call: Pin<Box<dyn Future<Output = F::Output> + Send>> },
    }
}

impl<F: Future> Future for Call<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project() {
            CallProjection::Now { call } => call.poll(cx),
            CallProjection::Later { call } => call.as_mut().poll(cx),
        }
    }
}

pin_project! {
    /// The response to one request, also if the call panics. An `async` block would store the call's future twice.
    struct Answer<F> {
        #[pin]
        call: F,
        sent_id: Option<HeaderValue>,
        guard: Option<ResponseGuard>,
    }
}

impl<F, B> Future for Answer<F>
where
    F: Future<Output = Result<Response<B>, Infallible>>,
{
    type Output = Result<Response<Tracked<Either<B, crate::http::Body>>>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // Unwind safety: the call is not polled again after a panic, so its incomplete state is never used.
        let outcome = catch_unwind(AssertUnwindSafe(|| this.call.poll(cx)));
        let response = match outcome {
            Ok(polled) => {
                let Ok(response) = ready!(polled);
                response.map(Either::Left)
            }
            Err(panic) => {
                let id = this.sent_id.take().unwrap_or_else(|| RequestIds::new().next());
                tracing::error!(request_id = ?id, panic = panic_message(&*panic), "a service call panicked");
                answers::panicked(id).map(Either::Right)
            }
        };
        let guard = this.guard.take();
        Poll::Ready(Ok(response.map(|body| Tracked::new(body, guard))))
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
