//! Deliveries of webhooks a second to a local receiver, alone and beside a receiver that never answers.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use agentcfg_benches::process::Server;
use agentcfg_benches::product::{Product, Workspace};
use agentcfg_benches::request::{field, send};
use agentcfg_benches::stats::{Series, rounds, setting};
use agentcfg_benches::{Failure, runtime};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

/// The deliveries a second that one webhook must reach.
const WANTED: f64 = 500.0;
/// The longest time that a round may take.
const LIMIT: Duration = Duration::from_secs(120);

fn main() -> Result<(), Failure> {
    let events: usize = setting("EVENTS", 3000);
    let product = Product::build()?;
    let data = tempfile::tempdir()?;
    let (good, received) = receiver()?;
    // It accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let dead = silent.local_addr()?;
    let server = product.serve_with(data.path(), "AGENTCFG_WEBHOOK_ALLOWED_HOSTS", &format!("{good},{dead}"))?;
    let bench = Bench {
        workspace: product.workspace(server.address)?,
        key: String::new(),
        server: &server,
        received,
        events,
    };
    let bench = Bench {
        key: product.admin_key(server.address, &bench.workspace.id)?,
        ..bench
    };
    let webhook = bench.create(good)?;
    let other = bench.create(dead)?;
    bench.workspace.seed(server.address, events)?;
    bench.replay(&webhook)?;

    let (mut alone, mut beside, mut cpu) = (Series::new(), Series::new(), Series::new());
    for _ in 0..rounds(5) {
        let (per_second, cost) = bench.measure(&webhook)?;
        alone.push(per_second);
        cpu.push(cost);
        bench.enable(&other, true)?;
        beside.push(bench.measure(&webhook)?.0);
        bench.enable(&other, false)?;
        bench.rewind(&other)?;
    }
    println!(
        "| events | alone, deliveries/s | beside a dead receiver, deliveries/s | ratio | CPU, µs a delivery | at least {WANTED} |"
    );
    println!("|---|---|---|---|---|---|");
    let is_enough = if beside.median() >= WANTED { "yes" } else { "no" };
    println!(
        "| {events} | {alone} | {beside} | {} | {cpu} | {is_enough} |",
        beside.over(&alone)
    );
    Ok(())
}

struct Bench<'a> {
    server: &'a Server,
    workspace: Workspace,
    key: String,
    received: Arc<AtomicUsize>,
    events: usize,
}

impl Bench<'_> {
    /// A webhook that is disabled.
    fn create(&self, receiver: SocketAddr) -> Result<String, Failure> {
        let body = format!(
            r#"{{"workspace_id":"{}","url":"http://{receiver}/","types":["agent.*"]}}"#,
            self.workspace.id
        );
        let made = self.send("POST", "/api/webhooks", &body)?;
        let id = field(&made, "id").ok_or(made)?;
        self.enable(&id, false)?;
        Ok(id)
    }

    fn enable(&self, webhook: &str, enabled: bool) -> Result<(), Failure> {
        let path = format!("/api/webhooks?webhook_id={webhook}");
        self.send("PATCH", &path, &format!(r#"{{"enabled":{enabled}}}"#))
            .map(drop)
    }

    fn rewind(&self, webhook: &str) -> Result<(), Failure> {
        let path = format!("/api/webhooks/replay?webhook_id={webhook}");
        self.send("POST", &path, r#"{"after":"start"}"#).map(drop)
    }

    /// Sends everything once, so that the connections and the caches are warm.
    fn replay(&self, webhook: &str) -> Result<(), Failure> {
        self.measure(webhook).map(drop)
    }

    /// Deliveries a second of all events, and the microseconds of processor time that each takes.
    fn measure(&self, webhook: &str) -> Result<(f64, f64), Failure> {
        self.rewind(webhook)?;
        self.received.store(0, Ordering::SeqCst);
        self.enable(webhook, true)?;
        let deadline = Instant::now() + LIMIT;
        let wait_for = |count: usize| {
            while self.received.load(Ordering::SeqCst) < count {
                if Instant::now() > deadline {
                    return Err(format!("{} of {count} came", self.received.load(Ordering::SeqCst)));
                }
                thread::sleep(Duration::from_micros(200));
            }
            Ok(Instant::now())
        };
        let began = wait_for(1)?;
        let before = self.server.cpu_seconds();
        let elapsed = wait_for(self.events)? - began;
        let cpu = self.server.cpu_seconds() - before;
        self.enable(webhook, false)?;
        let events = self.events as f64;
        Ok((events / elapsed.as_secs_f64(), cpu / events * 1e6))
    }

    fn send(&self, method: &str, path: &str, body: &str) -> Result<String, Failure> {
        let answer = send(self.server.address, method, path, &self.key, body)?;
        if answer.contains(" 200 ") || answer.contains(" 201 ") {
            Ok(answer)
        } else {
            Err(answer.into())
        }
    }
}

/// A receiver on a thread of its own, and the number of its messages.
fn receiver() -> Result<(SocketAddr, Arc<AtomicUsize>), Failure> {
    let received = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&received);
    let (sender, address) = mpsc::channel();
    let runtime = runtime()?;
    thread::spawn(move || {
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            // The main thread waits for it.
            let _ = sender.send(listener.local_addr()?);
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let counter = Arc::clone(&counter);
                let service = service_fn(move |request| take(request, Arc::clone(&counter)));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
            #[allow(unreachable_code, reason = "it names the type of the errors")]
            Ok::<(), std::io::Error>(())
        })
    });
    Ok((address.recv()?, received))
}

async fn take(request: Request<Incoming>, received: Arc<AtomicUsize>) -> Result<Response<Full<Bytes>>, Infallible> {
    // A message that breaks off is not counted.
    if request.into_body().collect().await.is_ok() {
        received.fetch_add(1, Ordering::SeqCst);
    }
    Ok(Response::default())
}
