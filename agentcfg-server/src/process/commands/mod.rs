//! The commands of the binary.

mod backup;
mod check_config;
mod compact;
mod dev;
mod error;
mod healthcheck;
mod login_link;
mod mcp_config;
mod migrate;
mod package_files;
mod preconditions;
mod program;
mod restore;
mod rotate;
mod runtime;
mod serve;
mod stdout;
mod store;
mod token;

use std::process::ExitCode;

pub use self::error::CommandError;
use crate::process::cli::{Cli, Command};

/// Runs a command to its end.
///
/// # Errors
///
/// The cause of the failure.
///
/// ```no_run
/// use agentcfg_server::process::{self, Cli};
/// use clap::Parser;
/// process::run(Cli::parse_from(["agentcfg-server", "dev"]))?;
/// # Ok::<(), process::CommandError>(())
/// ```
pub fn run(cli: Cli) -> Result<ExitCode, CommandError> {
    match cli.command {
        Command::Dev(args) => dev::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Healthcheck(args) => healthcheck::run(&args),
        Command::CheckConfig(args) => check_config::run(&args),
        Command::Token(args) => token::run(&args),
        Command::LoginLink(args) => login_link::run(&args),
        Command::McpConfig(args) => mcp_config::run(&args),
        Command::Backup(args) => backup::run(&args, std::env::vars_os()),
        Command::Restore(args) => restore::run(&args, std::env::vars_os()),
        Command::Compact(args) => compact::run(&args, std::env::vars_os()),
        Command::Check(args) => store::check(&args, std::env::vars_os()),
        Command::Migrate(args) => migrate::run(&args),
        Command::RotateMasterKey(args) => rotate::run(&args),
        Command::Completions(args) => package_files::completions(&args),
        Command::Man(args) => package_files::man(&args),
    }
}
