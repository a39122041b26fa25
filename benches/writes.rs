//! Durable creates over HTTP: the product, the product with one transaction for each request, and
//! hyper with the group-commit writer without any rules.

use std::ops::Range;
use std::process::Command;
use std::time::Duration;

use agentcfg_benches::process::Server;
use agentcfg_benches::stats::{Series, rounds, seconds};
use agentcfg_benches::{Failure, load, request, runtime};

/// The placeholder for a number.
const NUMBER: &str = "##########";
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

/// Creates per second of one server on a new store.
async fn measure(args: &[&str], clients: usize, round: usize) -> Result<f64, Failure> {
    let data = tempfile::tempdir()?;
    let path = data.path().to_string_lossy().into_owned();
    let args = args.iter().map(|arg| if *arg == "DATA" { path.as_str() } else { arg });
    let server = Server::start(Command::new(env!("CARGO_BIN_EXE_bench-server")).args(args))?;
    let (workspace, key) = (server.fact("workspace").to_owned(), server.fact("key").to_owned());
    let creations = Creations::new(&workspace, &key, round);
    let create = move |number: u64, out: &mut Vec<u8>| creations.write(number, out);
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

/// The requests that create agents. They differ in one number only, so that the load generator builds one at
/// almost no cost.
struct Creations {
    text: Vec<u8>,
    /// The range of the number.
    number: Range<usize>,
}

impl Creations {
    fn new(workspace: &str, key: &str, round: usize) -> Self {
        let text = request::create(workspace, key, &format!("a{round}-{NUMBER}"));
        let start = text.find(NUMBER).unwrap_or_default();
        Self {
            text: text.into_bytes(),
            number: start..start + NUMBER.len(),
        }
    }

    fn write(&self, mut number: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.text);
        for digit in out[self.number.clone()].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
}
