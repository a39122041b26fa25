//! The connections that are kept open between requests.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use agentcfg_core::sync::lock;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::{Authority, InvalidUriParts, PathAndQuery, Scheme};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::exchange::Connection;

/// The idle timeout. It is shorter than that of most servers, so that a request is rarely sent on a connection that the
/// server is closing.
const IDLE: Duration = Duration::from_secs(20);
/// How often idle connections are checked for their timeout, and for whether the server has closed them.
const SWEEP: Duration = Duration::from_secs(5);

/// Where a connection goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    scheme: Scheme,
    authority: Authority,
}

impl Origin {
    /// The origin of a URL, and what is requested there in origin form.
    pub(super) fn split(url: Uri) -> Result<(Self, Uri), InvalidUriParts> {
        let mut parts = url.into_parts();
        let (scheme, authority) = (parts.scheme.take(), parts.authority.take());
        if parts.path_and_query.is_none() {
            parts.path_and_query = Some(PathAndQuery::from_static("/"));
        }
        let target = Uri::from_parts(parts)?;
        // A URL without a host goes to the connector, which refuses it.
        let origin = Self {
            scheme: scheme.unwrap_or(Scheme::HTTP),
            authority: authority.unwrap_or_else(|| Authority::from_static("")),
        };
        Ok((origin, target))
    }

    /// The address for the connector.
    pub(super) fn url(&self) -> Result<Uri, hyper::http::Error> {
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query("/")
            .build()
    }

    /// The value of the field `Host`.
    fn host(&self) -> HeaderValue {
        let default = if self.scheme == Scheme::HTTPS { 443 } else { 80 };
        let host = self.authority.host();
        let value = match self.authority.port_u16().filter(|port| *port != default) {
            Some(port) => HeaderValue::from_maybe_shared(bytes::Bytes::from(format!("{host}:{port}"))),
            None => HeaderValue::from_str(host),
        };
        // The characters of an authority are all allowed in a field.
        value.unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

/// A connection that was taken out of the pool, or will be put into it after its first use.
pub(super) struct PooledConnection {
    pub(super) connection: Box<Connection>,
    origin: Arc<Named>,
}

/// An origin with the value of its `Host` field.
struct Named {
    origin: Origin,
    host: HeaderValue,
}

impl PooledConnection {
    pub(super) fn new(connection: Connection, origin: Origin) -> Self {
        let host = origin.host();
        Self {
            connection: Box::new(connection),
            origin: Arc::new(Named { origin, host }),
        }
    }

    /// The value of the field `Host` for requests on it.
    pub(super) fn host(&self) -> HeaderValue {
        self.origin.host.clone()
    }
}

/// Idle connections of all origins.
pub(super) struct Pool {
    /// The maximum number of idle connections for each origin.
    most: usize,
    idle: Mutex<AllIdle>,
}

#[derive(Default)]
struct AllIdle {
    /// There are few origins, and only those with connections.
    origins: Vec<(Arc<Named>, Vec<Idle>)>,
    /// Whether a task sweeps.
    is_swept: bool,
}

struct Idle {
    connection: Box<Connection>,
    since: Instant,
}

impl Pool {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            idle: Mutex::default(),
        })
    }

    /// The connection that was used last: it is the least likely to have been closed.
    pub(super) fn take(&self, origin: &Origin) -> Option<PooledConnection> {
        let mut idle = lock(&self.idle);
        let (named, connections) = idle.origins.iter_mut().find(|(named, _)| named.origin == *origin)?;
        let last = connections.pop()?;
        if last.since.elapsed() > IDLE {
            // The others have been idle for longer.
            connections.clear();
            return None;
        }
        Some(PooledConnection {
            connection: last.connection,
            origin: Arc::clone(named),
        })
    }

    /// Keeps a connection if another request can be sent on it.
    pub(super) fn put(self: &Arc<Self>, pooled: PooledConnection) {
        if !pooled.connection.is_idle() {
            return;
        }
        let returned = Idle {
            connection: pooled.connection,
            since: Instant::now(),
        };
        let mut idle = lock(&self.idle);
        match idle
            .origins
            .iter_mut()
            .find(|(named, _)| named.origin == pooled.origin.origin)
        {
            Some((_, connections)) if connections.len() >= self.most => return,
            Some((_, connections)) => connections.push(returned),
            None if self.most == 0 => return,
            None => idle.origins.push((pooled.origin, vec![returned])),
        }
        if !idle.is_swept
            && let Ok(runtime) = Handle::try_current()
        {
            idle.is_swept = true;
            drop(runtime.spawn(sweep(Sweeper(Arc::downgrade(self)))));
        }
    }

    /// How many connections are idle.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        lock(&self.idle)
            .origins
            .iter()
            .map(|(_, connections)| connections.len())
            .sum()
    }

    /// Closes what was idle for too long and what the server has closed. Returns whether any connection is left.
    pub(super) fn sweep(&self) -> bool {
        let mut idle = lock(&self.idle);
        for (_, connections) in &mut idle.origins {
            connections.retain_mut(|idle| idle.since.elapsed() <= IDLE && idle.connection.is_open());
        }
        idle.origins.retain(|(_, connections)| !connections.is_empty());
        idle.is_swept = !idle.origins.is_empty();
        idle.is_swept
    }
}

/// The task that sweeps a pool. When it ends early, as with its runtime, the next connection that becomes idle starts
/// another.
struct Sweeper(Weak<Pool>);

impl Drop for Sweeper {
    fn drop(&mut self) {
        if let Some(pool) = self.0.upgrade() {
            lock(&pool.idle).is_swept = false;
        }
    }
}

async fn sweep(mut sweeper: Sweeper) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(pool) = sweeper.0.upgrade() else { return };
        if !pool.sweep() {
            // From here on the mark is that of another task.
            sweeper.0 = Weak::new();
            return;
        }
    }
}
