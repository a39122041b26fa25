//! The main read over HTTP, against bare hyper answering with the same fields and bytes: requests
//! per second, and processor time of the server for each request.

use std::sync::Arc;
use std::time::Duration;

use agentcfg_benches::process::Server;
use agentcfg_benches::product::Product;
use agentcfg_benches::stats::{Series, rounds, seconds};
use agentcfg_benches::{Failure, load, runtime, target};

const CONNECTIONS: usize = 64;

fn main() -> Result<(), Failure> {
    let product = Product::build()?;
    let runtime = runtime()?;
    println!(
        "| agents | bytes | agentcfg, requests/s | bare hyper, requests/s | ratio | CPU, µs a request | bare, µs | ratio (bare / agentcfg) |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for agents in [20, 100] {
        let data = tempfile::tempdir()?;
        let server = product.serve(&data.path().join("data"))?;
        let workspace = product.workspace(server.address)?;
        workspace.seed(server.address, agents)?;
        let requests: Arc<[Vec<u8>]> = workspace.lists().into();
        let program = env!("CARGO_BIN_EXE_bench-server");
        let (answer, bare) = target::fixed(server.address, &workspace, data.path(), program)?;

        let (mut ours, mut theirs) = (Series::new(), Series::new());
        let (mut our_cpu, mut their_cpu) = (Series::new(), Series::new());
        for round in 0..=rounds(5) {
            let (per_second, cpu) = runtime.block_on(measure(&server, &requests))?;
            let (bare_per_second, bare_cpu) = runtime.block_on(measure(&bare, &requests))?;
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

/// Requests per second, and microseconds of processor time for each.
async fn measure(server: &Server, requests: &Arc<[Vec<u8>]>) -> Result<(f64, f64), Failure> {
    let requests = Arc::clone(requests);
    let before = server.cpu_seconds();
    let time = Duration::from_secs_f64(seconds(3.0));
    let outcome = load::run(server.address, CONNECTIONS, time, 200, move |number, out| {
        out.extend_from_slice(&requests[number as usize % requests.len()])
    })
    .await?;
    if outcome.refused > 0 {
        return Err(format!("{} requests were refused", outcome.refused).into());
    }
    let cpu = (server.cpu_seconds() - before) * 1e6 / outcome.answered as f64;
    Ok((outcome.per_second(), cpu))
}
