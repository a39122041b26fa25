//! The main read over HTTP, against bare hyper answering with the same fields and bytes: requests
//! per second, and processor time of the server for each request.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use agentcfg_benches::load;
use agentcfg_benches::process::Server;
use agentcfg_benches::stats::{Series, rounds, seconds};

type Failure = Box<dyn std::error::Error>;

const CONNECTIONS: usize = 64;
const PROGRAM: &str = env!("CARGO_BIN_EXE_bench-server");

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!(
        "| agents | bytes | agentcfg, requests/s | bare hyper, requests/s | ratio | CPU, µs a request | bare, µs | ratio (bare / agentcfg) |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for agents in [20, 100] {
        let data = tempfile::tempdir()?;
        let product = Server::start(
            Command::new(PROGRAM)
                .args(["api"])
                .arg(data.path())
                .arg(agents.to_string()),
        )?;
        // One key may send a million requests a minute, which is less than is sent here.
        let requests: Vec<String> = product
            .fact("keys")
            .split(',')
            .map(|key| {
                let workspace = product.fact("workspace");
                format!(
                    "GET /api/agents/configs?workspace_id={workspace} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n"
                )
            })
            .collect();
        let answer = capture(product.address, &requests[0])?;
        let file = data.path().join("answer");
        std::fs::write(&file, &answer)?;
        let bare = Server::start(Command::new(PROGRAM).arg("fixed").arg(&file))?;

        let (mut ours, mut theirs) = (Series::default(), Series::default());
        let (mut our_cpu, mut their_cpu) = (Series::default(), Series::default());
        for round in 0..=rounds(5) {
            let (per_second, cpu) = runtime.block_on(measure(&product, &requests))?;
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
async fn measure(server: &Server, requests: &[String]) -> Result<(f64, f64), Failure> {
    let requests = requests.to_vec();
    let before = server.cpu_seconds();
    let time = Duration::from_secs_f64(seconds(3.0));
    let outcome = load::run(server.address, CONNECTIONS, time, 200, move |number, out| {
        out.extend_from_slice(requests[number as usize % requests.len()].as_bytes())
    })
    .await?;
    if outcome.refused > 0 {
        return Err(format!("{} requests were refused", outcome.refused).into());
    }
    let cpu = (server.cpu_seconds() - before) * 1e6 / outcome.answered as f64;
    Ok((outcome.per_second(), cpu))
}

/// One response of the product, whole.
fn capture(address: SocketAddr, request: &str) -> Result<Vec<u8>, Failure> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    // The yardstick keeps its connections as the product does.
    let text = String::from_utf8(answer)?;
    Ok(text.replace("connection: close\r\n", "").into_bytes())
}
