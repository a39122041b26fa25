//! One and three servers on one PostgreSQL, against Express with the same work on the same PostgreSQL.
//!
//! Needs the programs of PostgreSQL, Node and the packages of `peers/express`; `scripts/bench.sh` installs them. With
//! `BEFORE` set to the binary of another version, a lone writer is compared with that version.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agentcfg_benches::cluster::Cluster;
use agentcfg_benches::paced::{Pace, Paced};
use agentcfg_benches::product::Product;
use agentcfg_benches::stats::{Series, rounds, seconds};
use agentcfg_benches::target::{Target, Work};
use agentcfg_benches::{Failure, network, runtime};

const CLIENTS: usize = 64;
const WORKSPACES: usize = 64;
const AGENTS: usize = 20;

fn main() -> Result<(), Failure> {
    let product = Product::build()?;
    throughput(&product)?;
    lone_writer(&product)?;
    slow_network(&product)
}

/// Requests a second at full load.
fn throughput(product: &Product) -> Result<(), Failure> {
    let cluster = Cluster::start()?;
    let runtime = runtime()?;
    println!(
        "\n| work of {CLIENTS} clients | workspaces | one server, requests/s | three servers | Express, requests/s | one over Express | three over Express | three over one |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let ours = Target::shared(product, &cluster, 3, WORKSPACES)?;
    let theirs = Target::express(&cluster, WORKSPACES)?;
    for target in [&ours, &theirs] {
        target.workspace.seed(target.addresses[0], AGENTS)?;
    }
    for (work, workspaces) in [(Work::List, 1), (Work::Create, 1), (Work::Create, WORKSPACES)] {
        let targets = [&ours.first(), &ours, &theirs].map(|target| target.in_workspaces(workspaces));
        let figures = runtime.block_on(Target::in_turn(&targets, work, CLIENTS))?;
        let [single, three, express] = &figures;
        println!(
            "| {} | {workspaces} | {single} | {three} | {express} | {} | {} | {} |",
            work.name(),
            single.over(express),
            three.over(express),
            three.over(single)
        );
    }
    Ok(())
}

/// The time of a create of one client that waits for each answer, against another version.
fn lone_writer(product: &Product) -> Result<(), Failure> {
    let Some(before) = std::env::var_os("BEFORE") else {
        return Ok(());
    };
    let before = Product::of(PathBuf::from(before))?;
    let clusters = [Cluster::start()?, Cluster::start()?];
    let runtime = runtime()?;
    let targets = [
        Target::shared(product, &clusters[0], 1, 1)?,
        Target::shared(&before, &clusters[1], 1, 1)?,
    ];
    let mut figures = [const { Series::new() }; 2];
    for round in 0..=rounds(5) {
        for (at, target) in targets.iter().enumerate() {
            let figure = runtime.block_on(target.measure(Work::Create, 1, &format!("r{round}")))?;
            if round > 0 {
                figures[at].push(1e3 / figure);
            }
        }
    }
    let [now, then] = &figures;
    println!("\n| create of a lone client, ms | version before, ms | ratio |\n|---|---|---|");
    println!("| {now} | {then} | {} |", now.over(then));
    Ok(())
}

/// Latencies with a network of 1 ms between the server and its database.
fn slow_network(product: &Product) -> Result<(), Failure> {
    const DELAY: Duration = Duration::from_micros(500);
    let cluster = Cluster::start()?;
    let far = Target::shared_over(product, &cluster, network::delayed(cluster.port(), DELAY)?)?;
    far.workspace.seed(far.addresses[0], AGENTS)?;
    println!(
        "\n| lists/s on a network of 1 ms | round trip, ms | p50, ms | p99, ms | p50, round trips |\n|---|---|---|---|---|"
    );
    let requests: Arc<[Vec<u8>]> = far.workspace.lists().into();
    for per_second in [100.0, 1000.0] {
        let pace = Pace {
            connections: 16,
            per_second,
            status: 200,
        };
        let [mut trip, mut p50, mut p99] = [const { Series::new() }; 3];
        for round in 0..=rounds(5) {
            let trip_now = network::round_trip(DELAY, per_second)?;
            let time = Duration::from_secs_f64(seconds(2.0));
            let outcome = Paced::start(far.addresses[0], pace, &requests)?.run_for(time)?;
            if outcome.refused > 0 {
                return Err(format!("{} lists were refused", outcome.refused).into());
            }
            if round > 0 {
                trip.push(trip_now);
                p50.push(outcome.percentile(0.5));
                p99.push(outcome.percentile(0.99));
            }
        }
        println!("| {per_second} | {trip} | {p50} | {p99} | {} |", p50.over(&trip));
    }
    Ok(())
}
