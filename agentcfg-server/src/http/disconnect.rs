//! The detection that the client of a request has disconnected.

use std::fmt::Debug;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// A connection that detects the disconnect of its client; see [`Disconnect`].
///
/// ```
/// use agentcfg_server::WatchClient;
/// use std::task::{Context, Poll};
///
/// /// A client that never disconnects, for tests.
/// #[derive(Debug)]
/// struct Connected;
///
/// impl WatchClient for Connected {
///     fn poll_disconnected(&self, _: &mut Context<'_>) -> Poll<()> {
///         Poll::Pending
///     }
/// }
/// ```
pub trait WatchClient: Debug + Send + Sync {
    /// Ready when the client has closed the connection or its sending side. The task of the connection is woken then.
    fn poll_disconnected(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// Breaks the connection off if the client has not taken the whole response by then. The default does nothing.
    fn end_by(&self, end: Instant) {
        let _ = end;
    }
}

/// Detects that the client of a request has closed the connection or its sending side: over TCP the two look alike.
///
/// A listener puts one into the extensions of a request. Most calls need not use it: they are short, and a client that has
/// sent all of its request may still wait for the answer.
///
/// Only the call itself or its response body may poll it, never another task: only the task of the connection is woken.
///
/// ```no_run
/// # use agentcfg_server::Disconnect;
/// # async fn work() -> u32 { 7 }
/// # async fn example(disconnect: Disconnect) {
/// tokio::select! {
///     () = disconnect.disconnected() => println!("the client disconnected, the work is dropped"),
///     result = work() => println!("{result}"),
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Disconnect(Arc<dyn WatchClient>);

impl Disconnect {
    /// Watches the client of this connection.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use agentcfg_server::{Disconnect, WatchClient};
    /// # fn example(connection: Arc<dyn WatchClient>, request: &mut hyper::Request<()>) {
    /// request.extensions_mut().insert(Disconnect::new(connection));
    /// # }
    /// ```
    pub fn new(connection: Arc<dyn WatchClient>) -> Self {
        Self(connection)
    }

    /// Resolves when the client has disconnected.
    ///
    /// ```no_run
    /// # async fn example(disconnect: agentcfg_server::Disconnect) {
    /// disconnect.disconnected().await;
    /// # }
    /// ```
    pub async fn disconnected(&self) {
        poll_fn(|cx| self.poll_disconnected(cx)).await;
    }

    /// Breaks the connection off if the client has not taken the whole response by then. A client that reads a few bytes now
    /// and then never times out otherwise, and while it does not take the next piece of a body, nothing ends the body.
    ///
    /// ```no_run
    /// # use std::time::{Duration, Instant};
    /// # fn example(disconnect: agentcfg_server::Disconnect) {
    /// disconnect.end_by(Instant::now() + Duration::from_secs(600));
    /// # }
    /// ```
    pub fn end_by(&self, end: Instant) {
        self.0.end_by(end);
    }

    /// Ready when the client has disconnected.
    pub fn poll_disconnected(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_disconnected(cx)
    }
}
