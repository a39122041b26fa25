//! Shared parts of the benchmarks: a fixture, the servers, load generators, and figures with their spread.
//!
//! Every figure is a ratio to a baseline that was measured in the same run, in alternating rounds,
//! because the speed of a shared machine drifts.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

pub mod bad_keys;
pub mod cargo;
pub mod cluster;
pub mod etcd;
pub mod fixture;
pub mod litellm;
pub mod load;
pub mod network;
pub mod nginx;
pub mod paced;
pub mod process;
pub mod product;
pub mod request;
pub mod response;
pub mod stats;
pub mod streams;
pub mod target;
pub mod wire;
pub mod wrk;

/// The reason why a benchmark could not run.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The runtime of the load generator: one thread, so that the server has the other cores.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
