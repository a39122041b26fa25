//! The detection that the client of a request has disconnected.

use std::fmt::Debug;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep};

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

    /// Closes the connection if the client has not read the whole response by then. The default does nothing.
    fn end_by(&self, end: Instant) {
        let _ = end;
    }

    /// The address of the other side of the connection. The default does not know it.
    fn address(&self) -> Option<IpAddr> {
        None
    }
}

/// Detects that the client of a request has closed the connection or its sending side: over TCP the two look alike.
///
/// A listener makes one for each connection, for [`App::for_connection`](crate::App::for_connection), or puts one into
/// the extensions of each request. Reads are cancelled by it. A change goes on: it is short, and a client that has sent
/// all of its request may still wait for the answer.
///
/// Only the call itself or its response body may poll it, never another task: only the task of the connection is woken.
/// The default detects nothing.
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
#[derive(Debug, Clone, Default)]
pub struct Disconnect(Option<Arc<dyn WatchClient>>);

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
        Self(Some(connection))
    }

    /// The address of the other side of the connection, if it is known.
    ///
    /// ```
    /// assert_eq!(agentcfg_server::Disconnect::default().address(), None);
    /// ```
    pub fn address(&self) -> Option<IpAddr> {
        self.0.as_ref()?.address()
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

    /// Runs long work until the client has been gone for `patience`; then it is `None`. A client that has closed only
    /// its sending side looks the same, and still waits for the answer.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn work() -> u32 { 7 }
    /// # async fn example(disconnect: agentcfg_server::Disconnect) {
    /// match disconnect.while_connected(Duration::from_secs(5), work()).await {
    ///     Some(result) => println!("{result}"),
    ///     None => println!("the client has disconnected, the work is dropped"),
    /// }
    /// # }
    /// ```
    pub async fn while_connected<T>(&self, patience: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        // Work that is ready at its first poll costs neither a check of the connection nor a timer.
        let mut end: Option<Pin<Box<Sleep>>> = None;
        poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Some(done));
            }
            if end.is_none() {
                ready!(self.poll_disconnected(cx));
            }
            end.get_or_insert_with(|| Box::pin(sleep(patience)))
                .as_mut()
                .poll(cx)
                .map(|()| None)
        })
        .await
    }

    /// Closes the connection if the client has not read the whole response by then. Otherwise a client that reads a few
    /// bytes now and then never times out, and while it does not take the next piece of a body, nothing ends the body.
    ///
    /// ```no_run
    /// # use std::time::{Duration, Instant};
    /// # fn example(disconnect: agentcfg_server::Disconnect) {
    /// disconnect.end_by(Instant::now() + Duration::from_secs(600));
    /// # }
    /// ```
    pub fn end_by(&self, end: Instant) {
        if let Some(client) = &self.0 {
            client.end_by(end);
        }
    }

    /// Ready when the client has disconnected.
    pub fn poll_disconnected(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.0 {
            Some(client) => client.poll_disconnected(cx),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    /// A client that is connected or not, as a test sets it.
    #[derive(Debug)]
    struct Client {
        is_gone: bool,
    }

    impl WatchClient for Client {
        fn poll_disconnected(&self, _: &mut Context<'_>) -> Poll<()> {
            match self.is_gone {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_ends_some_time_after_its_client_has_gone() {
        let patience = Duration::from_secs(5);
        let gone = Disconnect::new(Arc::new(Client { is_gone: true }));
        let begun = tokio::time::Instant::now();
        assert_eq!(gone.while_connected(patience, ready(1)).await, Some(1));
        let late = async {
            sleep(Duration::from_secs(4)).await;
            2
        };
        assert_eq!(
            gone.while_connected(patience, late).await,
            Some(2),
            "it may have closed one side"
        );
        assert_eq!(begun.elapsed().as_secs(), 4);
        assert_eq!(gone.while_connected(patience, pending::<()>()).await, None);
        assert_eq!(begun.elapsed().as_secs(), 9);
        let there = Disconnect::new(Arc::new(Client { is_gone: false }));
        let later = async {
            sleep(Duration::from_secs(60)).await;
            3
        };
        assert_eq!(there.while_connected(patience, later).await, Some(3));
    }
}
