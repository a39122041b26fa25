//! One and three servers on one PostgreSQL, against Express with the same work on the same PostgreSQL.
//!
//! Needs the programs of PostgreSQL, Node and the packages of `peers/express`; `scripts/bench.sh` installs them.

use agentcfg_benches::cluster::Cluster;
use agentcfg_benches::product::Product;
use agentcfg_benches::stats::{Series, rounds};
use agentcfg_benches::target::{Target, Work};
use agentcfg_benches::{Failure, runtime};

const CLIENTS: usize = 48;
const AGENTS: usize = 20;

fn main() -> Result<(), Failure> {
    let product = Product::build()?;
    let cluster = Cluster::start()?;
    let runtime = runtime()?;
    println!(
        "| work | one server, requests/s | three servers | Express, requests/s | one over Express | three over Express |"
    );
    println!("|---|---|---|---|---|---|");
    let ours = Target::shared(&product, &cluster, 3)?;
    let one = ours.first();
    let theirs = Target::express(&cluster)?;
    for target in [&ours, &theirs] {
        target.workspace.seed(target.addresses[0], AGENTS)?;
    }
    for work in [Work::List, Work::Create] {
        let mut figures = [const { Series::new() }; 3];
        for round in 0..=rounds(5) {
            for (at, target) in [&one, &ours, &theirs].into_iter().enumerate() {
                let figure = runtime.block_on(target.measure(work, CLIENTS, &format!("r{round}-{at}")))?;
                // The first round warms up.
                if round > 0 {
                    figures[at].push(figure);
                }
            }
        }
        let [single, three, express] = &figures;
        println!(
            "| {} | {single} | {three} | {express} | {} | {} |",
            work.name(),
            single.over(express),
            three.over(express)
        );
    }
    Ok(())
}
