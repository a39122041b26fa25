//! Spans of requests.

use std::io;
use std::sync::{Arc, Mutex};

use tracing::instrument::WithSubscriber;
use tracing_subscriber::fmt::format::FmtSpan;

use super::server::{Server, answer, hang_up};
use super::{client, workspace};

/// Lines that a subscriber has written.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The spans of requests that ended while this ran, a line each.
async fn spans(calls: impl Future<Output = ()>) -> Vec<String> {
    let lines = Lines::default();
    let written = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(move || written.clone())
        .with_ansi(false)
        .finish();
    calls.with_subscriber(subscriber).await;
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let ended = text
        .lines()
        .filter(|line| line.contains("request{") && line.contains(" close "));
    ended.map(str::to_owned).collect()
}

#[tokio::test]
async fn each_attempt_has_a_span_with_its_status() {
    let busy = "{\"error\":\"storage is unavailable\"}";
    let server = Server::start([
        answer(503, "retry-after: 0\r\nx-request-id: 1\r\n", busy),
        answer(200, "", "[]"),
    ])
    .await;
    let client = client(&server);
    let spans = spans(async { drop(client.list_api_keys(workspace()).await.unwrap()) }).await;
    let [first, second] = &spans[..] else {
        panic!("{spans:?}")
    };
    for (span, status) in [(first, "503"), (second, "200")] {
        for field in [
            "otel.kind=\"client\"".to_owned(),
            "http.request.method=\"GET\"".to_owned(),
            "url.path=\"/api/api-keys\"".to_owned(),
            format!("http.response.status_code={status}"),
        ] {
            assert!(span.contains(&field), "{span} has no {field}");
        }
        assert!(!span.contains(&workspace().to_string()), "the query is in {span}");
        assert!(!span.contains("canary"), "the credential is in {span}");
    }
    assert!(first.contains("error=storage is unavailable"), "{first}");
    assert!(!second.contains("error="), "{second}");
}

#[tokio::test]
async fn a_request_without_an_answer_has_an_error_and_no_status() {
    let server = Server::start([hang_up(), hang_up(), hang_up()]).await;
    let client = client(&server);
    let spans = spans(async { drop(client.list_workspaces().await.unwrap_err()) }).await;
    assert!(!spans.is_empty());
    for span in spans {
        assert!(!span.contains("status_code="), "{span}");
        assert!(
            span.contains("error=the connection broke before an answer came"),
            "{span}"
        );
    }
}
