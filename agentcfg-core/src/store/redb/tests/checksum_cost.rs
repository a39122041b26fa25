//! The cost of block checksums: commits with and without them, alternating.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the time")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::open::builder;
use super::super::schema::{begin_write, initialise};
use super::super::shared_state::{Opened, StoreState};
use super::super::writer::commit_group;
use super::*;

/// Batches per second in groups of `batches`, on a new file.
fn rate(with_checksums: bool, batches: usize, time: Duration) -> f64 {
    let place = tempfile::tempdir().unwrap();
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(place.path().join("store.redb"))
        .unwrap();
    let file = FileBackend::new(file).unwrap();
    let builder = builder(&RedbOptions::default());
    let database = match with_checksums {
        true => builder.create_with_backend(Blocks::new(file)).unwrap(),
        false => builder.create_with_backend(file).unwrap(),
    };
    let transaction = begin_write(&database).unwrap();
    initialise(&transaction, 0).unwrap();
    transaction.commit().unwrap();
    let opened = Opened { database, freeze: None };
    let shared = StoreState::new(opened, &RedbOptions::default(), Arc::default());
    let start = Instant::now();
    let mut number: u64 = 0;
    while start.elapsed() < time {
        let group = (0..batches).map(|_| {
            number += 1;
            // Keys spread over the whole tree, like those of many workspaces.
            let item = format!("agent-{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            batch(
                [Check::Absent(agent(&item))],
                [
                    put(&item, &format!("\"{}\"", "x".repeat(600))),
                    Write::Append {
                        log: workspace(),
                        value: format!("\"{}\"", "y".repeat(200)).into_bytes(),
                    },
                ],
            )
        });
        let (verdicts, fault) = commit_group(&shared, group.collect(), false);
        assert!(fault.is_none() && verdicts.iter().all(Result::is_ok));
    }
    number as f64 / start.elapsed().as_secs_f64()
}

/// `cargo test --release -p agentcfg-core --all-features --lib -- --ignored --nocapture block_checksums_cost`
#[test]
#[ignore = "a measurement, which needs an idle machine"]
fn block_checksums_cost_little() {
    for batches in [1, 64] {
        let mut pairs: Vec<(f64, f64)> = (0..9)
            .map(|_| {
                let time = Duration::from_millis(1500);
                (rate(true, batches, time), rate(false, batches, time))
            })
            .collect();
        pairs.sort_by(|one, other| (one.0 / one.1).total_cmp(&(other.0 / other.1)));
        let (with, without) = pairs[pairs.len() / 2];
        println!(
            "FIGURES commits of {batches}: {with:.0}/s with block checksums, {without:.0}/s without, ratio {:.3}",
            with / without
        );
    }
}
