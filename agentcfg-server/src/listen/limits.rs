//! The limits of a listener.

use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;

/// How much one listener serves, and how patient it is.
///
/// ```
/// use agentcfg_server::listen::Limits;
/// let small = Limits { max_connections: 100, ..Limits::default() };
/// ```
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections served at a time. Further ones wait in the backlog.
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
    /// Time that a connection may stay open between requests.
    pub idle_timeout: Duration,
    /// Time that requests in flight get to finish at shutdown.
    pub shutdown_timeout: Duration,
    /// Follows the number of open connections.
    pub open_connections: Gauge,
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
            open_connections: Gauge::default(),
        }
    }
}
