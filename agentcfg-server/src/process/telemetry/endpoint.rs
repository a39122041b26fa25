//! `GET /metrics` and the probes, on a listener of their own.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response};
use tokio::net::TcpListener;

use super::access::PROBES;
use super::{Metrics, text_format};
use crate::api::App;
use crate::http::Body;
use crate::http::errors::Failure;
use crate::listen::{Limits, serve, service_fn};

/// The connection limit. There are few scrapers.
const MAX_CONNECTIONS: usize = 64;

/// Serves `GET /metrics`, and the probes of the API, on `listener` until `shutdown` resolves. Probes are served here
/// too, so that connections of clients do not take the place of probes. `limits` are those of the API; the number of
/// connections is lower and counted apart.
pub async fn serve_metrics(
    listener: TcpListener,
    (metrics, app): (Arc<Metrics>, App),
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) {
    let limits = Limits {
        max_connections: MAX_CONNECTIONS,
        open_connections: Default::default(),
        // Probes and scrapes do not come through the proxies of clients.
        proxy_protocol: Default::default(),
        ..limits
    };
    let service = service_fn(move |request: Request<Incoming>| {
        let (metrics, app) = (Arc::clone(&metrics), app.clone());
        async move {
            match PROBES.contains(&request.uri().path()) {
                true => app.exchange(request).await,
                false => Ok::<_, Infallible>(answer(&request, &metrics)),
            }
        }
    });
    // A probe or a scrape that is cut off needs no report.
    let _ = serve(listener, move |_| service.clone(), limits, shutdown).await;
}

fn answer(request: &Request<Incoming>, metrics: &Metrics) -> Response<Body> {
    if request.uri().path() != "/metrics" {
        return Failure::not_found("only /metrics, /healthz and /readyz are here").to_response();
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Failure::method_not_allowed("only GET and HEAD are allowed", "GET, HEAD").to_response();
    }
    let text = metrics.render();
    let (text, format) = match asks_for_open_metrics(request.headers()) {
        true => (text, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        false => (
            text_format::from_open_metrics(&text),
            "text/plain; version=0.0.4; charset=utf-8",
        ),
    };
    let mut response = Response::new(Body::from(text));
    let format = HeaderValue::from_static(format);
    response.headers_mut().insert(CONTENT_TYPE, format);
    response
}

/// Whether a reader knows the OpenMetrics format, as Prometheus does. Others, such as `promtool check metrics`, do not.
fn asks_for_open_metrics(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter();
    accepted.any(|value| {
        value
            .to_str()
            .is_ok_and(|text| text.contains("application/openmetrics-text"))
    })
}

#[cfg(test)]
mod tests {
    use agentcfg_core::AgentCfg;
    use agentcfg_core::store::MemoryStore;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::http::Cors;

    #[tokio::test]
    async fn metrics_and_probes_are_answered_and_nothing_else_is() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = Limits::default();
        let api_connections = limits.open_connections.clone();
        let app = App::new(AgentCfg::builder(MemoryStore::new()).build(), Cors::default());
        let served = (Arc::new(Metrics::new()), app);
        let server = serve_metrics(listener, served, limits, std::future::pending());
        tokio::spawn(server);
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5";
        for (line, accept, start, has_end) in [
            ("GET /metrics", prometheus, "HTTP/1.1 200 ", true),
            ("GET /metrics", "*/*", "HTTP/1.1 200 ", false),
            ("HEAD /metrics", prometheus, "HTTP/1.1 200 ", false),
            ("POST /metrics", prometheus, "HTTP/1.1 405 ", false),
            ("GET /", prometheus, "HTTP/1.1 404 ", false),
            ("GET /healthz", "*/*", "HTTP/1.1 200 ", false),
            ("HEAD /readyz", "*/*", "HTTP/1.1 200 ", false),
            ("GET /openapi.json", "*/*", "HTTP/1.1 404 ", false),
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream
                .write_all(
                    format!("{line} HTTP/1.1\r\nhost: x\r\naccept: {accept}\r\nconnection: close\r\n\r\n").as_bytes(),
                )
                .await
                .unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with(start), "{answer}");
            assert_eq!(answer.ends_with("# EOF\n"), has_end, "{answer}");
            if (line, accept) == ("GET /metrics", "*/*") {
                assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
                assert!(
                    answer.contains("# TYPE agentcfg_rate_limited_requests_total counter\n"),
                    "{answer}"
                );
            }
        }
        assert_eq!(api_connections.get(), 0);
    }
}
