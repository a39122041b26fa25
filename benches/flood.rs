//! The effect of a flood of bad keys on good keys: the latency of lists at a moderate rate, first alone and then with
//! 5,000 bad requests a second over other connections.

use std::sync::Arc;
use std::time::Duration;

use agentcfg_benches::paced::{Outcome, Pace, Paced};
use agentcfg_benches::process::Server;
use agentcfg_benches::product::Product;
use agentcfg_benches::stats::{Series, rounds, seconds};
use agentcfg_benches::{Failure, bad_keys, request, target};

const AGENTS: usize = 20;
const GOOD: Pace = Pace {
    connections: 16,
    per_second: 1000.0,
    status: 200,
};
const BAD: Pace = Pace {
    connections: 64,
    per_second: 5000.0,
    status: 401,
};
/// The number of different bad keys of each kind.
const VARIETY: usize = 2048;
/// The number of keys without any rightful use.
const UNUSED: usize = 16;

fn main() -> Result<(), Failure> {
    let product = Product::build()?;
    let data = tempfile::tempdir()?;
    let server = product.serve(data.path())?;
    let workspace = product.workspace(server.address)?;
    workspace.seed(server.address, AGENTS)?;
    let unused = (0..UNUSED).map(|_| product.key(server.address, &workspace.id));
    let unused: Vec<String> = unused.collect::<Result<_, _>>()?;

    let good: Requests = workspace.lists().into();
    let kinds = [
        ("malformed", bad_keys::malformed(VARIETY)?),
        ("unknown", bad_keys::unknown(VARIETY)?),
        (
            "wrong secret of a key in use",
            bad_keys::wrong_secrets(&workspace.keys, VARIETY)?,
        ),
        (
            "wrong secret of a key never used",
            bad_keys::wrong_secrets(&unused, VARIETY)?,
        ),
    ];
    // Warms up: the first use of each good key costs a password hash.
    measure(&server, &good, None)?;
    println!(
        "| bad keys | quiet p50, ms | quiet p99, ms | flood p50, ms | flood p99, ms | p99 flood / quiet | bad ones answered/s | server CPU quiet, % of a core | flood, % |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, keys) in kinds {
        let bad: Vec<_> = keys
            .iter()
            .map(|key| request::list(&workspace.id, key).into_bytes())
            .collect();
        let bad: Requests = bad.into();
        row(name, &server, &good, (&bad, BAD))?;
    }
    // The baseline: the same two loads on a server without any logic show the share of the machine and the
    // load generator.
    let answers = tempfile::tempdir()?;
    let program = env!("CARGO_BIN_EXE_bench-server");
    let (_, bare) = target::fixed(server.address, &workspace, answers.path(), program)?;
    let any = Pace { status: 200, ..BAD };
    row("none: bare hyper gets 5,000 more lists", &bare, &good, (&good, any))
}

/// Measures quiet and flood in alternating rounds, and prints the row.
fn row(name: &str, server: &Server, good: &Requests, bad: (&Requests, Pace)) -> Result<(), Failure> {
    let (mut quiet, mut flooded) = (Latencies::default(), Latencies::default());
    let mut answered = Series::new();
    for _ in 0..rounds(5) {
        let (outcome, cpu, _) = measure(server, good, None)?;
        quiet.push(&outcome, cpu);
        let (outcome, cpu, per_second) = measure(server, good, Some(bad))?;
        flooded.push(&outcome, cpu);
        answered.push(per_second);
    }
    println!(
        "| {name} | {} | {} | {} | {} | {} | {answered} | {} | {} |",
        quiet.p50,
        quiet.p99,
        flooded.p50,
        flooded.p99,
        flooded.p99.over(&quiet.p99),
        quiet.cpu,
        flooded.cpu
    );
    Ok(())
}

type Requests = Arc<[Vec<u8>]>;

#[derive(Default)]
struct Latencies {
    p50: Series,
    p99: Series,
    cpu: Series,
}

impl Latencies {
    fn push(&mut self, outcome: &Outcome, cpu: f64) {
        self.p50.push(outcome.percentile(0.50));
        self.p99.push(outcome.percentile(0.99));
        self.cpu.push(cpu);
    }
}

/// The outcome of the good requests, the server's use of a core in per cent, and the bad requests answered per second.
fn measure(server: &Server, good: &Requests, bad: Option<(&Requests, Pace)>) -> Result<(Outcome, f64, f64), Failure> {
    let flood = bad
        .map(|(bad, pace)| Paced::start(server.address, pace, bad))
        .transpose()?;
    let before = server.cpu_seconds();
    let outcome = Paced::start(server.address, GOOD, good)?.run_for(Duration::from_secs_f64(seconds(4.0)))?;
    let cpu = (server.cpu_seconds() - before) / outcome.elapsed.as_secs_f64() * 100.0;
    let bad = flood.map(Paced::stop).transpose()?.unwrap_or_default();
    if outcome.refused + bad.refused > 0 {
        let message = format!(
            "{} good and {} bad requests got an unexpected answer",
            outcome.refused, bad.refused
        );
        return Err(message.into());
    }
    let answered = if bad.answered > 0 { bad.per_second() } else { 0.0 };
    Ok((outcome, cpu, answered))
}
