//! Faults: kills, withdrawn rights, failing and full disks, restored backups, crowds of slow clients, and model
//! providers that fail.
//!
//! The test command runs a short form of each test. `scripts/fault.sh` runs the full forms: `CYCLES` and `CASES` set
//! their sizes, `SEED` the random numbers. The lines with `FIGURES` go to `docs/faults.md`.

// Tests watch real processes in real time.
#![allow(clippy::disallowed_methods)]

// The PostgreSQL servers of the suite `postgres`.
#[allow(dead_code)]
#[path = "../postgres/cluster.rs"]
mod cluster;
mod crowds;
mod disk;
mod io;
mod kills;
mod model_calls;
mod moments;
#[path = "../moments/mod.rs"]
mod oracle;
mod provider;
// The receiver of webhooks of the other end-to-end tests.
#[allow(dead_code)]
#[path = "../webhooks/receiver.rs"]
mod receiver;
mod revocations;
mod slow_webhooks;
mod tags;
mod unread;
mod usage;
