//! Services from async functions.

use std::convert::Infallible;
use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper::{Request, Response};
use tower_service::Service;

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
