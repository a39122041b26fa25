//! Streams of the change feed: the time from a change to its event, and the memory of a stream that waits.
//!
//! The baseline is bare hyper with a channel for each stream, which gets the same events without a commit.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::cell::RefCell;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use agentcfg_benches::process::Server;
use agentcfg_benches::product::Product;
use agentcfg_benches::stats::{Series, rounds, seconds, setting};
use agentcfg_benches::streams::{self, PER_KEY, Target, Writers, Written};
use agentcfg_benches::{Failure, runtime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinSet, LocalSet};

const PROGRAM: &str = env!("CARGO_BIN_EXE_bench-server");
/// What precedes the time in the text of an event.
const MARK: &[u8] = br#""to":"t"#;

fn main() -> Result<(), Failure> {
    streams::raise_open_files();
    let count: usize = setting("STREAMS", 5000);
    let product = Product::build()?;
    println!(
        "| streams | of one workspace | events/s | p50, ms | p99, ms | answer to the change, p50, ms | bare hyper p50, ms | p99, ms | p50 ratio | p99 ratio | CPU, µs an event | bare, µs | KiB a waiting stream | bare, KiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for group in [10, 100] {
        row(&product, count, group)?;
    }
    Ok(())
}

fn row(product: &Product, count: usize, group: usize) -> Result<(), Failure> {
    let data = tempfile::tempdir()?;
    let pairs = streams::fill(product, PROGRAM, data.path(), count / group, group / PER_KEY)?;
    let ours = Target::product(product.serve(data.path())?, &pairs)?;
    let event = data.path().join("event");
    std::fs::write(&event, &ours.event)?;
    let theirs = Target::bare(Server::start(Command::new(PROGRAM).arg("events").arg(&event))?, &pairs);

    let mut figures: [Series; 8] = Default::default();
    let (mut our_memory, mut their_memory) = (Series::new(), Series::new());
    for _ in 0..rounds(3) {
        let (our, memory) = measure(&ours)?;
        our_memory.push(memory);
        let (bare, memory) = measure(&theirs)?;
        their_memory.push(memory);
        for (series, figure) in figures.iter_mut().zip([
            our.events, our.p50, our.p99, our.answer, bare.p50, bare.p99, our.cpu, bare.cpu,
        ]) {
            series.push(figure);
        }
    }
    let [events, p50, p99, answer, bare_p50, bare_p99, cpu, bare_cpu] = &figures;
    println!(
        "| {count} | {group} | {events} | {p50} | {p99} | {answer} | {bare_p50} | {bare_p99} | {} | {} | {cpu} | {bare_cpu} | {our_memory} | {their_memory} |",
        p50.over(bare_p50),
        p99.over(bare_p99),
    );
    Ok(())
}

/// The figures of one round.
struct Figures {
    events: f64,
    p50: f64,
    p99: f64,
    answer: f64,
    cpu: f64,
}

/// Opens all streams, measures their memory, and then the latencies under changes. The streams are closed at the end.
fn measure(target: &Target) -> Result<(Figures, f64), Failure> {
    let before = target.server.resident_mib();
    let base = Instant::now();
    let latencies: Rc<RefCell<Vec<u32>>> = Rc::default();
    let local = LocalSet::new();
    let runtime = runtime()?;
    let count = target.opens.len() * PER_KEY;
    let mut readers = JoinSet::new();
    let memory = runtime.block_on(local.run_until(async {
        for open in &target.opens {
            for _ in 0..PER_KEY {
                let mut stream = TcpStream::connect(target.server.address).await?;
                stream.write_all(open.as_bytes()).await?;
                let latencies = Rc::clone(&latencies);
                readers.spawn_local(async move { read_events(stream, base, &latencies).await });
            }
        }
        // All streams have their heads and their first bookmarks.
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok::<_, Failure>((target.server.resident_mib() - before) * 1024.0 / count as f64)
    }))?;
    let cpu = target.server.cpu_seconds();
    let time = Duration::from_secs_f64(seconds(10.0));
    let writers = Writers::start(target, base, time);
    runtime.block_on(local.run_until(async { tokio::time::sleep(time + Duration::from_secs(1)).await }));
    let cpu = target.server.cpu_seconds() - cpu;
    let Written { events, mut answers } = writers.join()?;
    drop(readers);
    runtime.block_on(local.run_until(tokio::task::yield_now()));
    let mut latencies = latencies.take();
    if latencies.len() != events {
        return Err(format!("{} events arrived of {events}", latencies.len()).into());
    }
    latencies.sort_unstable();
    answers.sort_unstable();
    let at = |sorted: &[u32], share: f64| {
        let last = sorted.len().saturating_sub(1);
        let index = ((sorted.len() as f64 * share) as usize).min(last);
        sorted.get(index).map_or(f64::NAN, |micros| f64::from(*micros) / 1e3)
    };
    let figures = Figures {
        events: latencies.len() as f64 / time.as_secs_f64(),
        p50: at(&latencies, 0.5),
        p99: at(&latencies, 0.99),
        answer: at(&answers, 0.5),
        cpu: cpu * 1e6 / latencies.len() as f64,
    };
    Ok((figures, memory))
}

/// Reads a stream until it is dropped, and notes the time from each change to its event in microseconds.
async fn read_events(mut stream: TcpStream, base: Instant, latencies: &RefCell<Vec<u32>>) -> Result<(), Failure> {
    let mut unread: Vec<u8> = Vec::new();
    loop {
        if stream.read_buf(&mut unread).await? == 0 {
            return Err("a stream has ended".into());
        }
        let now = base.elapsed().as_micros();
        while let Some(at) = unread.windows(MARK.len()).position(|window| window == MARK) {
            let start = at + MARK.len();
            let Some(length) = unread[start..].iter().position(|byte| *byte == b'"') else {
                break;
            };
            let stamp: u128 = std::str::from_utf8(&unread[start..start + length])?.parse()?;
            latencies.borrow_mut().push(u32::try_from(now.saturating_sub(stamp))?);
            unread.drain(..start + length);
        }
        // Enough for a mark that is cut, and no more, so that a waiting stream takes little memory here.
        if unread.len() > 4096 {
            let end = unread.len() - 64;
            unread.drain(..end);
        }
    }
}
