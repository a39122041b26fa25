//! Spans of requests, behind the feature `tracing`.

use hyper::Response;
use hyper::body::Incoming;

use crate::Error;
use crate::request::Prepared;
use crate::response::ApiResponse;

/// An answer whose head has a status.
pub(crate) trait HasStatus {
    #[cfg_attr(not(feature = "tracing"), allow(dead_code))]
    fn status(&self) -> u16;
}

impl HasStatus for ApiResponse {
    fn status(&self) -> u16 {
        ApiResponse::status(self)
    }
}

impl HasStatus for Response<Incoming> {
    fn status(&self) -> u16 {
        Response::status(self).as_u16()
    }
}

/// Makes one attempt of a request within a span of its own.
#[cfg(feature = "tracing")]
pub(crate) async fn traced<T: HasStatus>(
    request: &Prepared,
    attempt: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    use tracing::Instrument;
    use tracing::field::{Empty, display};

    // The query is left out: it has the reasons for changes, which are texts of people.
    let span = tracing::debug_span!(
        "request",
        otel.kind = "client",
        http.request.method = request.method(),
        url.path = request.path(),
        http.response.status_code = Empty,
        error = Empty,
    );
    let outcome = attempt.instrument(span.clone()).await;
    let status = match &outcome {
        Ok(answer) => Some(answer.status()),
        Err(error) => error.status(),
    };
    if let Some(status) = status {
        span.record("http.response.status_code", status);
    }
    if let Err(error) = &outcome {
        span.record("error", display(error));
    }
    outcome
}

#[cfg(not(feature = "tracing"))]
pub(crate) async fn traced<T: HasStatus>(
    _: &Prepared,
    attempt: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    attempt.await
}
