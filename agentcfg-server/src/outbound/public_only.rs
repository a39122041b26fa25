//! Connections to the public internet alone, for URLs that users choose.
//!
//! The addresses of a name are resolved once, checked, and connected to: there is no second resolution that could give
//! other addresses (DNS rebinding). Every address must be public, so that a name with a public and a private address
//! does not reach the private one.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use agentcfg_core::address::is_public;
use agentcfg_core::model::{AllowedHost, Host, WebhookUrl};
use hyper::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service;

use super::egress::Egress;

/// How many addresses of a name are tried, one after the other.
const MAX_ADDRESSES: usize = 4;

/// The time limit for the TCP connection to one address.
const CONNECT: Duration = Duration::from_secs(3);

/// The addresses of a name, on their way.
pub(super) type Resolved = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// The operations of the network that a connection consists of. Tests replace them.
pub(super) trait Network: Send + Sync {
    /// The addresses of a name. The permit is held until the lookup has ended.
    fn resolve(&self, name: String, permit: Option<OwnedSemaphorePermit>) -> Resolved;

    /// A TCP connection.
    fn connect(&self, address: SocketAddr) -> Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;
}

/// How many names that users choose are resolved at a time by one transport.
///
/// The operating system resolves a name on a thread of the blocking pool, which goes on for its own time after the
/// caller has given up. Name servers of users need not answer, so this keeps a part of the pool's 512 threads free for
/// other work.
pub(super) const LOOKUPS: usize = 200;

/// The network of the operating system.
pub(super) struct System;

impl Network for System {
    fn resolve(&self, name: String, permit: Option<OwnedSemaphorePermit>) -> Resolved {
        Box::pin(async move {
            let lookup = move || {
                let _permit = permit;
                let found = (name.as_str(), 0).to_socket_addrs()?;
                Ok(found.map(|address| address.ip()).collect())
            };
            tokio::task::spawn_blocking(lookup).await?
        })
    }

    fn connect(&self, address: SocketAddr) -> Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        })
    }
}

/// Why no connection was made. The managers of the webhook see the text, so it names no address, and does not tell
/// whether a name exists in the network of the server.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("the URL {0}")]
    Url(#[from] agentcfg_core::model::InvalidUrl),
    #[error("the host has an address that is not public, or none")]
    NotPublic,
    /// Of an exception, which the deployment names.
    #[error("the host cannot be resolved")]
    Unresolved(#[source] io::Error),
    #[error("the proxy makes no connection to the host")]
    Proxy,
    #[error("cannot connect to the host: {0}")]
    Connect(io::Error),
}

/// A connector that connects only to public addresses, by `https` and port 443, and to the exceptions.
#[derive(Clone)]
pub(super) struct PublicOnly {
    pub(super) network: Arc<dyn Network>,
    pub(super) exceptions: Arc<[AllowedHost]>,
    /// The lookups of names that the deployment does not name.
    pub(super) lookups: Arc<Semaphore>,
    pub(super) egress: Egress,
}

impl PublicOnly {
    async fn connect(self, uri: Uri) -> Result<TokioIo<TcpStream>, Refused> {
        let url: WebhookUrl = uri.to_string().parse()?;
        url.check(&self.exceptions)?;
        if let Some(tunnel) = self.egress.tunnel(&uri).await {
            return tunnel.map_err(|error| {
                tracing::debug!(error, "a webhook cannot be sent through the proxy");
                Refused::Proxy
            });
        }
        let port = url.port();
        let is_exception = self.exceptions.iter().any(|allowed| allowed.includes(url.host(), port));
        let addresses = match url.host() {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                let permit = match is_exception {
                    true => None,
                    // The semaphore is never closed.
                    false => self.lookups.acquire_owned().await.ok(),
                };
                let resolved = self.network.resolve(name.to_string(), permit).await;
                resolved.map_err(|error| {
                    tracing::debug!(%name, %error, "the host of a webhook cannot be resolved");
                    match is_exception {
                        true => Refused::Unresolved(error),
                        false => Refused::NotPublic,
                    }
                })?
            }
        };
        if !is_exception && !addresses.iter().copied().all(is_public) {
            return Err(Refused::NotPublic);
        }
        let mut last = Refused::NotPublic;
        for address in addresses.into_iter().take(MAX_ADDRESSES) {
            let connecting = self.network.connect(SocketAddr::new(address, port));
            let ended = tokio::time::timeout(CONNECT, connecting).await;
            match ended.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => return Ok(TokioIo::new(stream)),
                Err(error) => last = Refused::Connect(error),
            }
        }
        Err(last)
    }
}

impl Service<Uri> for PublicOnly {
    type Response = TokioIo<TcpStream>;
    type Error = Refused;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Refused>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}
