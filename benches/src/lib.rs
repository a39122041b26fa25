//! Shared pieces of the benchmarks: a fixture, a load generator, and figures with their spread.
//!
//! Every figure is a ratio against a yardstick that was measured in the same run, in alternating
//! rounds, because the speed of a shared machine drifts.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

pub mod fixture;
pub mod load;
pub mod process;
pub mod stats;
