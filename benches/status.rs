//! Live status of a large workspace: agents that report, and dashboards that poll or stream, beside reports in another
//! workspace; on redb, on PostgreSQL and on an etcd cluster of three members.
//!
//! With `BASELINE=PATH` only redb, with another binary of the server in turn with this one. `STORES` names the stores
//! to measure.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agentcfg_benches::cluster::Cluster;
use agentcfg_benches::etcd::EtcdCluster;
use agentcfg_benches::load;
use agentcfg_benches::paced::{Outcome, Pace, Paced};
use agentcfg_benches::process::Server;
use agentcfg_benches::product::{DATABASE_URL, ETCD_ENDPOINTS, Product};
use agentcfg_benches::stats::{Series, rounds, seconds, setting};
use agentcfg_benches::streams::{self, PER_KEY};
use agentcfg_benches::{Failure, runtime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bench-server");
/// Keys of each workspace.
const KEYS: usize = 16;
/// How often an agent reports, in seconds.
const REPORTED_EVERY: f64 = 30.0;
/// How often a dashboard polls, in seconds.
const POLLED_EVERY: f64 = 2.0;
const DASHBOARDS: usize = 100;
/// Reports a second in the other workspace.
const OTHERS: f64 = 100.0;

#[derive(Clone, Copy, PartialEq)]
enum Readers {
    /// Reports without readers.
    None,
    /// Each reads again after the answer, and there are no reports.
    Busy,
    Polling {
        gzip: bool,
    },
    /// Streams that are open for long.
    Streaming,
    /// Streams that begin at once, each with the statuses of all agents.
    Connecting,
}

impl Readers {
    const ALL: [Self; 6] = [
        Self::Busy,
        Self::None,
        Self::Polling { gzip: false },
        Self::Polling { gzip: true },
        Self::Streaming,
        Self::Connecting,
    ];

    fn title(self) -> String {
        match self {
            Self::None => "none".into(),
            Self::Busy => "16, read after read, without reports".into(),
            Self::Polling { gzip: false } => format!("{DASHBOARDS} poll every {POLLED_EVERY} s"),
            Self::Polling { gzip: true } => format!("{DASHBOARDS} poll every {POLLED_EVERY} s, gzip"),
            Self::Streaming => format!("{DASHBOARDS} streams"),
            Self::Connecting => format!("{DASHBOARDS} streams that begin at once"),
        }
    }
}

/// Where a server keeps its records; the database and the cluster end with it.
enum Place {
    Embedded,
    Postgres(Cluster),
    Etcd(EtcdCluster),
}

/// A server with two workspaces.
struct Target {
    title: &'static str,
    server: Server,
    /// The keys of the large workspace, and the requests of its agents' reports.
    workspace: String,
    keys: Vec<String>,
    reports: Arc<[Vec<u8>]>,
    /// How many of these reports were answered. Each measurement goes on with the next one, so that each agent reports
    /// in time.
    reported: Cell<u64>,
    agents: usize,
    /// The reports of the other workspace.
    others: Arc<[Vec<u8>]>,
}

#[derive(Default)]
struct Figures {
    reports: Series,
    report: [Series; 2],
    reads: Series,
    read: [Series; 2],
    other: Series,
    cpu: Series,
}

fn main() -> Result<(), Failure> {
    streams::raise_open_files();
    let agents: usize = setting("AGENTS", 10_000);
    let product = Product::build()?;
    println!(
        "| store | agents | readers | reports/s | report p50, ms | p99, ms | reads or events/s | read p50, ms | p99, ms | report in another workspace p99, ms | CPU, % of a core |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    if let Some(binary) = std::env::var_os("BASELINE") {
        let baseline = Product::of(binary.into())?;
        let (one, two) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let targets = [
            Target::new("redb", &product, one.path(), &Place::Embedded, agents)?,
            Target::new("redb, baseline", &baseline, two.path(), &Place::Embedded, agents)?,
        ];
        return report(&targets, agents);
    }
    let stores: String = setting("STORES", "redb postgres etcd".to_owned());
    for store in stores.split_whitespace() {
        let (title, place) = match store {
            "redb" => ("redb", Place::Embedded),
            "postgres" => ("PostgreSQL", Place::Postgres(Cluster::start()?)),
            "etcd" => ("etcd", Place::Etcd(EtcdCluster::start()?)),
            other => return Err(format!("STORES names {other:?}; it takes redb, postgres and etcd").into()),
        };
        let data = tempfile::tempdir()?;
        report(&[Target::new(title, &product, data.path(), &place, agents)?], agents)?;
    }
    Ok(())
}

/// Measures servers in turn, and prints a line for each of them and each kind of readers.
fn report(targets: &[Target], agents: usize) -> Result<(), Failure> {
    for readers in Readers::ALL {
        let mut figures: Vec<Figures> = targets.iter().map(|_| Figures::default()).collect();
        for _ in 0..rounds(3) {
            for (target, figures) in targets.iter().zip(&mut figures) {
                target.measure(readers, figures)?;
            }
        }
        for (target, figures) in targets.iter().zip(&figures) {
            let Figures {
                reports,
                report: [report_p50, report_p99],
                reads,
                read: [read_p50, read_p99],
                other,
                cpu,
            } = figures;
            println!(
                "| {} | {agents} | {} | {reports} | {report_p50} | {report_p99} | {reads} | {read_p50} | {read_p99} | {other} | {cpu} |",
                target.title,
                readers.title(),
            );
        }
    }
    Ok(())
}

impl Place {
    /// Starts a server with the records of a data directory.
    fn serve(&self, product: &Product, data: &Path) -> Result<Server, Failure> {
        Ok(match self {
            Self::Embedded => product.serve(data)?,
            Self::Postgres(cluster) => {
                cluster.create("agentcfg")?;
                let url = cluster.url("agentcfg");
                product.migrate(data, "postgres", DATABASE_URL, &url)?;
                product.serve_migrated(data, DATABASE_URL, &url)?
            }
            Self::Etcd(cluster) => {
                let endpoints = cluster.endpoints();
                product.migrate(data, "etcd", ETCD_ENDPOINTS, &endpoints)?;
                product.serve_migrated(data, ETCD_ENDPOINTS, &endpoints)?
            }
        })
    }
}

impl Target {
    fn new(title: &'static str, product: &Product, data: &Path, place: &Place, agents: usize) -> Result<Self, Failure> {
        // The first start creates the directory with its keys and an empty store, which is then filled.
        product.serve(data)?.stop()?;
        let mut fill = Command::new(PROGRAM);
        fill.arg("fill").arg(data.join("store.redb"));
        let filled = Server::start(fill.args([2, agents, KEYS].map(|count| count.to_string())))?;
        let pairs = filled.fact("pairs").split(',').filter_map(|pair| pair.split_once(' '));
        let mut workspaces: Vec<(String, Vec<String>)> = Vec::new();
        for (workspace, key) in pairs {
            match workspaces.last_mut() {
                Some((last, keys)) if last == workspace => keys.push(key.to_owned()),
                _ => workspaces.push((workspace.to_owned(), vec![key.to_owned()])),
            }
        }
        filled.stop()?;
        let server = place.serve(product, data)?;
        let [(workspace, keys), (other, other_keys)] = <[_; 2]>::try_from(workspaces).map_err(|_| "two workspaces")?;
        let target = Self {
            title,
            server,
            reports: reports(&workspace, &keys, agents),
            others: reports(&other, &other_keys, 100),
            reported: Cell::new(agents as u64),
            agents,
            workspace,
            keys,
        };
        // Warms up: the first use of each key costs a password hash, and then each agent has reported.
        for (reports, agents) in [(&target.others, 100), (&target.reports, agents)] {
            let pace = pace(16, 600.0);
            let time = Duration::from_secs_f64(agents as f64 / pace.per_second + 1.0);
            let outcome = Paced::start(target.server.address, pace, reports)?.run_for(time)?;
            if outcome.refused > 0 || outcome.answered < agents as u64 {
                return Err(format!("{} reports were answered of {agents}", outcome.answered).into());
            }
        }
        Ok(target)
    }

    fn measure(&self, readers: Readers, figures: &mut Figures) -> Result<(), Failure> {
        let (address, time) = (self.server.address, Duration::from_secs_f64(seconds(8.0)));
        let streams = match readers {
            Readers::Streaming => Some(Streams::begun(self)?),
            _ => None,
        };
        let cpu = self.server.cpu_seconds();
        if readers == Readers::Busy {
            let list = self.list(&self.keys[0], false);
            let read = move |_: u64, out: &mut Vec<u8>| out.extend_from_slice(&list);
            let outcome = runtime()?.block_on(load::run(address, 16, time, 200, read))?;
            figures.reads.push(outcome.per_second());
        } else {
            let pace_of_reports = pace(16, self.agents as f64 / REPORTED_EVERY);
            let first = self.reported.get() as usize;
            let reports = Paced::start_from(first, address, pace_of_reports, &self.reports)?;
            let others = Paced::start(address, pace(4, OTHERS), &self.others)?;
            match readers {
                Readers::Polling { gzip } => {
                    let lists: Vec<Vec<u8>> = self.keys.iter().map(|key| self.list(key, gzip)).collect();
                    let pace = pace(DASHBOARDS, DASHBOARDS as f64 / POLLED_EVERY);
                    let outcome = Paced::start(address, pace, &lists.into())?.run_for(time)?;
                    good(&outcome)?;
                    figures.reads.push(outcome.per_second());
                    percentiles(&outcome, &mut figures.read);
                }
                Readers::Streaming | Readers::Connecting => {
                    let streams = match streams {
                        Some(streams) => streams,
                        None => Streams::open(self)?,
                    };
                    let before = streams.events();
                    std::thread::sleep(time);
                    figures
                        .reads
                        .push((streams.events() - before) as f64 / time.as_secs_f64());
                }
                Readers::None | Readers::Busy => std::thread::sleep(time),
            }
            let (reports, others) = (reports.stop()?, others.stop()?);
            good(&reports)?;
            self.reported.set(self.reported.get() + reports.answered);
            figures.reports.push(reports.per_second());
            percentiles(&reports, &mut figures.report);
            figures.other.push(others.percentile(0.99));
        }
        let cpu = self.server.cpu_seconds() - cpu;
        figures.cpu.push(100.0 * cpu / time.as_secs_f64());
        Ok(())
    }

    fn list(&self, key: &str, gzip: bool) -> Vec<u8> {
        let path = format!("/api/agents/status?workspace_id={}", self.workspace);
        let coding = if gzip { "accept-encoding: gzip\r\n" } else { "" };
        format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n{coding}\r\n").into_bytes()
    }
}

/// The streams of the dashboards, in a thread of their own.
struct Streams {
    events: Arc<AtomicU64>,
    stop: Option<oneshot::Sender<()>>,
    reading: Option<JoinHandle<()>>,
}

impl Streams {
    fn open(target: &Target) -> Result<Self, Failure> {
        let requests: Vec<String> = (0..DASHBOARDS)
            .map(|number| {
                let (key, workspace) = (&target.keys[number / PER_KEY], &target.workspace);
                let path = format!("/api/changes?workspace_id={workspace}&after=now&status=true");
                format!(
                    "GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\naccept: text/event-stream\r\n\r\n"
                )
            })
            .collect();
        let runtime = runtime()?;
        let address = target.server.address;
        let events = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = oneshot::channel();
        let mut readers = JoinSet::new();
        runtime.block_on(async {
            for request in requests {
                let stream = connect(address, &request).await?;
                readers.spawn(count_events(stream, Arc::clone(&events)));
            }
            Ok::<_, Failure>(())
        })?;
        let reading = std::thread::spawn(move || {
            // The sender stops them, or is gone.
            let _ = runtime.block_on(stopped);
            drop(readers);
        });
        Ok(Self {
            events,
            stop: Some(stop),
            reading: Some(reading),
        })
    }

    /// Opens the streams, and waits until each has the statuses of all agents.
    fn begun(target: &Target) -> Result<Self, Failure> {
        let streams = Self::open(target)?;
        // An event that two reads share is not counted.
        let all = (DASHBOARDS * target.agents) as u64 * 99 / 100;
        let end = Instant::now() + Duration::from_secs(60);
        while streams.events() < all {
            if Instant::now() > end {
                return Err(format!("{} events of {all} came", streams.events()).into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // What is left of the first percent.
        std::thread::sleep(Duration::from_millis(500));
        Ok(streams)
    }

    /// The events of status so far.
    fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(reading) = self.reading.take() {
            // It ends with the sender.
            let _ = reading.join();
        }
    }
}

async fn connect(address: SocketAddr, request: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// Counts the events of status until the stream is dropped. An event that two reads share is not counted.
async fn count_events(mut stream: TcpStream, events: Arc<AtomicU64>) {
    const EVENT: &[u8] = b"event: status";
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let found = buffer[..count]
            .windows(EVENT.len())
            .filter(|text| *text == EVENT)
            .count();
        events.fetch_add(found as u64, Ordering::Relaxed);
    }
}

const fn pace(connections: usize, per_second: f64) -> Pace {
    Pace {
        connections,
        per_second,
        status: 200,
    }
}

fn percentiles(outcome: &Outcome, series: &mut [Series; 2]) {
    for (series, share) in series.iter_mut().zip([0.5, 0.99]) {
        series.push(outcome.percentile(share));
    }
}

fn good(outcome: &Outcome) -> Result<(), Failure> {
    match outcome.refused {
        0 => Ok(()),
        refused => Err(format!("{refused} requests were refused").into()),
    }
}

/// Two reports of each agent, one after those of all others. Every third agent works, on another task each time; the
/// others are idle.
fn reports(workspace: &str, keys: &[String], agents: usize) -> Arc<[Vec<u8>]> {
    let report = |task: usize| {
        let number = task % agents;
        let body = match number % 3 {
            0 => {
                format!(r#"{{"status":"working","current_task_id":"T-{task}","current_task_title":"Draft the notes"}}"#)
            }
            _ => r#"{"status":"idle"}"#.to_owned(),
        };
        let (key, length) = (&keys[number % keys.len()], body.len());
        format!(
            "PUT /api/agents/status?agent_id=agent-{number}&workspace_id={workspace} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    };
    (0..2 * agents).map(report).collect()
}
