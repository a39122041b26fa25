//! What the whole read path costs in process, with no sockets: `GET /api/agents/configs` with an API
//! key, against a function that answers with the same fields and bytes.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::hint::black_box;
use std::time::Instant;

use agentcfg_benches::fixture::{self, Fixture};
use agentcfg_benches::stats::{Series, rounds};
use agentcfg_core::AgentCfg;
use agentcfg_core::service::AgentFilter;
use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use agentcfg_server::app::App;
use agentcfg_server::cors::Cors;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::{HeaderMap, Request, Response};

/// Requests of one measurement.
const REQUESTS: usize = 100_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    println!("| agents | keys | whole path − bare answer, ns | authenticate | count | list | rest |");
    println!("|---|---|---|---|---|---|---|");
    let many = std::env::var("KEYS")
        .ok()
        .and_then(|keys| keys.parse().ok())
        .unwrap_or(100_000);
    for (agents, keys) in [(20, 1), (100, 1), (20, many)] {
        // The work is measured on a worker of the runtime, where requests are answered.
        runtime
            .block_on(async move { tokio::spawn(measure(agents, keys)).await })
            .expect("a measurement");
    }
}

async fn measure(agents: usize, keys: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = RedbStore::open(directory.path().join("bench.redb"), RedbOptions::default()).expect("a store");
    let service = AgentCfg::builder(store).settings(fixture::unlimited()).build();
    let made = fixture::make(&service, agents, keys).await;
    let app = App::new(service.clone(), Cors::default());
    let requests: Vec<Request<Empty<Bytes>>> = made.keys.iter().map(|key| request(&made, key)).collect();

    // The first use of each key costs a hash; that is measured elsewhere.
    let mut captured = None;
    for request in &requests {
        let response = app.respond(request.clone()).await;
        assert_eq!(response.status(), 200);
        captured = Some(response);
    }
    let (head, body) = captured.expect("a response").into_parts();
    let body = body.collect().await.expect("a body").to_bytes();

    let order: Vec<usize> = (0..REQUESTS).map(|i| (i * 7919) % requests.len()).collect();
    let filter = AgentFilter::default();
    let (mut whole, mut authenticate, mut admit, mut list, mut rest) = (
        Series::default(),
        Series::default(),
        Series::default(),
        Series::default(),
        Series::default(),
    );
    for _ in 0..rounds(7) {
        let bare = time(|| {
            for i in &order {
                black_box(bare_answer(black_box(requests[*i].clone()), &head.headers, &body));
            }
        });
        let started = Instant::now();
        for i in &order {
            black_box(app.respond(black_box(requests[*i].clone())).await);
        }
        let full = per_request(started);
        let started = Instant::now();
        for i in &order {
            black_box(service.authenticate(&made.keys[*i]).await.expect("a caller"));
        }
        let authenticated = per_request(started);
        let caller = service.authenticate(&made.keys[0]).await.expect("a caller");
        let started = Instant::now();
        for _ in &order {
            black_box(service.admit(&caller).await);
        }
        let admitted = per_request(started);
        let started = Instant::now();
        for _ in &order {
            black_box(
                service
                    .list_agents(&caller, made.workspace, &filter)
                    .await
                    .expect("a list"),
            );
        }
        let listed = per_request(started);
        whole.push(full - bare);
        authenticate.push(authenticated);
        admit.push(admitted);
        list.push(listed);
        rest.push(full - bare - authenticated - admitted - listed);
    }
    println!("| {agents} | {keys} | {whole} | {authenticate} | {admit} | {list} | {rest} |");
}

fn time(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    per_request(started)
}

/// Nanoseconds.
fn per_request(started: Instant) -> f64 {
    started.elapsed().as_nanos() as f64 / REQUESTS as f64
}

fn request(made: &Fixture, key: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("/api/agents/configs?workspace_id={}", made.workspace))
        .header("host", "localhost:7420")
        .header("authorization", format!("Bearer {key}"))
        .body(Empty::new())
        .expect("a request")
}

fn bare_answer(request: Request<Empty<Bytes>>, fields: &HeaderMap, body: &Bytes) -> Response<Full<Bytes>> {
    drop(request);
    let mut response = Response::new(Full::new(body.clone()));
    for (name, value) in fields {
        response.headers_mut().insert(name.clone(), value.clone());
    }
    response
}
