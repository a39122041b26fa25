//! The cost of the whole read path in process, without sockets: `GET /api/agents/configs` with an
//! API key, against bare hyper that reads the same requests and answers with the same headers and bytes.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::convert::Infallible;
use std::future::ready;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use agentcfg_benches::fixture::{self, Fixture};
use agentcfg_benches::request;
use agentcfg_benches::stats::{Series, rounds};
use agentcfg_benches::wire::Requests;
use agentcfg_core::model::AgentFilter;
use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use agentcfg_server::{App, Cors};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};

/// Requests in one measurement.
const REQUESTS: usize = 100_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    println!("| agents | keys | whole path − bare hyper, ns | authenticate and count | list | rest | bare hyper |");
    println!("|---|---|---|---|---|---|---|");
    let many = std::env::var("KEYS")
        .ok()
        .and_then(|keys| keys.parse().ok())
        .unwrap_or(100_000);
    for (agents, keys) in [(20, 1), (100, 1), (20, many)] {
        // Runs on a worker of the runtime, as request handlers do.
        runtime
            .block_on(async move { tokio::spawn(measure(agents, keys)).await })
            .expect("a measurement");
    }
}

async fn measure(agents: usize, keys: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = RedbStore::open(directory.path().join("bench.redb"), RedbOptions::default()).expect("a store");
    let service = fixture::service(store);
    let made = fixture::make(&service, agents, keys).await;
    // The first use of each key costs a password hash, which this benchmark does not measure.
    fixture::use_once(&service, &made.keys).await;
    let app = App::new(service.clone(), Cors::default());
    let (fields, body) = answer(&app, &made).await;

    let workspace = made.workspace.to_string();
    let texts: Vec<String> = made.keys.iter().map(|key| request::list(&workspace, key)).collect();
    // A prime step visits all keys, and never the neighbour of the last one.
    let requests = Requests::new((0..REQUESTS).map(|i| texts[i * 7919 % keys].as_str()));
    let key = range_of(&texts[0], &made.keys[0]);

    let mut columns: [Series; 5] = Default::default();
    let filter = AgentFilter::default();
    for _ in 0..rounds(7) {
        let bare = time(connection(&requests, |_| ready(Ok(bare_answer(&fields, &body))))).await;
        let full = time(connection(&requests, |request| app.exchange(request))).await;
        let entered = time(async {
            for key in requests.parts(key.clone()) {
                black_box(service.enter(black_box(key)).await.expect("a caller"));
            }
        })
        .await;
        let caller = service.authenticate(&made.keys[0]).await.expect("a caller");
        let listed = time(async {
            for _ in 0..REQUESTS {
                let list = service.list_agents(&caller, made.workspace, &filter).await;
                black_box(list.expect("a list"));
            }
        })
        .await;
        let rest = full - bare - entered - listed;
        for (column, value) in columns.iter_mut().zip([full - bare, entered, listed, rest, bare]) {
            column.push(value);
        }
    }
    let columns = columns.map(|column| column.to_string()).join(" | ");
    println!("| {agents} | {keys} | {columns} |");
}

/// Nanoseconds for each request.
async fn time(work: impl Future<Output = ()>) -> f64 {
    let started = Instant::now();
    work.await;
    started.elapsed().as_nanos() as f64 / REQUESTS as f64
}

/// Answers all requests over one connection.
async fn connection<F, B>(requests: &Requests, answer: impl Fn(Request<Incoming>) -> F)
where
    F: Future<Output = Result<Response<B>, Infallible>>,
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + 'static,
{
    http1::Builder::new()
        // The client half-closes after its last request and still expects the response.
        .half_close(true)
        .serve_connection(requests.send(), service_fn(answer))
        .await
        .expect("a connection without a fault");
}

/// The headers and the body of a list response.
async fn answer(app: &App, made: &Fixture) -> (HeaderMap, Bytes) {
    let request = Request::get(request::list_path(&made.workspace.to_string()))
        .header("host", "x")
        .header("authorization", format!("Bearer {}", made.keys[0]))
        .body(Empty::<Bytes>::new())
        .expect("a request");
    let (head, body) = app.respond(request).await.into_parts();
    assert_eq!(head.status, 200);
    (head.headers, body.collect().await.expect("a body").to_bytes())
}

fn bare_answer(fields: &HeaderMap, body: &Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.clone()));
    response.headers_mut().clone_from(fields);
    response
}

/// The range of a part within a text.
fn range_of(text: &str, part: &str) -> Range<usize> {
    let start = text.find(part).expect("the part");
    start..start + part.len()
}
