//! The `agentcfg-server` binary: reads the command line and runs the command.

use std::process::ExitCode;

use agentcfg_server::process::{self, Cli};
use clap::Parser;

fn main() -> ExitCode {
    process::run(Cli::parse()).unwrap_or_else(|error| {
        eprintln!("agentcfg-server: {error}");
        ExitCode::FAILURE
    })
}
