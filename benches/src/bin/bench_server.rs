//! The servers that the benchmarks measure, each in its own process.
//!
//! `bench-server api DATA AGENTS [--single]`: the product; with `--single`, one transaction for each request.
//! `bench-server fill FILE WORKSPACES AGENTS`: the product on a store with this many workspaces of this many agents
//! each.
//! `bench-server store DATA`: hyper and the group-commit writer without any rules: a POST stores its body.
//! `bench-server fixed FILE`: bare hyper; answers every request with the response in FILE.
//! `bench-server listen FILE`: the same through the product's listener with its timeouts and limits.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agentcfg_benches::Failure;
use agentcfg_core::AgentCfg;
use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use agentcfg_core::store::{Batch, Key, Kind, Store, Write};
use agentcfg_server::listen::{self, Limits};
use agentcfg_server::{App, Cors};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["api", data, agents] => api(Path::new(data), agents.parse()?, RedbOptions::default()).await,
        ["api", data, agents, "--single"] => {
            let options = RedbOptions {
                group_size: 1,
                ..RedbOptions::default()
            };
            api(Path::new(data), agents.parse()?, options).await
        }
        ["fill", file, workspaces, agents] => fill(Path::new(file), workspaces.parse()?, agents.parse()?).await,
        ["store", data] => store(Path::new(data)).await,
        ["fixed", file] => fixed(Path::new(file), false).await,
        ["listen", file] => fixed(Path::new(file), true).await,
        _ => Err("usage: bench-server api DATA AGENTS [--single] | fill FILE WORKSPACES AGENTS | store DATA | fixed FILE | listen FILE".into()),
    }
}

async fn listener() -> std::io::Result<TcpListener> {
    TcpListener::bind("127.0.0.1:0").await
}

fn announce(listener: &TcpListener) -> std::io::Result<()> {
    println!("listening on http://{}", listener.local_addr()?);
    Ok(())
}

fn service(store: RedbStore) -> AgentCfg {
    AgentCfg::builder(store)
        .settings(agentcfg_benches::fixture::unlimited())
        .build()
}

/// Serves the product's request path over a service.
async fn serve(service: AgentCfg) -> Result<(), Failure> {
    let app = App::new(service, Cors::default());
    let listener = listener().await?;
    announce(&listener)?;
    let answering = listen::service_fn(move |request| app.exchange(request));
    listen::serve(listener, answering, Limits::default(), terminated()).await;
    Ok(())
}

async fn api(data: &Path, agents: usize, options: RedbOptions) -> Result<(), Failure> {
    let service = service(RedbStore::open(data.join("bench.redb"), options)?);
    let made = agentcfg_benches::fixture::make(&service, agents, 16).await;
    println!(
        "workspace={}\nkey={}\nkeys={}",
        made.workspace,
        made.keys[0],
        made.keys.join(",")
    );
    serve(service).await
}

/// Creates this many workspaces with this many agents each, and a key for some of them, and serves them.
async fn fill(file: &Path, workspaces: usize, agents: usize) -> Result<(), Failure> {
    /// Workspaces that are filled concurrently.
    const AT_A_TIME: usize = 256;
    /// Workspaces that get a key.
    const KEYS: usize = 256;
    let service = service(RedbStore::open(file, RedbOptions::default())?);
    let turns = Arc::new(tokio::sync::Semaphore::new(AT_A_TIME));
    let mut tasks = tokio::task::JoinSet::new();
    let started = std::time::Instant::now();
    for i in 0..workspaces {
        let turn = Arc::clone(&turns).acquire_owned().await?;
        let service = service.clone();
        tasks.spawn(async move {
            let _turn = turn;
            let made = agentcfg_benches::fixture::make(&service, agents, usize::from(i < KEYS)).await;
            made.keys.first().map(|key| format!("{} {key}", made.workspace))
        });
    }
    let pairs: Vec<String> = tasks.join_all().await.into_iter().flatten().collect();
    println!(
        "rate={:.0}",
        (workspaces * agents) as f64 / started.elapsed().as_secs_f64()
    );
    println!("pairs={}", pairs.join(","));
    serve(service).await
}

/// Resolves on SIGTERM, so that the server shuts down in order.
async fn terminated() {
    if let Ok(mut signal) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        signal.recv().await;
    }
}

async fn store(data: &Path) -> Result<(), Failure> {
    let store = Arc::new(RedbStore::open(data.join("bench.redb"), RedbOptions::default())?);
    let number = Arc::new(AtomicU64::new(0));
    bare(move |request| {
        let (store, number) = (Arc::clone(&store), Arc::clone(&number));
        async move {
            let body = request
                .into_body()
                .collect()
                .await
                .map(|body| body.to_bytes())
                .unwrap_or_default();
            let key = Key::global(format!("{}", number.fetch_add(1, Ordering::Relaxed)), Kind::Meta, "");
            let batch = Batch {
                checks: Vec::new(),
                writes: vec![Write::Put(key, body.to_vec())],
            };
            let mut response = Response::new(Full::new(body));
            *response.status_mut() = match store.commit(batch).await {
                Ok(_) => StatusCode::CREATED,
                Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            Ok(response)
        }
    })
    .await
}

/// Answers with the captured response of the product: the same status, headers and bytes.
async fn fixed(file: &Path, through_listen: bool) -> Result<(), Failure> {
    let captured = std::fs::read(file)?;
    let end = captured
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .ok_or("no end of the head")?;
    let head = std::str::from_utf8(&captured[..end])?;
    let body = Bytes::copy_from_slice(&captured[end + 4..]);
    let mut fields = Vec::new();
    for line in head.lines().skip(1) {
        let (name, value) = line.split_once(": ").ok_or("not a header field")?;
        // hyper writes these two headers itself.
        if !matches!(name, "date" | "content-length") {
            fields.push((HeaderName::try_from(name)?, HeaderValue::from_str(value)?));
        }
    }
    let fields = Arc::new(fields);
    let answer = move |_: Request<Incoming>| {
        let (fields, body) = (Arc::clone(&fields), body.clone());
        async move {
            let mut response = Response::new(Full::new(body));
            for (name, value) in fields.iter() {
                response.headers_mut().insert(name.clone(), value.clone());
            }
            Ok(response)
        }
    };
    if !through_listen {
        return bare(answer).await;
    }
    let listener = listener().await?;
    announce(&listener)?;
    listen::serve(
        listener,
        listen::service_fn(answer),
        Limits::default(),
        std::future::pending(),
    )
    .await;
    Ok(())
}

/// Serves with hyper alone.
async fn bare<F, Fut>(answer: F) -> Result<(), Failure>
where
    F: Fn(Request<Incoming>) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send + 'static,
{
    let listener = listener().await?;
    announce(&listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let answer = answer.clone();
        tokio::spawn(async move {
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service_fn(answer))
                .await;
        });
    }
}
