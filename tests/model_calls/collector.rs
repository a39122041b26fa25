//! A collector that the test itself runs: it decodes what it gets with the official definitions of OTLP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
pub use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};

use crate::calls::TIMEOUT;

/// A request to the collector.
#[derive(Debug)]
struct Export {
    target: String,
    headers: HeaderMap,
    body: Bytes,
}

/// Everything that the collector has got so far.
#[derive(Debug, Default, Clone)]
pub struct Received {
    pub targets: Vec<String>,
    pub headers: Vec<HeaderMap>,
    /// The attributes of the last resource.
    pub resource: Vec<KeyValue>,
    pub spans: Vec<Span>,
    pub bytes: Vec<u8>,
}

pub struct Collector {
    address: SocketAddr,
    status: Arc<AtomicU16>,
    exports: Mutex<(Received, mpsc::UnboundedReceiver<Export>)>,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, receiver) = mpsc::unbounded_channel();
        let status = Arc::new(AtomicU16::new(200));
        let answers = Arc::clone(&status);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (sender, answers) = (sender.clone(), Arc::clone(&answers));
                let service = service_fn(move |request| take(request, sender.clone(), answers.load(Ordering::SeqCst)));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self {
            address,
            status,
            exports: Mutex::new((Received::default(), receiver)),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers with this status from now on.
    pub fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// What has been received, once it has this many spans that fit.
    pub async fn received(&self, count: usize, fits: impl Fn(&Span) -> bool) -> Received {
        let mut exports = self.exports.lock().await;
        let (received, receiver) = &mut *exports;
        while received.spans.iter().filter(|span| fits(span)).count() < count {
            let coming = tokio::time::timeout(TIMEOUT, receiver.recv()).await;
            let export = coming.unwrap_or_else(|_| panic!("{count} spans in time: {:#?}", received.spans));
            received.add(export.expect("the collector runs"));
        }
        received.clone()
    }

    /// The spans that fit, once there are this many.
    pub async fn spans(&self, count: usize, fits: impl Fn(&Span) -> bool) -> Vec<Span> {
        let mut spans = self.received(count, &fits).await.spans;
        spans.retain(fits);
        assert_eq!(spans.len(), count, "{spans:#?}");
        spans.sort_by_key(|span| span.start_time_unix_nano);
        spans
    }
}

async fn take(
    request: Request<Incoming>,
    exports: mpsc::UnboundedSender<Export>,
    status: u16,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let export = Export {
        target: format!("{} {}", head.method, head.uri),
        headers: head.headers,
        body: body.collect().await?.to_bytes(),
    };
    let _ = exports.send(export);
    let mut response = Response::new(Full::default());
    *response.status_mut() = status.try_into().unwrap();
    Ok(response)
}

impl Received {
    fn add(&mut self, export: Export) {
        self.targets.push(export.target);
        self.headers.push(export.headers);
        self.bytes.extend_from_slice(&export.body);
        let decoded = ExportTraceServiceRequest::decode(export.body).expect("a request of OTLP");
        for of_resource in decoded.resource_spans {
            self.resource = of_resource
                .resource
                .map(|resource| resource.attributes)
                .unwrap_or_default();
            for of_scope in of_resource.scope_spans {
                assert_eq!(of_scope.scope.expect("a scope").name, "agentcfg");
                self.spans.extend(of_scope.spans);
            }
        }
    }

    /// An attribute of the resource.
    pub fn resource(&self, name: &str) -> Option<String> {
        find(&self.resource, name)
    }
}

/// An attribute of a span as text.
pub fn attribute(span: &Span, name: &str) -> Option<String> {
    find(&span.attributes, name)
}

fn find(attributes: &[KeyValue], name: &str) -> Option<String> {
    let mut found = attributes.iter().filter(|attribute| attribute.key == name);
    let value = found.next()?.value.clone()?.value?;
    assert!(found.next().is_none(), "{name} twice: {attributes:?}");
    Some(match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        Value::BoolValue(is_so) => is_so.to_string(),
        other => panic!("{name} is {other:?}"),
    })
}
