//! What each command of the binary does.

mod dev;
mod migrate;
mod serve;
mod store;
mod token;

use std::process::ExitCode;

use crate::cli::{Cli, Command};

/// A command that did not do what was asked. The text names the cause and the way out.
pub type CommandError = Box<dyn std::error::Error + Send + Sync>;

/// Runs a command to its end.
///
/// # Errors
///
/// What stands in its way.
pub fn run(cli: Cli) -> Result<ExitCode, CommandError> {
    match cli.command {
        Command::Dev(args) => dev::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Token(args) => token::run(&args),
        Command::Backup(args) => store::backup(&args),
        Command::Restore(args) => store::restore(&args),
        Command::Check(args) => store::check(&args),
        Command::Migrate(args) => migrate::run(&args),
    }
}
