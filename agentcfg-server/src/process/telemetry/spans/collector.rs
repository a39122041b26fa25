//! The way to the collector: OTLP over HTTP, by the HTTP client of the server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentcfg_core::sync::lock;
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Request, Response, Uri};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;

use crate::outbound::Outbound;

/// The time limit of a request.
pub(super) const WITHIN: Duration = Duration::from_secs(10);

/// The longest answer in bytes.
const MAX_ANSWER: usize = 64 << 10;

/// Sends what the exporter encodes. The address and the header fields are those of the settings alone: the exporter
/// would read variables of its own.
#[derive(Debug, Clone)]
pub(super) struct Collector {
    outbound: Outbound,
    url: Uri,
    fields: HeaderMap,
    outcome: Arc<Mutex<Outcome>>,
}

/// What has become of the last request.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    /// How many spans the collector has refused of those that it was sent.
    pub(super) refused: u64,
    /// Why, or why the request failed.
    pub(super) why: Option<String>,
}

impl Collector {
    pub(super) fn new(outbound: Outbound, url: Uri, mut fields: HeaderMap) -> Self {
        let name = HeaderValue::from_static(concat!("agentcfg/", env!("CARGO_PKG_VERSION")));
        fields.entry(USER_AGENT).or_insert(name);
        Self {
            outbound,
            url,
            fields,
            outcome: Arc::default(),
        }
    }

    /// What has become of the last request. It is told once.
    pub(super) fn outcome(&self) -> Outcome {
        std::mem::take(&mut *lock(&self.outcome))
    }

    fn note(&self, outcome: Outcome) {
        *lock(&self.outcome) = outcome;
    }

    async fn send(&self, encoded: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let (head, body) = encoded.into_parts();
        let mut request = Request::post(self.url.clone());
        if let Some(fields) = request.headers_mut() {
            fields.clone_from(&self.fields);
            fields.extend(
                head.headers
                    .get(CONTENT_TYPE)
                    .map(|format| (CONTENT_TYPE, format.clone())),
            );
        }
        let request = request.body(Full::new(body)).map_err(|error| error.to_string())?;
        let answer = self.outbound.send_idempotent(request, MAX_ANSWER, WITHIN).await;
        let answer = answer.map_err(|error| error.to_string())?;
        match answer.status().is_success() {
            true => Ok(answer),
            false => Err(format!("it answered {}", answer.status())),
        }
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, encoded: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.send(encoded).await.inspect_err(|why| {
            self.note(Outcome {
                refused: 0,
                why: Some(why.clone()),
            });
        })?;
        self.note(refused(answer.body()));
        Ok(answer)
    }
}

/// What an answer says of spans that the collector did not take.
fn refused(answer: &Bytes) -> Outcome {
    let answer = ExportTraceServiceResponse::decode(answer.clone()).unwrap_or_default();
    let partial = answer.partial_success.unwrap_or_default();
    Outcome {
        refused: u64::try_from(partial.rejected_spans).unwrap_or_default(),
        why: (partial.rejected_spans > 0).then(|| "it refused some of them".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;

    use super::*;

    #[test]
    fn refused_spans_are_read_from_the_answer() {
        for (rejected_spans, refused_spans) in [(0, 0), (3, 3), (-1, 0)] {
            let answer = ExportTraceServiceResponse {
                partial_success: Some(ExportTracePartialSuccess {
                    rejected_spans,
                    error_message: "canary".to_owned(),
                }),
            };
            let outcome = refused(&answer.encode_to_vec().into());
            assert_eq!(
                (outcome.refused, outcome.why.is_some()),
                (refused_spans, refused_spans > 0)
            );
        }
        for other in [&b""[..], b"<html>", b"{}"] {
            assert_eq!(refused(&Bytes::from_static(other)), Outcome::default());
        }
    }
}
