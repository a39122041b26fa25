//! Faults: kills, withdrawn rights, failing and full disks, restored backups, and crowds of slow clients.
//!
//! The test command runs a short form of each test. `scripts/fault.sh` runs the full forms: `CYCLES` and `CASES` set their sizes,
//! `SEED` the random numbers. The lines with `FIGURES` go to `docs/faults.md`.

// Tests watch real processes in real time.
#![allow(clippy::disallowed_methods)]

mod crowds;
mod disk;
mod io;
mod kills;
mod moments;
#[path = "../moments/mod.rs"]
mod oracle;
mod provider;
mod revocations;
mod tags;
