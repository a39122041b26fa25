//! The `agentcfg-server` binary: reads the command line and runs the command.

use std::io::Write;
use std::process::ExitCode;

use agentcfg_server::process::{self, Cli};
use clap::Parser;

/// The threads of requests and the writer of the store free each other's memory, for which the allocator of the C
/// library takes locks that they wait for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    process::run(Cli::parse()).unwrap_or_else(|error| {
        // A standard error that is closed or full is no reason for a panic.
        let _ = writeln!(std::io::stderr(), "agentcfg-server: {error}");
        ExitCode::FAILURE
    })
}
