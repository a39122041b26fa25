//! A stub HTTP server on loopback with programmable responses.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::HeaderMap;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::BoxError;

/// A request that the stub received.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

type Answering = dyn Fn(&Seen) -> Response<Full<Bytes>> + Send + Sync;

/// See the module's text.
pub(crate) struct Stub {
    pub(crate) address: SocketAddr,
    pub(crate) connections: AtomicUsize,
    /// The maximum number of concurrent requests so far.
    pub(crate) peak: AtomicUsize,
    active: AtomicUsize,
    seen: Mutex<Vec<Seen>>,
    /// Each response needs a permit while it is made: a test can block responses by taking all permits.
    pub(crate) leave: Semaphore,
    answering: Mutex<Arc<Answering>>,
}

impl Stub {
    pub(crate) async fn new(answering: impl Fn(&Seen) -> Response<Full<Bytes>> + Send + Sync + 'static) -> Arc<Self> {
        Self::start(None, answering).await
    }

    /// A stub with TLS and a certificate for `localhost`.
    pub(crate) async fn encrypted(
        answering: impl Fn(&Seen) -> Response<Full<Bytes>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let chain = CertificateDer::pem_slice_iter(include_bytes!("tls/localhost.pem"))
            .collect::<Result<Vec<_>, _>>()
            .unwrap();
        let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/localhost.key")).unwrap();
        let config = ServerConfig::builder_with_provider(agentcfg_core::tls::provider().unwrap())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        Self::start(Some(TlsAcceptor::from(Arc::new(config))), answering).await
    }

    async fn start(
        tls: Option<TlsAcceptor>,
        answering: impl Fn(&Seen) -> Response<Full<Bytes>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stub = Arc::new(Self {
            address: listener.local_addr().unwrap(),
            connections: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            active: AtomicUsize::new(0),
            seen: Mutex::default(),
            leave: Semaphore::new(Semaphore::MAX_PERMITS),
            answering: Mutex::new(Arc::new(answering)),
        });
        let serving = Arc::clone(&stub);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.connections.fetch_add(1, Ordering::SeqCst);
                let (stub, tls) = (Arc::clone(&serving), tls.clone());
                tokio::spawn(async move {
                    let service = service_fn(|request| stub.answer(request));
                    let serving = http1::Builder::new();
                    let _ = match tls {
                        None => serving.serve_connection(TokioIo::new(stream), service).await,
                        Some(tls) => {
                            let Ok(stream) = tls.accept(stream).await else { return };
                            serving.serve_connection(TokioIo::new(stream), service).await
                        }
                    };
                });
            }
        });
        stub
    }

    async fn answer(&self, request: Request<hyper::body::Incoming>) -> Result<Response<Full<Bytes>>, BoxError> {
        let active = self.active.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(active, Ordering::SeqCst);
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let seen = Seen {
            method: head.method,
            target: head.uri.to_string(),
            headers: head.headers,
            body: String::from_utf8_lossy(&body).into_owned(),
        };
        self.seen.lock().unwrap().push(seen.clone());
        let _leave = self.leave.acquire().await;
        self.active.fetch_sub(1, Ordering::SeqCst);
        let answering = Arc::clone(&*self.answering.lock().unwrap());
        let response = answering(&seen);
        match response.extensions().get() {
            Some(Closed) => Err("the connection is closed in place of an answer".into()),
            None => Ok(response),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Replaces the function that makes the responses.
    pub(crate) fn answers(&self, answering: impl Fn(&Seen) -> Response<Full<Bytes>> + Send + Sync + 'static) {
        *self.answering.lock().unwrap() = Arc::new(answering);
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// A response with this status and body.
pub(crate) fn answer(status: u16, body: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body.to_owned()));
    *response.status_mut() = status.try_into().unwrap();
    response
}

#[derive(Debug, Clone)]
struct Closed;

/// No response: the connection ends when the request was read.
pub(crate) fn closed() -> Response<Full<Bytes>> {
    let mut response = Response::default();
    response.extensions_mut().insert(Closed);
    response
}
