//! The queue of spans, and the task that sends them.

use std::io;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::TelemetryResourceDetector;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SpanData, SpanExporter as _};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::Spans;
use super::collector::{Collector, Outcome, WITHIN};
use super::queue::Queue;
use crate::outbound::{Options, Outbound};
use crate::process::config::Tracing;

/// The most spans that wait to be sent. Further ones are dropped.
const QUEUE: usize = 2048;
/// The most spans of one request to the collector.
const BATCH: usize = 512;
/// Longest time that a span waits for others to be sent with it.
const TOGETHER: Duration = Duration::from_secs(1);
/// Time for the spans that are left when the server stops.
const AT_STOP: Duration = Duration::from_secs(5);
/// Shortest time between two lines of the log.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Sends spans to a collector until the server stops.
#[derive(Debug)]
pub struct SpanExport {
    receiver: mpsc::Receiver<SpanData>,
    exporter: SpanExporter,
    collector: Collector,
    dropped: Counter,
    log: Log,
}

impl SpanExport {
    /// An observer that makes spans, and the task that sends them. Spans that are not sent are counted.
    ///
    /// # Errors
    ///
    /// When the HTTP client or the exporter cannot be set up.
    pub fn new(tracing: &Tracing, options: &Options, dropped: Counter) -> io::Result<(Spans, Self)> {
        let collector = Collector::new(Outbound::new(options)?, tracing.url.clone(), tracing.fields.clone());
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(collector.clone())
            .with_endpoint(tracing.url.to_string())
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(WITHIN)
            // The exporter would put a thread to sleep between two attempts.
            .with_retry_policy(RetryPolicy::disabled())
            .build();
        let mut exporter = exporter.map_err(|error| io::Error::other(format!("otlp_endpoint: {error}")))?;
        exporter.set_resource(&resource(&tracing.resource));
        let (queue, receiver) = Queue::of_length(QUEUE, dropped.clone());
        let export = Self {
            receiver,
            exporter,
            collector,
            dropped,
            log: Log::default(),
        };
        Ok((Spans::new(queue), export))
    }

    /// Sends spans until `stop` resolves, and after that those that are left, in a bounded time.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut batch = Vec::new();
        let end = loop {
            let gathered = tokio::select! {
                biased;
                () = &mut stop => false,
                () = gather(&mut self.receiver, &mut batch) => true,
            };
            if !gathered {
                break Instant::now() + AT_STOP;
            }
            let sending = self.send(std::mem::take(&mut batch), None);
            let mut sending = std::pin::pin!(sending);
            let stopped = tokio::select! {
                () = &mut sending => None,
                () = &mut stop => Some(Instant::now() + AT_STOP),
            };
            if let Some(end) = stopped {
                if timeout_at(end, sending).await.is_err() {
                    tracing::warn!("the collector of otlp_endpoint does not answer while the server stops");
                }
                break end;
            }
        };
        self.receiver.close();
        while let Ok(span) = self.receiver.try_recv() {
            batch.push(span);
            if batch.len() == BATCH || self.receiver.is_empty() {
                self.send(std::mem::take(&mut batch), Some(end)).await;
            }
        }
        self.send(batch, Some(end)).await;
        self.log.last(&self.dropped);
    }

    /// Sends a batch, until a moment at most, and counts what the collector does not take.
    async fn send(&mut self, batch: Vec<SpanData>, until: Option<Instant>) {
        if batch.is_empty() {
            return;
        }
        let mut unsent = Unsent {
            count: batch.len() as u64,
            dropped: &self.dropped,
        };
        let end = until.unwrap_or_else(|| Instant::now() + 2 * WITHIN);
        let sent = timeout_at(end, self.exporter.export(batch)).await;
        let Outcome { refused, why } = self.collector.outcome();
        let why = match sent {
            Ok(Ok(())) => {
                unsent.count = refused;
                why
            }
            Ok(Err(error)) => Some(why.unwrap_or_else(|| error.to_string())),
            Err(_) => Some("it did not answer in time".to_owned()),
        };
        drop(unsent);
        self.log.note(why, &self.dropped);
    }
}

/// Spans that count as dropped unless they are sent, also when their sending is cancelled.
struct Unsent<'a> {
    count: u64,
    dropped: &'a Counter,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        self.dropped.inc_by(self.count);
    }
}

/// Waits for a span, and a while for more of them.
async fn gather(receiver: &mut mpsc::Receiver<SpanData>, batch: &mut Vec<SpanData>) {
    if receiver.recv_many(batch, BATCH).await == 0 {
        // Nothing makes spans any more.
        return std::future::pending().await;
    }
    let end = Instant::now() + TOGETHER;
    while batch.len() < BATCH {
        match timeout_at(end, receiver.recv_many(batch, BATCH - batch.len())).await {
            Ok(received) if received > 0 => {}
            _ => return,
        }
    }
}

/// What the spans are of: this server, and what the deployment says of it.
fn resource(attributes: &[(String, String)]) -> Resource {
    let given = attributes
        .iter()
        .map(|(name, value)| KeyValue::new(name.clone(), value.clone()));
    let instance = RandomIdGenerator::default().new_trace_id().to_string();
    Resource::builder_empty()
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_attributes([
            KeyValue::new("service.name", "agentcfg"),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", instance),
        ])
        .with_attributes(given)
        .build()
}

/// Logs dropped spans, seldom.
#[derive(Debug, Default)]
struct Log {
    last: Option<Instant>,
    /// How many of the dropped spans were logged.
    told: u64,
}

impl Log {
    /// Logs that spans were dropped, unless a line a moment ago has said so.
    fn note(&mut self, why: Option<String>, dropped: &Counter) {
        let count = dropped.get() - self.told;
        let is_due = self.last.is_none_or(|last| last.elapsed() >= BETWEEN_LINES);
        if count == 0 || !is_due {
            return;
        }
        let why = why.unwrap_or_else(|| "more were made than it took".to_owned());
        tracing::warn!(dropped = count, "spans for otlp_endpoint were dropped: {why}");
        (self.last, self.told) = (Some(Instant::now()), dropped.get());
    }

    /// Logs what was dropped and is not logged yet.
    fn last(&mut self, dropped: &Counter) {
        self.last = None;
        self.note(Some("the server stops".to_owned()), dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::a_span;
    use super::*;

    #[test]
    fn a_full_queue_drops_and_counts() {
        let dropped = Counter::default();
        let (queue, mut receiver) = Queue::of_length(2, dropped.clone());
        for _ in 0..5 {
            queue.add(a_span());
        }
        assert_eq!((dropped.get(), receiver.len()), (3, 2));
        receiver.close();
        queue.add(a_span());
        assert_eq!(dropped.get(), 4);
    }

    #[test]
    fn attributes_of_the_deployment_win() {
        let given = [("service.name", "models"), ("deployment.environment.name", "test")];
        let resource = resource(&given.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let of = |name: &'static str| resource.get(&name.into()).map(|value| value.to_string());
        assert_eq!(of("service.name").as_deref(), Some("models"));
        assert_eq!(of("deployment.environment.name").as_deref(), Some("test"));
        assert_eq!(of("service.version").as_deref(), Some(env!("CARGO_PKG_VERSION")));
        assert_eq!(of("telemetry.sdk.language").as_deref(), Some("rust"));
        assert_eq!(of("service.instance.id").map(|id| id.len()), Some(32));
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_a_minute_says_what_was_dropped() {
        let (dropped, mut log) = (Counter::default(), Log::default());
        log.note(None, &dropped);
        assert_eq!(log.told, 0);
        for (count, told) in [(3, 3), (2, 3)] {
            dropped.inc_by(count);
            log.note(None, &dropped);
            assert_eq!(log.told, told);
        }
        tokio::time::advance(BETWEEN_LINES).await;
        log.note(None, &dropped);
        assert_eq!(log.told, 5);
        dropped.inc();
        log.last(&dropped);
        assert_eq!(log.told, 6);
    }
}
