//! Streams of the change feed: the time from a change to its event, and the memory of a stream that waits.
//!
//! The baseline is bare hyper with a channel for each stream, which gets the same events without a commit.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as Blocking};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use agentcfg_benches::process::Server;
use agentcfg_benches::product::Product;
use agentcfg_benches::request::send;
use agentcfg_benches::stats::{Series, rounds, seconds, setting};
use agentcfg_benches::{Failure, response, runtime};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinSet, LocalSet};

const PROGRAM: &str = env!("CARGO_BIN_EXE_bench-server");
/// Streams of one API key: as many as it may have.
const PER_KEY: usize = 10;
/// Changes a second, over all workspaces.
const CHANGES: f64 = 100.0;
/// Connections that write.
const WRITERS: usize = 8;
/// What precedes the time in the text of an event.
const MARK: &[u8] = br#""to":"t"#;

fn main() -> Result<(), Failure> {
    raise_open_files();
    let streams: usize = setting("STREAMS", 5000);
    let product = Product::build()?;
    println!(
        "| streams | of one workspace | events/s | p50, ms | p99, ms | answer to the change, p50, ms | bare hyper p50, ms | p99, ms | p50 ratio | p99 ratio | CPU, µs an event | bare, µs | KiB a waiting stream | bare, KiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for group in [10, 100] {
        row(&product, streams, group)?;
    }
    Ok(())
}

fn row(product: &Product, streams: usize, group: usize) -> Result<(), Failure> {
    let data = tempfile::tempdir()?;
    // The first start creates the directory with its keys and an empty store, which is then filled.
    product.serve(data.path())?.stop()?;
    let mut fill = Command::new(PROGRAM);
    fill.arg("fill").arg(data.path().join("store.redb"));
    let filled = Server::start(fill.args([streams / group, 1, group / PER_KEY].map(|count| count.to_string())))?;
    let pairs: Vec<(String, String)> = filled
        .fact("pairs")
        .split(',')
        .filter_map(|pair| pair.split_once(' '))
        .map(|(workspace, key)| (workspace.to_owned(), key.to_owned()))
        .collect();
    filled.stop()?;
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
        "| {streams} | {group} | {events} | {p50} | {p99} | {answer} | {bare_p50} | {bare_p99} | {} | {} | {cpu} | {bare_cpu} | {our_memory} | {their_memory} |",
        p50.over(bare_p50),
        p99.over(bare_p99),
    );
    Ok(())
}

/// A server with the requests of its streams and of its changes.
struct Target {
    server: Server,
    /// The requests that open streams, each for `PER_KEY` of them.
    opens: Vec<String>,
    /// The heads of the requests that change something, one for each workspace, with the number of streams that see it.
    changes: Vec<(String, usize)>,
    is_product: bool,
    /// The text of an event, with `STAMP` for the time.
    event: String,
}

impl Target {
    fn product(server: Server, pairs: &[(String, String)]) -> Result<Self, Failure> {
        let address = server.address;
        let mut changes: Vec<(String, usize)> = Vec::new();
        let mut last = "";
        for (workspace, key) in pairs {
            if workspace == last {
                if let Some((_, streams)) = changes.last_mut() {
                    *streams += PER_KEY;
                }
                continue;
            }
            last = workspace;
            let path = format!("/api/agents/configs?workspace_id={workspace}&agent_id=agent-0");
            let head = format!(
                "PATCH {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"
            );
            changes.push((head, PER_KEY));
        }
        let (workspace, key) = pairs.first().ok_or("no workspace")?;
        for role in ["t0", "t1"] {
            let path = format!("/api/agents/configs?workspace_id={workspace}&agent_id=agent-0");
            send_change(address, &path, key, role)?;
        }
        let path = format!("/api/changes?workspace_id={workspace}&after=start");
        let answer = send(address, "GET", &path, key, "")?;
        let body = answer.split_once("\r\n\r\n").ok_or("no body")?.1;
        let events: Vec<serde_json::Value> = serde_json::from_str(body)?;
        let last = events.last().ok_or("no event")?;
        let text = last.to_string().replace(r#""to":"t1""#, r#""to":"tSTAMP""#);
        let cursor = last["cursor"].as_str().ok_or("no cursor")?;
        // Every key is verified once, so that the memory for it is there before the streams.
        let opens = pairs.iter().map(|(workspace, key)| {
            send(address, "GET", &format!("/api/changes?workspace_id={workspace}&after=now"), key, "")?;
            Ok(format!(
                "GET /api/changes?workspace_id={workspace}&after=now HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\naccept: text/event-stream\r\n\r\n"
            ))
        });
        Ok(Self {
            opens: opens.collect::<Result<_, Failure>>()?,
            changes,
            is_product: true,
            event: format!("event: change\nid: {cursor}\ndata: {text}\n\n"),
            server,
        })
    }

    fn bare(server: Server, pairs: &[(String, String)]) -> Self {
        let mut changes: Vec<(String, usize)> = Vec::new();
        for (workspace, _) in pairs {
            let head = format!("POST /{workspace} HTTP/1.1\r\nhost: x\r\n");
            match changes.last_mut().filter(|(last, _)| *last == head) {
                Some((_, streams)) => *streams += PER_KEY,
                None => changes.push((head, PER_KEY)),
            }
        }
        let opens = pairs
            .iter()
            .map(|(workspace, _)| format!("GET /{workspace} HTTP/1.1\r\nhost: x\r\n\r\n"));
        Self {
            server,
            opens: opens.collect(),
            changes,
            is_product: false,
            event: String::new(),
        }
    }
}

fn send_change(address: SocketAddr, path: &str, key: &str, role: &str) -> Result<(), Failure> {
    let mut stream = Blocking::connect(address)?;
    let body = format!(r#"{{"role":"{role}"}}"#);
    let length = body.len();
    write!(
        stream,
        "PATCH {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.starts_with("HTTP/1.1 200") {
        true => Ok(()),
        false => Err(answer.into()),
    }
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
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let mine: Vec<(String, usize)> = target.changes.iter().skip(number).step_by(WRITERS).cloned().collect();
            let (address, is_product) = (target.server.address, target.is_product);
            std::thread::spawn(move || write_changes(address, &mine, number, base, time, is_product))
        })
        .collect();
    runtime.block_on(local.run_until(async { tokio::time::sleep(time + Duration::from_secs(1)).await }));
    let cpu = target.server.cpu_seconds() - cpu;
    let (mut expected, mut answers) = (0, Vec::new());
    for writer in writers {
        let (sent, taken) = writer.join().map_err(|_| "a writer panicked")??;
        expected += sent;
        answers.extend(taken);
    }
    drop(readers);
    runtime.block_on(local.run_until(tokio::task::yield_now()));
    let mut latencies = latencies.take();
    if latencies.len() != expected {
        return Err(format!("{} events arrived of {expected}", latencies.len()).into());
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

/// Changes one workspace after the other when it is due. Returns how many events the streams must get, and the time from each due
/// moment to the answer, in microseconds.
fn write_changes(
    address: SocketAddr,
    changes: &[(String, usize)],
    number: usize,
    base: Instant,
    time: Duration,
    is_product: bool,
) -> Result<(usize, Vec<u32>), Failure> {
    let mut stream = Blocking::connect(address)?;
    stream.set_nodelay(true)?;
    let step = Duration::from_secs_f64(WRITERS as f64 / CHANGES);
    let started = Instant::now();
    let mut due = started + step.mul_f64(number as f64 / WRITERS as f64);
    let (mut expected, mut answers) = (0, Vec::new());
    let mut buffer = vec![0; 16 << 10];
    for (head, streams) in changes.iter().cycle() {
        if due >= started + time {
            break;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let stamp = (due - base).as_micros();
        let body = match is_product {
            true => format!(r#"{{"role":"t{stamp}"}}"#),
            false => stamp.to_string(),
        };
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len())?;
        let (mut filled, mut whole) = (0, None);
        while whole.is_none_or(|whole| filled < whole) {
            let count = stream.read(&mut buffer[filled..])?;
            if count == 0 {
                return Err("the server closed the connection of a writer".into());
            }
            filled += count;
            whole = whole.or(response::whole_length(&buffer[..filled])?);
        }
        if response::status(&buffer)? != 200 {
            return Err(String::from_utf8_lossy(&buffer[..filled]).into_owned().into());
        }
        answers.push(u32::try_from(due.elapsed().as_micros())?);
        expected += streams;
        due += step;
    }
    Ok((expected, answers))
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

/// Raises the limit of open files of this process as far as the system allows.
fn raise_open_files() {
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    // If that fails, opening the streams reports it.
    let _ = setrlimit(Resource::Nofile, files);
}
