//! Reads of others beside many streams of the change feed: alone, while the streams get events, and while all streams
//! connect again at once, as after the restart of a proxy.
//!
//! The baseline is the same reads while a bare hyper in a process of its own sends the same events to the same streams.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agentcfg_benches::paced::{Outcome, Pace, Paced};
use agentcfg_benches::process::Server;
use agentcfg_benches::product::Product;
use agentcfg_benches::stats::{Series, rounds, seconds, setting};
use agentcfg_benches::streams::{self, PER_KEY, Target, Writers};
use agentcfg_benches::{Failure, request, response, runtime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};

const PROGRAM: &str = env!("CARGO_BIN_EXE_bench-server");
/// The reads of others.
const READS: Pace = Pace {
    connections: 16,
    per_second: 1000.0,
    status: 200,
};

fn main() -> Result<(), Failure> {
    streams::raise_open_files();
    let count: usize = setting("STREAMS", 5000);
    let product = Product::build()?;
    println!(
        "| streams | of one workspace | events/s | reads alone p50, ms | p99, ms | beside the events of bare hyper p50, ms | p99, ms | p50 ratio to alone | beside the events p50, ms | p99, ms | p50 ratio to alone | p50 ratio to bare hyper | while all connect again p50, ms | p99, ms | p50 ratio to alone | all connected after, s | refused and tried again |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for group in [10, 100] {
        row(&product, count, group)?;
    }
    Ok(())
}

fn row(product: &Product, count: usize, group: usize) -> Result<(), Failure> {
    let data = tempfile::tempdir()?;
    let keys = group / PER_KEY;
    let mut pairs = streams::fill(product, PROGRAM, data.path(), count / group + 1, keys)?;
    // The last workspace has no streams: its keys read.
    let others = pairs.split_off(pairs.len() - keys);
    let reads: Vec<_> = others
        .iter()
        .map(|(workspace, key)| request::list(workspace, key).into_bytes())
        .collect();
    let reads: Arc<[Vec<u8>]> = reads.into();
    let target = Target::product(product.serve(data.path())?, &pairs)?;
    let event = data.path().join("event");
    std::fs::write(&event, &target.event)?;
    let bare = Target::bare(Server::start(Command::new(PROGRAM).arg("events").arg(&event))?, &pairs);
    let address = target.server.address;
    let time = Duration::from_secs_f64(seconds(4.0));
    let read = || Paced::start(address, READS, &reads)?.run_for(time);
    // Warms up: the first use of each key costs a password hash.
    read()?;

    let [mut quiet, mut beside_bare, mut beside, mut during]: [Latencies; 4] = Default::default();
    let [mut events, mut again, mut refused] = [Series::new(), Series::new(), Series::new()];
    for _ in 0..rounds(3) {
        quiet.push(&read()?)?;
        // What it costs that the sending of the events and their readers use the same processors.
        let crowd = Crowd::open(bare.server.address, &bare.opens)?;
        crowd.wait()?;
        let writers = Writers::start(&bare, Instant::now(), time);
        beside_bare.push(&read()?)?;
        writers.join()?;
        crowd.close()?;
        let crowd = Crowd::open(address, &target.opens)?;
        crowd.wait()?;
        let writers = Writers::start(&target, Instant::now(), time);
        beside.push(&read()?)?;
        events.push(writers.join()?.events as f64 / time.as_secs_f64());
        let paced = Paced::start(address, READS, &reads)?;
        let started = Instant::now();
        crowd.connect_again();
        crowd.wait()?;
        again.push(started.elapsed().as_secs_f64());
        thread::sleep(time.saturating_sub(started.elapsed()));
        during.push(&paced.stop()?)?;
        refused.push(crowd.close()?);
    }
    println!(
        "| {count} | {group} | {events} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {again} | {refused} |",
        quiet.p50,
        quiet.p99,
        beside_bare.p50,
        beside_bare.p99,
        beside_bare.p50.over(&quiet.p50),
        beside.p50,
        beside.p99,
        beside.p50.over(&quiet.p50),
        beside.p50.over(&beside_bare.p50),
        during.p50,
        during.p99,
        during.p50.over(&quiet.p50),
    );
    Ok(())
}

#[derive(Default)]
struct Latencies {
    p50: Series,
    p99: Series,
}

impl Latencies {
    fn push(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        if outcome.refused > 0 {
            return Err(format!("{} reads were refused", outcome.refused).into());
        }
        self.p50.push(outcome.percentile(0.50));
        self.p99.push(outcome.percentile(0.99));
        Ok(())
    }
}

/// Open streams, on a thread of their own.
struct Crowd {
    /// How many times all streams were told to connect.
    round: watch::Sender<usize>,
    /// The streams that have connected, over all rounds.
    connected: Arc<AtomicUsize>,
    /// Streams that were refused with 429, because the server had not yet noticed the end of an earlier one.
    refused: Arc<AtomicUsize>,
    streams: usize,
    thread: thread::JoinHandle<Result<(), Failure>>,
}

impl Crowd {
    fn open(address: SocketAddr, opens: &[String]) -> Result<Self, Failure> {
        let (round, heard) = watch::channel(1);
        let (connected, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let opens: Vec<Arc<str>> = opens.iter().map(|open| open.as_str().into()).collect();
        let streams = opens.len() * PER_KEY;
        let counters = (Arc::clone(&connected), Arc::clone(&refused));
        let thread = thread::spawn(move || {
            let all = async {
                let mut readers = JoinSet::new();
                for open in opens.iter().flat_map(|open| [open; PER_KEY]) {
                    readers.spawn_local(hold(address, Arc::clone(open), heard.clone(), counters.clone()));
                }
                drop(heard);
                while let Some(ended) = readers.join_next().await {
                    ended??;
                }
                Ok(())
            };
            runtime()?.block_on(LocalSet::new().run_until(all))
        });
        Ok(Self {
            round,
            connected,
            refused,
            streams,
            thread,
        })
    }

    /// Waits until all streams have connected.
    fn wait(&self) -> Result<(), Failure> {
        let all = *self.round.borrow() * self.streams;
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.connected.load(Ordering::Acquire) < all {
            if self.thread.is_finished() || Instant::now() > deadline {
                let connected = self.connected.load(Ordering::Acquire);
                return Err(format!("{connected} streams have connected of {all}").into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// All streams break off and connect again.
    fn connect_again(&self) {
        self.round.send_modify(|round| *round += 1);
    }

    /// Closes all streams. Returns how many were refused.
    fn close(self) -> Result<f64, Failure> {
        drop(self.round);
        self.thread.join().map_err(|_| "the streams panicked")??;
        Ok(self.refused.load(Ordering::Acquire) as f64)
    }
}

/// Holds one stream, and connects again in each round.
async fn hold(
    address: SocketAddr,
    open: Arc<str>,
    mut round: watch::Receiver<usize>,
    (connected, refused): (Arc<AtomicUsize>, Arc<AtomicUsize>),
) -> Result<(), Failure> {
    let mut buffer = vec![0; 4096];
    loop {
        round.borrow_and_update();
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(open.as_bytes()).await?;
        let count = stream.read(&mut buffer).await?;
        match response::status(&buffer[..count])? {
            200 => connected.fetch_add(1, Ordering::AcqRel),
            429 => {
                refused.fetch_add(1, Ordering::AcqRel);
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
            status => return Err(format!("a stream was answered with {status}").into()),
        };
        loop {
            tokio::select! {
                changed = round.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return Ok(()),
                },
                read = stream.read(&mut buffer) => if read? == 0 {
                    return Err("a stream has ended".into());
                },
            }
        }
    }
}
