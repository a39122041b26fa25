//! From a thousand agents to a million: what grows, and how much.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::process::Command;
use std::time::{Duration, Instant};

use agentcfg_benches::load;
use agentcfg_benches::process::Server;
use agentcfg_benches::stats::{Series, rounds, seconds};

type Failure = Box<dyn std::error::Error>;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bench-server");
const AGENTS: usize = 100;

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!(
        "| agents | workspaces | creates/s | list of {AGENTS}, µs CPU a request | resident, MiB | file, MiB | ready after a clean stop, s | ready after kill -9, s |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for workspaces in [10, 100, 1_000, 10_000] {
        let data = tempfile::tempdir()?;
        let path = data.path().to_string_lossy().into_owned();
        let filled =
            Server::start(Command::new(PROGRAM).args(["fill", &path, &workspaces.to_string(), &AGENTS.to_string()]))?;
        let rate = filled.fact("rate").to_owned();
        let requests: Vec<String> = filled.fact("pairs").split(',').filter_map(request).collect();
        filled.stop()?;

        let (server, after_stop) = open(&path)?;
        let mut cpu = Series::default();
        for round in 0..=rounds(5) {
            let (requests, before) = (requests.clone(), server.cpu_seconds());
            let time = Duration::from_secs_f64(seconds(2.0));
            let outcome = runtime.block_on(load::run(server.address, 16, time, 200, move |number, out| {
                out.extend_from_slice(requests[number as usize % requests.len()].as_bytes());
            }))?;
            if round > 0 {
                cpu.push((server.cpu_seconds() - before) * 1e6 / outcome.answered as f64);
            }
        }
        let resident = server.resident_mib();
        // Dropping it kills it with the signal that cannot be caught.
        drop(server);
        let (server, after_kill) = open(&path)?;
        server.stop()?;
        let file = std::fs::metadata(data.path().join("bench.redb"))?.len() as f64 / f64::from(1 << 20);
        println!(
            "| {} | {workspaces} | {rate} | {cpu} | {resident:.0} | {file:.0} | {after_stop:.2} | {after_kill:.2} |",
            workspaces * AGENTS
        );
    }
    Ok(())
}

fn open(path: &str) -> Result<(Server, f64), Failure> {
    let started = Instant::now();
    let server = Server::start(Command::new(PROGRAM).args(["open", path]))?;
    Ok((server, started.elapsed().as_secs_f64()))
}

fn request(pair: &str) -> Option<String> {
    let (workspace, key) = pair.split_once(' ')?;
    Some(format!(
        "GET /api/agents/configs?workspace_id={workspace} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n"
    ))
}
