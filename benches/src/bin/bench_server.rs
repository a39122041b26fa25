//! The servers that the benchmarks measure, each in a process of its own.
//!
//! `bench-server api DATA AGENTS [--single]`: the product; with `--single`, one transaction for each request.
//! `bench-server store DATA`: hyper and the group-commit writer with no rules: a POST stores its body.
//! `bench-server fixed FILE`: bare hyper; answers every request with the response in FILE.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agentcfg_core::AgentCfg;
use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use agentcfg_core::store::{Batch, Key, Kind, Store, Write};
use agentcfg_server::app::App;
use agentcfg_server::cors::Cors;
use agentcfg_server::listen::{self, Limits};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

type Failure = Box<dyn std::error::Error + Send + Sync>;

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
        ["store", data] => store(Path::new(data)).await,
        ["fixed", file] => fixed(Path::new(file)).await,
        _ => Err("usage: bench-server api DATA AGENTS [--single] | store DATA | fixed FILE".into()),
    }
}

async fn listener() -> std::io::Result<TcpListener> {
    TcpListener::bind("127.0.0.1:0").await
}

fn announce(listener: &TcpListener) -> std::io::Result<()> {
    println!("listening on http://{}", listener.local_addr()?);
    Ok(())
}

async fn api(data: &Path, agents: usize, options: RedbOptions) -> Result<(), Failure> {
    let store = RedbStore::open(data.join("bench.redb"), options)?;
    let service = AgentCfg::builder(store)
        .settings(agentcfg_benches::fixture::unlimited())
        .build();
    let made = agentcfg_benches::fixture::make(&service, agents, 1).await;
    println!("workspace={}\nkey={}", made.workspace, made.keys[0]);
    let app = App::new(service, Cors::default());
    let listener = listener().await?;
    announce(&listener)?;
    let answering = listen::service_fn(move |request| {
        let app = app.clone();
        async move { Ok(app.respond(request).await) }
    });
    listen::serve(listener, answering, Limits::default(), std::future::pending()).await;
    Ok(())
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

/// Answers with the response that was captured from the product: the same status, fields and bytes.
async fn fixed(file: &Path) -> Result<(), Failure> {
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
        // hyper writes these two by itself.
        if !matches!(name, "date" | "content-length") {
            fields.push((HeaderName::try_from(name)?, HeaderValue::from_str(value)?));
        }
    }
    let fields = Arc::new(fields);
    bare(move |_| {
        let (fields, body) = (Arc::clone(&fields), body.clone());
        async move {
            let mut response = Response::new(Full::new(body));
            for (name, value) in fields.iter() {
                response.headers_mut().insert(name.clone(), value.clone());
            }
            Ok(response)
        }
    })
    .await
}

/// hyper and nothing else.
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
