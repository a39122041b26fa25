//! The main read over HTTP, against bare hyper that answers with the same headers and bytes:
//! requests per second, and processor time of the server for each request.

use std::time::Duration;

use agentcfg_benches::process::Server;
use agentcfg_benches::product::Product;
use agentcfg_benches::stats::{Series, rounds, seconds};
use agentcfg_benches::{Failure, request, target, wrk};

const CONNECTIONS: usize = 64;

fn main() -> Result<(), Failure> {
    let product = Product::build()?;
    println!(
        "| agents | bytes | agentcfg, requests/s | bare hyper, requests/s | ratio | CPU, µs a request | bare, µs | ratio (bare / agentcfg) |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for agents in [20, 100] {
        let data = tempfile::tempdir()?;
        let server = product.serve(&data.path().join("data"))?;
        let workspace = product.workspace(server.address)?;
        workspace.seed(server.address, agents)?;
        let path = request::list_path(&workspace.id);
        let program = env!("CARGO_BIN_EXE_bench-server");
        let (answer, bare) = target::fixed(server.address, &workspace, data.path(), program)?;

        let (mut ours, mut theirs) = (Series::new(), Series::new());
        let (mut our_cpu, mut their_cpu) = (Series::new(), Series::new());
        for round in 0..=rounds(5) {
            // Each round has its own key, so that none reaches its rate limit.
            let key = &workspace.keys[round % workspace.keys.len()];
            request::send(server.address, "GET", &path, key, "")?;
            let (per_second, cpu) = measure(&server, &path, key)?;
            let (bare_per_second, bare_cpu) = measure(&bare, &path, key)?;
            // The first round warms up.
            if round > 0 {
                ours.push(per_second);
                theirs.push(bare_per_second);
                our_cpu.push(cpu);
                their_cpu.push(bare_cpu);
            }
        }
        println!(
            "| {agents} | {} | {ours} | {theirs} | {} | {our_cpu} | {their_cpu} | {} |",
            answer.len(),
            ours.over(&theirs),
            their_cpu.over(&our_cpu)
        );
    }
    Ok(())
}

/// Requests per second, and microseconds of processor time for each of them.
fn measure(server: &Server, path: &str, key: &str) -> Result<(f64, f64), Failure> {
    let before = server.cpu_seconds();
    let time = Duration::from_secs_f64(seconds(3.0));
    let outcome = wrk::run(server.address, path, key, CONNECTIONS, time)?;
    if outcome.refused > 0 {
        return Err(format!("{} requests were refused", outcome.refused).into());
    }
    let cpu = (server.cpu_seconds() - before) * 1e6 / outcome.answered as f64;
    Ok((outcome.per_second(), cpu))
}
