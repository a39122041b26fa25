//! The same authenticated list and durable create on other stacks, alternating with the product.
//!
//! Needs the programs of PostgreSQL, Node and the packages of `peers/express` and `peers/fastify`;
//! `scripts/bench.sh` installs them.

use agentcfg_benches::cluster::Cluster;
use agentcfg_benches::product::Product;
use agentcfg_benches::stats::{Series, rounds};
use agentcfg_benches::target::{Target, Work};
use agentcfg_benches::{Failure, runtime};

const CLIENTS: usize = 64;
const AGENTS: usize = 20;

fn main() -> Result<(), Failure> {
    let product = Product::build()?;
    let cluster = Cluster::start()?;
    let data = tempfile::tempdir()?;
    let runtime = runtime()?;
    let mut targets = vec![
        Target::embedded(&product, &data.path().join("agentcfg"))?,
        Target::axum(data.path())?,
        Target::fastify(data.path())?,
        Target::express(&cluster, 1)?,
    ];
    for target in &targets {
        target.workspace.seed(target.addresses[0], AGENTS)?;
    }
    println!("| work | server | requests/s | agentcfg over it | it over bare hyper |");
    println!("|---|---|---|---|---|");
    targets.push(targets[0].bare_hyper(data.path(), env!("CARGO_BIN_EXE_bench-server"))?);
    for work in [Work::List, Work::Create] {
        if work == Work::Create {
            // Bare hyper has no create.
            targets.pop();
        }
        let mut figures = vec![Series::new(); targets.len()];
        for round in 0..=rounds(5) {
            for (target, series) in targets.iter().zip(&mut figures) {
                let figure = runtime.block_on(target.measure(work, CLIENTS, &format!("r{round}")))?;
                // The first round warms up.
                if round > 0 {
                    series.push(figure);
                }
            }
        }
        for (at, target) in targets.iter().enumerate() {
            let ratio = |shown: bool, over: &Series, under: &Series| {
                if shown { over.over(under).to_string() } else { "".into() }
            };
            let bare = &figures[figures.len() - 1];
            println!(
                "| {} | {} | {} | {} | {} |",
                work.name(),
                target.name,
                figures[at],
                ratio(at > 0, &figures[0], &figures[at]),
                ratio(work == Work::List && at + 1 < targets.len(), &figures[at], bare)
            );
        }
    }
    Ok(())
}
