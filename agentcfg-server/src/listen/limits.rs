//! The limits of a listener.

use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;

use crate::http::{Leaving, TrustedProxies};

/// The time limit of a lingering close: the rest of a request is read and discarded after the response. Closing a
/// socket with unread input makes the system reset the connection, and the reset can discard the response. Some clients
/// discard the response as well when an HTTP/2 stream is reset behind it.
pub(super) const LINGER_TOTAL: Duration = Duration::from_secs(3);

/// A lingering close ends early if the client sends nothing for this long.
pub(super) const LINGER_IDLE: Duration = Duration::from_millis(500);

/// How much one listener serves, and its timeouts.
///
/// ```
/// use agentcfg_server::listen::Limits;
/// let small = Limits { max_connections: 100, ..Limits::default() };
/// ```
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections served at a time. Further ones wait in the backlog. While one waits, idle ones close, the longest
    /// idle first.
    pub max_connections: usize,
    /// Time for the head of a request to arrive, counted from its first byte or, for the first request of a connection,
    /// from the moment the connection was accepted.
    pub header_timeout: Duration,
    /// Time for the body of a request to arrive.
    pub body_timeout: Duration,
    /// Time that the body of a request may take at any rate.
    pub body_grace: Duration,
    /// Bytes a second that the body must have brought on average after that; 0 is any rate.
    pub min_body_rate: u64,
    /// Time that a client may leave a response unread before the connection is dropped.
    pub write_timeout: Duration,
    /// Time that a connection may stay open between requests. It is shorter while other clients wait for a connection.
    pub idle_timeout: Duration,
    /// Time that requests in flight get to finish at shutdown.
    pub shutdown_timeout: Duration,
    /// The proxies whose connections begin with a header of the PROXY protocol, which names the client.
    pub proxy_protocol: TrustedProxies,
    /// Follows the number of open connections.
    pub open_connections: Gauge,
    /// Once it has begun, each answer closes its connection.
    pub leaving: Leaving,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            body_grace: Duration::from_secs(10),
            min_body_rate: 4096,
            write_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            shutdown_timeout: Duration::from_secs(30),
            proxy_protocol: TrustedProxies::default(),
            open_connections: Gauge::default(),
            leaving: Leaving::default(),
        }
    }
}

/// How slowly the body of a request may arrive.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyPace {
    /// Time for the whole body.
    pub(super) time: Duration,
    grace: Duration,
    min_rate: u64,
}

impl BodyPace {
    /// The time at which a body is too slow that must be complete at `end`: that time, or the moment when the bytes
    /// that have arrived fall below the minimal rate.
    pub(super) fn deadline(&self, end: Instant, received: u64) -> Instant {
        if self.min_rate == 0 || self.time <= self.grace {
            return end;
        }
        let earned = Duration::from_millis(received.saturating_mul(1000) / self.min_rate);
        end - (self.time - self.grace).saturating_sub(earned)
    }
}

impl Limits {
    pub(super) fn body_pace(&self) -> BodyPace {
        BodyPace {
            time: self.body_timeout,
            grace: self.body_grace,
            min_rate: self.min_body_rate,
        }
    }
}
