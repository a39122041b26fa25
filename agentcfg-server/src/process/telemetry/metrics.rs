//! The metrics of the server.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agentcfg_core::rate_limit::SharedState;
use agentcfg_core::service::{EndedCall, SenderNumbers};
use agentcfg_postgres::PoolUse;
use hyper::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::model_calls::ModelCallMetrics;
use super::parts::{CertificateMetrics, FileMetrics, PoolMetrics};
use super::process::ProcessMetrics;
use super::register::{Build, bytes, info, registered, seconds};
use crate::api::{Answered, Observer};

/// All metrics of one server. Counters and gauges are handles: a clone counts into the same number.
#[derive(Debug)]
pub struct Metrics {
    /// Connections that are open now.
    pub open_connections: Gauge,
    /// Requests that were answered 429.
    pub rate_limited: Counter,
    /// TLS handshakes that failed.
    pub failed_handshakes: Counter,
    /// Spans that no collector has got.
    pub dropped_spans: Counter,
    certificates: Family<CertificateLabels, Counter>,
    is_certificate_refused: Gauge,
    /// 1 while the store serves reads and changes, else 0.
    pub storage_ready: Gauge,
    /// Reads the numbers of the store file, if there is one.
    store: OnceLock<ReadNumbers>,
    damaged_blocks: Gauge,
    scrubbed_bytes: Counter,
    storage_failures: Counter,
    refused_commits: Counter,
    /// The state of the shared rate counters, if requests are counted together with other servers.
    shared: OnceLock<Arc<SharedState>>,
    counted_alone: Counter,
    is_alone: Gauge,
    streams: Gauge,
    stream_events: Counter,
    stream_lag: Histogram,
    /// The numbers of the sender of webhooks.
    webhooks: OnceLock<SenderNumbers>,
    deliveries: Family<DeliveryLabels, Counter>,
    given_up: Counter,
    webhook_lag: Gauge,
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram>,
    model_calls: ModelCallMetrics,
    /// Which program this is. It never changes.
    #[allow(dead_code, reason = "the registry renders it")]
    build: Build,
    registry: Registry,
    /// Metrics that only some servers have, each with a registry of its own.
    file: FileMetrics,
    certificate: OnceLock<CertificateMetrics>,
    pool: OnceLock<PoolMetrics>,
    process: Option<ProcessMetrics>,
}

/// The numbers of a store in a file, for the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreNumbers {
    /// Whether it serves reads and changes now.
    pub is_ready: bool,
    /// Damaged blocks found since the start.
    pub damaged_blocks: u64,
    /// Bytes that the scrub has read since the start.
    pub scrubbed_bytes: u64,
    /// How often its file was reopened after a failure since the start.
    pub failures: u64,
    /// Commits refused since the start before they touched the file.
    pub refused_commits: u64,
    /// The length of the file.
    pub file_bytes: u64,
    /// The free bytes of its disk, if they are known.
    pub free_bytes: Option<u64>,
    /// When the last backup ended, in seconds since 1970; 0 before the first.
    pub last_backup: i64,
}

/// Reads the numbers of a store.
struct ReadNumbers(Box<dyn Fn() -> StoreNumbers + Send + Sync>);

impl fmt::Debug for ReadNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadNumbers")
    }
}

/// Bounds in seconds. The first ones separate cached reads from commits, the last ones stalls from timeouts.
const BOUNDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeliveryLabels {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CertificateLabels {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: &'static str,
    route: &'static str,
}

impl Metrics {
    /// Makes the metrics, all zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("agentcfg");
        let all = &mut registry;
        Self {
            open_connections: registered(all, "open_connections", "Connections that are open now"),
            rate_limited: registered(
                all,
                "rate_limited_requests",
                "Requests that the service refused with 429",
            ),
            storage_ready: registered(
                all,
                "storage_ready",
                "1 while the store serves reads and changes, else 0",
            ),
            damaged_blocks: registered(
                all,
                "storage_damaged_blocks",
                "Damaged blocks of the store file found since the start; restore a backup when it is not 0",
            ),
            scrubbed_bytes: bytes(
                all,
                "storage_scrubbed",
                "Bytes of the store file that the background scrub has read",
            ),
            storage_failures: registered(
                all,
                "storage_failures",
                "How often the store file was reopened after a failed read or write",
            ),
            refused_commits: registered(
                all,
                "storage_refused_commits",
                "Commits refused before they touched the store file: its disk was full, it was removed, or it was being reopened",
            ),
            counted_alone: registered(
                all,
                "rate_limit_counted_alone",
                "Requests that this instance counted by itself because the shared count was out of reach",
            ),
            is_alone: registered(
                all,
                "rate_limit_alone",
                "1 while requests are counted by this instance alone, although others share the database",
            ),
            streams: registered(all, "streams", "Streams of changes that are open now"),
            stream_events: registered(
                all,
                "stream_events",
                "Events that streams have sent after those from before they began",
            ),
            stream_lag: seconds(
                all,
                "stream_lag",
                "Time from the commit of an event to its being sent on a stream",
                Histogram::new(BOUNDS),
            ),
            deliveries: registered(all, "webhook_deliveries", "Attempts to deliver an event to a webhook"),
            given_up: registered(all, "webhook_events_given_up", "Events that no attempt could deliver"),
            webhook_lag: registered(
                all,
                "webhook_lag_revisions",
                "Revisions that the enabled webhooks have not read yet, added up",
            ),
            dropped_spans: registered(
                all,
                "spans_dropped",
                "Spans that the collector of otlp_endpoint did not get",
            ),
            failed_handshakes: registered(all, "tls_handshakes_failed", "TLS handshakes that failed"),
            certificates: registered(
                all,
                "tls_certificate_renewals",
                "Changes of the files of the certificate",
            ),
            is_certificate_refused: registered(
                all,
                "tls_certificate_refused",
                "1 while the files of the certificate cannot be used and an earlier one stays in use, else 0",
            ),
            requests: registered(all, "http_requests", "Requests answered"),
            durations: seconds(
                all,
                "http_request_duration",
                "Time from the head of a request to the head of its response",
                Family::new_with_constructor((|| Histogram::new(BOUNDS)) as fn() -> Histogram),
            ),
            model_calls: ModelCallMetrics::register(all),
            build: info(
                all,
                "build",
                "1, with the version of the server as a label",
                [("version", env!("CARGO_PKG_VERSION"))],
            ),
            store: OnceLock::new(),
            shared: OnceLock::new(),
            webhooks: OnceLock::new(),
            registry,
            file: FileMetrics::new(),
            certificate: OnceLock::new(),
            pool: OnceLock::new(),
            process: ProcessMetrics::new(),
        }
    }

    /// Adds the state of the shared rate counters.
    pub fn follow(&self, state: Arc<SharedState>) {
        // A server has one limiter; a second one is ignored.
        let _ = self.shared.set(state);
    }

    /// Adds the numbers of a store in a file. They are read at each [`Self::render`], so that the metrics show the
    /// state of that moment.
    pub fn follow_store(&self, numbers: impl Fn() -> StoreNumbers + Send + Sync + 'static) {
        // A server has one store; a second one is ignored.
        let _ = self.store.set(ReadNumbers(Box::new(numbers)));
    }

    /// Adds the numbers of the sender of webhooks.
    pub fn follow_webhooks(&self, numbers: SenderNumbers) {
        // A server has one sender; a second one is ignored.
        let _ = self.webhooks.set(numbers);
    }

    /// Adds the connections to PostgreSQL, as they are used when the metrics are rendered.
    pub fn follow_pool(&self, read: impl Fn() -> PoolUse + Send + Sync + 'static) {
        // A server has one pool; a second one is ignored.
        let _ = self.pool.set(PoolMetrics::new(read));
    }

    /// Adds the end of the certificate, as the seconds since 1970 of the one that is in use when the metrics are
    /// rendered.
    pub fn follow_certificate(&self, expiry: impl Fn() -> Option<i64> + Send + Sync + 'static) {
        // A server has one certificate; a second one is ignored.
        let _ = self.certificate.set(CertificateMetrics::new(expiry));
    }

    /// Notes that the files have the certificate that is in use.
    pub fn certificate_in_use(&self) {
        self.is_certificate_refused.set(0);
    }

    /// Notes that a changed certificate was loaded.
    pub fn certificate_taken(&self) {
        self.certificate_changed("taken", false);
    }

    /// Notes that changed files cannot be used.
    pub fn certificate_refused(&self) {
        self.certificate_changed("refused", true);
    }

    fn certificate_changed(&self, result: &'static str, is_refused: bool) {
        self.certificates.get_or_create(&CertificateLabels { result }).inc();
        self.is_certificate_refused.set(i64::from(is_refused));
    }

    /// All metrics in the OpenMetrics text format.
    pub fn render(&self) -> String {
        if let Some(state) = self.shared.get() {
            self.is_alone.set(i64::from(state.is_alone()));
            raise_to(&self.counted_alone, state.counted_alone());
        }
        if let Some(numbers) = self.webhooks.get() {
            for (result, count) in [("delivered", numbers.delivered()), ("failed", numbers.failed())] {
                raise_to(&self.deliveries.get_or_create(&DeliveryLabels { result }), count);
            }
            raise_to(&self.given_up, numbers.given_up());
            self.webhook_lag.set(i64::try_from(numbers.lag()).unwrap_or(i64::MAX));
        }
        if let Some(ReadNumbers(read)) = self.store.get() {
            let numbers = read();
            self.storage_ready.set(i64::from(numbers.is_ready));
            self.damaged_blocks
                .set(i64::try_from(numbers.damaged_blocks).unwrap_or(i64::MAX));
            for (counter, count) in [
                (&self.scrubbed_bytes, numbers.scrubbed_bytes),
                (&self.storage_failures, numbers.failures),
                (&self.refused_commits, numbers.refused_commits),
            ] {
                raise_to(counter, count);
            }
            self.file
                .set(numbers.file_bytes, numbers.free_bytes, numbers.last_backup);
        }
        let parts = [
            self.store.get().map(|_| self.file.registry()),
            self.certificate.get().map(CertificateMetrics::render),
            self.pool.get().map(PoolMetrics::render),
            self.process.as_ref().map(ProcessMetrics::render),
        ];
        let mut text = String::new();
        // Writing to a string cannot fail.
        for registry in [Some(&self.registry)].into_iter().chain(parts).flatten() {
            let _ = encode_registry(&mut text, registry);
        }
        let _ = encode_eof(&mut text);
        text
    }
}

/// Raises a counter to a number that is counted elsewhere.
fn raise_to(counter: &Counter, count: u64) {
    counter.inc_by(count.saturating_sub(counter.get()));
}

impl Observer for Metrics {
    fn answered(&self, answered: &Answered<'_>) {
        let (method, route, status) = (name(answered.method), answered.route, answered.status);
        if status == 429 && answered.refused {
            self.rate_limited.inc();
        }
        self.requests
            .get_or_create(&RequestLabels { method, route, status })
            .inc();
        self.durations
            .get_or_create(&RouteLabels { method, route })
            .observe(answered.took.as_secs_f64());
    }

    fn stream_opened(&self) {
        self.streams.inc();
    }

    fn stream_closed(&self) {
        self.streams.dec();
    }

    fn model_call_ended(&self, call: &EndedCall) {
        self.model_calls.ended(call);
    }

    fn event_sent(&self, lag: Duration) {
        self.stream_events.inc();
        self.stream_lag.observe(lag.as_secs_f64());
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn name(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_rendered() {
        let metrics = Metrics::new();
        let took = Duration::from_millis(3);
        let brew = Method::from_bytes(b"BREW").unwrap();
        for (method, route, status, refused) in [
            (&Method::GET, "/api/agents/configs", 200, false),
            (&brew, "none", 405, true),
            (&Method::GET, "/api/models", 429, true),
            // A provider has answered so.
            (&Method::POST, "/api/agents/model-calls", 429, false),
        ] {
            metrics.answered(&Answered {
                method,
                route,
                status,
                refused,
                took,
                request_id: "r",
                caller: None,
                refused_key: None,
                client: None,
                bytes: None,
                span: None,
            });
        }
        metrics.stream_opened();
        metrics.stream_opened();
        metrics.stream_closed();
        metrics.event_sent(Duration::from_millis(3));
        metrics.storage_ready.set(1);
        metrics.open_connections.clone().inc();
        metrics.follow_webhooks(SenderNumbers::default());
        metrics.certificate_taken();
        metrics.certificate_refused();
        let text = metrics.render();
        for line in [
            r#"agentcfg_http_requests_total{method="GET",route="/api/agents/configs",status="200"} 1"#,
            r#"agentcfg_http_requests_total{method="other",route="none",status="405"} 1"#,
            r#"agentcfg_http_request_duration_seconds_bucket{le="0.005",method="GET",route="/api/agents/configs"} 1"#,
            "agentcfg_streams 1",
            "agentcfg_stream_events_total 1",
            r#"agentcfg_stream_lag_seconds_bucket{le="0.005"} 1"#,
            "agentcfg_storage_ready 1",
            "agentcfg_storage_damaged_blocks 0",
            "agentcfg_storage_scrubbed_bytes_total 0",
            "agentcfg_storage_failures_total 0",
            "agentcfg_storage_refused_commits_total 0",
            "agentcfg_open_connections 1",
            r#"agentcfg_webhook_deliveries_total{result="failed"} 0"#,
            "agentcfg_webhook_events_given_up_total 0",
            "agentcfg_webhook_lag_revisions 0",
            r#"agentcfg_tls_certificate_renewals_total{result="taken"} 1"#,
            "agentcfg_tls_certificate_refused 1",
            "agentcfg_tls_handshakes_failed_total 0",
            "agentcfg_spans_dropped_total 0",
            "agentcfg_rate_limited_requests_total 1",
            concat!(r#"agentcfg_build_info{version=""#, env!("CARGO_PKG_VERSION"), r#""} 1"#),
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(
            !text.contains("agentcfg_storage_free_bytes"),
            "there is no file: {text}"
        );
    }

    #[test]
    fn the_numbers_of_a_store_are_those_of_the_moment() {
        let metrics = Metrics::new();
        let round = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let now = Arc::clone(&round);
        metrics.follow_store(move || {
            let round = now.load(std::sync::atomic::Ordering::Relaxed);
            StoreNumbers {
                is_ready: round == 0,
                damaged_blocks: round,
                scrubbed_bytes: 4096 * round,
                failures: 2 * round,
                refused_commits: 3 * round,
                file_bytes: 5000 * round,
                free_bytes: Some(7000 * round),
                last_backup: 1_700_000_001,
            }
        });
        assert!(!metrics.render().contains("agentcfg_tls_certificate_expiry"));
        metrics.follow_certificate(|| Some(1_700_000_000));
        assert!(metrics.render().contains("agentcfg_storage_ready 1\n"));
        round.store(1, std::sync::atomic::Ordering::Relaxed);
        let text = metrics.render();
        for line in [
            "agentcfg_storage_ready 0\n",
            "agentcfg_storage_damaged_blocks 1\n",
            "agentcfg_storage_scrubbed_bytes_total 4096\n",
            "agentcfg_storage_failures_total 2\n",
            "agentcfg_storage_refused_commits_total 3\n",
            "agentcfg_storage_file_bytes 5000\n",
            "agentcfg_storage_free_bytes 7000\n",
            "agentcfg_last_backup_timestamp_seconds 1700000001\n",
            "agentcfg_tls_certificate_expiry_timestamp_seconds 1700000000\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
