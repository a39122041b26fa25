//! Metrics that only some servers have: without a file or a certificate there is no number to show, and a zero would
//! alarm.

use std::fmt;

use agentcfg_postgres::PoolUse;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::register::{bytes, registered, seconds};

/// The metrics of the store file.
#[derive(Debug)]
pub(super) struct FileMetrics {
    file_bytes: Gauge,
    free_bytes: Gauge,
    last_backup: Gauge,
    registry: Registry,
}

impl FileMetrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("agentcfg");
        let all = &mut registry;
        Self {
            file_bytes: bytes(all, "storage_file", "Length of the store file"),
            free_bytes: bytes(all, "storage_free", "Bytes that are free on the disk of the store file"),
            last_backup: seconds(
                all,
                "last_backup_timestamp",
                "When this server finished a backup last, in seconds since 1970, and 0 before the first",
                Gauge::default(),
            ),
            registry,
        }
    }

    pub(super) fn set(&self, file: u64, free: Option<u64>, last_backup: i64) {
        self.last_backup.set(last_backup);
        self.file_bytes.set(whole(file));
        // A system that does not tell is never full.
        self.free_bytes.set(free.map_or(i64::MAX, whole));
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The metrics of the connections to PostgreSQL.
pub(super) struct PoolMetrics {
    limit: Gauge,
    open: Gauge,
    used: Gauge,
    waiting: Gauge,
    read: Box<dyn Fn() -> PoolUse + Send + Sync>,
    registry: Registry,
}

impl fmt::Debug for PoolMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolMetrics").finish_non_exhaustive()
    }
}

impl PoolMetrics {
    pub(super) fn new(read: impl Fn() -> PoolUse + Send + Sync + 'static) -> Self {
        let mut registry = Registry::with_prefix("agentcfg");
        let all = &mut registry;
        Self {
            limit: registered(
                all,
                "database_connections_max",
                "Connections to the database that this server may open",
            ),
            open: registered(
                all,
                "database_connections_open",
                "Connections to the database that are open now",
            ),
            used: registered(
                all,
                "database_connections_used",
                "Open connections to the database that run statements now",
            ),
            waiting: registered(
                all,
                "database_connections_waiting",
                "Reads and commits that wait for a connection to the database now",
            ),
            read: Box::new(read),
            registry,
        }
    }

    /// The registry with the numbers of this moment.
    pub(super) fn render(&self) -> &Registry {
        let now = (self.read)();
        for (gauge, number) in [
            (&self.limit, now.limit),
            (&self.open, now.open),
            (&self.used, now.used),
            (&self.waiting, now.waiting),
        ] {
            gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
        }
        &self.registry
    }
}

/// The metrics of the certificate.
pub(super) struct CertificateMetrics {
    expiry: Gauge,
    read: Box<dyn Fn() -> Option<i64> + Send + Sync>,
    registry: Registry,
}

impl fmt::Debug for CertificateMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateMetrics").finish_non_exhaustive()
    }
}

impl CertificateMetrics {
    pub(super) fn new(read: impl Fn() -> Option<i64> + Send + Sync + 'static) -> Self {
        let mut registry = Registry::with_prefix("agentcfg");
        let all = &mut registry;
        Self {
            expiry: seconds(
                all,
                "tls_certificate_expiry_timestamp",
                "When the certificate in use expires, in seconds since 1970",
                Gauge::default(),
            ),
            read: Box::new(read),
            registry,
        }
    }

    /// The registry with the number of this moment.
    pub(super) fn render(&self) -> &Registry {
        if let Some(expiry) = (self.read)() {
            self.expiry.set(expiry);
        }
        &self.registry
    }
}
