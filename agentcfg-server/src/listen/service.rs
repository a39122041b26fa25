//! The services that a listener takes.

use std::convert::Infallible;
use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper::{Request, Response};
use tower_service::Service;

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
