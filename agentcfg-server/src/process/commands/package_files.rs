//! `completions` and `man`: the files that a package installs, made from the definition of the command line.

use std::fs;
use std::io;
use std::process::ExitCode;

use clap::CommandFactory;

use super::error::CommandError;
use super::stdout::print;
use crate::process::cli::{Cli, CompletionsArgs, ManArgs};

/// The name of the program, and of its files.
const NAME: &str = "agentcfg-server";

pub(super) fn completions(args: &CompletionsArgs) -> Result<ExitCode, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn man(args: &ManArgs) -> Result<ExitCode, CommandError> {
    let failed = |error: io::Error| format!("--out: cannot write pages into {}: {error}", args.out.display());
    fs::create_dir_all(&args.out).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), &args.out).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}
