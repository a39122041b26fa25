//! From a thousand agents to a million: which costs grow, and how fast; and how long a server takes to its first
//! response after a clean stop, after a kill in the middle of creates and after a kill when they have ended.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentcfg_benches::paced::{Pace, Paced};
use agentcfg_benches::process::Server;
use agentcfg_benches::product::Product;
use agentcfg_benches::stats::{Series, rounds, seconds, setting};
use agentcfg_benches::{Failure, load, request, runtime};
use tokio::runtime::Runtime;

/// Agents in each workspace.
const AGENTS: usize = 100;
const READERS: usize = 16;
/// Clients that create agents while the server is killed.
const CREATORS: usize = 64;
/// Below the server's capacity, so that a latency is that of the server and not of a queue.
const MODEST: Pace = Pace {
    connections: READERS,
    per_second: 1000.0,
    status: 200,
};

fn main() -> Result<(), Failure> {
    let product = Product::build()?;
    let runtime = runtime()?;
    println!(
        "| agents | workspaces | creates/s | list of {AGENTS}, µs CPU a request | p50, ms | p99, ms | resident, MiB | file, MiB | first answer after a clean stop, s | after kill -9 amid creates, s | after kill -9 without requests, s | acknowledged creates before the kill | of them lost |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let most = setting("AGENTS", 1_000_000);
    // The fourth is a file of about 1 GB.
    for workspaces in [10, 100, 1_000, 3_600, 10_000]
        .into_iter()
        .filter(|workspaces| workspaces * AGENTS <= most)
    {
        println!("{}", measure(&product, &runtime, workspaces)?);
    }
    Ok(())
}

/// One row of the table.
fn measure(product: &Product, runtime: &Runtime, workspaces: usize) -> Result<String, Failure> {
    let directory = tempfile::tempdir()?;
    let data = directory.path();
    // The first start creates the directory with its keys and an empty store, which is then filled without sockets.
    product.serve(data)?.stop()?;
    let filled = fill(data, workspaces)?;
    let rate = filled.fact("rate").to_owned();
    let workspaces_with_keys: Vec<(String, String)> = filled
        .fact("pairs")
        .split(',')
        .filter_map(|pair| pair.split_once(' '))
        .map(|(workspace, key)| (workspace.to_owned(), key.to_owned()))
        .collect();
    filled.stop()?;
    let known = Known::new(workspaces_with_keys)?;

    let (server, after_stop) = known.open(product, data)?;
    let (mut cpu, mut p50, mut p99) = (Series::new(), Series::new(), Series::new());
    for round in 0..=rounds(5) {
        let used = known.read(&server, runtime)?;
        let paced = Paced::start(server.address, MODEST, &known.lists)?.run_for(time())?;
        // The first round warms up.
        if round > 0 {
            cpu.push(used);
            p50.push(paced.percentile(0.50));
            p99.push(paced.percentile(0.99));
        }
    }
    let resident = server.resident_mib();
    let acknowledged = known.kill_amid_creates(server, runtime)?;
    let (server, after_kill) = known.open(product, data)?;
    let lost = known.missing(server.address, &acknowledged)?;
    // Dropping the server sends SIGKILL.
    drop(server);
    let (server, after_quiet_kill) = known.open(product, data)?;
    drop(server);
    let file = std::fs::metadata(data.join(STORE))?.len() as f64 / f64::from(1 << 20);
    Ok(format!(
        "| {} | {workspaces} | {rate} | {cpu} | {p50} | {p99} | {resident:.0} | {file:.0} | {after_stop:.2} | {after_kill:.2} | {after_quiet_kill:.2} | {} | {lost} |",
        workspaces * AGENTS,
        acknowledged.len()
    ))
}

/// The store's file in a data directory.
const STORE: &str = "store.redb";

fn fill(data: &Path, workspaces: usize) -> std::io::Result<Server> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_bench-server"));
    program.arg("fill").arg(data.join(STORE));
    Server::start(program.args([workspaces, AGENTS].map(|count| count.to_string())))
}

fn time() -> Duration {
    Duration::from_secs_f64(seconds(2.0))
}

/// A sample of the workspaces, each with a key.
struct Known {
    workspaces: Arc<[(String, String)]>,
    lists: Arc<[Vec<u8>]>,
}

impl Known {
    fn new(workspaces: Vec<(String, String)>) -> Result<Self, Failure> {
        let lists = workspaces
            .iter()
            .map(|(workspace, key)| request::list(workspace, key).into_bytes());
        let lists: Vec<_> = lists.collect();
        if lists.is_empty() {
            return Err("nothing was filled".into());
        }
        Ok(Self {
            lists: lists.into(),
            workspaces: workspaces.into(),
        })
    }

    /// Starts the server; returns it with the seconds until its first response to an authenticated list.
    fn open(&self, product: &Product, data: &Path) -> Result<(Server, f64), Failure> {
        let started = Instant::now();
        let server = product.serve(data)?;
        self.agents(server.address, 0)?;
        Ok((server, started.elapsed().as_secs_f64()))
    }

    /// The identifiers of the agents in one of the workspaces.
    fn agents(&self, address: SocketAddr, number: usize) -> Result<HashSet<String>, Failure> {
        let (workspace, key) = &self.workspaces[number];
        let answer = request::send(address, "GET", &request::list_path(workspace), key, "")?;
        let listed = request::body(&answer).filter(|_| answer.contains(" 200 "));
        let listed = listed.as_ref().and_then(serde_json::Value::as_array).ok_or("no list")?;
        let ids = listed.iter().filter_map(|agent| agent.get("agent_id")?.as_str());
        Ok(ids.map(str::to_owned).collect())
    }

    /// Microseconds of processor time for each list under full load.
    fn read(&self, server: &Server, runtime: &Runtime) -> Result<f64, Failure> {
        let (lists, before) = (Arc::clone(&self.lists), server.cpu_seconds());
        let outcome = runtime.block_on(load::run(server.address, READERS, time(), 200, move |number, out| {
            out.extend_from_slice(&lists[number as usize % lists.len()]);
        }))?;
        Ok((server.cpu_seconds() - before) * 1e6 / outcome.answered as f64)
    }

    /// Kills the server during creates; returns the numbers of the creates that it had acknowledged.
    fn kill_amid_creates(&self, server: Server, runtime: &Runtime) -> Result<Vec<u64>, Failure> {
        let workspaces = Arc::clone(&self.workspaces);
        let create = move |number: u64, out: &mut Vec<u8>| {
            let (workspace, key) = &workspaces[number as usize % workspaces.len()];
            out.extend_from_slice(request::create(workspace, key, &late_agent_id(number)).as_bytes());
        };
        // Dropping the server sends SIGKILL.
        let kill = load::until_gone(server.address, CREATORS, time(), 201, create, move || drop(server));
        Ok(runtime.block_on(kill)?)
    }

    /// The number of acknowledged creates that are missing.
    fn missing(&self, address: SocketAddr, acknowledged: &[u64]) -> Result<usize, Failure> {
        let lists: Vec<HashSet<String>> = (0..self.workspaces.len())
            .map(|number| self.agents(address, number))
            .collect::<Result<_, _>>()?;
        let is_missing = |number: &&u64| !lists[**number as usize % lists.len()].contains(&late_agent_id(**number));
        Ok(acknowledged.iter().filter(is_missing).count())
    }
}

/// The identifier of an agent that is created before the kill.
fn late_agent_id(number: u64) -> String {
    format!("late_agent_id-{number}")
}
