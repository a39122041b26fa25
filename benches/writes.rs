//! Durable creates over HTTP: the product, the product with one transaction for each request, and
//! hyper with the group-commit writer and no rules.

use std::process::Command;
use std::time::Duration;

use agentcfg_benches::process::Server;
use agentcfg_benches::stats::{Series, rounds, seconds};
use agentcfg_benches::{Failure, load, request, runtime};

const CLIENTS: [usize; 4] = [1, 8, 64, 256];

fn main() -> Result<(), Failure> {
    let runtime = runtime()?;
    println!(
        "| clients | group commit, creates/s | one transaction each, creates/s | ratio | hyper + store, writes/s | ratio |"
    );
    println!("|---|---|---|---|---|---|");
    for clients in CLIENTS {
        let (mut group, mut single, mut store) = (Series::new(), Series::new(), Series::new());
        for round in 0..rounds(5) {
            group.push(runtime.block_on(measure(&["api", "DATA", "0"], clients, round))?);
            single.push(runtime.block_on(measure(&["api", "DATA", "0", "--single"], clients, round))?);
            store.push(runtime.block_on(measure(&["store", "DATA"], clients, round))?);
        }
        println!(
            "| {clients} | {group} | {single} | {} | {store} | {} |",
            group.over(&single),
            group.over(&store)
        );
    }
    Ok(())
}

/// Creates per second of one server on a fresh store.
async fn measure(args: &[&str], clients: usize, round: usize) -> Result<f64, Failure> {
    let data = tempfile::tempdir()?;
    let path = data.path().to_string_lossy().into_owned();
    let args = args.iter().map(|arg| if *arg == "DATA" { path.as_str() } else { arg });
    let server = Server::start(Command::new(env!("CARGO_BIN_EXE_bench-server")).args(args))?;
    let (workspace, key) = (server.fact("workspace").to_owned(), server.fact("key").to_owned());
    let create = move |number: u64, out: &mut Vec<u8>| {
        out.extend_from_slice(request::create(&workspace, &key, &format!("a{round}-{number}")).as_bytes());
    };
    let outcome = load::run(
        server.address,
        clients,
        Duration::from_secs_f64(seconds(2.0)),
        201,
        create,
    )
    .await?;
    if outcome.refused > outcome.answered / 100 {
        return Err(format!(
            "{} of {} creates were refused",
            outcome.refused,
            outcome.refused + outcome.answered
        )
        .into());
    }
    Ok(outcome.per_second())
}
