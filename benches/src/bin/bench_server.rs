//! The servers that the benchmarks measure, each in its own process.
//!
//! `bench-server api DATA AGENTS [--single]`: the product; with `--single`, one transaction for each request.
//! `bench-server fill FILE WORKSPACES AGENTS`: the product on a store with this many workspaces of this many agents
//! each; with a fourth number, every workspace gets so many keys.
//! `bench-server store DATA`: hyper and the group-commit writer without any rules: a POST stores its body.
//! `bench-server events FILE`: bare hyper; a GET opens a stream of server-sent events of the group that its path names,
//! and a POST to that path sends the event in FILE, with the body in place of `STAMP`, to all of them. `bench-server
//! fixed FILE`: bare hyper; answers every request with the response in FILE. `bench-server provider`: bare hyper as a
//! model provider. It answers a POST with a completion of about 1 KiB, and one with `"stream":true` in its body with 50
//! server-sent events, each written by itself. `bench-server pass ADDRESS`: hyper and the pooling client of hyper-util
//! as a reverse proxy of ADDRESS. `bench-server listen FILE`: as `fixed`, through the product's listener with its
//! timeouts and limits.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::future::ready;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use agentcfg_benches::Failure;
use agentcfg_core::AgentCfg;
use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use agentcfg_core::store::{Batch, Key, Kind, Store, Write};
use agentcfg_server::listen::{self, Limits};
use agentcfg_server::{App, Cors};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::{Authority, Scheme};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["api", data, agents] => api(Path::new(data), agents.parse()?, RedbOptions::default()).await,
        ["api", data, agents, "--single"] => {
            let options = RedbOptions::default().group_size(1);
            api(Path::new(data), agents.parse()?, options).await
        }
        ["fill", file, workspaces, agents] => fill(Path::new(file), workspaces.parse()?, agents.parse()?, None).await,
        ["fill", file, workspaces, agents, keys] => {
            fill(Path::new(file), workspaces.parse()?, agents.parse()?, Some(keys.parse()?)).await
        }
        ["events", file] => events(Path::new(file)).await,
        ["store", data] => store(Path::new(data)).await,
        ["fixed", file] => fixed(Path::new(file), false).await,
        ["provider"] => provider().await,
        ["pass", upstream] => pass(upstream.parse()?).await,
        ["listen", file] => fixed(Path::new(file), true).await,
        _ => Err("usage: bench-server api DATA AGENTS [--single] | fill FILE WORKSPACES AGENTS [KEYS] | store DATA | events FILE | fixed FILE | provider | pass ADDRESS | listen FILE".into()),
    }
}

async fn listener() -> std::io::Result<TcpListener> {
    TcpListener::bind("127.0.0.1:0").await
}

fn announce(listener: &TcpListener) -> std::io::Result<()> {
    println!("listening on http://{}", listener.local_addr()?);
    Ok(())
}

/// Serves the product's request path over a service.
async fn serve(service: AgentCfg) -> Result<(), Failure> {
    let app = App::new(service, Cors::default());
    let listener = listener().await?;
    announce(&listener)?;
    let connect = move |client| {
        let app = app.for_connection(client);
        listen::service_fn(move |request| app.exchange(request))
    };
    listen::serve(listener, connect, Limits::default(), terminated()).await;
    Ok(())
}

async fn api(data: &Path, agents: usize, options: RedbOptions) -> Result<(), Failure> {
    let service = agentcfg_benches::fixture::service(RedbStore::open(data.join("bench.redb"), options)?);
    let made = agentcfg_benches::fixture::make(&service, agents, 16).await;
    println!(
        "workspace={}\nkey={}\nkeys={}",
        made.workspace,
        made.keys[0],
        made.keys.join(",")
    );
    serve(service).await
}

/// Creates this many workspaces with this many agents each, and serves them: with so many keys each, or one for some of
/// them.
async fn fill(file: &Path, workspaces: usize, agents: usize, keys: Option<usize>) -> Result<(), Failure> {
    /// Workspaces that are filled concurrently.
    const AT_A_TIME: usize = 256;
    /// Workspaces that get a key.
    const KEYS: usize = 256;
    let service = agentcfg_benches::fixture::service(RedbStore::open(file, RedbOptions::default())?);
    let turns = Arc::new(tokio::sync::Semaphore::new(AT_A_TIME));
    let mut tasks = tokio::task::JoinSet::new();
    let started = std::time::Instant::now();
    for i in 0..workspaces {
        let turn = Arc::clone(&turns).acquire_owned().await?;
        let service = service.clone();
        tasks.spawn(async move {
            let _turn = turn;
            let keys = keys.unwrap_or(usize::from(i < KEYS));
            let made = agentcfg_benches::fixture::make(&service, agents, keys).await;
            let pairs = made.keys.iter().map(|key| format!("{} {key}", made.workspace));
            pairs.collect::<Vec<String>>()
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
            Ok::<_, Infallible>(response)
        }
    })
    .await
}

/// The fan-out of an event to the streams of a group, with hyper and channels alone.
async fn events(file: &Path) -> Result<(), Failure> {
    let template: Arc<str> = std::fs::read_to_string(file)?.into();
    let groups: Arc<Mutex<HashMap<String, Vec<mpsc::Sender<Bytes>>>>> = Arc::default();
    bare(move |request: Request<Incoming>| {
        let (groups, template) = (Arc::clone(&groups), Arc::clone(&template));
        async move {
            let group = request.uri().path().to_owned();
            if request.method() == hyper::Method::GET {
                let (sender, pieces) = mpsc::channel(64);
                let mut groups = groups.lock().unwrap_or_else(PoisonError::into_inner);
                groups.entry(group).or_default().push(sender);
                return Ok::<_, Infallible>(Response::new(Sent::Stream(pieces)));
            }
            let stamp = request.into_body().collect().await.map(|body| body.to_bytes());
            let stamp = String::from_utf8_lossy(&stamp.unwrap_or_default()).into_owned();
            let event = Bytes::from(template.replace("STAMP", &stamp));
            let groups = groups.lock().unwrap_or_else(PoisonError::into_inner);
            for sender in groups.get(&group).into_iter().flatten() {
                let _ = sender.try_send(event.clone());
            }
            Ok(Response::new(Sent::Whole(Full::new(Bytes::from_static(b"{}")))))
        }
    })
    .await
}

/// The body of a response of [`events`].
enum Sent {
    Whole(Full<Bytes>),
    Stream(mpsc::Receiver<Bytes>),
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(body) => Pin::new(body).poll_frame(cx),
            Self::Stream(pieces) => pieces
                .poll_recv(cx)
                .map(|piece| piece.map(|piece| Ok(Frame::data(piece)))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// The events of a streamed completion.
const EVENTS: usize = 50;

/// A model provider whose answers cost it as little as possible.
async fn provider() -> Result<(), Failure> {
    let text = "The notes of this release name what changed, and why. ".repeat(16);
    let whole = format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-5.5","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":20,"completion_tokens":200}}}}"#
    );
    let whole = Bytes::from(whole);
    let event = Bytes::from_static(
        b"data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\"gpt-5.5\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" notes\"}}]}\n\n",
    );
    bare(move |request: Request<Incoming>| {
        let (whole, event) = (whole.clone(), event.clone());
        async move {
            let body = request.into_body().collect().await.map(|body| body.to_bytes());
            let body = body.unwrap_or_default();
            let wanted = br#""stream":true"#;
            let is_streamed = body.windows(wanted.len()).any(|part| part == wanted);
            let (content_type, answer) = if is_streamed {
                let events = Events {
                    event,
                    left: EVENTS,
                    is_due: true,
                };
                ("text/event-stream", Completion::Streamed(events))
            } else {
                ("application/json", Completion::Whole(Full::new(whole)))
            };
            let mut response = Response::new(answer);
            let headers = response.headers_mut();
            headers.insert(hyper::header::CONTENT_TYPE, HeaderValue::from_static(content_type));
            headers.insert("x-request-id", HeaderValue::from_static("req_0123456789abcdef"));
            if is_streamed {
                // nginx passes a stream with this field on without holding it back.
                headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
            }
            Ok::<_, Infallible>(response)
        }
    })
    .await
}

/// The body of an answer of [`provider`].
enum Completion {
    Whole(Full<Bytes>),
    Streamed(Events),
}

/// Events that are written one by one: between two of them, the connection writes what it has.
struct Events {
    event: Bytes,
    left: usize,
    is_due: bool,
}

impl Body for Completion {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(body) => Pin::new(body).poll_frame(cx),
            Self::Streamed(Events { left: 0, .. }) => Poll::Ready(None),
            Self::Streamed(events) => {
                events.is_due = !events.is_due;
                if events.is_due {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                events.left -= 1;
                Poll::Ready(Some(Ok(Frame::data(events.event.clone()))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Streamed(_) => SizeHint::default(),
        }
    }
}

/// Passes requests and answers on as they are, over connections to the upstream that are kept open.
async fn pass(upstream: SocketAddr) -> Result<(), Failure> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Incoming>();
    let authority = Authority::try_from(upstream.to_string())?;
    bare(move |mut request: Request<Incoming>| {
        let (client, authority) = (client.clone(), authority.clone());
        async move {
            let mut parts = std::mem::take(request.uri_mut()).into_parts();
            parts.scheme = Some(Scheme::HTTP);
            parts.authority = Some(authority);
            *request.uri_mut() = Uri::from_parts(parts).map_err(std::io::Error::other)?;
            client.request(request).await.map_err(std::io::Error::other)
        }
    })
    .await
}

/// Answers with the captured response of the product: the same status, headers and bytes.
///
/// All of it is constant, so that an answer costs a copy of the header map and no text is written or counted.
async fn fixed(file: &Path, through_listen: bool) -> Result<(), Failure> {
    let captured: &'static [u8] = std::fs::read(file)?.leak();
    let end = captured
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .ok_or("no end of the head")?;
    let head = std::str::from_utf8(&captured[..end])?;
    let body = Bytes::from_static(&captured[end + 4..]);
    let mut fields = HeaderMap::new();
    for line in head.lines().skip(1) {
        let (name, value) = line.split_once(": ").ok_or("not a header field")?;
        // hyper writes these two headers itself.
        if !matches!(name, "date" | "content-length") {
            fields.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
    }
    let fields = Arc::new(fields);
    let answer = move |_: Request<Incoming>| {
        let mut response = Response::new(Full::new(body.clone()));
        response.headers_mut().clone_from(&fields);
        ready(Ok::<_, Infallible>(response))
    };
    if !through_listen {
        return bare(answer).await;
    }
    let listener = listener().await?;
    announce(&listener)?;
    listen::serve(
        listener,
        move |_| listen::service_fn(answer.clone()),
        Limits::default(),
        std::future::pending(),
    )
    .await;
    Ok(())
}

/// Serves with hyper alone: without a timeout, so that no request sets a timer.
async fn bare<F, Fut, E, B>(answer: F) -> Result<(), Failure>
where
    F: Fn(Request<Incoming>) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<Response<B>, E>> + Send + 'static,
    E: Into<Box<dyn Error + Send + Sync>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let listener = listener().await?;
    announce(&listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let answer = answer.clone();
        tokio::spawn(async move {
            let _ = hyper::server::conn::http1::Builder::new()
                .header_read_timeout(None)
                .serve_connection(TokioIo::new(stream), service_fn(answer))
                .await;
        });
    }
}
