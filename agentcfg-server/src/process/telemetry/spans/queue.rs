//! The queue of spans that wait to be sent.

use opentelemetry_sdk::trace::SpanData;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;

/// The end of the queue that spans are added to.
#[derive(Debug)]
pub(super) struct Queue {
    sender: mpsc::Sender<SpanData>,
    dropped: Counter,
}

impl Queue {
    pub(super) fn of_length(length: usize, dropped: Counter) -> (Self, mpsc::Receiver<SpanData>) {
        let (sender, receiver) = mpsc::channel(length);
        (Self { sender, dropped }, receiver)
    }

    /// Adds a span, or counts it as dropped where the queue is full. It never waits.
    pub(super) fn add(&self, span: SpanData) {
        if self.sender.try_send(span).is_err() {
            self.dropped.inc();
        }
    }
}
