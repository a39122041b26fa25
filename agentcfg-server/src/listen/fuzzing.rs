//! Entry points for the fuzz targets (cargo feature `fuzzing`).

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Response;
use tokio::io::DuplexStream;
use tokio::sync::watch;

use super::demand::Demand;
use super::framing::Framing;
use super::socket::Peer;
use super::{Limits, connection, service_fn};

impl Peer for DuplexStream {
    fn poll_disconnect(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    fn reset_on_close(&self) {}
}

/// What the framing refuses in these bytes when they arrive in pieces of this size: the message, and the place of the
/// line feed that ends the faulty line.
pub fn framing(bytes: &[u8], piece: usize) -> Option<(&'static str, usize)> {
    let mut framing = Framing::default();
    let mut before = 0;
    for piece in bytes.chunks(piece) {
        if let Some(at) = framing.scan(piece) {
            return framing.fault().map(|fault| (fault.message(), before + at));
        }
        before += piece.len();
    }
    None
}

/// Serves a connection with a service that reads each body and answers it, and returns how often the service was
/// called.
pub async fn serve(stream: DuplexStream) -> usize {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let counter = Arc::clone(&counter);
        async move {
            counter.fetch_add(1, Ordering::Relaxed);
            // A body that breaks off is answered as well.
            let _ = Limited::new(request.into_body(), 1 << 20).collect().await;
            Ok::<_, Infallible>(Response::new(Full::from("answer")))
        }
    });
    let (_open, demand) = watch::channel(Demand::Serve);
    connection::run(stream, None, |_| service, Limits::default(), demand).await;
    calls.load(Ordering::Relaxed)
}
