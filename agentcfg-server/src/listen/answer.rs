//! The services that a listener takes, and the answer of a service to one request, also if the call panics.

use std::convert::Infallible;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use http_body_util::Either;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::answers;
use crate::http::Body;
use crate::http::request_id::RequestIds;

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

/// Calls a service as soon as it is ready. The services of this crate always are, so that path allocates nothing.
fn call<S, R, B>(mut service: S, request: Request<R>) -> Call<S::Future>
where
    S: Service<Request<R>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send,
    R: Send + 'static,
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

/// Follows the response body to its end.
pub(super) trait Follow: Sized {
    /// A body that is followed.
    type Followed<B>;

    /// Puts a body under observation. It is called once; later calls have no `guard`.
    fn follow<B>(guard: Option<Self>, body: B) -> Self::Followed<B>;
}

pin_project! {
    /// The response to one request, also if the call panics. An `async` block would store the call's future twice.
    pub(super) struct Answer<F: Future, G> {
        #[pin]
        call: Call<F>,
        sent_id: Option<HeaderValue>,
        guard: Option<G>,
    }
}

/// Calls the service for one request, whose response body `guard` follows. `sent_id` is the caller's own identifier of the
/// request, for the response to a call that panics.
pub(super) fn answer<S, R, B, G>(
    service: S,
    request: Request<R>,
    sent_id: Option<HeaderValue>,
    guard: G,
) -> Answer<S::Future, G>
where
    S: Service<Request<R>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send,
    R: Send + 'static,
{
    Answer {
        sent_id,
        call: call(service, request),
        guard: Some(guard),
    }
}

impl<F, B, G> Future for Answer<F, G>
where
    F: Future<Output = Result<Response<B>, Infallible>>,
    G: Follow,
{
    type Output = Result<Response<G::Followed<Either<B, Body>>>, Infallible>;

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
                tracing::error!(
                    request_id = id.to_str().unwrap_or_default(),
                    panic = panic_message(&*panic),
                    "a service call panicked"
                );
                answers::panicked(id).map(Either::Right)
            }
        };
        let guard = this.guard.take();
        Poll::Ready(Ok(response.map(|body| G::follow(guard, body))))
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
