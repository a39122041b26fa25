//! A receiver of webhooks on loopback, which answers as the test has planned.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;

/// A received message.
#[derive(Debug, Clone)]
pub struct Message {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Message {
    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub fn id(&self) -> &str {
        self.header("webhook-id")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn revision(&self) -> u64 {
        self.json()["data"]["revision"].as_u64().unwrap()
    }
}

/// The answer to a message.
pub enum Plan {
    Status(u16),
    /// A status with a header field and a body.
    Full(u16, &'static str, String, String),
    /// None, as long as the receiver runs.
    Silence,
}

#[derive(Default)]
struct Shared {
    messages: Mutex<Vec<Message>>,
    plans: Mutex<VecDeque<Plan>>,
    pause: Mutex<Duration>,
}

/// It stops with the process of the test.
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Receiver {
    pub fn start() -> Self {
        let shared = Arc::<Shared>::default();
        let (sender, address) = std::sync::mpsc::channel();
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    let shared = Arc::clone(&serving);
                    let service = service_fn(move |request| answer(request, Arc::clone(&shared)));
                    tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
                }
            });
        });
        Self {
            address: address.recv().unwrap(),
            shared,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Plans the next answers. Without a plan the answer is 200.
    pub fn plan(&self, plans: impl IntoIterator<Item = Plan>) {
        self.shared.plans.lock().unwrap().extend(plans);
    }

    /// Waits before each answer.
    pub fn pause(&self, pause: Duration) {
        *self.shared.pause.lock().unwrap() = pause;
    }

    pub fn messages(&self) -> Vec<Message> {
        self.shared.messages.lock().unwrap().clone()
    }

    /// The number of messages.
    pub fn count(&self) -> usize {
        self.shared.messages.lock().unwrap().len()
    }

    /// Waits until there are so many messages, and returns all.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<Message> {
        self.wait_at_most(count, Duration::from_secs(20))
    }

    #[track_caller]
    pub fn wait_at_most(&self, count: usize, limit: Duration) -> Vec<Message> {
        const LOOK: Duration = Duration::from_millis(20);
        for _ in 0..limit.as_millis() / LOOK.as_millis() {
            if self.count() >= count {
                return self.messages();
            }
            thread::sleep(LOOK);
        }
        panic!("{} of {count} messages came", self.count());
    }
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        return Ok(Response::default());
    };
    shared.messages.lock().unwrap().push(Message {
        method: head.method,
        path: head.uri.to_string(),
        headers: head.headers,
        body: body.to_bytes(),
    });
    let pause = *shared.pause.lock().unwrap();
    tokio::time::sleep(pause).await;
    let plan = shared.plans.lock().unwrap().pop_front().unwrap_or(Plan::Status(200));
    let response = Response::builder();
    Ok(match plan {
        Plan::Status(status) => response.status(status).body(Full::default()).unwrap(),
        Plan::Full(status, name, value, body) => response
            .status(status)
            .header(name, value)
            .body(Full::from(body))
            .unwrap(),
        Plan::Silence => std::future::pending().await,
    })
}
