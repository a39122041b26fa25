//! The command `agentcfg`.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentcfg_cli::run()
}
