//! The listener: accepting, TLS, timeouts, connection limits and draining.
//!
//! This module knows no route. It generates only the responses that cannot come from the service: those to malformed
//! HTTP, and those to calls that panicked.

mod accept;
mod answers;
mod connection;
mod connection_state;
mod demand;
mod framing;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod http2;
mod limits;
mod linger;
mod open_files;
mod proxy_protocol;
mod socket;
#[cfg(test)]
mod tests;
mod tls;
mod write_timeout_stream;

use std::convert::Infallible;
use std::error::Error;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use pin_project_lite::pin_project;
use prometheus_client::metrics::gauge::Gauge;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tower_service::Service;

pub use connection::{ServiceFn, service_fn};
pub use http2::{StreamBody, StreamBodyError};
pub use limits::Limits;
pub use open_files::fit_to_open_files;
pub use tls::Tls;

pub use crate::http::BodyTimeout;

use self::demand::{ConnectionPressure, Demand};
use crate::http::Disconnect;
use crate::hyper_internals::InPlace;

/// The result of draining a listener.
///
/// ```
/// use agentcfg_server::listen::Drained;
/// fn report(drained: Drained) {
///     if !drained.is_complete() {
///         eprintln!("{} connections were closed before their end", drained.cut);
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// The number of connections that did not finish in time and were closed.
    pub cut: usize,
}

impl Drained {
    /// Whether every request in flight was answered.
    ///
    /// ```
    /// use agentcfg_server::listen::Drained;
    /// fn exit_code(drained: Drained) -> u8 {
    ///     u8::from(!drained.is_complete())
    /// }
    /// ```
    pub fn is_complete(self) -> bool {
        self.cut == 0
    }
}

/// Serves HTTP/1 on `listener` until `shutdown` resolves, then drains the requests in flight.
///
/// `connect` makes the service of each connection, given what detects that its client has disconnected; the service is
/// cloned for each request. A call that panics is answered with 500 and affects no other request. At shutdown the
/// listener is closed and idle connections close at once; requests in flight get
/// [`shutdown_timeout`](Limits::shutdown_timeout).
///
/// A client that half-closes the connection after its request still gets the response, unless the service polls its
/// [`Disconnect`] and stops.
///
/// ```no_run
/// # async fn example(app: agentcfg_server::App) -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_server::listen::{self, Limits};
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:7420").await?;
/// let end = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
/// let connect = move |client| app.for_connection(client);
/// let drained = listen::serve(listener, connect, Limits::default(), end).await;
/// println!("{} connections were cut", drained.cut);
/// # Ok(())
/// # }
/// ```
pub async fn serve<S, B>(
    listener: TcpListener,
    connect: impl Fn(Disconnect) -> S + Clone + Send + 'static,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> Drained
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let serve = |stream, demand: watch::Receiver<Demand>| {
        let (connect, own, watched) = (connect.clone(), limits.clone(), demand.clone());
        let run = |stream, client| connection::run(stream, client, connect, own, demand);
        proxy_protocol::run(stream, &limits, &watched, run)
    };
    accept_until(listener, &limits, shutdown, serve).await
}

/// Serves HTTP/1.1 and HTTP/2 over TLS on `listener`, as [`serve`] does it without TLS: `http1` answers the requests of
/// the one, `http2` those of the other, for all connections. The client chooses by ALPN.
///
/// A call on an HTTP/2 stream is dropped when the client resets the stream.
///
/// ```no_run
/// # async fn example(app: agentcfg_server::App, tls: agentcfg_server::listen::Tls) -> std::io::Result<()> {
/// use agentcfg_server::listen::{self, Limits};
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:7420").await?;
/// let end = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
/// let http2 = app.clone();
/// let http1 = move |client| app.for_connection(client);
/// listen::serve_tls(listener, &tls, (http1, http2), Limits::default(), end).await;
/// # Ok(())
/// # }
/// ```
pub async fn serve_tls<S1, B1, S2, B2>(
    listener: TcpListener,
    tls: &Tls,
    (http1, http2): (impl Fn(Disconnect) -> S1 + Clone + Send + 'static, S2),
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> Drained
where
    S1: Service<Request<Incoming>, Response = Response<B1>, Error = Infallible> + Clone + Send + Sync + 'static,
    S1::Future: Send,
    B1: Body<Data = Bytes> + Send + Unpin + 'static,
    B1::Error: Into<Box<dyn Error + Send + Sync>>,
    S2: Service<Request<StreamBody>, Response = Response<B2>, Error = Infallible> + Clone + Send + Sync + 'static,
    S2::Future: Send + 'static,
    B2: Body<Data = Bytes> + Send + Unpin + 'static,
    B2::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let connect = |stream, demand: watch::Receiver<Demand>| {
        let (tls, services, watched) = (tls.clone(), (http1.clone(), http2.clone()), demand.clone());
        let own = limits.clone();
        let run = |stream, client| tls::run(stream, client, tls, services, own, demand);
        proxy_protocol::run(stream, &limits, &watched, run)
    };
    accept_until(listener, &limits, shutdown, connect).await
}

/// Accepts connections until `shutdown` resolves, then waits for those that are open.
async fn accept_until<C, F>(
    listener: TcpListener,
    limits: &Limits,
    shutdown: impl Future<Output = ()>,
    connect: C,
) -> Drained
where
    C: Fn(TcpStream, watch::Receiver<Demand>) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let (demand, watched) = watch::channel(Demand::Serve);
    let mut pressure = ConnectionPressure::new(demand, limits.idle_timeout);
    // One connection more than are served, which shows that its client waits.
    let mut waiting = None;
    let mut connections = JoinSet::new();
    let mut backoff = accept::Backoff::default();
    let mut shutdown = pin!(shutdown);
    let mut leave = pin!(limits.leaving.begun());
    let mut is_leaving = false;
    loop {
        if connections.len() < limits.max_connections
            && let Some(accepted) = waiting.take()
        {
            let open = Open::new(&limits.open_connections);
            let connection = connect(accepted, watched.clone());
            connections.spawn(Served {
                connection,
                in_place: InPlace::default(),
                open,
            });
        }
        if pressure.set_waiting(waiting.is_some()) {
            tracing::warn!(
                max_connections = limits.max_connections,
                address = listener.local_addr().ok().map(tracing::field::display),
                "max_connections are open: further clients wait until one closes, and idle connections close early; raise it with the \
                 limit of open files, or add a server"
            );
        }
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = connections.join_next(), if !connections.is_empty() => report(ended),
            () = pressure.change() => {}
            () = leave.as_mut(), if !is_leaving => {
                is_leaving = true;
                pressure.leave();
            }
            accepted = accept::next(&listener, &mut backoff), if waiting.is_none() => waiting = Some(accepted),
        }
    }
    drop((listener, waiting));
    pressure.close();
    let drained = tokio::time::timeout(limits.shutdown_timeout, async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    });
    if drained.await.is_ok() {
        return Drained { cut: 0 };
    }
    let cut = connections.len();
    tracing::warn!(
        cut,
        "requests are still in flight after the shutdown timeout, closing their connections"
    );
    connections.shutdown().await;
    Drained { cut }
}

pin_project! {
    /// The task of one connection. An `async` block would store the connection's future twice.
    struct Served<F> {
        #[pin]
        connection: F,
        in_place: InPlace,
        open: Open,
    }
}

impl<F: Future<Output = ()>> Future for Served<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        this.in_place.poll(cx, |cx| this.connection.as_mut().poll(cx))
    }
}

/// Counts one open connection until it is dropped.
struct Open(Gauge);

impl Open {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection panicked outside of a service call");
    }
}
